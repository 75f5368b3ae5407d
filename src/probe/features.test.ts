import { expect, test } from 'vitest';
import type { HiddenRequest } from '../lm/request-checks.js';
import { formatSpec, PooledStates, tokenSequences } from './features.js';
import type { FeatureSpec, ReferenceModel } from './features.js';

const requests: HiddenRequest[] = [];
/** State of row r at layer l: (100 l + r, +0.5) for the mean, (−100 l − r, −0.5) for the last token. */
const model = {
  config: { width: 2, maxPositions: 4 },
  tokenizer: { prompt: (text: string) => [1, ...Array.from(text, Number)] },
  hiddenStates: async (request: HiddenRequest) => {
    requests.push(request);
    return new Map(
      request.layers.map((layer) => {
        const data = request.sequences.flatMap((_, row) =>
          request.poolings.flatMap((pooling) =>
            pooling === 'mean' ? [100 * layer + row, 0.5] : [-100 * layer - row, -0.5],
          ),
        );
        return [
          layer,
          { shape: [request.sequences.length, request.poolings.length, 2], data: Float32Array.from(data) },
        ];
      }),
    );
  },
} as unknown as ReferenceModel;

const first: FeatureSpec = [
  { layer: 3, pooling: 'last' },
  { layer: 1, pooling: 'mean' },
];
const second: FeatureSpec = [{ layer: 2, pooling: 'mean' }];

test('one request serves every spec, and columns lie in the order of the spec', async () => {
  const states = await PooledStates.extract(model, [[1], [1]], [first, second]);
  expect(requests).toEqual([{ sequences: [[1], [1]], layers: [1, 2, 3], poolings: ['last', 'mean'] }]);
  expect(states.matrix(first)).toEqual({
    rows: 2,
    columns: 4,
    data: Float32Array.of(-300, -0.5, 100, 0.5, -301, -0.5, 101, 0.5),
  });
  expect(states.matrix(second).data).toEqual(Float32Array.of(200, 0.5, 201, 0.5));
  expect(() => states.matrix([{ layer: 4, pooling: 'mean' }])).toThrow('the mean of layer 4 was not extracted');
});

test('a text longer than the positions of the model is an error, never scored by a part', () => {
  expect(tokenSequences(model, ['23', '234'])).toEqual([
    [1, 2, 3],
    [1, 2, 3, 4],
  ]);
  expect(() => tokenSequences(model, ['23', '2345'])).toThrow(
    'a task of 5 tokens is longer than the reference model reads, 4; label again, which leaves such tasks out',
  );
});

test('a spec has a short name', () => {
  expect(formatSpec(first)).toBe('3.last+1.mean');
});
