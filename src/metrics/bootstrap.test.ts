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
