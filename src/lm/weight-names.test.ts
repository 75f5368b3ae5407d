/** Names that files give to weights, as transformers 5 reads them (`npm run peers -- transformers` compares the numbers). */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomWeights, temporaryFolder, TINY_LLAMA, TINY_QWEN2, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import type { Tensor } from '../onnx/session.js';
import { initialAdapter } from './adapter.js';
import type { Adapter } from './adapter.js';
import { openCheckpoint, readWeights, writeCheckpoint } from './checkpoint.js';
import { formatConfig } from './config.js';
import type { DecoderConfig } from './config.js';
import { Engine } from './engine.js';
import { writeMergedWeights } from './merge.js';
import { readTensorEntries, writeTensors } from './safetensors.js';

const TOKENS = { bos: 1, eos: 2, pad: 0 };
const EMBEDDING = 'model.embed_tokens.weight';
const HEAD = 'lm_head.weight';
const UNTIED: DecoderConfig = { ...TINY_LLAMA, tiedHead: false };

let engine: Engine;
beforeAll(async () => {
  engine = await Engine.create({ provider: 'cpu', threads: 1 });
});
afterAll(() => engine.close());

/** A checkpoint whose file has these tensors, in this order. */
function checkpointOf(config: DecoderConfig, tensors: Iterable<readonly [string, Tensor]>): string {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'config.json'), formatConfig(config, TOKENS));
  writeTensors(join(folder, 'model.safetensors'), new Map(tensors));
  return folder;
}

function logProbs(folder: string): Promise<Float32Array> {
  const ids = BigInt64Array.of(1n, 5n, 9n, 4n, 3n);
  const labels = BigInt64Array.of(5n, 9n, 4n, 3n, 7n);
  return engine.logProbs(folder, { batch: 1, time: 5, ids, labels, mask: new Float32Array(5).fill(1) }, null);
}

const renamed = (weights: ReadonlyMap<string, Tensor>, rename: (name: string) => string): [string, Tensor][] =>
  [...weights].map(([name, tensor]) => [rename(name), tensor]);

describe('weights under other names', () => {
  const weights = randomWeights(TINY_QWEN2, 1);
  it('without the prefix are the same weights', async () => {
    const folder = checkpointOf(
      TINY_QWEN2,
      renamed(weights, (name) => name.replace(/^model\./, '')),
    );
    expect(readWeights(openCheckpoint(folder))).toEqual(weights);
    expect(await logProbs(folder)).toEqual(await logProbs(tinyCheckpoint(TINY_QWEN2, 1)));
  });

  it('have an adapter merged into them, under the names that they have', () => {
    const layout = { rank: 2, alpha: 4, targets: ['q_proj', 'down_proj'] };
    const { factors } = initialAdapter(TINY_QWEN2, layout, 1);
    const filled = new Map(
      [...factors].map(([name, { shape, data }]) => [name, { shape, data: data.map((x) => x + 0.1) }]),
    );
    const adapter: Adapter = { layout, factors: filled };
    const folder = checkpointOf(
      TINY_QWEN2,
      renamed(weights, (name) => name.replace(/^model\./, '')),
    );
    const [plain, merged] = [temporaryFolder(), temporaryFolder()];
    writeMergedWeights(tinyCheckpoint(TINY_QWEN2, 1), adapter, plain);
    writeMergedWeights(folder, adapter, merged);
    writeFileSync(join(plain, 'config.json'), formatConfig(TINY_QWEN2, TOKENS));
    writeFileSync(join(merged, 'config.json'), formatConfig(TINY_QWEN2, TOKENS));
    expect([...readTensorEntries(join(merged, 'model.safetensors')).keys()]).toContain(
      'layers.0.self_attn.q_proj.weight',
    );
    expect(readWeights(openCheckpoint(merged))).toEqual(readWeights(openCheckpoint(plain)));
    expect(readWeights(openCheckpoint(merged))).not.toEqual(weights);
  });
});

describe('a head that is to be the embedding', () => {
  const weights = randomWeights(UNTIED, 1);
  const tied = new Map([...weights].filter(([name]) => name !== HEAD));

  it('is a head of its own where the file has other numbers for it', async () => {
    const folder = checkpointOf(TINY_LLAMA, weights);
    expect(openCheckpoint(folder).config).toEqual(UNTIED);
    const plain = temporaryFolder();
    writeCheckpoint(plain, UNTIED, weights, TOKENS);
    expect(await logProbs(folder)).toEqual(await logProbs(plain));
    expect(await logProbs(folder)).not.toEqual(await logProbs(checkpointOf(TINY_LLAMA, tied)));
  });

  it('stays the embedding where the file has the same numbers', () => {
    const folder = checkpointOf(TINY_LLAMA, [...tied, [HEAD, weights.get(EMBEDDING)!]]);
    expect(openCheckpoint(folder).config).toEqual(TINY_LLAMA);
    expect(readWeights(openCheckpoint(folder))).toEqual(tied);
  });

  it('is the embedding where the file has the head alone', async () => {
    const folder = checkpointOf(
      TINY_LLAMA,
      renamed(tied, (name) => (name === EMBEDDING ? HEAD : name)),
    );
    expect(openCheckpoint(folder).config).toEqual(TINY_LLAMA);
    expect(await logProbs(folder)).toEqual(await logProbs(checkpointOf(TINY_LLAMA, tied)));
  });
});
