/**
 * Products in bfloat16 and float16 against float32: hidden states, log-probabilities, rollouts, losses and every gradient, of a small model of
 * each family. The CPU has kernels for float32 alone, so products are rounded; what a GPU's own kernels do is not shown here.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { policyBatch } from '../../tests/policy-batch.js';
import type { ExpectedBatches } from '../../tests/policy-batch.js';
import { roundProducts } from '../../tests/rounded-products.js';
import { narrowWeights, TINY_LLAMA, TINY_QWEN2, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import { TYPE_TOLERANCE } from '../onnx/compute-type.js';
import type { ComputeType } from '../onnx/compute-type.js';
import { Differentiable } from '../onnx/differentiable.js';
import type { GraphMessage, NodeMessage } from '../onnx/proto.js';
import { testProvider } from '../onnx/self-test.js';
import { Session } from '../onnx/session.js';
import type { Feeds } from '../onnx/session.js';
import { initialAdapter } from './adapter.js';
import { readAdapter } from './adapter-folder.js';
import type { Adapter } from './adapter.js';
import { bindWeights, openCheckpoint, readWeights, storedType } from './checkpoint.js';
import { Engine } from './engine.js';
import type { EngineSettings } from './engine.js';
import { isRight, ModelTrial } from './provider-trial.js';
import type { Completion, RolloutRequest } from './request-checks.js';
import { emitRollout } from './rollout-graph.js';
import { singleSampling } from './sampling.js';
import { emitPrompts, emitStep } from './step-graphs.js';
import { stepRollout } from './step-rollout.js';
import { modelWindow } from './sliding-window.js';
import { emitUpdate } from './update-graph.js';

vi.mock('../onnx/provider-types.js', async (original) => ({ ...(await original<object>()), typeRefusal: () => null }));

const FAMILIES = ['llama', 'qwen2', 'llama3', 'mistral', 'qwen3', 'phi3', 'gemma3'];
const NARROW = ['bfloat16', 'float16'] as const;
/** Below it a difference may be float32's own. */
const FLOAT32_NOISE = 1e-6;

const folderOf = (family: string): string => fileURLToPath(new URL(`fixtures/${family}`, import.meta.url));
const open = (dtype: ComputeType, memory: EngineSettings['memory'] = 'auto'): Promise<Engine> =>
  Engine.create({ provider: 'cpu', threads: 1, dtype, memory });

const largest = (values: Float32Array): number => values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);

/** Largest |difference| relative to the largest |value|. */
function errorOf(actual: Float32Array, expected: Float32Array): number {
  expect(actual.length).toBe(expected.length);
  return expected.reduce((most, x, i) => Math.max(most, Math.abs(x - actual[i]!)), 0) / largest(expected);
}

/** Rounded to its type's precision, and no more than that. */
function expectRounded(what: string, error: number, dtype: ComputeType): void {
  expect(error, what).toBeGreaterThan(FLOAT32_NOISE);
  expect(error, what).toBeLessThan(TYPE_TOLERANCE[dtype]);
}

/** The gradients of an update, with its loss's and its log-probabilities'. */
async function update(
  engine: Engine,
  folder: string,
  adapter: Adapter | null,
  expected: ExpectedBatches,
): Promise<Map<string, Float32Array>> {
  const values = adapter?.factors ?? readWeights(openCheckpoint(folder));
  const trainer = await engine.createTrainer(folder, adapter?.layout ?? 'weights', values);
  const batch = policyBatch(expected, adapter ? 'adapter' : 'weights');
  const tokens = batch.mask.reduce((a, b) => a + b, 0);
  // With a clip some token may be rounded to the other side of it, where its gradient is zero.
  const report = await engine.accumulate(trainer, batch, { ...expected.loss, clip: 10, tokens });
  const gradients = engine.takeGradients(trainer);
  await engine.releaseTrainer(trainer);
  const logProbs = report.logProbs.filter((_, i) => batch.mask[i]! > 0);
  return new Map([...[...gradients].map(([name, { data }]) => [name, data] as const), ['log-probabilities', logProbs]]);
}

const expectedOf = (family: string): ExpectedBatches =>
  JSON.parse(readFileSync(join(folderOf(family), 'expected.json'), 'utf8')) as ExpectedBatches;
const adapterOf = (family: string): Adapter =>
  readAdapter(join(folderOf(family), 'adapter'), openCheckpoint(folderOf(family)).config);

const REQUEST: Omit<RolloutRequest, 'adapter'> = {
  prompts: [
    [3, 1],
    [5, 9, 2, 7],
  ],
  perPrompt: 3,
  maxNewTokens: 8,
  temperature: 1,
  stops: [],
  seed: 4,
};

/** Largest difference of a rollout's log-probabilities from those that an engine's other graph gives the same tokens. */
async function rolloutError(engine: Engine, folder: string, adapter: Adapter, samples: readonly Completion[]) {
  const errors: number[] = [];
  for (const [i, { tokens, logProbs }] of samples.entries()) {
    const row = [...REQUEST.prompts[Math.floor(i / REQUEST.perPrompt)]!, ...tokens];
    const time = row.length - 1;
    const ids = BigInt64Array.from(row.slice(0, -1), BigInt);
    const labels = BigInt64Array.from(row.slice(1), BigInt);
    const all = await engine.logProbs(
      folder,
      { batch: 1, time, ids, labels, mask: new Float32Array(time).fill(1) },
      adapter,
    );
    errors.push(...Array.from(logProbs, (x, t) => Math.abs(x - all[time - tokens.length + t]!)));
  }
  return Math.max(...errors);
}

describe.each(NARROW)('with products rounded to %s', (dtype) => {
  beforeEach(roundProducts);
  afterEach(() => void vi.restoreAllMocks());

  it('the self-test passes, and says in what', async () => {
    const { passed, detail } = await testProvider('cpu', dtype);
    expect([passed, detail]).toEqual([true, `in ${dtype}: gradients agree with float64`]);
  });

  describe.each(FAMILIES)('a small %s', (family) => {
    const folder = folderOf(family);

    it.each(['weights', 'adapter'])('has float32’s log-probabilities and every gradient of the %s', async (kind) => {
      const adapter = kind === 'adapter' ? adapterOf(family) : null;
      const [narrow, exact] = [await open(dtype), await open('float32')];
      const reference = await update(exact, folder, adapter, expectedOf(family));
      const rounded = await update(narrow, folder, adapter, expectedOf(family));
      await narrow.close();
      await exact.close();
      for (const [name, data] of reference) expectRounded(name, errorOf(rounded.get(name)!, data), dtype);
    });

    it('has float32’s hidden states', async () => {
      const [narrow, exact] = [await open(dtype), await open('float32')];
      const request = {
        sequences: [[3, 1, 4, 1], [5, 9, 2, 6, 5], [3]],
        layers: [0, 1, 2],
        poolings: ['mean'],
      } as const;
      const states = await narrow.hiddenStates(folder, request);
      for (const [layer, { data }] of await exact.hiddenStates(folder, request)) {
        const error = errorOf(states.get(layer)!.data, data);
        if (layer === 0) expect(error).toBe(0);
        else expectRounded(`layer ${layer}`, error, dtype);
      }
      await narrow.close();
      await exact.close();
    });

    it('writes token by token, in the standard dialect, near float32’s log-probabilities', async () => {
      const checkpoint = openCheckpoint(folder);
      const adapter = adapterOf(family);
      const compile = (emit: typeof emitPrompts) => {
        const g = new Differentiable('standard', { dtype });
        emit(g, checkpoint.config, bindWeights(g, checkpoint), adapter.layout);
        return Session.create(g, { provider: 'cpu', threads: 1, externalFolder: checkpoint.weightsFolder });
      };
      const [prompt, step] = [await compile(emitPrompts), await compile(emitStep)];
      const graphs = { prompt: (feeds: Feeds) => prompt.run(feeds), step: (feeds: Feeds) => step.run(feeds) };
      const samples = await stepRollout(
        graphs,
        singleSampling({ ...REQUEST, adapter }, checkpoint.config.vocabulary),
        modelWindow(checkpoint.config),
      );
      await prompt.release();
      await step.release();
      const exact = await open('float32');
      expectRounded('rollout', await rolloutError(exact, folder, adapter, samples), dtype);
      await exact.close();
    });

    it('writes with the log-probabilities of its own update, and near float32’s', async () => {
      const adapter = adapterOf(family);
      const [narrow, exact] = [await open(dtype), await open('float32')];
      const samples = await narrow.rollout(folder, { ...REQUEST, adapter });
      expect(await rolloutError(narrow, folder, adapter, samples)).toBeLessThan(TYPE_TOLERANCE[dtype]);
      expectRounded('rollout', await rolloutError(exact, folder, adapter, samples), dtype);
      await narrow.close();
      await exact.close();
    });
  });

  it.each(['llama', 'phi3'])('a provider’s trial on a small %s compares with float32 on cpu', async (family) => {
    const trial = await ModelTrial.open(folderOf(family), 1);
    const step = await trial.try('cpu', dtype);
    await trial.release();
    expect(step.dtype).toBe(dtype);
    expect(step.gradientError).toBeGreaterThan(FLOAT32_NOISE);
    expect(isRight(step)).toBe(true);
  });

  it('what saves memory gives the same: one session, logits by chunks, layers computed again', async () => {
    const folder = folderOf('qwen3');
    const adapter = adapterOf('qwen3');
    const [small, exact] = [await open(dtype, 'small'), await open('float32')];
    const reference = await update(exact, folder, adapter, expectedOf('qwen3'));
    const rounded = await update(small, folder, adapter, expectedOf('qwen3'));
    for (const [name, data] of reference) expectRounded(name, errorOf(rounded.get(name)!, data), dtype);
    const samples = await small.rollout(folder, { ...REQUEST, adapter });
    expectRounded('rollout', await rolloutError(exact, folder, adapter, samples), dtype);
    await small.close();
    await exact.close();
  });

  it('several adapters write at once what each does alone', async () => {
    const folder = folderOf('llama');
    const adapter = adapterOf('llama');
    const other = initialAdapter(openCheckpoint(folder).config, adapter.layout, 9);
    const engine = await open(dtype);
    const groups = [adapter, other].map((own) => ({ adapter: own, prompts: REQUEST.prompts, seed: 4 }));
    const { perPrompt, maxNewTokens, temperature, stops } = REQUEST;
    const together = await engine.rolloutGroups(folder, { groups, perPrompt, maxNewTokens, temperature, stops });
    for (const [i, own] of [adapter, other].entries()) {
      const alone = await engine.rollout(folder, { ...REQUEST, adapter: own });
      expect(together[i]!.map(({ tokens }) => tokens)).toEqual(alone.map(({ tokens }) => tokens));
    }
    await engine.close();
  });
});

describe('float16 as ONNX Runtime’s CPU provider takes it, widening each product', () => {
  it.each(FAMILIES)('a small %s has float32’s gradients, but for its weights’ rounding', async (family) => {
    const [narrow, exact] = [await open('float16'), await open('float32')];
    const adapter = adapterOf(family);
    const reference = await update(exact, folderOf(family), adapter, expectedOf(family));
    const rounded = await update(narrow, folderOf(family), adapter, expectedOf(family));
    await narrow.close();
    await exact.close();
    for (const [name, data] of reference) expectRounded(name, errorOf(rounded.get(name)!, data), 'float16');
  });
});

describe('a graph in a narrow type', () => {
  /** Nodes of a graph and of those inside it, each with whether a Loop repeats it. */
  function nodesOf({ node }: GraphMessage, looped = false): (readonly [NodeMessage, boolean])[] {
    return node.flatMap((one) => [
      [one, looped] as const,
      ...one.attribute.flatMap(({ g }) => (g ? nodesOf(g, looped || one.op_type === 'Loop') : [])),
    ]);
  }
  const isMatrix = (name: string | undefined): boolean => /(proj|embed_tokens|lm_head)\.weight$/.test(name ?? '');
  const layout = { rank: 2, alpha: 4, targets: ['q_proj', 'down_proj'] };

  it.each([
    ['BF16', 'bfloat16', TINY_LLAMA],
    ['F16', 'float16', TINY_QWEN2],
  ] as const)('multiplies with %s weights as they are stored', (type, dtype, config) => {
    const folder = tinyCheckpoint(config);
    narrowWeights(folder, readWeights(openCheckpoint(folder)), type);
    const checkpoint = openCheckpoint(folder);
    expect(storedType(checkpoint)).toBe(dtype);
    const g = new Differentiable('standard', { dtype });
    emitUpdate(g, config, () => bindWeights(g, checkpoint), layout, { headRows: 9, recompute: true });
    const nodes = nodesOf(g.message()).map(([node]) => node);
    expect(nodes.filter(({ op_type, input }) => op_type === 'Cast' && isMatrix(input[0]))).toEqual([]);
    const multiplied = nodes.flatMap(({ op_type, input }) =>
      op_type === 'Gemm' && isMatrix(input[1]) ? [input[1]] : [],
    );
    expect(new Set(multiplied).size).toBe(7 * config.layers + 1);
  });

  it.each([
    [
      'a rollout',
      (g: Differentiable, checkpoint: ReturnType<typeof openCheckpoint>) =>
        emitRollout(g, checkpoint.config, bindWeights(g, checkpoint), layout),
    ],
    [
      'an update by chunks',
      (g: Differentiable, checkpoint: ReturnType<typeof openCheckpoint>) =>
        emitUpdate(g, checkpoint.config, () => bindWeights(g, checkpoint), layout, { headRows: 9, recompute: true }),
    ],
    [
      'an update of the weights by chunks',
      (g: Differentiable, checkpoint: ReturnType<typeof openCheckpoint>) =>
        emitUpdate(g, checkpoint.config, () => bindWeights(g, checkpoint), 'weights', { headRows: 9, recompute: true }),
    ],
  ] as const)('casts weights of another type once, outside of Loops: %s', (_, emit) => {
    const checkpoint = openCheckpoint(tinyCheckpoint());
    const g = new Differentiable('fused', { dtype: 'float16' });
    emit(g, checkpoint);
    const casts = nodesOf(g.message()).filter(([{ op_type, input }]) => op_type === 'Cast' && isMatrix(input[0]));
    const matrices = [...checkpoint.entries.keys()].filter(isMatrix);
    expect(casts).toHaveLength(matrices.length);
    expect(new Set(casts.map(([node]) => node.input[0]))).toEqual(new Set(matrices));
    expect(casts.filter(([, looped]) => looped)).toEqual([]);
  });

  it('leaves float32 what LoRA multiplies', () => {
    const checkpoint = openCheckpoint(tinyCheckpoint());
    const g = new Differentiable('fused', { dtype: 'float16' });
    emitUpdate(g, TINY_LLAMA, () => bindWeights(g, checkpoint), layout, { headRows: null, recompute: false });
    const factors = g.nodes.filter(({ input }) => input.some((name) => name.includes('lora_')));
    expect(new Set(factors.map(({ op_type }) => op_type))).toEqual(new Set(['Gemm']));
  });
});

describe('storedType', () => {
  it('is float32 where the linear maps are of several types', () => {
    const checkpoint = openCheckpoint(tinyCheckpoint());
    expect(storedType(checkpoint)).toBe('float32');
    const change = (of: (name: string) => boolean) =>
      new Map(
        [...checkpoint.entries].map(([name, entry]) => [name, of(name) ? { ...entry, type: 'BF16' as const } : entry]),
      );
    expect(storedType({ ...checkpoint, entries: change((name) => name.includes('q_proj')) })).toBe('float32');
    expect(storedType({ ...checkpoint, entries: change((name) => !name.includes('norm')) })).toBe('bfloat16');
  });
});
