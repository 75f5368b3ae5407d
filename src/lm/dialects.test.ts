/**
 * Every execution provider against cpu: hidden states, rollouts, losses and every gradient, of a small model of each family. A provider that
 * is not here is skipped with its reason; PROPEL_REQUIRE_WEBGPU=1 makes the absence of WebGPU a failure (`scripts/software-gpu.sh`).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { policyBatch } from '../../tests/policy-batch.js';
import type { ExpectedBatches } from '../../tests/policy-batch.js';
import { COMPUTE_TYPES } from '../onnx/provider-types.js';
import type { ComputeType } from '../onnx/compute-type.js';
import { testProvider } from '../onnx/self-test.js';
import { EXECUTION_PROVIDERS, Session } from '../onnx/session.js';
import type { Dialect } from '../onnx/graph.js';
import { Differentiable } from '../onnx/differentiable.js';
import type { ExecutionProvider, Tensor } from '../onnx/session.js';
import { initialAdapter } from './adapter.js';
import { readAdapter } from './adapter-folder.js';
import type { Adapter, AdapterLayout } from './adapter.js';
import { bindWeights, openCheckpoint, readWeights } from './checkpoint.js';
import type { Checkpoint } from './checkpoint.js';
import { Engine } from './engine.js';
import type { EngineSettings } from './engine.js';
import { memoryPlan } from './memory.js';
import type { RolloutRequest } from './request-checks.js';
import { completionsByGroup, groupedSampling, singleSampling } from './sampling.js';
import type { Sampling } from './sampling.js';
import { emitPrompts, emitStep } from './step-graphs.js';
import { stepRollout } from './step-rollout.js';
import { modelWindow } from './sliding-window.js';
import { endsAtText } from '../text-end.js';
import { tokenEnds } from './token-ends.js';
import { isRight, ModelTrial } from './provider-trial.js';
import type { LossReport, LossSettings, PolicyBatch } from './trainer.js';

const FAMILIES = ['llama', 'qwen2', 'llama3', 'mistral', 'qwen3', 'phi3', 'gemma3', 'mistral-window', 'phi3-partial'];
/** Largest |difference| from cpu, relative to the largest |value| of a tensor where that is above 1; of a gradient always. */
const TOLERANCE = 1e-4;
const FIXED_SEED = 4;

const folderOf = (family: string): string => fileURLToPath(new URL(`fixtures/${family}`, import.meta.url));
const settingsOf = (provider: ExecutionProvider) => ({ provider, threads: 1 }) as const;

const others = EXECUTION_PROVIDERS.filter((provider) => provider !== 'cpu');
const reasons = new Map<ExecutionProvider, string | null>();
const narrow = new Map<ExecutionProvider, ComputeType[]>();
for (const provider of others) {
  const { passed, detail } = await testProvider(provider);
  reasons.set(provider, passed ? null : detail);
  if (!passed) console.warn(`SKIPPED on ${provider}: ${detail}`);
  const types: ComputeType[] = [];
  for (const type of passed ? COMPUTE_TYPES[provider].slice(1) : []) {
    const test = await testProvider(provider, type);
    if (test.passed) types.push(type);
    else console.warn(`SKIPPED on ${provider}: ${test.detail}`);
  }
  narrow.set(provider, types);
}

it.runIf(process.env['PROPEL_REQUIRE_WEBGPU'] === '1')('WebGPU is here, as it must be', () => {
  expect(reasons.get('webgpu')).toBeNull();
});

const largest = (values: Float32Array): number => values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);

function expectClose(what: string, actual: ArrayLike<number>, expected: Float32Array, scale = 1): void {
  expect(actual.length, what).toBe(expected.length);
  const error = expected.reduce((most, x, i) => Math.max(most, Math.abs(x - actual[i]!)), 0);
  expect(error / scale, what).toBeLessThan(TOLERANCE);
}

async function update(
  engine: Engine,
  folder: string,
  values: ReadonlyMap<string, Tensor>,
  adapter: Adapter | null,
  [batch, loss]: readonly [PolicyBatch, LossSettings],
): Promise<{ report: LossReport; gradients: Map<string, Tensor> }> {
  const trainer = await engine.createTrainer(folder, adapter ? adapter.layout : 'weights', values);
  const report = await engine.accumulate(trainer, batch, loss);
  const gradients = engine.takeGradients(trainer);
  await engine.releaseTrainer(trainer);
  return { report, gradients };
}

/** A prompt twice as long as the other, some samples of which end early at a stop token. */
function fixedRequest(adapter: Adapter | null): RolloutRequest {
  const prompts = [
    [3, 1],
    [5, 9, 2, 7],
  ];
  // Tokens say letters; two of them in a row end a sample as well.
  const letters = Array.from({ length: 24 }, (_, id) => Uint8Array.of(97 + (id % 4)));
  const ends = tokenEnds(letters, [endsAtText('ab'), endsAtText('cc')]);
  return { prompts, perPrompt: 3, maxNewTokens: 8, temperature: 0.8, stops: [6, 7], ends, seed: FIXED_SEED, adapter };
}

describe.each(FAMILIES)('token by token, a small %s', (family) => {
  it.each(['fused', 'standard'] as const)('in the %s dialect writes what the Loop writes', async (dialect) => {
    const checkpoint = openCheckpoint(folderOf(family));
    const adapter = readAdapter(join(folderOf(family), 'adapter'), checkpoint.config);
    const engine = await Engine.create(settingsOf('cpu'));
    const request = fixedRequest(adapter);
    const loop = await engine.rollout(folderOf(family), request);
    await engine.close();
    const { layout } = adapter;
    const stepwise = await stepwiseOnCpu(checkpoint, singleSampling(request, checkpoint.config.vocabulary), {
      dialect,
      layout,
    });
    expect(new Set(loop.map(({ tokens }) => tokens.length)).size).toBeGreaterThan(1);
    expect(stepwise.map(({ tokens }) => tokens)).toEqual(loop.map(({ tokens }) => tokens));
    expect(stepwise.map(({ stopped }) => stopped)).toEqual(loop.map(({ stopped }) => stopped));
    stepwise.forEach(({ logProbs }, i) => expectClose(`sample ${i}`, logProbs, loop[i]!.logProbs));
  });

  it('writes for several adapters at once what the Loop writes', async () => {
    const checkpoint = openCheckpoint(folderOf(family));
    const adapter = readAdapter(join(folderOf(family), 'adapter'), checkpoint.config);
    const { prompts, seed, adapter: _, ...rest } = fixedRequest(adapter);
    const other = initialAdapter(checkpoint.config, adapter.layout, 9);
    const request = {
      ...rest,
      groups: [
        { adapter, prompts, seed },
        { adapter: other, prompts: [[4, 4]], seed: seed + 1 },
      ],
    };
    const engine = await Engine.create(settingsOf('cpu'));
    const loop = await engine.rolloutGroups(folderOf(family), request);
    await engine.close();
    const settings = { dialect: 'standard', layout: adapter.layout, adapters: 2 } as const;
    const stepwise = await stepwiseOnCpu(checkpoint, groupedSampling(request, checkpoint.config.vocabulary), settings);
    const tokens = completionsByGroup(request, stepwise).map((group) => group.map((sample) => sample.tokens));
    expect(tokens).toEqual(loop.map((group) => group.map((sample) => sample.tokens)));
    expect(tokens.map((group) => group.length)).toEqual([6, 3]);
  });
});

async function stepwiseOnCpu(
  checkpoint: Checkpoint,
  sampling: Sampling,
  { dialect, layout, adapters = null }: { dialect: Dialect; layout: AdapterLayout; adapters?: number | null },
) {
  const settings = { ...settingsOf('cpu'), externalFolder: checkpoint.weightsFolder };
  const compile = (emit: typeof emitPrompts) => {
    const g = new Differentiable(dialect);
    emit(g, checkpoint.config, bindWeights(g, checkpoint), layout, adapters);
    return Session.create(g, settings);
  };
  const [prompt, step] = [await compile(emitPrompts), await compile(emitStep)];
  const completions = await stepRollout(
    { prompt: (feeds) => prompt.run(feeds), step: (feeds) => step.run(feeds) },
    sampling,
    modelWindow(checkpoint.config),
  );
  await prompt.release();
  await step.release();
  return completions;
}

describe.each(others)('%s', (provider) => {
  const here = reasons.get(provider) === null;

  it.runIf(here)(
    'does with as little memory as it can what cpu does, with one copy of the weights where it has an If',
    async () => {
      const folder = folderOf('llama');
      const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as ExpectedBatches;
      const adapter = readAdapter(join(folder, 'adapter'), openCheckpoint(folder).config);
      const batch = policyBatch(expected, 'adapter');
      const tokens = batch.mask.reduce((a, b) => a + b, 0);
      const work = async (settings: EngineSettings) => {
        const engine = await Engine.create(settings);
        const compiled = vi.spyOn(Session, 'create');
        const { report, gradients } = await update(engine, folder, adapter.factors, adapter, [
          batch,
          { ...expected.loss, tokens },
        ]);
        const samples = await engine.rollout(folder, fixedRequest(adapter));
        const logProbs = await engine.logProbs(folder, batch, null);
        const sessions = compiled.mock.calls.length;
        compiled.mockRestore();
        await engine.close();
        return { report, gradients, samples, logProbs, sessions };
      };
      const reference = await work(settingsOf('cpu'));
      const small = await work({ ...settingsOf(provider), memory: 'small' });
      expectClose('loss', [small.report.loss], Float32Array.of(reference.report.loss));
      for (const [name, { data }] of reference.gradients) {
        expectClose(`gradient of ${name}`, small.gradients.get(name)!.data, data, largest(data));
      }
      expect(small.samples.map((sample) => sample.tokens)).toEqual(reference.samples.map((sample) => sample.tokens));
      expectClose('log-probabilities', small.logProbs, reference.logProbs);
      // AdamW and the sum of gradients have sessions of their own.
      if (memoryPlan(openCheckpoint(folder).config, 'small', provider).shareWeights) expect(small.sessions).toBe(2 + 1);
    },
  );
  describe.runIf(here).each(narrow.get(provider)!)('in %s', (type) => {
    it.each(FAMILIES)('has cpu’s rollouts and gradients of a small %s, to the type’s precision', async (family) => {
      const trial = await ModelTrial.open(folderOf(family), 1);
      const step = await trial.try(provider, type);
      await trial.release();
      expect(step).toSatisfy(isRight);
    });
  });

  describe.runIf(here).each(FAMILIES)('on a small %s', (family) => {
    const folder = folderOf(family);
    const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as ExpectedBatches;
    const checkpoint = openCheckpoint(folder);
    const adapter = readAdapter(join(folder, 'adapter'), checkpoint.config);
    let cpu: Engine;
    let tested: Engine;
    beforeAll(async () => {
      cpu = await Engine.create(settingsOf('cpu'));
      tested = await Engine.create(settingsOf(provider));
    });
    afterAll(async () => {
      await cpu.close();
      await tested.close();
    });

    it('has cpu’s hidden states', async () => {
      const { ids } = expected.updates.weights.batch;
      const time = Math.max(...expected.lengths);
      const sequences = expected.lengths.map((length, row) => ids!.slice(row * time, row * time + length));
      const layers = Array.from({ length: checkpoint.config.layers + 1 }, (_, layer) => layer);
      const request = { sequences, layers, poolings: ['mean', 'last'] } as const;
      const states = await tested.hiddenStates(folder, request);
      for (const [layer, { data }] of await cpu.hiddenStates(folder, request)) {
        expectClose(`layer ${layer}`, states.get(layer)!.data, data, Math.max(1, largest(data)));
      }
    });

    it.each(['bare', 'with an adapter'])('writes cpu’s tokens, %s', async (what) => {
      const request = fixedRequest(what === 'bare' ? null : adapter);
      const expectedSamples = await cpu.rollout(folder, request);
      const samples = await tested.rollout(folder, request);
      expect(samples.map(({ tokens }) => tokens)).toEqual(expectedSamples.map(({ tokens }) => tokens));
      samples.forEach(({ logProbs }, i) => expectClose(`sample ${i}`, logProbs, expectedSamples[i]!.logProbs));
    });

    it('has cpu’s log-probabilities', async () => {
      const batch = policyBatch(expected, 'adapter');
      const logProbs = await cpu.logProbs(folder, batch, adapter);
      expectClose('log-probabilities', await tested.logProbs(folder, batch, adapter), logProbs);
    });

    it('has cpu’s log-probabilities, loss and every gradient where sequences share a prompt', async () => {
      const whole = policyBatch(expected, 'adapter');
      const length = Math.min(5, checkpoint.config.maxPositions - whole.time);
      const prefix = BigInt64Array.from({ length }, (_, i) => BigInt(3 + i));
      const batch = { ...whole, prefix };
      const tokens = batch.mask.reduce((a, b) => a + b, 0);
      const work = [batch, { ...expected.loss, tokens }] as const;
      const logProbs = await cpu.logProbs(folder, batch, adapter);
      expectClose('log-probabilities', await tested.logProbs(folder, batch, adapter), logProbs);
      const reference = await update(cpu, folder, adapter.factors, adapter, work);
      const { report, gradients } = await update(tested, folder, adapter.factors, adapter, work);
      expectClose('loss', [report.loss], Float32Array.of(reference.report.loss));
      for (const [name, { data }] of reference.gradients) {
        expectClose(`gradient of ${name}`, gradients.get(name)!.data, data, largest(data));
      }
    });

    it.each(['weights', 'adapter'] as const)('has cpu’s loss and every gradient of the %s', async (kind) => {
      const values = kind === 'weights' ? readWeights(checkpoint) : adapter.factors;
      const batch = policyBatch(expected, kind);
      const tokens = batch.mask.reduce((a, b) => a + b, 0);
      const work = [batch, { ...expected.loss, tokens }] as const;
      const trained = kind === 'weights' ? null : adapter;
      const reference = await update(cpu, folder, values, trained, work);
      const { report, gradients } = await update(tested, folder, values, trained, work);
      for (const name of ['loss', 'klSum', 'entropySum', 'clipped'] as const) {
        const value = reference.report[name];
        expectClose(name, [report[name]], Float32Array.of(value), Math.max(1, Math.abs(value)));
      }
      expect(gradients.size).toBe(values.size);
      for (const [name, { data }] of reference.gradients) {
        expect(largest(data), name).toBeGreaterThan(0);
        expectClose(`gradient of ${name}`, gradients.get(name)!.data, data, largest(data));
      }
    });
  });
});
