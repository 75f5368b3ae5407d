/** Fitting a head: penalised maximum likelihood over all rows at once, by L-BFGS. */
import { floatData, floats, Session } from '../onnx/session.js';
import type { Feeds } from '../onnx/session.js';
import { headShape, isInBand } from './count-head.js';
import type { LinearHead } from './count-head.js';
import { headGraph } from './head-graph.js';
import type { HeadProblem } from './head-graph.js';
import { minimise } from './lbfgs.js';
import type { Evaluation, LbfgsSettings } from './lbfgs.js';
import { standardise } from './matrix.js';
import type { Matrix, Standardisation } from './matrix.js';

/** Cut-points closer than this could meet when rounded to float32. */
const SMALLEST_GAP = 1e-4;

/** As near to the minimum as values in float32 can tell. */
const EXACT: LbfgsSettings = {
  memory: 10,
  maxIterations: 1000,
  gradientTolerance: 1e-5,
  valueTolerance: 1e-8,
  valueNoise: 1e-8,
};
/** Enough to choose by: validation losses differ from exact ones in the fourth digit, at a quarter of the evaluations. */
const ROUGH: LbfgsSettings = { ...EXACT, gradientTolerance: 1e-3, valueTolerance: 1e-6 };
export type Precision = 'rough' | 'exact';

/** A compiled problem: fitted for one penalty after the other, each from where the last ended. */
export class HeadFitter {
  readonly #problem: HeadProblem;
  readonly #standardisation: Standardisation;
  readonly #session: Session;
  readonly #feeds: Feeds;
  readonly #weights: number;
  /** Weights, then offsets. */
  #parameters: Float64Array;

  private constructor(problem: HeadProblem, features: Matrix, standardisation: Standardisation, session: Session) {
    this.#problem = problem;
    this.#standardisation = standardisation;
    this.#session = session;
    this.#feeds = { features: floats(standardise(features, standardisation).data, [features.rows, features.columns]) };
    this.#weights = headShape(problem.kind, problem.k).outputs * features.columns;
    this.#parameters = Float64Array.from([...new Float64Array(this.#weights), ...startOffsets(problem)]);
  }

  static async create(problem: HeadProblem, features: Matrix, standardisation: Standardisation): Promise<HeadFitter> {
    if (features.rows !== problem.counts.length) {
      throw new RangeError(`${features.rows} rows of features for ${problem.counts.length} solve counts`);
    }
    // One thread: the same bits on every machine, and these products are small.
    const session = await Session.create(headGraph(problem, features.columns), { provider: 'cpu', threads: 1 });
    return new HeadFitter(problem, features, standardisation, session);
  }

  /** The objective at parameters θ = (weights, offsets): −(mean log-likelihood) + l2/2 · ‖weights‖². Offsets are not penalised. */
  async evaluate(parameters: Float64Array, l2: number): Promise<Evaluation> {
    const size = this.#weights;
    const rows = this.#problem.counts.length;
    const weights = new Float32Array(parameters.subarray(0, size));
    const offsets = new Float32Array(parameters.subarray(size));
    const columns = this.#standardisation.mean.length;
    const out = await this.#session.run({
      ...this.#feeds,
      weights: floats(weights, [size / columns, columns]),
      offsets: floats(offsets, [offsets.length]),
    });
    const [byWeights, byOffsets] = [floatData(out['weightsGradient']), floatData(out['offsetsGradient'])];
    const gradient = new Float64Array(parameters.length);
    for (let i = 0; i < size; i++) gradient[i] = l2 * parameters[i]! - byWeights[i]! / rows;
    for (let i = 0; i < byOffsets.length; i++) gradient[size + i] = -byOffsets[i]! / rows;
    let logLikelihood = 0;
    for (const row of floatData(out['logLikelihood'])) logLikelihood += row;
    let squares = 0;
    for (let i = 0; i < size; i++) squares += parameters[i]! ** 2;
    return { value: (l2 / 2) * squares - logLikelihood / rows, gradient };
  }

  async fit(l2: number, precision: Precision): Promise<LinearHead> {
    const settings = precision === 'exact' ? EXACT : ROUGH;
    const { point } = await minimise((p) => this.evaluate(p, l2), this.#parameters, settings);
    this.#parameters = point;
    const { kind, k, band } = this.#problem;
    const offsets = point.subarray(this.#weights);
    return {
      kind,
      k,
      band,
      standardisation: this.#standardisation,
      weights: Float32Array.from(point.subarray(0, this.#weights)),
      offsets: Float32Array.from(kind === 'ordinal' ? cutPoints(offsets) : offsets),
    };
  }

  release(): Promise<void> {
    return this.#session.release();
  }
}

/** Fit one head with one penalty. */
export async function fitHead(
  problem: HeadProblem,
  features: Matrix,
  standardisation: Standardisation,
  l2: number,
): Promise<LinearHead> {
  const fitter = await HeadFitter.create(problem, features, standardisation);
  try {
    return await fitter.fit(l2, 'exact');
  } finally {
    await fitter.release();
  }
}

/** Cut-points θ from θ_0 and the gaps' ρ. */
function cutPoints(offsets: Float64Array): number[] {
  let at = offsets[0]!;
  return Array.from(offsets, (rho, c) => (c === 0 ? at : (at += Math.max(SMALLEST_GAP, softplus(rho)))));
}

function softplus(x: number): number {
  return Math.max(0, x) + Math.log1p(Math.exp(-Math.abs(x)));
}

/** Offsets that give the shares of the rows when every weight is zero, each count seen half a time more than it was. */
function startOffsets({ kind, k, band, counts }: HeadProblem): number[] {
  const seen = Array.from({ length: k + 1 }, () => 0.5);
  for (const count of counts) seen[count]!++;
  const total = counts.length + (k + 1) / 2;
  if (kind === 'counts') return seen.map((n) => Math.log(n / total));
  if (kind === 'band') {
    const inside = seen.reduce((sum, n, count) => sum + (isInBand(count, band) ? n : 0), 0);
    return [Math.log(inside / (total - inside))];
  }
  let cumulative = 0;
  const thresholds = seen.slice(0, k).map((n) => Math.log((cumulative += n) / (total - cumulative)));
  return thresholds.map((theta, c) => (c === 0 ? theta : Math.log(Math.expm1(theta - thresholds[c - 1]!))));
}
