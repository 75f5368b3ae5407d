import { describe, expect, it } from 'vitest';
import { mean, studentInterval } from './student.js';

describe('studentInterval', () => {
  it('of three values: mean 0.4, s = 0.05, t = 4.303, half-width 4.303 · 0.05 / √3 = 0.1242', () => {
    const values = [0.35, 0.4, 0.45];
    expect(mean(values)).toBeCloseTo(0.4, 12);
    const [low, high] = studentInterval(values)!;
    expect(low).toBeCloseTo(0.2758, 4);
    expect(high).toBeCloseTo(0.5242, 4);
  });

  it('of two values: t = 12.706, half-width 12.706 · |a − b| / 2', () => {
    expect(studentInterval([1, 2])![1]).toBeCloseTo(1.5 + 6.353, 6);
  });

  it('of equal values is a point, of one value is unknown', () => {
    expect(studentInterval([0.2, 0.2, 0.2])![0]).toBeCloseTo(0.2, 12);
    expect(studentInterval([0.2])).toBeNull();
  });

  it('goes on beyond the table: 41 values, 40 degrees of freedom, t = 2.021', () => {
    const values = [0, ...Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? 1 : -1))];
    const [low, high] = studentInterval(values)!;
    // Mean 0, Σx² = 40, s² = 1, so the half-width is t / √41.
    expect(((high - low) / 2) * Math.sqrt(41)).toBeCloseTo(2.021, 3);
  });
});
