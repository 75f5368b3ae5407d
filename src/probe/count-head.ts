/**
 * Linear heads that give the band's log-odds from features. The band is not monotone in difficulty, so a head over solve counts can
 * express with linear scores what one on the band cannot.
 *
 * - `counts`: softmax over solve counts 0..K; offsets are its K + 1 biases.
 * - `ordinal`: cumulative logits P(count ≤ c) = σ(θ_c − w·x) with cut-points θ_0 < … < θ_{K−1}, which are its offsets.
 *   Source: P. McCullagh, "Regression models for ordinal data", J. R. Stat. Soc. B 42 (1980).
 * - `band`: logistic on "in band"; one bias.
 */
import { bandLogit, sigmoid } from '../reward/band-logit.js';
import type { Matrix, Standardisation } from './matrix.js';

export const HEADS = ['counts', 'ordinal', 'band'] as const;
export type HeadKind = (typeof HEADS)[number];

/** Solve counts that are in band, ends included. */
export interface Band {
  readonly min: number;
  readonly max: number;
}

export interface LinearHead {
  readonly kind: HeadKind;
  /** Attempts a task: counts run from 0 to K. */
  readonly k: number;
  readonly band: Band;
  readonly standardisation: Standardisation;
  /** [outputs, columns], on standardised features. */
  readonly weights: Float32Array;
  /** Biases, or cut-points in ascending order. */
  readonly offsets: Float32Array;
}

export function isInBand(count: number, { min, max }: Band): boolean {
  return count >= min && count <= max;
}

/** Rows of the weights, and number of offsets. */
export function headShape(kind: HeadKind, k: number): { outputs: number; offsets: number } {
  if (kind === 'counts') return { outputs: k + 1, offsets: k + 1 };
  return { outputs: 1, offsets: kind === 'ordinal' ? k : 1 };
}

/** Log-odds of the band, one a row. */
export function bandLogits(head: LinearHead, features: Matrix): Float64Array {
  const { columns, data } = features;
  const { mean, sd } = head.standardisation;
  if (columns !== mean.length) throw new RangeError(`features with ${columns} columns for a head of ${mean.length}`);
  const { outputs } = headShape(head.kind, head.k);
  const scores = new Float64Array(outputs);
  return Float64Array.from({ length: features.rows }, (_, row) => {
    scores.fill(0);
    for (let column = 0; column < columns; column++) {
      const value = (data[row * columns + column]! - mean[column]!) / sd[column]!;
      if (value === 0) continue;
      for (let output = 0; output < outputs; output++)
        scores[output]! += head.weights[output * columns + column]! * value;
    }
    if (head.kind === 'band') return scores[0]! + head.offsets[0]!;
    if (head.kind === 'ordinal') return bandLogit(ordinalLogProbabilities(head.offsets, scores[0]!), head.band);
    return bandLogit(
      scores.map((score, count) => score + head.offsets[count]!),
      head.band,
    );
  });
}

/**
 * log P(count = c), c = 0..K, of cumulative logits with cut-points θ at score z:
 * σ(b) − σ(a) = σ(b) σ(−a) (1 − e^{a−b}), which loses nothing to cancellation.
 */
export function ordinalLogProbabilities(cutPoints: ArrayLike<number>, z: number): number[] {
  const k = cutPoints.length;
  return Array.from({ length: k + 1 }, (_, count) => {
    const below = count < k ? logSigmoid(cutPoints[count]! - z) : 0;
    const above = count > 0 ? logSigmoid(z - cutPoints[count - 1]!) : 0;
    const between = count > 0 && count < k ? Math.log(-Math.expm1(cutPoints[count - 1]! - cutPoints[count]!)) : 0;
    return below + above + between;
  });
}

function logSigmoid(x: number): number {
  return Math.min(0, x) - Math.log1p(Math.exp(-Math.abs(x)));
}

/** −log P of "in band" or not under band logits, one a row. */
export function bandLogLosses(inBand: readonly boolean[], logits: ArrayLike<number>): number[] {
  return inBand.map((inside, i) => -logSigmoid(inside ? logits[i]! : -logits[i]!));
}

/** Mean −log P of "in band" or not under band logits. */
export function bandLogLoss(inBand: readonly boolean[], logits: ArrayLike<number>): number {
  return bandLogLosses(inBand, logits).reduce((sum, loss) => sum + loss, 0) / inBand.length;
}

export function bandProbabilities(logits: ArrayLike<number>): Float64Array {
  return Float64Array.from(logits, sigmoid);
}
