/** Batches by length. */
import { describe, expect, it } from 'vitest';
import { packByLength } from './packing.js';

describe('packByLength', () => {
  it('takes the shortest first, equal ones in their order, so many rows a batch', () => {
    expect(packByLength([5, 2, 9, 2], { rows: 3, tokens: 1000 })).toEqual([[1, 3, 0], [2]]);
  });
  it('counts padding: rows times the longest stay within the tokens', () => {
    // 3 · 4 = 12 fits, a fourth row would make 4 · 5 = 20; then 2 · 6 = 12 fits.
    expect(packByLength([4, 4, 4, 5, 6], { rows: 8, tokens: 12 })).toEqual([
      [0, 1, 2],
      [3, 4],
    ]);
  });
  it('gives a sequence longer than the limit a batch of its own', () => {
    expect(packByLength([3, 50, 60], { rows: 8, tokens: 20 })).toEqual([[0], [1], [2]]);
  });
  it('keeps to what fits at the length of the longest, and gives what does not fit a batch of its own', () => {
    // Squares: 3 · 2² = 12 fits, a fourth row would make 4 · 3² = 36; 2 · 3² = 18 does not.
    const fits = (rows: number, longest: number) => rows * longest ** 2 <= 12;
    expect(packByLength([2, 2, 2, 3, 3, 9], { rows: 8, tokens: 1000, fits })).toEqual([[0, 1, 2], [3], [4], [5]]);
  });
  it('has nothing for nothing', () => {
    expect(packByLength([], { rows: 8, tokens: 20 })).toEqual([]);
  });
});
