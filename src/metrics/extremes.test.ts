import { describe, expect, it } from 'vitest';
import { largest, smallest } from './extremes.js';

describe('the largest and the smallest', () => {
  it('are those of lists of any length', () => {
    const values = Float64Array.from({ length: 200_000 }, (_, i) => (i * 7919) % 200_003);
    expect(() => Math.max(...values)).toThrow(RangeError);
    expect([smallest(values), largest(values)]).toEqual([0, 200_002]);
    expect([smallest(new Set([3, 1, 2])), largest(new Map([['a', 3]]).values())]).toEqual([1, 3]);
  });

  it('are the neutral elements of no values, and NaN where a value is', () => {
    expect([smallest([]), largest([])]).toEqual([Infinity, -Infinity]);
    expect([smallest([1, Number.NaN]), largest([Number.NaN, 1])]).toEqual([Number.NaN, Number.NaN]);
  });
});
