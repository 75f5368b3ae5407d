/** The engine's batching: what it groups, pads and evicts must not show. */
import { describe, expect, it } from 'vitest';
import { TINY_LLAMA, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import { seededRandom } from '../metrics/random.js';
import { initialAdapter } from './adapter.js';
import { Engine } from './engine.js';

const engine = await Engine.create({ provider: 'cpu', threads: 1 });

describe('hidden states', () => {
  it('come in the order of the sequences, each as if it were alone', async () => {
    const folder = tinyCheckpoint();
    const random = seededRandom(1);
    const sequences = Array.from({ length: 70 }, () =>
      Array.from({ length: 1 + Math.floor(random() * 12) }, () => Math.floor(random() * TINY_LLAMA.vocabulary)),
    );
    const layers = [0, 2];
    const poolings = ['last', 'mean'] as const;
    const together = await engine.hiddenStates(folder, { sequences, layers, poolings });
    for (const [i, sequence] of sequences.entries()) {
      const alone = await engine.hiddenStates(folder, { sequences: [sequence], layers, poolings });
      for (const layer of layers) {
        const own = together.get(layer)!.data.subarray(i * 2 * 16, (i + 1) * 2 * 16);
        alone.get(layer)!.data.forEach((x, j) => expect(Math.abs(x - own[j]!)).toBeLessThan(1e-5));
      }
    }
  });

  it('of layer 0 are the embeddings: the last token’s, and the mean of those after the first', async () => {
    const folder = tinyCheckpoint();
    const states = async (sequence: number[]): Promise<number[][]> => {
      const request = { sequences: [sequence], layers: [0], poolings: ['last', 'mean'] } as const;
      const { data } = (await engine.hiddenStates(folder, request)).get(0)!;
      return [[...data.subarray(0, 16)], [...data.subarray(16)]];
    };
    const [[five], [nine]] = [await states([5]), await states([9])];
    const [last, mean] = await states([3, 5, 9]);
    expect(last).toEqual(nine);
    mean!.forEach((x, i) => expect(x).toBeCloseTo((five![i]! + nine![i]!) / 2, 6));
    // A sequence of one token has no token after the first: its mean is its state.
    expect((await states([5]))[1]).toEqual(five);
  });
});

describe('compiled graphs', () => {
  it('that were let go are compiled again, to the same results', async () => {
    const folder = tinyCheckpoint();
    const request = { prompts: [[1, 5]], perPrompt: 2, maxNewTokens: 4, temperature: 1, stops: [2], seed: 1 };
    const withRank = (rank: number): Promise<unknown> =>
      engine.rollout(folder, {
        ...request,
        adapter: initialAdapter(TINY_LLAMA, { rank, alpha: rank, targets: ['q_proj'] }, 1),
      });
    const first = await withRank(1);
    for (let rank = 2; rank <= 10; rank++) await withRank(rank);
    expect(await withRank(1)).toEqual(first);
  });
});

describe('a trainer’s handle', () => {
  it('is known until it is released', async () => {
    const folder = tinyCheckpoint();
    const adapter = initialAdapter(TINY_LLAMA, { rank: 1, alpha: 1, targets: ['q_proj'] }, 1);
    const handle = await engine.createTrainer(folder, adapter.layout, adapter.factors);
    expect(engine.trainerState(handle).step).toBe(0);
    expect(engine.trainedValues(handle)).toEqual(adapter.factors);
    await engine.releaseTrainer(handle);
    expect(() => engine.trainerState(handle)).toThrow(`no trainer ${handle}`);
  });
});
