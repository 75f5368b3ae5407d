/**
 * Limited-memory BFGS for smooth functions. Two-loop recursion: J. Nocedal and S. Wright, "Numerical Optimization" (2006), algorithm
 * 7.4; line search for the weak Wolfe conditions by bracketing and bisection: A. Lewis and M. Overton, Math. Program. 141 (2013).
 * Nothing is random: the same function and start give the same path.
 */

export interface Evaluation {
  readonly value: number;
  readonly gradient: Float64Array;
}
export type Objective = (point: Float64Array) => Evaluation | Promise<Evaluation>;

export interface LbfgsSettings {
  /** Steps whose curvature is remembered. */
  readonly memory: number;
  readonly maxIterations: number;
  /** Converged when no entry of the gradient is larger. */
  readonly gradientTolerance: number;
  /** Converged when a step lowers the value by less than this share of max(1, |value|). */
  readonly valueTolerance: number;
  /** Rounding error of the value, as a share of it: a step may raise the value by that much. */
  readonly valueNoise: number;
}

export interface Minimum {
  readonly point: Float64Array;
  readonly value: number;
  readonly iterations: number;
  /** Why it ended: `precision` when no step improves on the rounding error. */
  readonly ended: 'gradient' | 'value' | 'precision' | 'iterations';
}

/** Wolfe conditions: sufficient decrease c₁ and curvature c₂. */
const SUFFICIENT_DECREASE = 1e-4;
const CURVATURE = 0.9;
const MAX_TRIALS = 30;

/** A remembered step s, change of gradient y, and 1 / sᵀy. */
interface Pair {
  readonly s: Float64Array;
  readonly y: Float64Array;
  readonly rho: number;
}

export async function minimise(f: Objective, start: Float64Array, settings: LbfgsSettings): Promise<Minimum> {
  const { memory, maxIterations, gradientTolerance, valueTolerance, valueNoise } = settings;
  const pairs: Pair[] = [];
  let point: Float64Array = Float64Array.from(start);
  let current = await f(point);
  const end = (ended: Minimum['ended'], iterations: number): Minimum => ({
    point,
    value: current.value,
    iterations,
    ended,
  });
  if (!Number.isFinite(current.value)) throw new RangeError(`the function is ${current.value} at the start`);
  for (let iteration = 0; iteration < maxIterations; iteration++) {
    if (largest(current.gradient) <= gradientTolerance) return end('gradient', iteration);
    let direction = descentDirection(current.gradient, pairs);
    if (dot(direction, current.gradient) >= 0) {
      // Rounding has spoilt the curvature: forget it.
      pairs.length = 0;
      direction = descentDirection(current.gradient, pairs);
    }
    const firstStep = pairs.length > 0 ? 1 : Math.min(1, 1 / norm(current.gradient));
    const found = await searchLine(f, point, current, direction, firstStep, valueNoise);
    if (!found) return end('precision', iteration);
    const s = scaled(direction, found.step);
    const y = plusScaled(found.evaluation.gradient, current.gradient, -1);
    const curvature = dot(s, y);
    if (curvature > 1e-10 * dot(y, y)) {
      pairs.push({ s, y, rho: 1 / curvature });
      if (pairs.length > memory) pairs.shift();
    }
    const decrease = current.value - found.evaluation.value;
    point = found.point;
    current = found.evaluation;
    if (decrease <= valueTolerance * Math.max(1, Math.abs(current.value))) return end('value', iteration + 1);
  }
  return end('iterations', maxIterations);
}

/** −H∇f with H the inverse Hessian that the remembered pairs imply. */
function descentDirection(gradient: Float64Array, pairs: readonly Pair[]): Float64Array {
  const q = Float64Array.from(gradient);
  const alphas = new Float64Array(pairs.length);
  for (let i = pairs.length - 1; i >= 0; i--) {
    const { s, y, rho } = pairs[i]!;
    alphas[i] = rho * dot(s, q);
    addScaled(q, y, -alphas[i]!);
  }
  const last = pairs.at(-1);
  const gamma = last ? 1 / (last.rho * dot(last.y, last.y)) : 1;
  const r = scaled(q, gamma);
  pairs.forEach(({ s, y, rho }, i) => addScaled(r, s, alphas[i]! - rho * dot(y, r)));
  return scaled(r, -1);
}

/** A step along `direction` that meets the weak Wolfe conditions, give or take the noise; null when none is found. */
async function searchLine(
  f: Objective,
  from: Float64Array,
  { value, gradient }: Evaluation,
  direction: Float64Array,
  firstStep: number,
  noise: number,
): Promise<{ step: number; point: Float64Array; evaluation: Evaluation } | null> {
  const slope = dot(direction, gradient);
  const slack = noise * Math.abs(value);
  let [low, high, step] = [0, Number.POSITIVE_INFINITY, firstStep];
  for (let trial = 0; trial < MAX_TRIALS; trial++) {
    const point = plusScaled(from, direction, step);
    const evaluation = await f(point);
    // Written so that NaN fails: the step was too long.
    if (!(evaluation.value <= value + SUFFICIENT_DECREASE * step * slope + slack)) high = step;
    else if (dot(direction, evaluation.gradient) < CURVATURE * slope) low = step;
    else return { step, point, evaluation };
    step = high < Number.POSITIVE_INFINITY ? (low + high) / 2 : 2 * low;
  }
  return null;
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function addScaled(into: Float64Array, values: Float64Array, factor: number): void {
  for (let i = 0; i < into.length; i++) into[i]! += factor * values[i]!;
}

function plusScaled(a: Float64Array, b: Float64Array, factor: number): Float64Array {
  const sum = new Float64Array(a);
  addScaled(sum, b, factor);
  return sum;
}

function scaled(values: Float64Array, factor: number): Float64Array {
  const product = new Float64Array(values.length);
  addScaled(product, values, factor);
  return product;
}

function norm(values: Float64Array): number {
  return Math.sqrt(dot(values, values));
}

function largest(values: Float64Array): number {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}
