/** A prompt computed once for all its sequences must not show: the losses, log-probabilities and gradients of the plain graph. */
import { describe, expect, it } from 'vitest';
import { TINY_GEMMA3, TINY_LLAMA, TINY_QWEN2, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import { filledAdapter } from '../../tests/filled-adapter.js';
import { seededRandom } from '../metrics/random.js';
import { Differentiable } from '../onnx/differentiable.js';
import type { Dialect } from '../onnx/graph.js';
import { bool, floatData, floats, integers, scalar, Session } from '../onnx/session.js';
import type { Feeds, Fetches } from '../onnx/session.js';
import type { Adapter, AdapterLayout } from './adapter.js';
import { batchRows, placesOf } from './batch-rows.js';
import { bindWeights, openCheckpoint, readWeights } from './checkpoint.js';
import type { Checkpoint } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import { Engine } from './engine.js';
import { rowsAfterPrefix } from './prefix-graph.js';
import type { PolicyBatch } from './trainer.js';
import { emitUpdate, gradientName, trainableShapes } from './update-graph.js';
import type { Trainable } from './update-graph.js';
import type { UpdateMemory } from './memory.js';

/** The prefix; then tokens read of each sequence, the first of them the prompt's last. */
const PREFIX = [3, 17, 5, 9, 11];
const LENGTHS = [4, 1, 7, 3];
const LAYOUT: AdapterLayout = { rank: 2, alpha: 4, targets: ['q_proj', 'v_proj', 'o_proj', 'up_proj', 'down_proj'] };
const FUSED: AdapterLayout = { ...LAYOUT, targets: ['qkv_proj', 'o_proj', 'gate_up_proj', 'down_proj'] };
const LONGROPE = {
  type: 'longrope',
  shortFactors: [1, 1.5],
  longFactors: [2, 4],
  attentionFactor: 1.25,
  originalPositions: 16,
} as const;

const windowOf = (positions: number) => ({ positions, layers: [true, true], ropeTheta: null });

/** The same sequences with their prefix in front of each, and after it. */
function batches(vocabulary: number): { plain: PolicyBatch; shared: PolicyBatch } {
  const random = seededRandom(4);
  const token = (): number => Math.floor(random() * vocabulary);
  const sequences = LENGTHS.map((length) => ({
    ids: Array.from({ length: length + 1 }, token),
    terms: Array.from({ length }, () => [2 * random() - 1, random() / 2 - 3.5, random() / 2 - 3.5]),
  }));
  const batch = (before: readonly number[]): PolicyBatch => {
    const time = before.length + Math.max(...LENGTHS);
    const size = LENGTHS.length * time;
    // Padding is of any token.
    const [ids, labels] = [new BigInt64Array(size).fill(7n), new BigInt64Array(size).fill(8n)];
    const [mask, advantages, old, reference] = Array.from({ length: 4 }, () => new Float32Array(size)) as [
      Float32Array<ArrayBuffer>,
      Float32Array,
      Float32Array,
      Float32Array,
    ];
    sequences.forEach((sequence, b) => {
      const all = [...before, ...sequence.ids];
      for (let t = 0; t + 1 < all.length; t++) {
        ids[b * time + t] = BigInt(all[t]!);
        labels[b * time + t] = BigInt(all[t + 1]!);
      }
      sequence.terms.forEach(([advantage, oldLogProb, referenceLogProb], t) => {
        const at = b * time + before.length + t;
        [mask[at], advantages[at], old[at], reference[at]] = [1, advantage!, oldLogProb!, referenceLogProb!];
      });
    });
    return {
      batch: LENGTHS.length,
      time,
      ids,
      labels,
      mask,
      advantages,
      oldLogProbs: old,
      referenceLogProbs: reference,
    };
  };
  return { plain: batch(PREFIX), shared: { ...batch([]), prefix: BigInt64Array.from(PREFIX, BigInt) } };
}

function trainables(checkpoint: Checkpoint, trainable: Trainable): Adapter['factors'] {
  if (trainable === 'weights') return readWeights(checkpoint);
  return filledAdapter(checkpoint.config, trainable, 5).factors;
}

interface Graph {
  readonly trainable: Trainable;
  readonly memory: UpdateMemory;
  readonly dialect: Dialect;
}

async function update(checkpoint: Checkpoint, graph: Graph, batch: PolicyBatch): Promise<Fetches> {
  const { config } = checkpoint;
  const g = new Differentiable(graph.dialect);
  const weights = () => bindWeights(g, checkpoint);
  emitUpdate(g, config, weights, graph.trainable, graph.memory, batch.prefix ? rowsAfterPrefix : undefined);
  const { feeds, shape, pack, unpack } = batchRows(batch, config.heads / config.kvHeads);
  const given = (values: Float32Array | null) => floats(pack(values!), shape);
  const all: Feeds = {
    ...feeds,
    labels: integers(pack(batch.labels), shape),
    mask: given(batch.mask),
    advantages: given(batch.advantages),
    oldLogProbs: given(batch.oldLogProbs),
    referenceLogProbs: given(batch.referenceLogProbs),
    onPolicy: bool(false),
    tokens: scalar(15),
    clip: scalar(0.2),
    kl: scalar(0.1),
    entropy: scalar(0.01),
  };
  for (const [name, t] of trainables(checkpoint, graph.trainable)) all[name] = floats(t.data, t.shape);
  const settings = { provider: 'cpu', threads: 1, externalFolder: checkpoint.weightsFolder } as const;
  const session = await Session.create(g, settings);
  const out = await session.run(all);
  await session.release();
  const logProbs = unpack(floatData(out['logProbs']));
  return { ...out, logProbs: floats(scored(logProbs, batch), [15]) };
}

/** Values of the scored tokens, sequence by sequence. */
const scored = (values: Float32Array, { mask }: PolicyBatch): Float32Array => values.filter((_, i) => mask[i] === 1);

/** |difference| over the largest |value| of a result, by name. */
function differences(out: Fetches, reference: Fetches, names: readonly string[]): Record<string, number> {
  const error = (name: string): number => {
    expect(out[name]!.dims).toEqual(reference[name]!.dims);
    const [a, b] = [floatData(out[name]), floatData(reference[name])];
    return Math.max(...a.map((x, i) => Math.abs(x - b[i]!))) / (Math.max(...b.map(Math.abs)) || 1);
  };
  return Object.fromEntries(names.map((name) => [name, error(name)]));
}

const KEEP: UpdateMemory = { headRows: null, recompute: false };
const MEMORIES = [
  ['', 'fused', KEEP],
  [', with layers computed again', 'fused', { headRows: null, recompute: true }],
  [', with logits by chunks of 4 of the 15 rows', 'fused', { headRows: 4, recompute: false }],
  [', with both', 'fused', { headRows: 6, recompute: true }],
  [', in ONNX’s own operators', 'standard', KEEP],
] as const;

describe.each([
  ['the weights of a llama', TINY_LLAMA, 'weights'],
  ['an adapter of a llama', TINY_LLAMA, LAYOUT],
  ['an adapter of a llama whose heads share nothing', { ...TINY_LLAMA, kvHeads: 4 }, LAYOUT],
  ['the weights of a mistral', { ...TINY_LLAMA, family: 'mistral', slidingWindow: windowOf(4) }, 'weights'],
  // Sequences that see a part of the prefix, or nothing of it.
  ['an adapter of a mistral that sees less', { ...TINY_LLAMA, family: 'mistral', slidingWindow: windowOf(2) }, LAYOUT],
  ['the weights of a gemma3', TINY_GEMMA3, 'weights'],
  ['an adapter of a gemma3', TINY_GEMMA3, LAYOUT],
  ['the weights of a qwen2', TINY_QWEN2, 'weights'],
  ['an adapter of a qwen2', TINY_QWEN2, LAYOUT],
  ['the weights of a qwen3', { ...TINY_LLAMA, family: 'qwen3' }, 'weights'],
  ['an adapter of a phi3', { ...TINY_LLAMA, family: 'phi3', ropeScaling: LONGROPE, maxPositions: 16 }, FUSED],
] satisfies [string, DecoderConfig, Trainable][])('an update of %s', (_, config, trainable) => {
  const { plain, shared } = batches(config.vocabulary);
  let reference: Fetches | undefined;
  it.each(MEMORIES)('after a shared prefix is the plain one to 1e-5%s', async (_name, dialect, memory) => {
    const checkpoint = openCheckpoint(tinyCheckpoint(config));
    const expected = (reference ??= await update(checkpoint, { trainable, memory: KEEP, dialect: 'fused' }, plain));
    const out = await update(checkpoint, { trainable, memory, dialect }, shared);
    const gradients = [...trainableShapes(config, trainable).keys()].map(gradientName);
    for (const name of gradients) expect(floatData(expected[name]).some((x) => Math.abs(x) > 1e-4)).toBe(true);
    const errors = differences(out, expected, ['loss', 'klSum', 'entropySum', 'clipped', 'logProbs', ...gradients]);
    expect(Object.entries(errors).filter(([, error]) => !(error < 1e-5))).toEqual([]);
  });
});

describe('an engine', () => {
  it.each(['fast', 'small'] as const)('takes batches with a prefix, memory %s', async (memory) => {
    const folder = tinyCheckpoint();
    const checkpoint = openCheckpoint(folder);
    const { plain, shared } = batches(TINY_LLAMA.vocabulary);
    const factors = trainables(checkpoint, LAYOUT);
    const engine = await Engine.create({ provider: 'cpu', threads: 1, memory });
    const handle = await engine.createTrainer(folder, LAYOUT, factors);
    const loss = { tokens: 15, clip: 0.2, kl: 0.1, entropy: 0.01 };
    const whole = await engine.accumulate(handle, plain, loss);
    const parted = await engine.accumulate(handle, shared, loss);
    expect(parted.loss).toBeCloseTo(whole.loss, 6);
    expect(parted.logProbs).toHaveLength(4 * 7);
    // The second sequence has one token; the six after it are not computed.
    expect([...parted.logProbs.subarray(8, 14)]).toEqual([0, 0, 0, 0, 0, 0]);
    for (const adapter of [null, { layout: LAYOUT, factors }]) {
      const logProbs = async (batch: PolicyBatch) => scored(await engine.logProbs(folder, batch, adapter), batch);
      const [a, b] = [await logProbs(shared), await logProbs(plain)];
      expect(a).toHaveLength(15);
      a.forEach((x, i) => expect(x).toBeCloseTo(b[i]!, 5));
    }
    await engine.close();
  });

  it('counts the prefix among the positions', async () => {
    const folder = tinyCheckpoint();
    const { shared } = batches(TINY_LLAMA.vocabulary);
    const engine = await Engine.create({ provider: 'cpu', threads: 1 });
    await expect(engine.logProbs(folder, { ...shared, prefix: new BigInt64Array(26) }, null)).rejects.toThrow(
      "33 tokens are more than the model's 32 positions: shorten the texts",
    );
    await engine.close();
  });
});

describe('placesOf', () => {
  it('takes a prefix of 2 and sequences of 1 and 2 apart, head by head: rows 0–4 of the first head, 5–9 of the second', () => {
    expect(placesOf(2, [1, 2], 2, 2)).toEqual({
      prefix: [0, 1, 5, 6],
      // The first sequence is padded with its own only row.
      sequences: [2, 2, 7, 7, 3, 4, 8, 9],
      joined: [0, 1, 4, 8, 9, 2, 3, 6, 10, 11],
    });
  });
});
