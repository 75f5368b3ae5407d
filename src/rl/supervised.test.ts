/** Supervised fine-tuning: PyTorch's losses and weights, and in which order documents are learnt from. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readAdapter } from '../lm/adapter-folder.js';
import type { Adapter } from '../lm/adapter.js';
import { openCheckpoint } from '../lm/checkpoint.js';
import { Engine } from '../lm/engine.js';
import type { TokenBatch } from '../lm/batch-rows.js';
import type { AdamWSettings, LossSettings, PolicyBatch } from '../lm/trainer.js';
import { documentLosses, learningRateAt, supervisedUpdate, trainingOrder } from './supervised.js';

interface Fixture {
  readonly documents: readonly (readonly [prompt: number[], completion: number[]])[];
  readonly updates: readonly (readonly number[])[];
  readonly peak: number;
  readonly warmUp: number;
  readonly adam: AdamWSettings;
  readonly losses: readonly number[];
  readonly factors: Readonly<Record<string, readonly number[]>>;
}
const peer = JSON.parse(readFileSync(new URL('fixtures/supervised.json', import.meta.url), 'utf8')) as Fixture;
const folder = fileURLToPath(new URL('../lm/fixtures/llama', import.meta.url));
const documents = peer.documents.map(([prompt, completion]) => ({ prompt, completion }));

describe('supervised updates', () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await Engine.create({ provider: 'cpu', threads: 1 });
  });
  afterAll(() => engine.close());

  const train = async (limits: { rows: number; tokens: number }) => {
    const { layout, factors } = readAdapter(join(folder, 'adapter'), openCheckpoint(folder).config);
    const handle = await engine.createTrainer(folder, layout, factors);
    const trainer = {
      accumulate: (batch: PolicyBatch, loss: LossSettings) => engine.accumulate(handle, batch, loss),
      step: (settings: AdamWSettings) => engine.step(handle, settings),
    };
    const losses: number[] = [];
    for (const [i, update] of peer.updates.entries()) {
      const learningRate = learningRateAt(i, { peak: peer.peak, warmUp: peer.warmUp, updates: peer.updates.length });
      const part = update.map((document) => documents[document]!);
      losses.push(await supervisedUpdate(trainer, part, limits, { ...peer.adam, learningRate }));
    }
    const values = engine.trainedValues(handle);
    await engine.releaseTrainer(handle);
    return { losses, adapter: { layout, factors: values } satisfies Adapter };
  };

  it.each([
    ['in one pass', { rows: 8, tokens: 1000 }],
    ['in micro-batches of one document', { rows: 1, tokens: 1000 }],
  ])('are those of PyTorch’s cross-entropy, %s', async (_, limits) => {
    const { losses, adapter } = await train(limits);
    losses.forEach((loss, i) => expect(loss).toBeCloseTo(peer.losses[i]!, 5));
    expect([...adapter.factors.keys()].sort()).toEqual(Object.keys(peer.factors).sort());
    for (const [name, { data }] of adapter.factors) {
      const expected = peer.factors[name]!;
      data.forEach((value, i) => expect(Math.abs(value - expected[i]!), name).toBeLessThan(1e-4));
    }
  });

  it('a document’s loss is of its completion alone, whatever it is batched with', async () => {
    const model = { logProbs: (batch: TokenBatch, adapter: Adapter | null) => engine.logProbs(folder, batch, adapter) };
    const { adapter } = await train({ rows: 8, tokens: 1000 });
    const together = await documentLosses(model, adapter, documents, { rows: 8, tokens: 1000 });
    const alone = await documentLosses(model, adapter, documents, { rows: 1, tokens: 1 });
    together.forEach(({ nats, tokens }, i) => {
      expect(tokens).toBe(documents[i]!.completion.length);
      expect(nats).toBeCloseTo(alone[i]!.nats, 4);
    });
    // Training has lowered what it was on.
    const sum = (losses: readonly { nats: number }[]) => losses.reduce((total, { nats }) => total + nats, 0);
    expect(sum(together)).toBeLessThan(sum(await documentLosses(model, null, documents, { rows: 8, tokens: 1000 })));
  });
});

it('the learning rate rises linearly and falls by a half cosine to a twentieth', () => {
  const schedule = { peak: 1, warmUp: 4, updates: 100 };
  expect(learningRateAt(0, schedule)).toBeCloseTo(0.25);
  expect(learningRateAt(50, schedule)).toBeCloseTo(0.05 + 0.95 / 2);
  expect(learningRateAt(99, schedule)).toBeCloseTo(0.05, 2);
});

describe('the order of documents', () => {
  const lengths = Array.from({ length: 1000 }, (_, i) => 5 + ((i * 37) % 91));
  const order = trainingOrder(lengths, { batch: 16, passes: 2, seed: 7 });

  it('has every document once a pass, the same for the same seed', () => {
    const half = order.length / 2;
    for (const pass of [order.slice(0, half), order.slice(half)])
      expect(pass.flat().sort((a, b) => a - b)).toEqual([...lengths.keys()]);
    expect(order.slice(0, half)).not.toEqual(order.slice(half));
    expect(trainingOrder(lengths, { batch: 16, passes: 2, seed: 7 })).toEqual(order);
    expect(trainingOrder(lengths, { batch: 16, passes: 2, seed: 8 })).not.toEqual(order);
  });

  it('has documents of like length in an update, and updates of unlike lengths after one another', () => {
    const spreads = order.map(
      (update) => Math.max(...update.map((i) => lengths[i]!)) - Math.min(...update.map((i) => lengths[i]!)),
    );
    expect(spreads.reduce((a, b) => a + b, 0) / spreads.length).toBeLessThan(10);
    const means = order.slice(0, 16).map((update) => update.reduce((sum, i) => sum + lengths[i]!, 0) / update.length);
    expect(means).not.toEqual(means.toSorted((a, b) => a - b));
  });
});
