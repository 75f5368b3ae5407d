import { describe, expect, it } from 'vitest';
import type { PolicyBatch } from '../lm/trainer.js';
import { microBatches, policyBatch } from './micro-batches.js';
import type { Rollout } from './micro-batches.js';

describe('policyBatch', () => {
  const batch = policyBatch([
    { prompt: [1], tokens: [7, 8, 3], logProbs: Float32Array.of(-0.5, -0.25, -1), advantage: 2 },
    { prompt: [1, 5], tokens: [3], logProbs: Float32Array.of(-2), advantage: -1 },
  ]);
  const row = (data: ArrayLike<number | bigint>, index: number) =>
    Array.from(data)
      .slice(index * batch.time, (index + 1) * batch.time)
      .map(Number);

  it('reads every token but the last and predicts the next', () => {
    expect([batch.batch, batch.time]).toEqual([2, 3]);
    expect(row(batch.ids, 0)).toEqual([1, 7, 8]);
    expect(row(batch.labels, 0)).toEqual([7, 8, 3]);
    expect(row(batch.ids, 1)).toEqual([1, 5, 0]);
    expect(row(batch.labels, 1)).toEqual([5, 3, 0]);
  });

  it('scores what the policy wrote, neither prompt nor padding', () => {
    expect(row(batch.mask, 0)).toEqual([1, 1, 1]);
    expect(row(batch.mask, 1)).toEqual([0, 1, 0]);
    expect(row(batch.advantages, 0)).toEqual([2, 2, 2]);
    expect(row(batch.advantages, 1)).toEqual([0, -1, 0]);
  });

  it('carries the log-probabilities of the rollout beside their tokens', () => {
    expect(row(batch.oldLogProbs!, 0)).toEqual([-0.5, -0.25, -1]);
    expect(row(batch.oldLogProbs!, 1)).toEqual([0, -2, 0]);
  });

  it('reads a shared part of the prompt before all columns', () => {
    const prompt = [1, 5, 9];
    const shared = policyBatch(
      [
        { prompt, tokens: [7, 3], logProbs: Float32Array.of(-0.5, -0.25), advantage: 2 },
        { prompt, tokens: [3], logProbs: Float32Array.of(-2), advantage: -1 },
      ],
      2,
    );
    expect(shared).toEqual({
      batch: 2,
      time: 2,
      prefix: BigInt64Array.of(1n, 5n),
      ids: BigInt64Array.of(9n, 7n, 9n, 0n),
      labels: BigInt64Array.of(7n, 3n, 3n, 0n),
      mask: Float32Array.of(1, 1, 1, 0),
      advantages: Float32Array.of(2, 2, -1, 0),
      oldLogProbs: Float32Array.of(-0.5, -0.25, -2, 0),
      referenceLogProbs: null,
    });
  });
});

describe('microBatches', () => {
  /** A prompt of `length` tokens that begins with `first`; what is written is the rollout's number, `written` times. */
  const rollout = (first: number, length: number, written: number, number: number): Rollout => ({
    prompt: [first, ...Array<number>(length - 1).fill(1)],
    tokens: Array<number>(written).fill(number),
    logProbs: new Float32Array(written),
    advantage: 1,
  });
  /** [prefix length, time, numbers of the rollouts in it] of each batch. */
  const outline = (batches: readonly PolicyBatch[]) =>
    batches.map(({ batch, time, prefix, labels, mask }) => {
      const numbers = Array.from({ length: batch }, (_, b) => {
        const row = b * time;
        return Number(labels[row + mask.subarray(row, row + time).indexOf(1)]);
      });
      return [prefix?.length ?? 0, time, numbers];
    });

  it('keeps sequences of one prompt together, by length, within rows', () => {
    const rollouts = [
      rollout(5, 40, 9, 100),
      rollout(6, 33, 4, 101),
      rollout(5, 40, 2, 102),
      rollout(6, 33, 3, 103),
      rollout(5, 40, 6, 104),
      rollout(5, 40, 3, 105),
    ];
    expect(outline(microBatches(rollouts, { rows: 2, tokens: 1000 }))).toEqual([
      [39, 3, [102, 105]],
      [39, 9, [104, 100]],
      [32, 4, [103, 101]],
    ]);
  });

  it('counts a shared prompt once: 39 + 3 · 7 = 60 tokens, where a fourth sequence would make 67', () => {
    const rollouts = [1, 2, 3, 4].map((n) => rollout(5, 40, 7, 100 + n));
    expect(outline(microBatches(rollouts, { rows: 9, tokens: 66 }))).toEqual([
      [39, 7, [101, 102, 103]],
      // One alone shares nothing: its prompt is in its row.
      [0, 46, [104]],
    ]);
  });

  it('leaves short prompts, and those of one sequence, as they come: by length, whatever their prompts', () => {
    const rollouts = [
      rollout(5, 32, 9, 100),
      rollout(5, 32, 2, 101),
      rollout(6, 50, 4, 102),
      rollout(7, 1, 30, 103),
      rollout(7, 1, 60, 104),
    ];
    expect(outline(microBatches(rollouts, { rows: 3, tokens: 1000 }))).toEqual([
      [0, 40, [103, 101, 100]],
      [0, 60, [102, 104]],
    ]);
  });

  it('has every sequence exactly once, alone where nothing else fits', () => {
    const rollouts = Array.from({ length: 40 }, (_, i) =>
      rollout(i % 3, [1, 35, 60][i % 3]!, 1 + ((7 * i) % 23), 200 + i),
    );
    for (const tokens of [1, 80, 300, 5000]) {
      const numbers = outline(microBatches(rollouts, { rows: 7, tokens })).flatMap(([, , n]) => n as number[]);
      expect(numbers.toSorted((a, b) => a - b)).toEqual(rollouts.map((_, i) => 200 + i));
    }
  });
});
