/** How widely observations spread over categories (topics, cells of a space), compared at equal numbers of observations. */
import type { Interval } from './interval.js';
import { seededRandom } from './random.js';

/** The standard normal quantile of a two-sided 95% interval. */
const Z95 = 1.96;

/** Sets that the bootstrap draws. */
const RESAMPLES = 200;

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

export interface Spread {
  /** Categories that so many observations show in the mean. */
  readonly richness: Estimate;
  /**
   * exp of their mean entropy, −Σ p ln p: so many equally frequent categories would be as diverse. 1 when all observations are of one
   * category.
   */
  readonly effective: Estimate;
}

/**
 * Rarefaction: what `size` of the observations, drawn without replacement, show in the mean. Richness and entropy rise with the number of
 * observations, so sets compare only at an equal one; the mean over all subsamples has none of the noise of a single one. With N_i
 * observations of category i among N,
 *
 *   richness = Σ_i 1 − C(N − N_i, size) / C(N, size),   entropy = −Σ_i Σ_k h(k; N_i, N, size) · (k/size) ln(k/size),   h hypergeometric.
 *
 * The intervals, ± 1.96 standard deviations, are for fresh sets of N observations of the same kind. A plain bootstrap would lose
 * categories at each draw; this one draws from the observed shares shrunk to make room for the categories that were not seen. They are
 * approximate: simulated sets of 200 to 730 programs, over cells as real ones occupy them, had the mean within 90 to 97 times in 100;
 * the effective number of hundreds of categories that are seen once or twice each, 87 times.
 *
 * Sources: S. Hurlbert, Ecology 52 (1971); L. Jost, Oikos 113 (2006); A. Chao et al., "Rarefaction and extrapolation with Hill numbers",
 * Ecological Monographs 84 (2014), equation 5 and, for the bootstrap, appendix G.
 * @param size at most the number of observations; null is returned for 0
 */
export function rarefy(counts: readonly number[], size: number): Spread | null {
  const seen = counts.filter((count) => count > 0);
  const total = sum(seen);
  if (!Number.isInteger(size) || size < 0 || size > total) {
    throw new RangeError(`${size} observations cannot be drawn from ${total}`);
  }
  if (size === 0) return null;
  const logFactorials = logFactorialsTo(total);
  const measure = (of: readonly number[]): readonly [richness: number, effective: number] => [
    meanRichness(of, total, size),
    Math.exp(meanEntropy(of, total, size, logFactorials)),
  ];
  const draw = multinomial(estimatedShares(seen, total), seededRandom('rarefaction'));
  const resamples = Array.from({ length: RESAMPLES }, () => measure(draw(total)));
  const [richness, effective] = measure(seen);
  return {
    richness: estimate(
      richness,
      resamples.map((resample) => resample[0]),
    ),
    effective: estimate(
      effective,
      resamples.map((resample) => resample[1]),
    ),
  };
}

function meanRichness(counts: readonly number[], total: number, size: number): number {
  // C(total − count, size) / C(total, size): the probability that none of the category's observations is drawn.
  return sum(
    counts.map((count) => {
      let absent = 1;
      for (let drawn = 0; drawn < count; drawn++) absent *= Math.max(0, total - size - drawn) / (total - drawn);
      return 1 - absent;
    }),
  );
}

/** @param logFactorials ln n! for n to `total` */
function meanEntropy(counts: readonly number[], total: number, size: number, logFactorials: Float64Array): number {
  const logChoose = (n: number, k: number): number => logFactorials[n]! - logFactorials[k]! - logFactorials[n - k]!;
  const subsets = logChoose(total, size);
  let entropy = 0;
  for (const count of counts) {
    for (let k = Math.max(1, size - (total - count)); k <= Math.min(count, size); k++) {
      const probability = Math.exp(logChoose(count, k) + logChoose(total - count, size - k) - subsets);
      entropy -= probability * (k / size) * Math.log(k / size);
    }
  }
  return entropy;
}

/**
 * Estimated shares of all categories. Of f₁ categories seen once and f₂ twice follow f₀ = ⌈(N−1)/N · f₁²/(2 f₂)⌉ unseen ones (Chao's
 * estimate) with the share f₁ f₀/(N f₀ + f₁) together; the seen ones give it up, the rarest most: p(1 − λ(1 − p)^N).
 */
function estimatedShares(counts: readonly number[], total: number): number[] {
  const once = counts.filter((count) => count === 1).length;
  const twice = counts.filter((count) => count === 2).length;
  const pairs = twice > 0 ? once ** 2 / (2 * twice) : (once * (once - 1)) / 2;
  const unseen = Math.ceil(((total - 1) / total) * pairs);
  const observed = counts.map((count) => count / total);
  if (unseen === 0) return observed;
  const missing = (once * unseen) / (total * unseen + once);
  const given = observed.map((share) => share * (1 - share) ** total);
  const scale = missing / sum(given);
  return [
    ...observed.map((share, i) => share - scale * given[i]!),
    ...Array.from({ length: unseen }, () => missing / unseen),
  ];
}

/** Draws how often each category comes up among so many observations; those that do not are left out. */
function multinomial(shares: readonly number[], random: () => number): (observations: number) => number[] {
  let below = 0;
  const ends = Float64Array.from(shares, (share) => (below += share));
  return (observations) => {
    const drawn = Array.from({ length: observations }, () => {
      const target = random() * below;
      let [first, last] = [0, ends.length - 1];
      while (first < last) {
        const middle = (first + last) >> 1;
        if (ends[middle]! > target) last = middle;
        else first = middle + 1;
      }
      return first;
    });
    return countsOf(drawn);
  };
}

function estimate(value: number, resamples: readonly number[]): Estimate {
  const mean = sum(resamples) / resamples.length;
  const variance = sum(resamples.map((resample) => (resample - mean) ** 2)) / (resamples.length - 1);
  const spread = Z95 * Math.sqrt(variance);
  return { value, interval: [Math.max(1, value - spread), value + spread] };
}

function logFactorialsTo(last: number): Float64Array {
  const logs = new Float64Array(last + 1);
  for (let n = 2; n <= last; n++) logs[n] = logs[n - 1]! + Math.log(n);
  return logs;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
