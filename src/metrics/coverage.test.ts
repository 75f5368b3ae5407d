import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { countsOf, rarefy } from './coverage.js';
import { seededRandom } from './random.js';

interface Fixture {
  cases: { counts: number[]; size: number; richness: number; entropy: number }[];
}
const fixture = JSON.parse(readFileSync(new URL('fixtures/coverage.json', import.meta.url), 'utf8')) as Fixture;

test('counts, most often first', () => {
  expect(countsOf(['b', 'a', 'b', 'c', 'b', 'c'])).toEqual([3, 2, 1]);
});

describe('of all observations', () => {
  test('richness is the number of categories, the effective number that of equally frequent ones', () => {
    const equal = rarefy([5, 5, 5, 5], 20)!;
    expect(equal.richness.value).toBeCloseTo(4, 12);
    expect(equal.effective.value).toBeCloseTo(4, 12);
  });

  test('by hand: shares 1/2, 1/4, 1/4 have the entropy 3/2 ln 2', () => {
    expect(rarefy([2, 1, 1], 4)!.effective.value).toBeCloseTo(2 ** 1.5, 12);
  });

  test('one category alone is sure', () => {
    expect(rarefy([9], 9)).toEqual({
      richness: { value: 1, interval: [1, 1] },
      effective: { value: 1, interval: [1, 1] },
    });
  });
});

describe('of fewer: the mean over every subsample', () => {
  test.each(fixture.cases)('$size of $counts', ({ counts, size, richness, entropy }) => {
    const spread = rarefy(counts, size)!;
    expect(spread.richness.value).toBeCloseTo(richness, 10);
    expect(spread.effective.value).toBeCloseTo(Math.exp(entropy), 10);
  });

  test('by hand: two of [2, 1] show both categories in two of three pairs', () => {
    const { richness, effective } = rarefy([2, 1], 2)!;
    expect(richness.value).toBeCloseTo(5 / 3, 12);
    expect(effective.value).toBeCloseTo(2 ** (2 / 3), 12);
  });

  test('none of none is undefined, more than there are is an error', () => {
    expect(rarefy([], 0)).toBeNull();
    expect(rarefy([3], 0)).toBeNull();
    expect(() => rarefy([2, 1], 4)).toThrow('4 observations cannot be drawn from 3');
  });
});

describe('intervals', () => {
  test('are the same for the same counts', () => {
    expect(rarefy([7, 3, 1, 1, 1], 10)).toEqual(rarefy([7, 3, 1, 1, 1], 10));
  });

  test('cover what fresh sets show about as often as they say', () => {
    const random = seededRandom('fresh sets');
    // 300 draws over 40 categories, a few of them common and many rare; compared at 250.
    const sets = Array.from({ length: 120 }, () =>
      rarefy(countsOf(Array.from({ length: 300 }, () => Math.floor(40 * random() ** 4))), 250),
    );
    for (const measure of ['richness', 'effective'] as const) {
      const estimates = sets.map((spread) => spread![measure]);
      const expectation = estimates.reduce((sum, { value }) => sum + value, 0) / estimates.length;
      const covered = estimates.filter(({ interval: [low, high] }) => low <= expectation && expectation <= high);
      // 0.95 meant; 120 sets leave a standard deviation of 0.02, and the intervals are approximate.
      expect(covered.length / estimates.length).toBeGreaterThanOrEqual(0.9);
    }
  });

  test('of all observations seen once each are still made', () => {
    const { richness } = rarefy(
      Array.from({ length: 60 }, () => 1),
      60,
    )!;
    expect(richness.value).toBeCloseTo(60, 10);
    expect(richness.interval[0]).toBeLessThan(60);
  });
});
