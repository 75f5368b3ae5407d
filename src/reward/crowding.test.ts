import { describe, expect, test } from 'vitest';
import { cosineSimilarity, crowdedReward, crowding, sameTopic, unitVector } from './crowding.js';

describe('crowding', () => {
  test('by topic it is the share of the others that have the task’s topic', () => {
    // Others of the first: strings, lists, strings.
    expect(crowding(['strings', 'strings', 'lists', 'strings'], [], sameTopic)).toEqual([2 / 3, 2 / 3, 0, 2 / 3]);
  });

  test('earlier batches count as others', () => {
    expect(crowding(['strings', 'lists'], ['strings', 'strings', 'lists'], sameTopic)).toEqual([2 / 4, 1 / 4]);
  });

  test('a task alone is not crowded, and no tasks have no crowding', () => {
    expect(crowding(['strings'], [], sameTopic)).toEqual([0]);
    expect(crowding([], ['strings'], sameTopic)).toEqual([]);
  });

  test('by activations it is the mean cosine to the others, opposites counting as unlike', () => {
    const batch = [
      [3, 4],
      [4, 3],
      [-3, -4],
    ].map(unitVector);
    // cos(first, second) = (12 + 12)/25 = 0.96; the third is opposite to both.
    const [first, second, third] = crowding(batch, [], cosineSimilarity);
    expect(first).toBeCloseTo(0.48, 12);
    expect(second).toBeCloseTo(0.48, 12);
    expect(third).toBe(0);
  });

  test('a task is like itself by 1, whatever rounding makes of its length', () => {
    // 3 · (1/√3)² is 1 + 2⁻⁵² in floating point.
    const unit = unitVector([1, 1, 1]);
    expect(cosineSimilarity(unit, unit)).toBe(1);
  });

  test('features that are all at their mean are like nothing', () => {
    expect(cosineSimilarity(unitVector([0, 0]), unitVector([1, 0]))).toBe(0);
  });
});

test('a crowded task pays weight · c, and never falls below the smallest valid reward', () => {
  expect(crowdedReward(1, 0.5, 0.8, -2.5)).toBeCloseTo(0.6, 12);
  expect(crowdedReward(-2.4, 0.5, 0.8, -2.5)).toBe(-2.5);
  expect(crowdedReward(1, 0, 0.8, 0)).toBe(1);
});
