/** The graphs against float64 PyTorch on the same small models: fixtures made by `scripts/fixtures/update.py`. */
import { cpSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { narrowWeights, temporaryFolder } from '../../tests/tiny-checkpoint.js';
import { Differentiable } from '../onnx/differentiable.js';
import { bool, floatData, floats, integers, scalar, Session } from '../onnx/session.js';
import type { Dialect } from '../onnx/graph.js';
import type { Feeds, Fetches, Tensor } from '../onnx/session.js';
import { readAdapter } from './adapter-folder.js';
import type { Adapter } from './adapter.js';
import { bindWeights, openCheckpoint, readWeights } from './checkpoint.js';
import type { Checkpoint } from './checkpoint.js';
import { Decoder } from './decoder.js';
import { Engine } from './engine.js';
import { readTensors } from './safetensors.js';
import { freshState, Trainer } from './trainer.js';
import type { AdamWSettings, LossSettings, PolicyBatch } from './trainer.js';
import { gradientName, logProbGraph, tokenInput, updateGraph } from './update-graph.js';

/** Largest |difference|, relative to the largest |reference| of the tensor where that is above 1. */
const TOLERANCE = 1e-5;
/**
 * Of weights in bfloat16, relative to the largest logit. A weight keeps 8 bits, so is off by up to 2⁻⁷ = 0.8% when cut short, as here; a
 * logit is a sum over paths with some ten such weights each, whose errors mostly cancel. Half precision keeps 11 bits: an eighth of it.
 */
const BFLOAT16_TOLERANCE = 0.04;

interface Expected {
  readonly lengths: readonly number[];
  readonly loss: Omit<LossSettings, 'tokens'>;
  readonly adamW: AdamWSettings;
  readonly updates: Readonly<Record<'weights' | 'adapter', Update>>;
}
interface Update {
  readonly batch: Readonly<
    Record<'ids' | 'labels' | 'mask' | 'advantages' | 'oldLogProbs' | 'referenceLogProbs', number[]>
  >;
  /** Of each step, before it. */
  readonly losses: readonly number[];
  readonly gradientNorms: readonly number[];
  readonly klSum: number;
  readonly entropySum: number;
  readonly clipped: number;
}

const settings = { provider: 'cpu', threads: 1 } as const;
const data = (tensor: Tensor | undefined): number[] => [...tensor!.data];

function expectClose(
  what: string,
  actual: ArrayLike<number>,
  expected: readonly number[],
  scale = 1,
  tolerance = TOLERANCE,
): void {
  expect(actual, what).toHaveLength(expected.length);
  const error = Math.max(...expected.map((x, i) => Math.abs(actual[i]! - x)));
  expect(error / scale, what).toBeLessThan(tolerance);
}
const largest = (values: readonly number[]): number => Math.max(...values.map(Math.abs));

const FAMILIES = ['llama', 'qwen2', 'llama3', 'mistral', 'qwen3', 'phi3', 'gemma3', 'mistral-window', 'phi3-partial'];

describe.each(FAMILIES)('a small %s', (family) => {
  const folder = fileURLToPath(new URL(`fixtures/${family}`, import.meta.url));
  const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')) as Expected;
  const tensors = readTensors(join(folder, 'expected.safetensors'));
  let checkpoint: Checkpoint;
  let adapter: Adapter;
  beforeAll(() => {
    checkpoint = openCheckpoint(folder);
    adapter = readAdapter(join(folder, 'adapter'), checkpoint.config);
  });

  const policyBatch = ({ batch }: Update): PolicyBatch => ({
    batch: expected.lengths.length,
    time: Math.max(...expected.lengths),
    ids: BigInt64Array.from(batch.ids, BigInt),
    labels: BigInt64Array.from(batch.labels, BigInt),
    mask: Float32Array.from(batch.mask),
    advantages: Float32Array.from(batch.advantages),
    oldLogProbs: Float32Array.from(batch.oldLogProbs),
    referenceLogProbs: Float32Array.from(batch.referenceLogProbs),
  });
  /** Positions of real tokens; what a graph says of padding is nobody's business. */
  const real = expected.lengths.flatMap((length, row) =>
    Array.from({ length }, (_, t) => row * Math.max(...expected.lengths) + t),
  );

  describe.each(['fused', 'standard'] as const)('in the %s dialect', (dialect) => {
    it('has PyTorch’s logits', async () => {
      const out = await runLogits(checkpoint, dialect, policyBatch(expected.updates.weights));
      const { vocabulary } = checkpoint.config;
      const reference = data(tensors.get('logits'));
      const row = (logits: ArrayLike<number>, i: number): number[] =>
        Array.from({ length: vocabulary }, (_, token) => logits[i * vocabulary + token]!);
      for (const i of real) expectClose(`logits of ${i}`, row(out, i), row(reference, i));
    });

    it('has PyTorch’s log-probabilities and entropies, alone and with an adapter', async () => {
      for (const [prefix, layout] of [['', null] as const, ['adapter.', adapter.layout] as const]) {
        const session = await Session.create(logProbGraph(checkpoint, layout, dialect), {
          ...settings,
          externalFolder: folder,
        });
        const batch = policyBatch(expected.updates.weights);
        const shape = [batch.batch, batch.time];
        const out = await session.run({
          ids: integers(batch.ids, shape),
          labels: integers(batch.labels, shape),
          ...(layout ? tensorFeeds(adapter.factors) : {}),
        });
        await session.release();
        for (const name of ['logProbs', 'entropies']) {
          const reference = data(tensors.get(prefix + name));
          expectClose(
            prefix + name,
            real.map((i) => floatData(out[name])[i]!),
            real.map((i) => reference[i]!),
          );
        }
      }
    });

    it.each(['weights', 'adapter'] as const)('has PyTorch’s loss and every gradient of the %s', async (kind) => {
      const update = expected.updates[kind];
      const values = kind === 'weights' ? readWeights(checkpoint) : adapter.factors;
      const out = await runUpdate(checkpoint, kind === 'weights' ? 'weights' : adapter.layout, dialect, {
        ...batchFeeds(policyBatch(update), expected.loss),
        ...tensorFeeds(values),
      });
      expectClose('loss', floatData(out['loss']), [update.losses[0]!]);
      expectClose('klSum', floatData(out['klSum']), [update.klSum]);
      expectClose('entropySum', floatData(out['entropySum']), [update.entropySum], update.entropySum);
      expect(floatData(out['clipped'])[0]).toBe(update.clipped);
      expect(update.clipped).toBeGreaterThan(0);
      for (const name of values.keys()) {
        const reference = data(tensors.get(`${kind}.gradient.${name}`));
        expect(largest(reference), name).toBeGreaterThan(0);
        expectClose(`gradient of ${name}`, floatData(out[gradientName(name)]), reference, largest(reference));
      }
    });
  });

  it.each(['weights', 'adapter'] as const)('ends three steps of AdamW on the %s where PyTorch’s does', async (kind) => {
    const update = expected.updates[kind];
    const values = kind === 'weights' ? readWeights(checkpoint) : adapter.factors;
    const trainable = kind === 'weights' ? 'weights' : adapter.layout;
    const trainer = await Trainer.create(checkpoint, trainable, freshState(values), settings);
    const batch = policyBatch(update);
    const tokens = batch.mask.reduce((a, b) => a + b, 0);
    for (const [step, norm] of update.gradientNorms.entries()) {
      const report = await trainer.accumulate(batch, { ...expected.loss, tokens });
      expectClose(`loss before step ${step}`, [report.loss], [update.losses[step]!]);
      const { gradientNorm } = await trainer.step(expected.adamW);
      expectClose(`gradient norm of step ${step}`, [gradientNorm], [norm], norm);
    }
    for (const [name, value] of trainer.values()) {
      expectClose(name, value.data, data(tensors.get(`${kind}.value.${name}`)));
    }
    await trainer.release();
  });

  it.each([
    ['BF16', BFLOAT16_TOLERANCE],
    ['F16', BFLOAT16_TOLERANCE / 8],
  ] as const)(
    'with %s weights has PyTorch’s logits of the float32 ones within its tolerance',
    async (type, tolerance) => {
      const narrow = temporaryFolder();
      cpSync(join(folder, 'config.json'), join(narrow, 'config.json'));
      narrowWeights(narrow, readWeights(checkpoint), type);
      const logits = await runLogits(openCheckpoint(narrow), 'fused', policyBatch(expected.updates.weights));
      const reference = data(tensors.get('logits'));
      const { vocabulary } = checkpoint.config;
      const of = (values: ArrayLike<number>): number[] =>
        real.flatMap((i) => Array.from({ length: vocabulary }, (_, token) => values[i * vocabulary + token]!));
      expectClose('logits', of(logits), of(reference), largest(reference), tolerance);
    },
  );

  it('rolls out with the log-probabilities that PyTorch’s equal has, over a prompt and what it wrote', async () => {
    const engine = await Engine.create(settings);
    const prompts = [
      [3, 1],
      [5, 9, 2, 7],
    ];
    const request = { prompts, perPrompt: 2, maxNewTokens: 10, temperature: 1, stops: [], seed: 4, adapter };
    for (const [i, { tokens, logProbs }] of (await engine.rollout(folder, request)).entries()) {
      const prompt = prompts[Math.floor(i / 2)]!;
      const sequence = [...prompt, ...tokens];
      const ids = BigInt64Array.from(sequence.slice(0, -1), BigInt);
      const labels = BigInt64Array.from(sequence.slice(1), BigInt);
      const batch = { batch: 1, time: ids.length, ids, labels, mask: new Float32Array(ids.length) };
      const update = (await engine.logProbs(folder, batch, adapter)).subarray(prompt.length - 1);
      expect(tokens).toHaveLength(10);
      expectClose('log-probabilities', logProbs, [...update]);
    }
    await engine.close();
  });

  it('has PyTorch’s hidden states, pooled by their mean after the first token and by the last', async () => {
    const engine = await Engine.create(settings);
    const ids = expected.updates.weights.batch.ids;
    const time = Math.max(...expected.lengths);
    const sequences = expected.lengths.map((length, row) => ids.slice(row * time, row * time + length));
    const states = await engine.hiddenStates(folder, { sequences, layers: [0, 1, 2], poolings: ['mean', 'last'] });
    await engine.close();
    for (const layer of [0, 1, 2]) {
      expect(states.get(layer)!.shape).toEqual([3, 2, 16]);
      expectClose(`layer ${layer}`, states.get(layer)!.data, data(tensors.get(`hidden.${layer}`)));
    }
  });
});

async function runLogits(checkpoint: Checkpoint, dialect: Dialect, batch: PolicyBatch): Promise<Float32Array> {
  const g = new Differentiable(dialect);
  const ids = tokenInput(g);
  const decoder = new Decoder(g, checkpoint.config, bindWeights(g, checkpoint), null, 'time');
  g.output(decoder.logits(g, decoder.causal(g, ids)), 'logits');
  const session = await Session.create(g, { ...settings, externalFolder: checkpoint.weightsFolder });
  const out = await session.run({ ids: integers(batch.ids, [batch.batch, batch.time]) });
  await session.release();
  return floatData(out['logits']);
}

function tensorFeeds(tensors: ReadonlyMap<string, Tensor>): Feeds {
  return Object.fromEntries([...tensors].map(([name, t]) => [name, floats(t.data, t.shape)]));
}

function batchFeeds(batch: PolicyBatch, loss: Omit<LossSettings, 'tokens'>): Feeds {
  const shape = [batch.batch, batch.time];
  return {
    ids: integers(batch.ids, shape),
    labels: integers(batch.labels, shape),
    mask: floats(batch.mask, shape),
    advantages: floats(batch.advantages, shape),
    oldLogProbs: floats(batch.oldLogProbs!, shape),
    referenceLogProbs: floats(batch.referenceLogProbs!, shape),
    onPolicy: bool(false),
    tokens: scalar(batch.mask.reduce((a, b) => a + b, 0)),
    clip: scalar(loss.clip),
    kl: scalar(loss.kl),
    entropy: scalar(loss.entropy),
  };
}

async function runUpdate(
  checkpoint: Checkpoint,
  trainable: Parameters<typeof updateGraph>[1],
  dialect: Dialect,
  feeds: Feeds,
): Promise<Fetches> {
  const graph = updateGraph(checkpoint, trainable, dialect);
  const session = await Session.create(graph, { ...settings, externalFolder: checkpoint.weightsFolder });
  const out = await session.run(feeds);
  await session.release();
  return out;
}
