import { expect, test } from 'vitest';
import { bootstrap, pairedBootstrap, quantile } from './bootstrap.js';
import { auroc } from './probe-metrics.js';
import { seededRandom } from './random.js';

const meanOf =
  (values: readonly number[]) =>
  (indices: Int32Array): number =>
    indices.reduce((sum, index) => sum + values[index]!, 0) / indices.length;

test('quantiles interpolate between order statistics', () => {
  expect(quantile([10, 20, 30, 40], 0)).toBe(10);
  expect(quantile([10, 20, 30, 40], 0.5)).toBe(25);
  expect(quantile([10, 20, 30, 40], 0.9)).toBeCloseTo(37, 12);
  expect(quantile([10, 20, 30, 40], 1)).toBe(40);
  expect(quantile([], 0.5)).toBeNaN();
});

test('the interval of a mean is about mean ± 1.96·sd/√n', () => {
  const random = seededRandom('sample');
  const values = Array.from({ length: 400 }, random);
  const result = bootstrap(values.length, meanOf(values), { seed: 3, resamples: 4000 });
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const halfWidth = (1.96 * Math.sqrt(1 / 12)) / Math.sqrt(400);
  expect(result.estimate).toBeCloseTo(mean, 12);
  expect(result.interval[0]).toBeCloseTo(mean - halfWidth, 2);
  expect(result.interval[1]).toBeCloseTo(mean + halfWidth, 2);
  expect(result.aboveZero).toBe(1);
  expect(result.resamples).toBe(4000);
});

test('the same seed gives the same interval', () => {
  const statistic = meanOf([1, 5, 2, 8, 3]);
  expect(bootstrap(5, statistic, { seed: 1 })).toEqual(bootstrap(5, statistic, { seed: 1 }));
  expect(bootstrap(5, statistic, { seed: 1 })).not.toEqual(bootstrap(5, statistic, { seed: 2 }));
});

test('the interval leaves out half of what the level leaves, at either end', () => {
  const seen: number[] = [];
  const statistic = (indices: Int32Array): number => {
    const value = meanOf([1, 5, 2, 8, 3, 9, 4])(indices);
    seen.push(value);
    return value;
  };
  const { interval } = bootstrap(7, statistic, { seed: 1, resamples: 400, level: 0.8 });
  const sorted = seen.slice(0, 400).sort((a, b) => a - b);
  expect(interval).toEqual([quantile(sorted, 0.1), quantile(sorted, 0.9)]);
});

test('2,000 resamples and a level of 95% where nothing else is asked for', () => {
  const statistic = meanOf([1, 5, 2, 8, 3, 9, 4]);
  const result = bootstrap(7, statistic, { seed: 1 });
  expect(result.resamples).toBe(2000);
  expect(result).toEqual(bootstrap(7, statistic, { seed: 1, resamples: 2000, level: 0.95 }));
});

test('the share above zero is among the resamples that have a statistic', () => {
  // Defined where the first index is 0: then it is 1 or, with the second 0 too, −1.
  const statistic = ([first, second]: Int32Array): number => (first !== 0 ? Number.NaN : second === 0 ? -1 : 1);
  const result = bootstrap(2, statistic, { seed: 4, resamples: 2000 });
  expect(result.resamples).toBeLessThan(1100);
  expect(result.aboveZero).toBeGreaterThan(0.4);
  expect(result.aboveZero).toBeLessThan(0.6);
});

test('nothing to draw from, or strata of other observations, are refused', () => {
  expect(() => bootstrap(0, () => 1, { seed: 1 })).toThrow('at least one observation');
  expect(() => bootstrap(2, () => 1, { seed: 1, strata: [1, 1, 1] })).toThrow('3 strata for 2 observations');
});

test('a pair is the first less the second, on the same resamples', () => {
  const [first, second] = [meanOf([3, 1, 4, 1]), meanOf([2, 0, 3, 0])];
  const { estimate, interval } = pairedBootstrap(4, first, second, { seed: 2, resamples: 300 });
  expect(estimate).toBeCloseTo(1, 12);
  interval.forEach((end) => expect(end).toBeCloseTo(1, 12));
});

test('strata keep their sizes in every resample', () => {
  const strata = ['a', 'b', 'b', 'a', 'b'];
  const sizes = new Set<number>();
  bootstrap(5, (indices) => sizes.add(indices.filter((index) => strata[index] === 'a').length).size, {
    seed: 1,
    strata,
  });
  expect([...sizes]).toEqual([2]);
});

test('resamples without a defined statistic are left out and counted', () => {
  const labels = [1, 0];
  const scores = [0.9, 0.1];
  const statistic = (indices: Int32Array): number =>
    auroc(
      [...indices].map((index) => labels[index]!),
      [...indices].map((index) => scores[index]!),
    );
  const result = bootstrap(2, statistic, { seed: 1, resamples: 1000 });
  // Half of the resamples hold one of the two twice.
  expect(result.resamples).toBeGreaterThan(430);
  expect(result.resamples).toBeLessThan(570);
  expect(result.interval).toEqual([1, 1]);
});

test('pairing tells a small difference between correlated scores that unpaired intervals would hide', () => {
  const random = seededRandom('paired');
  const noise = (): number => random() + random() + random() - 1.5;
  const labels = Array.from({ length: 300 }, () => random() < 0.3);
  const shared = labels.map((label) => (label ? 0.8 : 0) + noise());
  const better = shared.map((score, index) => score + (labels[index] ? 0.15 : 0));
  const of = (scores: readonly number[]) => (indices: Int32Array) =>
    auroc(
      [...indices].map((index) => labels[index]!),
      [...indices].map((index) => scores[index]!),
    );
  const difference = pairedBootstrap(300, of(better), of(shared), { seed: 5, resamples: 500 });
  expect(difference.interval[0]).toBeGreaterThan(0);
  expect(difference.aboveZero).toBe(1);
  const apart = [better, shared].map((scores) => bootstrap(300, of(scores), { seed: 5, resamples: 500 }).interval);
  expect(apart[0]![0]).toBeLessThan(apart[1]![1]);
});
