import { describe, expect, test } from 'vitest';
import { bandLogits, bandLogLoss, bandProbabilities, ordinalLogProbabilities } from './count-head.js';
import type { HeadKind, LinearHead } from './count-head.js';
import { standardisationOf, standardise } from './matrix.js';

/** One column, of mean 2 and deviation 4: the features 2, 6 and −2 are 0, 1 and −1. */
const FEATURES = { rows: 3, columns: 1, data: Float32Array.of(2, 6, -2) };
const head = (kind: HeadKind, weights: readonly number[], offsets: readonly number[]): LinearHead => ({
  kind,
  k: 2,
  band: { min: 1, max: 1 },
  standardisation: { mean: Float32Array.of(2), sd: Float32Array.of(4) },
  weights: Float32Array.from(weights),
  offsets: Float32Array.from(offsets),
});
const expectClose = (actual: ArrayLike<number>, expected: readonly number[]) => {
  expect(actual).toHaveLength(expected.length);
  expected.forEach((value, i) => expect(actual[i]).toBeCloseTo(value, 6));
};
const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

describe('band logits of standardised features', () => {
  test('band: w·x + b', () => {
    expectClose(bandLogits(head('band', [3], [0.5]), FEATURES), [0.5, 3.5, -2.5]);
  });

  test('counts: the middle one of three against the others, each with its bias', () => {
    // u = (0, 2x + 1, 0.5): log e^{u₁} − log(1 + e^{0.5}).
    const out = Math.log(1 + Math.exp(0.5));
    expectClose(bandLogits(head('counts', [0, 2, 0], [0, 1, 0.5]), FEATURES), [1 - out, 3 - out, -1 - out]);
  });

  test('ordinal: what lies between the cut-points −1 and 2 against what does not', () => {
    const expected = [0, 1, -1].map((z) => {
      const inside = sigmoid(2 - z) - sigmoid(-1 - z);
      return Math.log(inside / (1 - inside));
    });
    expectClose(bandLogits(head('ordinal', [1], [-1, 2]), FEATURES), expected);
  });

  test('features of another width are refused', () => {
    const wide = { rows: 1, columns: 2, data: new Float32Array(2) };
    expect(() => bandLogits(head('band', [1], [0]), wide)).toThrow('features with 2 columns for a head of 1');
  });
});

test('ordinal probabilities are differences of the cumulative ones, and add up to 1', () => {
  const probabilities = ordinalLogProbabilities([-1, 0.5, 2], 0.25).map(Math.exp);
  const below = [-1, 0.5, 2].map((cut) => sigmoid(cut - 0.25));
  expectClose(probabilities, [below[0]!, below[1]! - below[0]!, below[2]! - below[1]!, 1 - below[2]!]);
});

test('the band’s loss is the mean −log of the probability of what was', () => {
  const logits = [Math.log(3), Math.log(3), 0];
  // In band at 3/4, out of band at 1/4, in band at 1/2.
  expect(bandLogLoss([true, false, true], logits)).toBeCloseTo(-Math.log((3 / 4) * (1 / 4) * (1 / 2)) / 3, 12);
  expectClose(bandProbabilities(logits), [0.75, 0.75, 0.5]);
});

describe('standardisation', () => {
  // Columns 1, 3, 8 and 5, 5, 5: means 4 and 5, deviations √(26/3) and none.
  const matrix = { rows: 3, columns: 2, data: Float32Array.of(1, 5, 3, 5, 8, 5) };

  test('is mean and population deviation of each column, 1 where it does not vary', () => {
    const { mean, sd } = standardisationOf(matrix);
    expectClose(mean, [4, 5]);
    expectClose(sd, [Math.sqrt(26 / 3), 1]);
  });

  test('leaves each column with mean 0 and deviation 1, one that does not vary at 0', () => {
    const sd = Math.sqrt(26 / 3);
    expectClose(standardise(matrix, standardisationOf(matrix)).data, [-3 / sd, 0, -1 / sd, 0, 4 / sd, 0]);
  });
});
