import { describe, expect, test } from 'vitest';
import { auroc, averagePrecision, brierScore, expectedCalibrationError } from '../metrics/probe-metrics.js';
import { seededRandom } from '../metrics/random.js';
import { sigmoid } from '../reward/band-logit.js';
import { compareWithBaselines, heldOutMetrics } from './held-out.js';

const random = seededRandom('held-out');
const logits = Array.from({ length: 200 }, () => 4 * random() - 3);
const inBand = logits.map((logit) => random() < sigmoid(logit));

describe('held-out metrics', () => {
  const metrics = heldOutMetrics(inBand, logits, 1);

  test('they are those of the rows as they came', () => {
    const probabilities = logits.map(sigmoid);
    expect(metrics.auroc.value).toBeCloseTo(auroc(inBand, logits), 12);
    expect(metrics.averagePrecision.value).toBeCloseTo(averagePrecision(inBand, logits), 12);
    expect(metrics.calibrationError.value).toBeCloseTo(expectedCalibrationError(inBand, probabilities, 10), 12);
    expect(metrics.brier.value).toBeCloseTo(brierScore(inBand, probabilities), 12);
    expect(metrics.reliability.reduce((sum, { count }) => sum + count, 0)).toBe(200);
  });

  test("an interval is about four of Hanley and McNeil's standard errors wide", () => {
    const [area, positives] = [metrics.auroc.value, inBand.filter(Boolean).length];
    const negatives = 200 - positives;
    const [q1, q2] = [area / (2 - area), (2 * area ** 2) / (1 + area)];
    const variance = area * (1 - area) + (positives - 1) * (q1 - area ** 2) + (negatives - 1) * (q2 - area ** 2);
    const error = Math.sqrt(variance / (positives * negatives));
    const [low, high] = metrics.auroc.interval;
    expect((high - low) / (2 * 1.96 * error)).toBeCloseTo(1, 0);
  });
});

describe('comparison with baselines', () => {
  const run = (shift: number) =>
    inBand.map((inside, i) => ({
      taskId: `${i}`,
      inBand: inside,
      probeLogit: logits[i]! + shift,
      lengthLogit: 0,
      ngramLogit: logits[i]! + shift,
    }));

  test('a baseline that ranks as the probe does differs by nothing', () => {
    const { overNgram, overLength, length } = compareWithBaselines([run(0)], 1);
    expect(overNgram).toMatchObject({ estimate: 0, interval: [0, 0], aboveZero: 0 });
    expect(length).toBe(0.5);
    expect(overLength.estimate).toBeCloseTo(auroc(inBand, logits) - 0.5, 12);
  });

  test('the figure of several runs is the mean of theirs, whatever their sizes', () => {
    const small = run(0)
      .slice(0, 60)
      .map((row) => ({ ...row, probeLogit: -row.probeLogit }));
    const area = auroc(inBand.slice(0, 60), logits.slice(0, 60));
    const { probe } = compareWithBaselines([run(0), small], 1);
    expect(probe).toBeCloseTo((auroc(inBand, logits) + (1 - area)) / 2, 12);
  });

  test('runs are drawn from apart: the interval of two alike is narrower than that of one, around the same lead', () => {
    const one = compareWithBaselines([run(0)], 1).overLength;
    const two = compareWithBaselines([run(0), run(1000)], 1).overLength;
    const width = ({ interval: [low, high] }: typeof one) => high - low;
    expect(width(two) / width(one)).toBeGreaterThan(0.5);
    expect(width(two) / width(one)).toBeLessThan(0.9);
    expect((two.interval[0] + two.interval[1]) / 2).toBeCloseTo(one.estimate, 1);
  });

  test("runs' logits are not compared with each other", () => {
    const { probe } = compareWithBaselines([run(0), run(1000)], 1);
    expect(probe).toBeCloseTo(auroc(inBand, logits), 12);
  });
});
