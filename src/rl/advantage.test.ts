import { describe, expect, test } from 'vitest';
import { grpo, reinforcePlusPlusBaseline, rloo } from './advantage.js';

// Two prompts, interleaved: rewards 1, 3 of prompt 5 and 0, 0, 6 of prompt 2.
const REWARDS = [1, 0, 3, 0, 6];
const GROUPS = [5, 2, 5, 2, 2];

function expectClose(actual: ArrayLike<number>, expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  expected.forEach((value, index) => expect(actual[index]).toBeCloseTo(value, 12));
}

describe('GRPO', () => {
  test('(r − mean)/(std + 1e-4) within the group', () => {
    // Prompt 5: mean 2, std 1. Prompt 2: mean 2, std √((4 + 4 + 16)/3) = √8.
    const wide = Math.sqrt(8) + 1e-4;
    expectClose(grpo(REWARDS, GROUPS), [-1 / 1.0001, -2 / wide, 1 / 1.0001, -2 / wide, 4 / wide]);
  });

  test('equal rewards teach nothing', () => {
    expectClose(grpo([2, 2, 2], [0, 0, 0]), [0, 0, 0]);
    expectClose(grpo([7], [0]), [0]);
  });
});

describe('RLOO', () => {
  test('r minus the mean of the others', () => {
    // Prompt 5: 1 − 3, 3 − 1. Prompt 2: 0 − 3, 0 − 3, 6 − 0.
    expectClose(rloo(REWARDS, GROUPS), [-2, -3, 2, -3, 6]);
  });

  test('a sample without others is compared with nothing, by any estimator, and the others are as ever', () => {
    expectClose(rloo([1, 2, 3], [0, 0, 1]), [-1, 1, 0]);
    expectClose(grpo([1, 3, 9], [0, 0, 1]), [-1 / 1.0001, 1 / 1.0001, 0]);
    expect(reinforcePlusPlusBaseline([1, 3, 9], [0, 0, 1])[2]).toBe(0);
  });
});

describe('REINFORCE++-baseline', () => {
  test('centred within the group, whitened over the batch', () => {
    // Centred: −1, −2, 1, −2, 4; mean 0, std √(26/5).
    const std = Math.sqrt(26 / 5) + 1e-4;
    expectClose(reinforcePlusPlusBaseline(REWARDS, GROUPS), [-1 / std, -2 / std, 1 / std, -2 / std, 4 / std]);
  });
});

test('with one prompt GRPO and REINFORCE++-baseline coincide, and RLOO is a multiple of them', () => {
  const rewards = [0.5, -3, 1.25, 2, -0.75];
  const groups = [0, 0, 0, 0, 0];
  const first = grpo(rewards, groups);
  expectClose(reinforcePlusPlusBaseline(rewards, groups), [...first]);
  const ratio = rloo(rewards, groups)[0]! / first[0]!;
  expectClose(
    rloo(rewards, groups),
    [...first].map((value) => value * ratio),
  );
});

test('a reward without a group is refused', () => {
  expect(() => grpo([1, 2], [0])).toThrow('2 rewards in 1 groups');
});
