import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { auroc, averagePrecision, brierScore, expectedCalibrationError, reliabilityBins } from './probe-metrics.js';

interface Fixture {
  bins: number;
  cases: {
    name: string;
    labels: number[];
    probabilities: number[];
    auroc: number;
    averagePrecision: number;
    brier: number;
    reliability: [predicted: number, observed: number][] | null;
  }[];
}
const fixture = JSON.parse(readFileSync(new URL('fixtures/probe-metrics.json', import.meta.url), 'utf8')) as Fixture;

describe('equal to scikit-learn', () => {
  test.each(fixture.cases)('$name', ({ labels, probabilities, ...expected }) => {
    expect(auroc(labels, probabilities)).toBeCloseTo(expected.auroc, 12);
    expect(averagePrecision(labels, probabilities)).toBeCloseTo(expected.averagePrecision, 12);
    expect(brierScore(labels, probabilities)).toBeCloseTo(expected.brier, 12);
    if (expected.reliability === null) return;
    const bins = reliabilityBins(labels, probabilities, fixture.bins);
    expect(bins.map(({ count }) => count)).toEqual(Array.from({ length: 10 }, () => 20));
    bins.forEach(({ predicted, observed }, bin) => {
      expect(predicted).toBeCloseTo(expected.reliability![bin]![0], 12);
      expect(observed).toBeCloseTo(expected.reliability![bin]![1], 12);
    });
  });
});

describe('by hand', () => {
  test('AUROC counts the pairs that are the right way round, ties half', () => {
    // Positives .8, .5, negatives .5, .2, .9: right pairs 2 of 6 by order (.8>.5, .8>.2), .5>.2, and one tie.
    expect(auroc([true, true, false, false, false], [0.8, 0.5, 0.5, 0.2, 0.9])).toBeCloseTo(3.5 / 6, 12);
  });

  test('AUROC of one class, and average precision without positives, are undefined', () => {
    expect(auroc([1, 1], [0.1, 0.2])).toBeNaN();
    expect(averagePrecision([0, 0], [0.1, 0.2])).toBeNaN();
  });

  test('average precision: positives at ranks 1 and 3 give (1/1 + 2/3)/2', () => {
    expect(averagePrecision([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])).toBeCloseTo((1 + 2 / 3) / 2, 12);
  });

  test('calibration error over two bins: |0 − .15|·½ + |½ − .8|·½', () => {
    expect(expectedCalibrationError([0, 0, 1, 0], [0.1, 0.2, 0.7, 0.9], 2)).toBeCloseTo(0.225, 12);
  });

  test('equal probabilities share a bin whatever the order of the rows', () => {
    const bins = reliabilityBins([1, 0, 1, 0], [0.5, 0.5, 0.5, 0.9], 2);
    expect(bins).toEqual([
      { count: 3, predicted: 0.5, observed: expect.closeTo(2 / 3, 12) },
      { count: 1, predicted: 0.9, observed: 0 },
    ]);
  });
});

test('a bin that equal probabilities leave empty is not one of the diagram', () => {
  expect(reliabilityBins([1, 0, 1, 1], [0.5, 0.5, 0.5, 0.5], 2)).toEqual([
    { count: 4, predicted: 0.5, observed: 0.75 },
  ]);
});

test('labels and scores of different numbers are refused', () => {
  for (const measure of [auroc, averagePrecision, brierScore]) {
    expect(() => measure([1, 0], [0.5])).toThrow('2 labels for 1 scores');
  }
});
