import { expect, test } from 'vitest';
import { deriveSeed, seededRandom } from './random.js';

function draws(seed: number | string, count: number): number[] {
  return Array.from({ length: count }, seededRandom(seed));
}

test('the same seed gives the same numbers, another seed others', () => {
  expect(draws(7, 5)).toEqual(draws(7, 5));
  expect(draws(7, 5)).toEqual(draws('7', 5));
  expect(draws(7, 5)).not.toEqual(draws(8, 5));
});

test('the stream is fixed: a stored run can be repeated by a later version', () => {
  expect(draws(1, 3)).toEqual([0.5039538560123483, 0.18209776623082752, 0.8322750611817369]);
  expect(deriveSeed(1, 'label', 0)).toBe(2966159236472835);
});

test('numbers are uniform over [0, 1): mean 1/2, variance 1/12, each of 16 cells its share', () => {
  const numbers = draws('uniform', 160_000);
  const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
  const variance = numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0) / numbers.length;
  expect(Math.min(...numbers.slice(0, 50_000))).toBeGreaterThanOrEqual(0);
  expect(Math.max(...numbers.slice(0, 50_000))).toBeLessThan(1);
  expect(Math.abs(mean - 0.5)).toBeLessThan(4 * Math.sqrt(1 / 12 / numbers.length));
  expect(Math.abs(variance - 1 / 12)).toBeLessThan(4 * Math.sqrt(1 / 180 / numbers.length));
  const cells = Array.from({ length: 16 }, () => 0);
  for (const value of numbers) cells[Math.floor(value * 16)]!++;
  const chiSquared = cells.reduce((sum, count) => sum + (count - 10_000) ** 2 / 10_000, 0);
  expect(chiSquared).toBeLessThan(37.7); // 99.9% of χ² with 15 degrees of freedom
});

test('first draws of consecutive seeds are as uniform as one stream', () => {
  const cells = Array.from({ length: 16 }, () => 0);
  for (let seed = 0; seed < 16_000; seed++) cells[Math.floor(seededRandom(seed)() * 16)]!++;
  const chiSquared = cells.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0);
  expect(chiSquared).toBeLessThan(37.7);
});

test('a derived seed is a whole number of 53 bits that depends on every part', () => {
  const seed = deriveSeed(1, 'label', 0);
  expect(Number.isSafeInteger(seed) && seed >= 0).toBe(true);
  expect(deriveSeed(1, 'label', 0)).toBe(seed);
  expect(deriveSeed(2, 'label', 0)).not.toBe(seed);
  expect(deriveSeed(1, 'labels', 0)).not.toBe(seed);
  expect(deriveSeed(1, 'label', 1)).not.toBe(seed);
  // Parts cannot run into each other.
  expect(deriveSeed(1, '1', 1)).not.toBe(deriveSeed(11, '', 1));
});

test('20,000 derived seeds do not collide, nor do their lower 32 bits more often than chance', () => {
  const seeds = Array.from({ length: 20_000 }, (_, index) => deriveSeed(1, 'attempt', index));
  expect(new Set(seeds).size).toBe(20_000);
  expect(new Set(seeds.map((seed) => seed >>> 0)).size).toBeGreaterThanOrEqual(19_998); // 0.05 collisions expected
});
