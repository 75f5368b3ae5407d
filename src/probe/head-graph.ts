/** The log-likelihood of a head over all tasks, with its gradients, as one graph. */
import { Differentiable } from '../onnx/differentiable.js';
import type { Value } from '../onnx/graph.js';
import { dialectOf } from '../onnx/session.js';
import { headShape, isInBand } from './count-head.js';
import type { Band, HeadKind } from './count-head.js';

export interface HeadProblem {
  readonly kind: HeadKind;
  readonly k: number;
  readonly band: Band;
  /** Solve counts, one a row of the features. */
  readonly counts: readonly number[];
}

/**
 * Inputs: `features` [rows, columns], `weights` [outputs, columns], `offsets`. Outputs: `logLikelihood` [rows, 1], and the gradients of
 * its sum, `weightsGradient` and `offsetsGradient`.
 *
 * Offsets are biases; for `ordinal` they are θ_0 and the ρ of K − 1 gaps θ_c − θ_{c−1} = softplus(ρ_c), so that no value of them can put
 * the cut-points out of order, and log(1 − e^{−gap}) = log σ(ρ_c).
 */
export function headGraph(problem: HeadProblem, columns: number): Differentiable {
  const g = new Differentiable(dialectOf('cpu'));
  const { kind, k, counts } = problem;
  const shape = headShape(kind, k);
  const features = g.input('features', [counts.length, columns]);
  const weights = g.input('weights', [shape.outputs, columns], 'float32', true);
  const offsets = g.input('offsets', [shape.offsets], 'float32', true);
  const logLikelihood = LIKELIHOODS[kind](g, problem, features, weights, offsets);
  const [byWeights, byOffsets] = g.gradients(g.sumAll(logLikelihood), [weights, offsets]);
  g.output(logLikelihood, 'logLikelihood');
  g.output(byWeights!, 'weightsGradient');
  g.output(byOffsets!, 'offsetsGradient');
  return g;
}

type Likelihood = (g: Differentiable, problem: HeadProblem, features: Value, weights: Value, offsets: Value) => Value;

const LIKELIHOODS: Readonly<Record<HeadKind, Likelihood>> = {
  counts(g, { counts, k }, features, weights, offsets) {
    const logP = g.logSoftmax(g.linear(features, weights, offsets));
    const isCount = constant(g, 'isCount', counts.length, k + 1, (row, count) => counts[row] === count);
    return rowSums(g, g.mul(logP, isCount));
  },

  band(g, { counts, band }, features, weights, offsets) {
    const z = g.linear(features, weights, offsets);
    // log σ(z) in band, log σ(−z) = log σ(z) − z out of it.
    const outside = constant(g, 'outside', counts.length, 1, (row) => !isInBand(counts[row]!, band));
    return g.sub(logSigmoid(g, z), g.mul(outside, z));
  },

  ordinal(g, { counts, k }, features, weights, offsets) {
    const rows = counts.length;
    const row = g.reshape(offsets, [1, k]);
    const logSigmoidOfRow = logSigmoid(g, row);
    const softplus = g.sub(row, logSigmoidOfRow);
    const base = g.linear(
      row,
      constant(g, 'first', k, k, (_, j) => j === 0),
    );
    const gaps = g.linear(
      softplus,
      constant(g, 'upTo', k, k, (c, j) => j > 0 && j <= c),
    );
    const cumulative = g.sub(g.add(base, gaps), g.linear(features, weights));
    const below = logSigmoid(g, cumulative);
    const above = g.sub(below, cumulative);
    const upper = g.mul(
      below,
      constant(g, 'upper', rows, k, (i, c) => counts[i] === c),
    );
    const lower = g.mul(
      above,
      constant(g, 'lower', rows, k, (i, c) => counts[i] === c + 1),
    );
    const between = g.mul(
      logSigmoidOfRow,
      constant(g, 'between', rows, k, (i, c) => c > 0 && counts[i] === c),
    );
    return rowSums(g, g.add(g.add(upper, lower), between));
  },
};

/** log σ(z) of a matrix: the first of a row-wise log-softmax of (z, 0). */
function logSigmoid(g: Differentiable, z: Value): Value {
  const flat = g.reshape(z, [z.shape.reduce<number>((size, d) => size * Number(d), 1), 1]);
  const pairs = g.linear(
    flat,
    constant(g, 'pair', 2, 1, (i) => i === 0),
  );
  const first = g.linear(
    g.logSoftmax(pairs),
    constant(g, 'first', 1, 2, (_, j) => j === 0),
  );
  return g.reshape(first, z.shape);
}

function rowSums(g: Differentiable, values: Value): Value {
  return g.linear(
    values,
    constant(g, 'ones', 1, Number(values.shape[1]), () => true),
  );
}

/** A [rows, columns] constant of zeros and ones. */
function constant(
  g: Differentiable,
  stem: string,
  rows: number,
  columns: number,
  isOne: (row: number, column: number) => boolean,
): Value {
  const data = Float32Array.from({ length: rows * columns }, (_, i) => +isOne(Math.floor(i / columns), i % columns));
  return g.initializer(g.freshName(stem), [rows, columns], 'float32', data);
}
