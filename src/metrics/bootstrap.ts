/** Seeded percentile bootstrap of a statistic, and of the difference of two statistics on the same resamples. */
import type { Interval } from './interval.js';
import { seededRandom } from './random.js';

/** A statistic of the observations with these indices (repeats and all); NaN where it is undefined, e.g. AUROC of one class. */
export type Statistic = (indices: Int32Array) => number;

export interface BootstrapOptions {
  readonly seed: number | string;
  /** Default 2000. */
  readonly resamples?: number;
  /** Default 0.95. */
  readonly level?: number;
  /** One stratum an observation: resampling keeps every stratum's size (e.g. predictions pooled over several runs). */
  readonly strata?: ArrayLike<number | string>;
}

export interface BootstrapResult {
  /** The statistic of the observations themselves. */
  readonly estimate: number;
  readonly interval: Interval;
  /** Share of the resamples whose statistic is above zero: what matters for a difference. */
  readonly aboveZero: number;
  /** Resamples on which the statistic was defined. */
  readonly resamples: number;
}

/**
 * Percentile bootstrap over `count` observations. Resamples on which the statistic is NaN are left out.
 * Source: B. Efron and R. Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
 */
export function bootstrap(count: number, statistic: Statistic, options: BootstrapOptions): BootstrapResult {
  const { resamples = 2000, level = 0.95 } = options;
  if (count < 1) throw new RangeError('a bootstrap needs at least one observation');
  const random = seededRandom(options.seed);
  const members = stratumMembers(count, options.strata);
  const values: number[] = [];
  const indices = new Int32Array(count);
  for (let resample = 0; resample < resamples; resample++) {
    let position = 0;
    for (const stratum of members) {
      for (let draw = 0; draw < stratum.length; draw++) {
        indices[position++] = stratum[Math.floor(random() * stratum.length)]!;
      }
    }
    const value = statistic(indices);
    if (!Number.isNaN(value)) values.push(value);
  }
  const sorted = Float64Array.from(values).sort();
  const tail = (1 - level) / 2;
  return {
    estimate: statistic(Int32Array.from({ length: count }, (_, index) => index)),
    interval: [quantile(sorted, tail), quantile(sorted, 1 - tail)],
    aboveZero: values.filter((value) => value > 0).length / values.length,
    resamples: values.length,
  };
}

/**
 * Paired bootstrap of `first − second`: both statistics see the same resample, so what they share cancels. Used for the difference of
 * two score vectors' AUROC on the same labels.
 */
export function pairedBootstrap(
  count: number,
  first: Statistic,
  second: Statistic,
  options: BootstrapOptions,
): BootstrapResult {
  return bootstrap(count, (indices) => first(indices) - second(indices), options);
}

/** Quantile of ascending values with linear interpolation between order statistics (R's type 7); NaN of no values. */
export function quantile(sorted: ArrayLike<number>, probability: number): number {
  if (sorted.length === 0) return Number.NaN;
  const position = probability * (sorted.length - 1);
  const below = Math.floor(position);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below]! + (position - below) * (sorted[above]! - sorted[below]!);
}

function stratumMembers(count: number, strata: ArrayLike<number | string> | undefined): number[][] {
  if (strata !== undefined && strata.length !== count) {
    throw new RangeError(`${strata.length} strata for ${count} observations`);
  }
  const members = new Map<number | string, number[]>();
  for (let index = 0; index < count; index++) {
    const stratum = strata?.[index] ?? 0;
    const list = members.get(stratum);
    if (list) list.push(index);
    else members.set(stratum, [index]);
  }
  return [...members.values()];
}
