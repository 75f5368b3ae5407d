import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { auroc } from '../metrics/probe-metrics.js';
import { seededRandom } from '../metrics/random.js';
import { bandLogits, bandLogLoss, HEADS, headShape, isInBand, ordinalLogProbabilities } from './count-head.js';
import type { HeadKind, LinearHead } from './count-head.js';
import { fitHead, HeadFitter } from './fit.js';
import { identityStandardisation, standardisationOf } from './matrix.js';
import type { Matrix } from './matrix.js';

const band = { min: 1, max: 3 };
const k = 8;

/** Tasks whose difficulty is linear in the features: counts ~ Binomial(K, σ(3 x₀ − x₁)). */
function plantedTasks(rows: number, seed: string): { features: Matrix; counts: number[] } {
  const random = seededRandom(seed);
  const columns = 4;
  const data = Float32Array.from({ length: rows * columns }, () => 2 * random() - 1);
  const counts = Array.from({ length: rows }, (_, row) => {
    const p = 1 / (1 + Math.exp(-(3 * data[row * columns]! - data[row * columns + 1]!)));
    return Array.from({ length: k }, random).filter((u) => u < p).length;
  });
  return { features: { rows, columns, data }, counts };
}

describe('gradients', () => {
  test.each(HEADS)('%s: the graph agrees with float64 and its central differences', async (kind) => {
    const { features, counts } = plantedTasks(40, 'gradients');
    const fitter = await HeadFitter.create({ kind, k, band, counts }, features, identityStandardisation(4));
    const { outputs, offsets } = headShape(kind, k);
    const random = seededRandom(`point ${kind}`);
    const point = Float64Array.from({ length: outputs * 4 + offsets }, () => Math.fround(random() - 0.5));
    const { value, gradient } = await fitter.evaluate(point, 0.1);
    await fitter.release();
    const reference = (at: Float64Array) => penalisedLoss(kind, features, counts, at, 0.1);
    expect(value).toBeCloseTo(reference(point), 6);
    const step = 1e-5;
    const expected = point.map(
      (x, i) => (reference(point.with(i, x + step)) - reference(point.with(i, x - step))) / (2 * step),
    );
    const scale = Math.max(...expected.map(Math.abs));
    gradient.forEach((g, i) => expect(Math.abs(g - expected[i]!) / scale).toBeLessThan(1e-5));
  });
});

test('ordinal cut-points are the log-odds of the shares when the features say nothing', async () => {
  // Of eight tasks 4, 2, 1, 1 were solved 0 to 3 times: cumulative odds 1, 3 and 7.
  const counts = [0, 0, 0, 0, 1, 1, 2, 3];
  const nothing = { rows: counts.length, columns: 1, data: new Float32Array(counts.length) };
  const problem = { kind: 'ordinal', k: 3, band, counts } as const;
  const { offsets } = await fitHead(problem, nothing, identityStandardisation(1), 0.1);
  [0, Math.log(3), Math.log(7)].forEach((cut, i) => expect(offsets[i]).toBeCloseTo(cut, 3));
});

/** The objective in float64: mean −log P(count) or −log P(in band or not), plus l2/2 · ‖weights‖². */
function penalisedLoss(
  kind: HeadKind,
  features: Matrix,
  counts: readonly number[],
  point: Float64Array,
  l2: number,
): number {
  const { outputs } = headShape(kind, k);
  const weights = point.subarray(0, outputs * features.columns);
  const offsets = point.subarray(weights.length);
  const logLikelihood = (row: number): number => {
    const x = features.data.subarray(row * features.columns, (row + 1) * features.columns);
    const scores = Array.from({ length: outputs }, (_, o) =>
      x.reduce((sum, value, c) => sum + value * weights[o * features.columns + c]!, 0),
    );
    const count = counts[row]!;
    if (kind === 'band') {
      const logit = scores[0]! + offsets[0]!;
      return -Math.log1p(Math.exp(isInBand(count, band) ? -logit : logit));
    }
    if (kind === 'ordinal') {
      let theta = offsets[0]!;
      const cutPoints = Array.from(offsets, (rho, c) => (c === 0 ? theta : (theta += Math.log1p(Math.exp(rho)))));
      return ordinalLogProbabilities(cutPoints, scores[0]!)[count]!;
    }
    const logits = scores.map((score, c) => score + offsets[c]!);
    return logits[count]! - Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  };
  const total = counts.reduce((sum, _, row) => sum + logLikelihood(row), 0);
  return (l2 / 2) * weights.reduce((sum, w) => sum + w * w, 0) - total / counts.length;
}

describe('equal to scikit-learn', () => {
  interface Fit {
    l2: number;
    weights: number[];
    offsets: number[];
  }
  interface Fixture {
    k: number;
    band: { min: number; max: number };
    columns: number;
    features: number[];
    counts: number[];
    bandFits: Fit[];
    countsFits: Fit[];
  }
  const fixture = JSON.parse(readFileSync(new URL('fixtures/logistic.json', import.meta.url), 'utf8')) as Fixture;
  const { columns, counts } = fixture;
  const features = { rows: counts.length, columns, data: Float32Array.from(fixture.features) };
  const cases = (['band', 'counts'] as const).flatMap((kind) =>
    fixture[`${kind}Fits`].map((expected) => ({ kind, l2: expected.l2, expected })),
  );

  test.each(cases)('$kind with penalty $l2', async ({ kind, l2, expected }) => {
    const problem = { kind, k: fixture.k, band: fixture.band, counts };
    const { weights, offsets } = await fitHead(problem, features, identityStandardisation(columns), l2);
    weights.forEach((weight, i) => expect(weight).toBeCloseTo(expected.weights[i]!, 2));
    // A softmax's biases are free up to a common shift.
    const shift = kind === 'counts' ? mean(offsets) - mean(expected.offsets) : 0;
    offsets.forEach((offset, i) => expect(offset - shift).toBeCloseTo(expected.offsets[i]!, 2));
    const reference: LinearHead = {
      ...problem,
      standardisation: identityStandardisation(columns),
      weights: Float32Array.from(expected.weights),
      offsets: Float32Array.from(expected.offsets),
    };
    const theirs = bandLogits(reference, features);
    const ours = bandLogits({ ...reference, weights, offsets }, features);
    ours.forEach((logit, row) => expect(Math.abs(logit - theirs[row]!)).toBeLessThan(5e-3));
  });
});

describe('heads over counts', () => {
  const train = plantedTasks(1500, 'train');
  const test300 = plantedTasks(600, 'test');
  const inBand = test300.counts.map((count) => isInBand(count, band));
  const fitted = async (kind: HeadKind) =>
    fitHead({ kind, k, band, counts: train.counts }, train.features, standardisationOf(train.features), 1e-3);

  test('they see a band in the middle of a difficulty that a logistic on the band cannot', async () => {
    const [counts, ordinal, logistic] = await Promise.all((['counts', 'ordinal', 'band'] as const).map(fitted));
    const area = (head: LinearHead) => auroc(inBand, bandLogits(head, test300.features));
    expect(area(counts!)).toBeGreaterThan(area(logistic!) + 0.05);
    expect(area(ordinal!)).toBeGreaterThan(area(logistic!) + 0.05);
  });

  test('their log loss is below that of the base rate', async () => {
    const rate = inBand.filter(Boolean).length / inBand.length;
    const baseLoss = bandLogLoss(
      inBand,
      inBand.map(() => Math.log(rate / (1 - rate))),
    );
    for (const kind of ['counts', 'ordinal'] as const) {
      expect(bandLogLoss(inBand, bandLogits(await fitted(kind), test300.features))).toBeLessThan(0.9 * baseLoss);
    }
  });

  test('cut-points are in order, also where a count was never seen', async () => {
    const counts = train.counts.map((count) => (count === 4 || count === 5 ? 6 : count));
    const { offsets } = await fitHead(
      { kind: 'ordinal', k, band, counts },
      train.features,
      standardisationOf(train.features),
      1e-3,
    );
    expect(offsets).toHaveLength(8);
    for (let c = 1; c < offsets.length; c++) expect(offsets[c]).toBeGreaterThan(offsets[c - 1]!);
  });

  test('cumulative logits at θ = (0, ln 3): σ(0) = ½ below, σ(ln 3) = ¾ up to the middle', () => {
    expect(ordinalLogProbabilities([0, Math.log(3)], 0).map(Math.exp)).toEqual(
      [1 / 2, 1 / 4, 1 / 4].map((p) => expect.closeTo(p, 12)),
    );
  });

  test('far from the cut-points the middle keeps its logarithm', () => {
    // P(1) ≈ e^{-100} (1 − e^{-1}) · …: σ(b) σ(−a) (1 − e^{a−b}) with a = −100, b = −99.
    expect(ordinalLogProbabilities([-100, -99], 0)[1]).toBeCloseTo(-99 + Math.log(1 - Math.exp(-1)), 9);
  });

  test('the same data give the same bits', async () => {
    expect(await fitted('counts')).toEqual(await fitted('counts'));
  });
});

function mean(values: ArrayLike<number>): number {
  return Array.from(values).reduce((sum, value) => sum + value, 0) / values.length;
}
