import { expect, test } from 'vitest';
import { differenceInterval, disjoint, wilsonInterval } from './interval.js';

test('8 of 10: centre (8 + 1.9208)/13.8416, half-width 1.96/13.8416·√(1.6 + 0.9604)', () => {
  const centre = 9.9208 / 13.8416;
  const halfWidth = (1.96 / 13.8416) * Math.sqrt(2.5604);
  const [low, high] = wilsonInterval(8, 10);
  expect(low).toBeCloseTo(centre - halfWidth, 12);
  expect(high).toBeCloseTo(centre + halfWidth, 12);
  expect(low).toBeCloseTo(0.490157, 5);
  expect(high).toBeCloseTo(0.943321, 5);
});

test('none and all of n touch 0 and 1 and say how little n tells', () => {
  // z²/(n + z²) with n = 10.
  expect(wilsonInterval(0, 10)).toEqual([0, expect.closeTo(3.8416 / 13.8416, 12)]);
  expect(wilsonInterval(10, 10)).toEqual([expect.closeTo(10 / 13.8416, 12), 1]);
});

test('the ends at none and all are exact for every n, where rounding would leave some beside', () => {
  for (let n = 1; n <= 2000; n++) {
    expect(wilsonInterval(0, n)[0]).toBe(0);
    expect(wilsonInterval(n, n)[1]).toBe(1);
  }
});

test('no trials say nothing', () => {
  expect(wilsonInterval(0, 0)).toEqual([0, 1]);
});

test.each([
  [-1, 5],
  [6, 5],
  [0.5, 5],
])('%d of %d is refused', (successes, trials) => {
  expect(() => wilsonInterval(successes, trials)).toThrow(RangeError);
});

test('intervals that touch are not disjoint', () => {
  expect(disjoint([0.1, 0.2], [0.2, 0.3])).toBe(false);
  expect(disjoint([0.1, 0.2], [0.21, 0.3])).toBe(true);
  expect(disjoint([0.21, 0.3], [0.1, 0.2])).toBe(true);
});

test('the difference of 56 of 70 and 48 of 80: Newcombe’s example (a), method 10, 0.0524 to 0.3339', () => {
  const [low, high] = differenceInterval([56, 70], [48, 80]);
  expect(low).toBeCloseTo(0.0524, 4);
  expect(high).toBeCloseTo(0.3339, 4);
  expect(differenceInterval([48, 80], [56, 70])).toEqual([expect.closeTo(-high, 12), expect.closeTo(-low, 12)]);
});

test('the difference from what was not observed may be any', () => {
  expect(differenceInterval([3, 10], [0, 0])).toEqual([-1, 1]);
});
