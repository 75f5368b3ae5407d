import { expect, test } from 'vitest';
import { claimedInBand } from './probe-scores.js';
import { servedReward } from './reward-scorer.js';

const SCALES = [
  { mean: 0, sd: 1 },
  { mean: 10, sd: 10 },
];
const TRAIN = { rewardClip: 2.5, invalidPenalty: -3 };

test('a trainer is paid the smallest standardised logit, clipped, and the penalty for what is not valid', () => {
  expect(servedReward([1, 30], SCALES, TRAIN)).toBe(1);
  expect(servedReward([9, 5], SCALES, TRAIN)).toBe(-0.5);
  expect(servedReward([9, 900], SCALES, TRAIN)).toBe(2.5);
  expect(servedReward([-9, 30], SCALES, TRAIN)).toBe(-2.5);
  expect(servedReward(null, SCALES, TRAIN)).toBe(-3);
});

test('what is claimed is the probability of the least sure probe', () => {
  expect(claimedInBand([0, Math.log(3)])).toBe(0.5);
  expect(claimedInBand([Math.log(3), Math.log(3) + 1])).toBeCloseTo(0.75, 12);
});
