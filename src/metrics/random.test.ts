import { describe, expect, it } from 'vitest';
import { deriveSeed, seededRandom } from './random.js';

function draws(seed: number | string, count: number): number[] {
  const random = seededRandom(seed);
  return Array.from({ length: count }, random);
}

describe('seededRandom', () => {
  it('gives the same stream for the same seed, as a number or as its text', () => {
    expect(draws(7, 5)).toEqual(draws('7', 5));
  });

  it('gives the stream that it has always given', () => {
    expect(draws(1, 3)).toEqual([0.5039538560123483, 0.18209776623082752, 0.8322750611817369]);
  });

  it('stays in [0, 1) with mean 1/2, variance 1/12 and no correlation between neighbours', () => {
    const values = draws('moments', 100_000);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const central = values.map((value) => value - mean);
    const variance = central.reduce((sum, value) => sum + value * value, 0) / values.length;
    const covariance = central.slice(1).reduce((sum, value, index) => sum + value * central[index]!, 0) / values.length;
    expect(Math.min(...values.slice(0, 50_000))).toBeGreaterThanOrEqual(0);
    expect(Math.max(...values.slice(0, 50_000))).toBeLessThan(1);
    expect(mean).toBeCloseTo(1 / 2, 2);
    expect(variance).toBeCloseTo(1 / 12, 2);
    expect(covariance / variance).toBeCloseTo(0, 1);
  });

  it('gives neighbouring seeds unrelated first draws', () => {
    const firsts = Array.from({ length: 10_000 }, (_, seed) => draws(seed, 1)[0]!);
    const buckets = Array.from({ length: 10 }, () => 0);
    for (const first of firsts) buckets[Math.floor(first * 10)]!++;
    // 1,000 a bucket with a standard deviation of 30.
    for (const bucket of buckets) expect(Math.abs(bucket - 1000)).toBeLessThan(150);
  });
});

describe('deriveSeed', () => {
  it('differs by seed, purpose and index', () => {
    const seeds = [deriveSeed(1, 'a', 0), deriveSeed(2, 'a', 0), deriveSeed(1, 'b', 0), deriveSeed(1, 'a', 1)];
    expect(new Set(seeds).size).toBe(4);
  });

  it('does not confuse a purpose that ends in a digit with an index', () => {
    expect(deriveSeed(1, 'a1', 2)).not.toBe(deriveSeed(1, 'a', 12));
  });

  it('is a whole number that a double holds exactly, without collisions among 100,000 indices', () => {
    const seeds = Array.from({ length: 100_000 }, (_, index) => deriveSeed(1, 'steps', index));
    expect(seeds.every((seed) => Number.isSafeInteger(seed) && seed >= 0)).toBe(true);
    expect(new Set(seeds).size).toBe(100_000);
  });
});
