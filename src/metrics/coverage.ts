/** How widely observations spread over categories (topics, cells of a space), compared at equal numbers of observations. */
import type { Interval } from './interval.js';

/** The standard normal quantile of a two-sided 95% interval. */
const Z95 = 1.96;

/** How many times each category was observed, most often first; categories that were never observed are left out. */
export function countsOf(categories: Iterable<string | number>): number[] {
  const counts = new Map<string | number, number>();
  for (const category of categories) counts.set(category, (counts.get(category) ?? 0) + 1);
  return [...counts.values()].sort((a, b) => b - a);
}

/** An estimate with its 95% interval. */
export interface Estimate {
  readonly value: number;
  readonly interval: Interval;
}

/**
 * Shannon entropy as an effective number of categories, exp(H) with H = −Σ p ln p: that many equally frequent categories have the same
 * entropy. 1 when all observations are of one category. The interval is exp(H ± 1.96 s), s² = (Σ p ln² p − H²) / N, never beyond 1 and
 * the number of categories seen. Null for no observation.
 *
 * Sources: L. Jost, "Entropy and diversity", Oikos 113 (2006); for the variance G. Basharin, Theory Probab. Appl. 4 (1959).
 */
export function effectiveNumber(counts: readonly number[]): Estimate | null {
  const total = sum(counts);
  if (total === 0) return null;
  const shares = counts.filter((count) => count > 0).map((count) => count / total);
  const entropy = -sum(shares.map((p) => p * Math.log(p)));
  return effective(entropy, shares, total);
}

/**
 * Rarefaction: the number of categories that `size` observations drawn from these without replacement show in the mean, which is what a
 * subsample estimates, without its noise. Σ_i 1 − C(N − N_i, size) / C(N, size).
 *
 * The 95% interval is for a fresh set of `size` observations of the same kind, not for a redrawn subsample, so it is no point at
 * `size` = N: S̃ ± 1.96 σ, σ² = Σ_i (1 − α_i)² − S̃² / S_est, with α_i the quotient above and S_est Chao's estimate of all
 * categories, seen or not, S_obs + (N − 1)/N · f₁(f₁ − 1) / (2 (f₂ + 1)), where f_k categories were seen k times. Null for no observation.
 *
 * Sources: S. Hurlbert, Ecology 52 (1971); R. Colwell et al., Journal of Plant Ecology 5 (2012), equations 4 and 5; A. Chao,
 * Biometrics 43 (1987).
 * @param size at most the number of observations
 */
export function rarefiedRichness(counts: readonly number[], size: number): Estimate | null {
  const total = checkedTotal(counts, size);
  if (size === 0) return null;
  const seen = counts.filter((count) => count > 0);
  const present = seen.map((count) => 1 - absence(count, total, size));
  const value = sum(present);
  const once = seen.filter((count) => count === 1).length;
  const twice = seen.filter((count) => count === 2).length;
  const all = seen.length + (((total - 1) / total) * once * (once - 1)) / (2 * (twice + 1));
  const variance = Math.max(0, sum(present.map((p) => p * p)) - (value * value) / all);
  const spread = Z95 * Math.sqrt(variance);
  return { value, interval: [Math.max(1, value - spread), value + spread] };
}

/**
 * The effective number of categories (see `effectiveNumber`) at `size` observations: exp of the mean entropy of `size` observations drawn
 * without replacement, H̄ = −Σ_i Σ_k h(k; N_i, N, size) (k/size) ln(k/size), h hypergeometric. Entropy rises with the number of
 * observations too, so sets compare only at an equal one. Null for no observation.
 *
 * Source: A. Chao et al., "Rarefaction and extrapolation with Hill numbers", Ecological Monographs 84 (2014), equation 5 and table 1.
 * @param size at most the number of observations
 */
export function rarefiedEffectiveNumber(counts: readonly number[], size: number): Estimate | null {
  const total = checkedTotal(counts, size);
  if (size === 0) return null;
  const seen = counts.filter((count) => count > 0);
  const logFactorials = logFactorialsTo(total);
  const logChoose = (n: number, k: number): number => logFactorials[n]! - logFactorials[k]! - logFactorials[n - k]!;
  const subsets = logChoose(total, size);
  let entropy = 0;
  for (const count of seen) {
    for (let k = Math.max(1, size - (total - count)); k <= Math.min(count, size); k++) {
      const probability = Math.exp(logChoose(count, k) + logChoose(total - count, size - k) - subsets);
      entropy -= probability * (k / size) * Math.log(k / size);
    }
  }
  const shares = seen.map((count) => count / total);
  return effective(entropy, shares, total);
}

function effective(entropy: number, shares: readonly number[], total: number): Estimate {
  const own = -sum(shares.map((p) => p * Math.log(p)));
  const variance = Math.max(0, sum(shares.map((p) => p * Math.log(p) ** 2)) - own * own) / total;
  const spread = Z95 * Math.sqrt(variance);
  return {
    value: Math.exp(entropy),
    interval: [Math.max(1, Math.exp(entropy - spread)), Math.min(shares.length, Math.exp(entropy + spread))],
  };
}

/** Probability that a category with `count` of `total` observations is not among `size` drawn: C(total − count, size) / C(total, size). */
function absence(count: number, total: number, size: number): number {
  let probability = 1;
  for (let drawn = 0; drawn < count; drawn++) probability *= Math.max(0, total - size - drawn) / (total - drawn);
  return probability;
}

function checkedTotal(counts: readonly number[], size: number): number {
  const total = sum(counts);
  if (!Number.isInteger(size) || size < 0 || size > total) {
    throw new RangeError(`${size} observations cannot be drawn from ${total}`);
  }
  return total;
}

function logFactorialsTo(last: number): Float64Array {
  const logs = new Float64Array(last + 1);
  for (let n = 2; n <= last; n++) logs[n] = logs[n - 1]! + Math.log(n);
  return logs;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
