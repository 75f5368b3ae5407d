/** Weights in shards: read in place from several files, through a cache's links, and every way the shards can be wrong. */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { randomWeights, temporaryFolder, TINY_LLAMA, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import { checkpointHash, openCheckpoint, readWeights } from './checkpoint.js';
import { Engine } from './engine.js';
import { writeTensors } from './safetensors.js';
import { openWeightFiles } from './weight-files.js';

const SHARDS = 3;
const shard = (i: number): string => `model-0000${i + 1}-of-0000${SHARDS}.safetensors`;

/** A checkpoint in three shards, its tensors dealt out in turn. */
function shardedCheckpoint(): string {
  const folder = tinyCheckpoint(TINY_LLAMA, 1);
  const weights = [...randomWeights(TINY_LLAMA, 1)];
  for (let i = 0; i < SHARDS; i++) {
    writeTensors(join(folder, shard(i)), new Map(weights.filter((_, at) => at % SHARDS === i)));
  }
  const weight_map = Object.fromEntries(weights.map(([name], at) => [name, shard(at % SHARDS)]));
  writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({ metadata: {}, weight_map }));
  rmSync(join(folder, 'model.safetensors'));
  return folder;
}

function changeIndex(folder: string, change: (map: Record<string, unknown>) => void): void {
  const file = join(folder, 'model.safetensors.index.json');
  const index = JSON.parse(readFileSync(file, 'utf8')) as { weight_map: Record<string, unknown> };
  change(index.weight_map);
  writeFileSync(file, JSON.stringify(index));
}

/** Move a folder's files into `blobs/` beside it and leave links, as the Hugging Face cache has them. */
function intoCache(folder: string): void {
  const blobs = join(folder, '..', `${folder.split('/').at(-1)}-blobs`);
  mkdirSync(blobs);
  for (const [i, name] of ['model.safetensors', ...Array.from({ length: SHARDS }, (_, n) => shard(n))].entries()) {
    const file = join(folder, name);
    if (!existsSync(file)) continue;
    renameSync(file, join(blobs, `sha-${i}`));
    symlinkSync(join('..', blobs.split('/').at(-1)!, `sha-${i}`), file);
  }
}

const REQUEST = {
  prompts: [[1, 5]],
  perPrompt: 3,
  maxNewTokens: 6,
  temperature: 1,
  stops: [2],
  seed: 1,
  adapter: null,
};
const HIDDEN = { sequences: [[1, 5, 9, 4]], layers: [2], poolings: ['mean'] } as const;

describe('a checkpoint in shards', () => {
  it('has the weights, hidden states and rollouts of the same in one file', async () => {
    const [sharded, single] = [shardedCheckpoint(), tinyCheckpoint(TINY_LLAMA, 1)];
    expect(readWeights(openCheckpoint(sharded))).toEqual(readWeights(openCheckpoint(single)));
    const engine = await Engine.create({ provider: 'cpu', threads: 1 });
    expect(await engine.hiddenStates(sharded, HIDDEN)).toEqual(await engine.hiddenStates(single, HIDDEN));
    expect(await engine.rollout(sharded, REQUEST)).toEqual(await engine.rollout(single, REQUEST));
    await engine.close();
  });

  it.each([
    ['shards', shardedCheckpoint],
    ['one file', () => tinyCheckpoint(TINY_LLAMA, 1)],
  ])('runs from a cache whose snapshot is links, of %s', async (_, make) => {
    const folder = make();
    const engine = await Engine.create({ provider: 'cpu', threads: 1 });
    const before = await engine.rollout(folder, REQUEST);
    await engine.close();
    intoCache(folder);
    const again = await Engine.create({ provider: 'cpu', threads: 1 });
    expect(await again.rollout(folder, REQUEST)).toEqual(before);
    await again.close();
  });

  it('has a hash that follows every shard', () => {
    const folder = shardedCheckpoint();
    const hash = checkpointHash(folder);
    expect(checkpointHash(shardedCheckpoint())).toBe(hash);
    const file = join(folder, shard(1));
    const bytes = readFileSync(file);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(file, bytes);
    expect(checkpointHash(folder)).not.toBe(hash);
  });

  it('is the one file where that lies beside shards', () => {
    const folder = shardedCheckpoint();
    writeTensors(join(folder, 'model.safetensors'), randomWeights(TINY_LLAMA, 2));
    expect(openWeightFiles(folder).paths).toEqual([join(folder, 'model.safetensors')]);
  });
});

describe('shards that are wrong are refused', () => {
  const refusal = (break_: (folder: string) => void): string => {
    const folder = shardedCheckpoint();
    break_(folder);
    try {
      openCheckpoint(folder);
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message}`.replaceAll(folder, 'F');
    }
    return 'nothing thrown';
  };
  const NORM = 'model.norm.weight';

  it.each([
    [
      'two are missing',
      (f: string) => [1, 2].forEach((i) => rmSync(join(f, shard(i)))),
      `F lacks 2 of its 3 shards: ${shard(1)}, ${shard(2)}; fetch them`,
    ],
    [
      'one is cut off',
      (f: string) => truncateSync(join(f, shard(1)), 300),
      `F/${shard(1)} is not a usable safetensors`,
    ],
    [
      'the index places a tensor elsewhere',
      (f: string) => changeIndex(f, (map) => (map[NORM] = map[NORM] === shard(0) ? shard(1) : shard(0))),
      `F/model.safetensors.index.json places '${NORM}' in`,
    ],
    [
      'the index lacks a tensor',
      (f: string) => changeIndex(f, (map) => delete map[NORM]),
      `F/model.safetensors.index.json has no tensor '${NORM}', which config.json calls for`,
    ],
    [
      'the index leads out of the folder',
      (f: string) => changeIndex(f, (map) => (map[NORM] = '../secret.safetensors')),
      `F/model.safetensors.index.json: weight_map.${NORM}: is not the name of a safetensors file`,
    ],
    [
      'the index is no JSON',
      (f: string) => writeFileSync(join(f, 'model.safetensors.index.json'), '{'),
      'F/model.safetensors.index.json cannot be read as JSON',
    ],
    [
      'they lie in two folders',
      (f: string) => {
        const elsewhere = temporaryFolder();
        renameSync(join(f, shard(2)), join(elsewhere, 'x.safetensors'));
        symlinkSync(join(elsewhere, 'x.safetensors'), join(f, shard(2)));
      },
      'the shards of F lie in F and ',
    ],
  ])('when %s', (_, break_, message) => {
    expect(refusal(break_)).toContain(`UserError: ${message}`);
  });
});
