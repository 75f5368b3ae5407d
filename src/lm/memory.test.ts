/** What saves memory must not show: the same losses, gradients, states and tokens as the plain graphs'. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { temporaryFolder, TINY_LLAMA, TINY_QWEN2, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import { filledAdapter } from '../../tests/filled-adapter.js';
import { seededRandom } from '../metrics/random.js';
import { Differentiable } from '../onnx/differentiable.js';
import type { Dialect } from '../onnx/graph.js';
import { bool, floatData, floats, integers, scalar, Session } from '../onnx/session.js';
import type { Feeds, Fetches } from '../onnx/session.js';
import type { AdapterLayout } from './adapter.js';
import { bindWeights, openCheckpoint, readWeights } from './checkpoint.js';
import type { Checkpoint } from './checkpoint.js';
import { Engine } from './engine.js';
import { memoryPlan } from './memory.js';
import type { TokenBatch } from './batch-rows.js';
import type { UpdateMemory } from './memory.js';
import { emitLogProbs, updateGraph } from './update-graph.js';
import type { Trainable } from './update-graph.js';

const LAYOUT: AdapterLayout = { rank: 2, alpha: 4, targets: ['q_proj', 'v_proj', 'o_proj', 'up_proj', 'down_proj'] };
const [BATCH, TIME] = [4, 7];

function tokenBatch(vocabulary: number): TokenBatch {
  const random = seededRandom(4);
  const tokens = (): BigInt64Array =>
    BigInt64Array.from({ length: BATCH * TIME }, () => BigInt(Math.floor(random() * vocabulary)));
  const mask = Float32Array.from({ length: BATCH * TIME }, (_, i) => (i % TIME < 2 ? 0 : 1));
  return { batch: BATCH, time: TIME, ids: tokens(), labels: tokens(), mask };
}

function updateFeeds(checkpoint: Checkpoint, trainable: Trainable): Feeds {
  const { ids, labels, mask } = tokenBatch(checkpoint.config.vocabulary);
  const random = seededRandom(5);
  const rows = (scale: number, shift: number): Feeds[string] =>
    floats(
      Float32Array.from(mask, () => shift + scale * (random() - 0.5)),
      [BATCH, TIME],
    );
  const values =
    trainable === 'weights' ? readWeights(checkpoint) : filledAdapter(checkpoint.config, LAYOUT, 6).factors;
  return {
    ids: integers(ids, [BATCH, TIME]),
    labels: integers(labels, [BATCH, TIME]),
    mask: floats(mask, [BATCH, TIME]),
    advantages: rows(2, 0),
    oldLogProbs: rows(0.5, -3.2),
    referenceLogProbs: rows(0.5, -3.2),
    onPolicy: bool(false),
    tokens: scalar(20),
    clip: scalar(0.2),
    kl: scalar(0.1),
    entropy: scalar(0.01),
    ...Object.fromEntries([...values].map(([name, t]) => [name, floats(t.data, t.shape)])),
  };
}

async function update(
  checkpoint: Checkpoint,
  trainable: Trainable,
  memory: UpdateMemory,
  dialect: Dialect = 'fused',
): Promise<Fetches> {
  const session = await Session.create(updateGraph(checkpoint, trainable, dialect, memory), {
    provider: 'cpu',
    threads: 1,
    externalFolder: checkpoint.weightsFolder,
  });
  const out = await session.run(updateFeeds(checkpoint, trainable));
  await session.release();
  return out;
}

/** Largest |difference| of any output over its largest |value|. */
function worstDifference(out: Fetches, reference: Fetches): number {
  expect(Object.keys(out)).toEqual(Object.keys(reference));
  const errors = Object.keys(out).map((name) => {
    expect(out[name]!.dims).toEqual(reference[name]!.dims);
    const [a, b] = [floatData(out[name]), floatData(reference[name])];
    const scale = Math.max(...b.map(Math.abs)) || 1;
    return Math.max(...a.map((x, i) => Math.abs(x - b[i]!))) / scale;
  });
  return Math.max(...errors);
}

describe.each([
  ['the weights of a llama with a tied head', TINY_LLAMA, 'weights'],
  ['the weights of a qwen2', TINY_QWEN2, 'weights'],
  ['an adapter of a llama', TINY_LLAMA, LAYOUT],
] as const)('an update of %s', (_, config, trainable) => {
  it.each([
    ['logits by chunks that divide the 28 rows', { headRows: 7, recompute: false }],
    ['logits by chunks that do not: 6 of 5 rows, 2 of them filling', { headRows: 5, recompute: false }],
    ['more chunk than rows', { headRows: 1000, recompute: false }],
    ['layers computed again', { headRows: null, recompute: true }],
    ['both', { headRows: 9, recompute: true }],
  ] as const)('has the plain graph’s losses and gradients to 1e-6 with %s', async (_name, memory) => {
    const checkpoint = openCheckpoint(tinyCheckpoint(config));
    const plain = await update(checkpoint, trainable, { headRows: null, recompute: false });
    expect(Math.abs(floatData(plain['loss'])[0]!)).toBeGreaterThan(1e-3);
    expect(worstDifference(await update(checkpoint, trainable, memory), plain)).toBeLessThan(1e-6);
  });

  it('has them in the standard dialect too', async () => {
    const checkpoint = openCheckpoint(tinyCheckpoint(config));
    const plain = await update(checkpoint, trainable, { headRows: null, recompute: false }, 'standard');
    const small = await update(checkpoint, trainable, { headRows: 9, recompute: true }, 'standard');
    expect(worstDifference(small, plain)).toBeLessThan(3e-6);
  });
});

describe('log-probabilities', () => {
  it('by chunks are the plain ones', async () => {
    const checkpoint = openCheckpoint(tinyCheckpoint());
    const { ids, labels } = tokenBatch(TINY_LLAMA.vocabulary);
    const run = async (headRows: number | null): Promise<Fetches> => {
      const g = new Differentiable('fused');
      emitLogProbs(g, checkpoint.config, bindWeights(g, checkpoint), null, headRows);
      const settings = { provider: 'cpu', threads: 1, externalFolder: checkpoint.weightsFolder } as const;
      const session = await Session.create(g, settings);
      const out = await session.run({ ids: integers(ids, [BATCH, TIME]), labels: integers(labels, [BATCH, TIME]) });
      await session.release();
      return out;
    };
    expect(worstDifference(await run(5), await run(null))).toBeLessThan(1e-6);
  });
});

describe('one session for all graphs of a checkpoint', () => {
  const request = {
    perPrompt: 3,
    maxNewTokens: 8,
    temperature: 1,
    stops: [2],
    seed: 3,
    prompts: [
      [1, 5],
      [4, 9, 3],
    ],
  };

  /** Everything an engine does with a model, and how many sessions it compiled for it. */
  async function work(engine: Engine, folder: string): Promise<Record<string, unknown>> {
    const { factors, layout } = filledAdapter(TINY_LLAMA, LAYOUT, 6);
    const adapter = { factors, layout };
    const handle = await engine.createTrainer(folder, layout, factors);
    const batch = tokenBatch(TINY_LLAMA.vocabulary);
    const terms = {
      advantages: batch.mask,
      oldLogProbs: null,
      referenceLogProbs: await engine.logProbs(folder, batch, null),
    };
    const report = await engine.accumulate(
      handle,
      { ...batch, ...terms },
      { tokens: 20, clip: 0.2, kl: 0.1, entropy: 0.01 },
    );
    await engine.releaseTrainer(handle);
    const hidden = await engine.hiddenStates(folder, { sequences: [[1, 7], [4]], layers: [0, 2], poolings: ['mean'] });
    const samples = await engine.rollout(folder, { ...request, adapter });
    return {
      report,
      hidden,
      tokens: samples.map((s) => s.tokens),
      plain: await engine.rollout(folder, { ...request, adapter: null }),
    };
  }

  it('computes what a session for each does', async () => {
    const folder = tinyCheckpoint();
    const [small, fast] = [
      await Engine.create({ provider: 'cpu', threads: 1, memory: 'small' }),
      await Engine.create({ provider: 'cpu', threads: 1, memory: 'fast' }),
    ];
    const [one, many] = [await work(small, folder), await work(fast, folder)];
    expect(one['tokens']).toEqual(many['tokens']);
    const numbers = (value: unknown): number[] =>
      typeof value === 'number'
        ? [value]
        : value instanceof Map || Array.isArray(value) || ArrayBuffer.isView(value)
          ? [...(value as Iterable<unknown>)].flatMap(numbers)
          : value !== null && typeof value === 'object'
            ? Object.values(value).flatMap(numbers)
            : [];
    const [a, b] = [numbers(one), numbers(many)];
    expect(a.length).toBeGreaterThan(100);
    expect(a).toHaveLength(b.length);
    a.forEach((x, i) => expect(Math.abs(x - b[i]!)).toBeLessThan(1e-5));
    await small.close();
    await fast.close();
  });

  it('is compiled no more once all graphs are known, nor for another path to the folder', async () => {
    const folder = tinyCheckpoint();
    const link = join(temporaryFolder(), 'reference');
    symlinkSync(folder, link);
    const engine = await Engine.create({ provider: 'cpu', threads: 1, memory: 'small' });
    await engine.hiddenStates(folder, { sequences: [[1]], layers: [1], poolings: ['last'] });
    await engine.rollout(folder, { ...request, adapter: null });
    const compiled = vi.spyOn(Session, 'create');
    await engine.hiddenStates(link, { sequences: [[3, 4]], layers: [1], poolings: ['last'] });
    await engine.rollout(link, { ...request, adapter: null });
    expect(compiled).not.toHaveBeenCalled();
    compiled.mockRestore();
    await engine.close();
  });
});

describe('memoryPlan', () => {
  const qwen3b = {
    ...TINY_QWEN2,
    vocabulary: 151_936,
    width: 2048,
    layers: 36,
    heads: 16,
    kvHeads: 2,
    headDim: 128,
    feedForward: 11_008,
  };
  it('leaves small models as fast as they are', () => {
    expect(memoryPlan(TINY_LLAMA, 'auto', 'cpu')).toEqual({ shareWeights: false, headRows: null, recompute: false });
  });
  it('saves all it can with one of 3 billion parameters: 55 rows of 151,936 float32 logits are 32 MiB', () => {
    expect(memoryPlan(qwen3b, 'auto', 'cpu')).toEqual({ shareWeights: true, headRows: 55, recompute: true });
  });
  it('shares weights where an If leaves them in place, and has chunks where there is a Loop', () => {
    expect(memoryPlan(qwen3b, 'auto', 'cuda')).toEqual({ shareWeights: true, headRows: 55, recompute: true });
    expect(memoryPlan(qwen3b, 'auto', 'coreml').shareWeights).toBe(false);
    expect(memoryPlan(qwen3b, 'auto', 'webgpu')).toEqual({ shareWeights: false, headRows: null, recompute: true });
  });
  it('does as it is told', () => {
    expect(memoryPlan(qwen3b, 'fast', 'cpu')).toEqual({ shareWeights: false, headRows: null, recompute: false });
    expect(memoryPlan(TINY_LLAMA, 'small', 'cpu')).toMatchObject({ shareWeights: true, recompute: true });
  });
});
