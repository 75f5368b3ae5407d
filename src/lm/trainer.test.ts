/** Training: what must not change it (padding, splits, an interruption) and what must. */
import { appendFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder, TINY_LLAMA, TINY_QWEN2, tinyCheckpoint } from '../../tests/tiny-checkpoint.js';
import { seededRandom } from '../metrics/random.js';
import type { Tensor } from '../onnx/session.js';
import { initialAdapter } from './adapter.js';
import type { AdapterLayout } from './adapter.js';
import { openCheckpoint, readWeights } from './checkpoint.js';
import type { DecoderConfig } from './config.js';
import { freshState, Trainer } from './trainer.js';
import type { AdamWSettings, LossSettings, PolicyBatch, TrainerState } from './trainer.js';
import { readTrainerState, writeTrainerState } from './trainer-state.js';
import type { Trainable } from './update-graph.js';

const SETTINGS = { provider: 'cpu', threads: 1 } as const;
const LAYOUT: AdapterLayout = { rank: 2, alpha: 4, targets: ['q_proj', 'v_proj', 'down_proj'] };
const ADAMW: AdamWSettings = {
  learningRate: 0.01,
  beta1: 0.9,
  beta2: 0.99,
  epsilon: 1e-4,
  weightDecay: 0.1,
  maxNorm: 0.5,
};
const LOSS: Omit<LossSettings, 'tokens'> = { clip: 0.2, kl: 0.1, entropy: 0.01 };

/** One token sequence of a batch before padding. */
interface Row {
  readonly tokens: number[];
  readonly promptLength: number;
  readonly advantage: number;
  readonly old: number[];
  readonly reference: number[];
}

function randomRows(lengths: readonly number[], vocabulary: number, seed: number): Row[] {
  const random = seededRandom(seed);
  const near = (n: number): number[] => Array.from({ length: n }, () => -3.2 + 0.5 * (random() - 0.5));
  return lengths.map((length) => ({
    tokens: Array.from({ length: length + 1 }, () => Math.floor(random() * vocabulary)),
    promptLength: 2,
    advantage: random() * 2 - 1,
    old: near(length),
    reference: near(length),
  }));
}

/** Rows as a batch, padded to `time` with a token that is given. */
function batchOf(rows: readonly Row[], time = Math.max(...rows.map((r) => r.old.length)), pad = 0): PolicyBatch {
  const size = rows.length * time;
  const float = (): Float32Array => new Float32Array(size);
  const ids = new BigInt64Array(size).fill(BigInt(pad));
  const labels = new BigInt64Array(size).fill(BigInt(pad));
  const [mask, advantages, oldLogProbs, referenceLogProbs] = [float(), float(), float(), float()];
  rows.forEach((row, r) =>
    row.old.forEach((old, t) => {
      const at = r * time + t;
      ids[at] = BigInt(row.tokens[t]!);
      labels[at] = BigInt(row.tokens[t + 1]!);
      mask[at] = t < row.promptLength ? 0 : 1;
      advantages[at] = row.advantage;
      oldLogProbs[at] = old;
      referenceLogProbs[at] = row.reference[t]!;
    }),
  );
  return { batch: rows.length, time, ids, labels, mask, advantages, oldLogProbs, referenceLogProbs };
}

const tokenCount = (rows: readonly Row[]): number => rows.reduce((n, row) => n + row.old.length - row.promptLength, 0);

async function newTrainer(config: DecoderConfig, trainable: Trainable): Promise<Trainer> {
  const checkpoint = openCheckpoint(tinyCheckpoint(config));
  return Trainer.create(checkpoint, trainable, freshState(startValues(checkpoint, trainable)), SETTINGS);
}

/** The checkpoint's weights, or an adapter whose two factors are both non-zero. */
function startValues(checkpoint: ReturnType<typeof openCheckpoint>, trainable: Trainable): ReadonlyMap<string, Tensor> {
  if (trainable === 'weights') return readWeights(checkpoint);
  const { factors } = initialAdapter(checkpoint.config, trainable, 5);
  const random = seededRandom(6);
  return new Map(
    [...factors].map(([name, t]) => [
      name,
      name.endsWith('lora_B') ? { shape: t.shape, data: t.data.map(() => random() * 0.4 - 0.2) } : t,
    ]),
  );
}

/** Largest |difference| over the largest |value|, over tensors of the same names. */
function difference(a: ReadonlyMap<string, Tensor>, b: ReadonlyMap<string, Tensor>): number {
  expect([...a.keys()]).toEqual([...b.keys()]);
  let worst = 0;
  for (const [name, { data }] of a) {
    const other = b.get(name)!.data;
    const scale = Math.max(...other.map(Math.abs));
    data.forEach((x, i) => (worst = Math.max(worst, Math.abs(x - other[i]!) / (scale || 1))));
  }
  return worst;
}

/** Gradients of batches added up, then the values after one step. */
async function gradientsAndStep(
  config: DecoderConfig,
  trainable: Trainable,
  batches: readonly PolicyBatch[],
  tokens: number,
): Promise<{ loss: number; gradients: Map<string, Tensor>; values: Map<string, Tensor> }> {
  const trainer = await newTrainer(config, trainable);
  let loss = 0;
  for (const batch of batches) loss += (await trainer.accumulate(batch, { ...LOSS, tokens })).loss;
  const gradients = trainer.gradients();
  await trainer.step(ADAMW);
  const values = trainer.values();
  await trainer.release();
  return { loss, gradients, values };
}

describe.each([
  ['the weights of a llama', TINY_LLAMA, 'weights'],
  ['the weights of a qwen2', TINY_QWEN2, 'weights'],
  ['an adapter', TINY_LLAMA, LAYOUT],
] as const)('training %s', (_, config, trainable) => {
  const rows = randomRows([9, 4, 6, 3], config.vocabulary, 1);
  const tokens = tokenCount(rows);
  const whole = (): ReturnType<typeof gradientsAndStep> => gradientsAndStep(config, trainable, [batchOf(rows)], tokens);

  it('is not changed by padding, however long and of whatever token', async () => {
    const padded = await gradientsAndStep(config, trainable, [batchOf(rows, 15, 7)], tokens);
    const reference = await whole();
    expect(padded.loss).toBeCloseTo(reference.loss, 6);
    expect(difference(padded.gradients, reference.gradients)).toBeLessThan(1e-6);
    expect(difference(padded.values, reference.values)).toBeLessThan(1e-6);
  });

  it('is not changed by a split into micro-batches', async () => {
    const reference = await whole();
    for (const sizes of [
      [1, 1, 1, 1],
      [3, 1],
    ]) {
      let at = 0;
      const batches = sizes.map((n) => batchOf(rows.slice(at, (at += n))));
      const split = await gradientsAndStep(config, trainable, batches, tokens);
      expect(split.loss).toBeCloseTo(reference.loss, 6);
      expect(difference(split.gradients, reference.gradients)).toBeLessThan(1e-6);
      expect(difference(split.values, reference.values)).toBeLessThan(1e-6);
    }
  });

  it('divides by the tokens it is told', async () => {
    const halved = await gradientsAndStep(config, trainable, [batchOf(rows)], 2 * tokens);
    const reference = await whole();
    expect(halved.loss).toBeCloseTo(reference.loss / 2, 6);
    const twice = new Map(
      [...halved.gradients].map(([n, t]) => [n, { shape: t.shape, data: t.data.map((x) => 2 * x) }]),
    );
    expect(difference(twice, reference.gradients)).toBeLessThan(1e-6);
  });

  it('on-policy is training with its own log-probabilities for the old ones', async () => {
    const trainer = await newTrainer(config, trainable);
    const onPolicy = { ...batchOf(rows), oldLogProbs: null };
    const report = await trainer.accumulate(onPolicy, { ...LOSS, tokens });
    expect(report.clipped).toBe(0);
    const gradients = trainer.gradients();
    await trainer.release();
    const own = await gradientsAndStep(config, trainable, [{ ...onPolicy, oldLogProbs: report.logProbs }], tokens);
    expect(report.loss).toBeCloseTo(own.loss, 6);
    expect(difference(own.gradients, gradients)).toBeLessThan(1e-6);
  });

  it('goes on from a saved state as if it had not stopped, bit for bit', async () => {
    const batches = [1, 2, 3, 4].map((seed) => batchOf(randomRows([7, 5], config.vocabulary, seed)));
    const advance = async (trainer: Trainer, from: number, to: number): Promise<void> => {
      for (const batch of batches.slice(from, to)) {
        await trainer.accumulate(batch, { ...LOSS, tokens: 8 });
        await trainer.step(ADAMW);
      }
    };
    const uninterrupted = await newTrainer(config, trainable);
    await advance(uninterrupted, 0, 4);

    const first = await newTrainer(config, trainable);
    await advance(first, 0, 2);
    const file = join(temporaryFolder(), 'state.safetensors');
    writeTrainerState(file, first.state());
    await first.release();
    const state = readTrainerState(file);
    expect(state.step).toBe(2);
    const second = await Trainer.create(openCheckpoint(tinyCheckpoint(config)), trainable, state, SETTINGS);
    await advance(second, 2, 4);

    expect(second.values()).toEqual(uninterrupted.values());
    expect(second.state()).toEqual(uninterrupted.state());
    await uninterrupted.release();
    await second.release();
  });
});

describe('a trainer', () => {
  const rows = randomRows([6, 4], TINY_LLAMA.vocabulary, 3);
  const tokens = tokenCount(rows);

  it('raises the probability of what had a positive advantage', async () => {
    const trainer = await newTrainer(TINY_LLAMA, 'weights');
    const batch = { ...batchOf(rows), oldLogProbs: null, referenceLogProbs: null };
    batch.advantages.fill(1);
    const masked = (logProbs: Float32Array): number => logProbs.reduce((sum, lp, i) => sum + lp * batch.mask[i]!, 0);
    const loss = { clip: 0.2, kl: 0, entropy: 0, tokens };
    const before = masked((await trainer.accumulate(batch, loss)).logProbs);
    await trainer.step({ ...ADAMW, weightDecay: 0 });
    const after = masked((await trainer.accumulate(batch, loss)).logProbs);
    await trainer.release();
    expect(after).toBeGreaterThan(before + 0.5);
  });

  it('has no gradient where the clip holds: a ratio above 1 + ε with a positive advantage', async () => {
    const trainer = await newTrainer(TINY_LLAMA, 'weights');
    const batch = batchOf(rows);
    batch.advantages.fill(1);
    batch.oldLogProbs!.fill(-20);
    const report = await trainer.accumulate(batch, { clip: 0.2, kl: 0, entropy: 0, tokens });
    expect(report.clipped).toBe(tokens);
    // Every token's surrogate is (1 + ε) · 1.
    expect(report.loss).toBeCloseTo(-1.2, 5);
    expect([...trainer.gradients().values()].flatMap((t) => [...t.data]).every((x) => x === 0)).toBe(true);
    await trainer.release();
  });

  it('reports no KL without a reference', async () => {
    const trainer = await newTrainer(TINY_LLAMA, LAYOUT);
    const report = await trainer.accumulate({ ...batchOf(rows), referenceLogProbs: null }, { ...LOSS, kl: 0, tokens });
    expect(report.klSum).toBe(0);
    await trainer.release();
  });

  it('refuses a KL without a reference, rather than take its probabilities for 1', async () => {
    const trainer = await newTrainer(TINY_LLAMA, LAYOUT);
    const batch = { ...batchOf(rows), referenceLogProbs: null };
    await expect(trainer.accumulate(batch, { ...LOSS, tokens })).rejects.toThrow(RangeError);
    await expect(trainer.accumulate(batch, { ...LOSS, tokens })).rejects.toThrow(
      "a KL of weight 0.1 needs the reference's log-probabilities",
    );
    await trainer.release();
  });

  it('refuses sequences longer than the model’s positions', async () => {
    const trainer = await newTrainer(TINY_LLAMA, LAYOUT);
    await expect(trainer.accumulate(batchOf(rows, 33), { ...LOSS, tokens })).rejects.toMatchObject({
      name: 'UserError',
      message: "33 tokens are more than the model's 32 positions: shorten the texts",
    });
    await trainer.release();
  });

  it('refuses the state of another model', async () => {
    const checkpoint = openCheckpoint(tinyCheckpoint(TINY_LLAMA));
    const wider = openCheckpoint(tinyCheckpoint({ ...TINY_LLAMA, width: 32 }));
    const state = freshState(readWeights(wider));
    await expect(Trainer.create(checkpoint, 'weights', state, SETTINGS)).rejects.toThrow(
      "the training state belongs to another model or adapter: 'model.embed_tokens.weight' has shape [24,32], not [24,16]",
    );
    await expect(Trainer.create(checkpoint, LAYOUT, state, SETTINGS)).rejects.toThrow(
      "'model.layers.0.self_attn.q_proj.lora_A' is missing",
    );
  });
});

describe('a trainer’s state file', () => {
  const state: TrainerState = freshState(new Map([['w', { shape: [2], data: Float32Array.of(1, -2) }]]));

  it('keeps the step and every tensor', () => {
    const file = join(temporaryFolder(), 'state.safetensors');
    writeTrainerState(file, { ...state, step: 123_456 });
    expect(readTrainerState(file)).toEqual({ ...state, step: 123_456 });
  });
  it('is refused when cut off, when another file, when missing', () => {
    const file = join(temporaryFolder(), 'state.safetensors');
    expect(() => readTrainerState(file)).toThrow(`${file} cannot be read (ENOENT)`);
    writeTrainerState(file, state);
    appendFileSync(file, 'x');
    expect(() => readTrainerState(file)).toThrow(/no tensor holds the bytes from \d+ to \d+/);
    truncateSync(file, 250);
    expect(() => readTrainerState(file)).toThrow(/state\.safetensors is not a usable safetensors file/);
  });
});
