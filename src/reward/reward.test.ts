import { describe, expect, test } from 'vitest';
import { bandLogit, sigmoid } from './band-logit.js';
import { randomRewards, VALID_REWARD } from './control-rewards.js';
import { gate, penaltyProblem } from './gate.js';
import { ensembleMinimum, logitScale, probeReward, standardisedLogit } from './probe-reward.js';
import { solverReward } from './solver-reward.js';

describe('band logit of a head over counts', () => {
  test('equal logits over 0..8: three counts in band, six out, log(3/6)', () => {
    expect(bandLogit([0, 0, 0, 0, 0, 0, 0, 0, 0], { min: 1, max: 3 })).toBeCloseTo(Math.log(3 / 6), 12);
  });

  test('it is the log-odds of the softmax probability of the band', () => {
    // exp: 1, 2, 4, 1 → in band (1..2) 6, out 2.
    const logits = [0, Math.log(2), Math.log(4), 0];
    expect(bandLogit(logits, { min: 1, max: 2 })).toBeCloseTo(Math.log(3), 12);
    expect(sigmoid(bandLogit(logits, { min: 1, max: 2 }))).toBeCloseTo(6 / 8, 12);
  });

  test('large logits neither overflow nor saturate', () => {
    expect(bandLogit([-1000, 1000, -1000], { min: 1, max: 1 })).toBeCloseTo(2000 - Math.log(2), 9);
    expect(sigmoid(-800)).toBe(0);
    expect(sigmoid(800)).toBe(1);
  });

  test('a band of all counts has no logit', () => {
    expect(() => bandLogit([0, 0], { min: 0, max: 1 })).toThrow(RangeError);
  });
});

describe('validity gate', () => {
  test('a valid task keeps its reward, an invalid one gets the penalty', () => {
    expect(gate(true, 1.5, -3)).toBe(1.5);
    expect(gate(false, 1.5, -3)).toBe(-3);
  });

  test('a valid task without a reward is an error, not a zero', () => {
    expect(() => gate(true, Number.NaN, -3)).toThrow(RangeError);
  });

  test('the penalty must lie below the smallest valid reward', () => {
    expect(penaltyProblem(-3, -2.5)).toBeNull();
    expect(penaltyProblem(-2.5, -2.5)).toContain('must be below');
    expect(penaltyProblem(-0.5, 0)).toBeNull();
    expect(penaltyProblem(Number.NaN, 0)).toContain('must be below');
  });
});

describe('probe reward', () => {
  test('the scale is mean and population deviation on the labels', () => {
    expect(logitScale([1, 3, 1, 3])).toEqual({ mean: 2, sd: 1 });
    // Variance (4 + 4 + 16)/3 = 8.
    expect(logitScale([0, 0, 6])).toEqual({ mean: 2, sd: Math.sqrt(8) });
    expect(() => logitScale([2, 2])).toThrow('same logit');
  });

  test('standardised, then clipped to ± clip', () => {
    const scale = { mean: 2, sd: 4 };
    expect(standardisedLogit(4, scale, 2.5)).toBe(0.5);
    expect(standardisedLogit(100, scale, 2.5)).toBe(2.5);
    expect(standardisedLogit(-100, scale, 2.5)).toBe(-2.5);
  });

  test('an ensemble pays its smallest member, each on its own scale', () => {
    expect(ensembleMinimum([0.5, -0.25])).toBe(-0.25);
    expect(() => ensembleMinimum([])).toThrow(RangeError);
    const scales = [
      { mean: 0, sd: 1 },
      { mean: 10, sd: 10 },
    ];
    // Second task: 9 and −0.5, the first clipped to 2.5. Third: −9 clipped to −2.5, and 0.
    expect(
      [
        [1, 30],
        [9, 5],
        [-9, 10],
      ].map((logits) => probeReward(logits, scales, 2.5)),
    ).toEqual([1, -0.5, -2.5]);
  });

  test('an auxiliary probe that knows better takes the reward away', () => {
    const ensemble = { mean: 0, sd: 1 };
    const auxiliary = { mean: 1, sd: 2 };
    expect(probeReward([2], [ensemble], 2.5)).toBe(2);
    expect(probeReward([2, -2], [ensemble, auxiliary], 2.5)).toBe(-1.5);
  });

  test('one logit too many is refused', () => {
    expect(() => probeReward([1], [], 1)).toThrow('1 logits from 0 probes');
  });
});

test('solver in the loop: 1 in band, 0 out of band', () => {
  expect([0, 1, 3, 4].map((passes) => solverReward(passes, { min: 1, max: 3 }))).toEqual([0, 1, 1, 0]);
});

describe('controls', () => {
  test('the gate alone pays every valid task the same', () => {
    expect([true, false].map((valid) => gate(valid, VALID_REWARD, -3))).toEqual([1, -3]);
  });

  test('a random reward is the next number of the stream', () => {
    const numbers = [0.25, 0.75, 0.5];
    expect(randomRewards(2, () => numbers.shift()!)).toEqual([0.25, 0.75]);
  });
});
