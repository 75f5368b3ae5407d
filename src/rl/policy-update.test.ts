import { describe, expect, it } from 'vitest';
import { policyBatch } from './policy-update.js';

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
});
