/** Wilson's score interval for a proportion. */

/** Low and high ends of an interval. */
export type Interval = readonly [low: number, high: number];

/** The standard normal quantile of a two-sided 95% interval. */
const Z95 = 1.96;

/**
 * Wilson 95% interval of `successes` out of `trials`: centre (k + z²/2)/(n + z²), half-width z/(n + z²)·√(k(n−k)/n + z²/4), z = 1.96.
 * Nothing was observed when `trials` is 0, so the interval is [0, 1].
 * Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
 */
export function wilsonInterval(successes: number, trials: number): Interval {
  if (!Number.isInteger(successes) || !Number.isInteger(trials) || successes < 0 || successes > trials) {
    throw new RangeError(
      `Wilson interval needs 0 ≤ successes ≤ trials in whole numbers, not ${successes} of ${trials}`,
    );
  }
  if (trials === 0) return [0, 1];
  const zSquared = Z95 * Z95;
  const centre = (successes + zSquared / 2) / (trials + zSquared);
  const spread = Math.sqrt((successes * (trials - successes)) / trials + zSquared / 4);
  const halfWidth = (Z95 / (trials + zSquared)) * spread;
  // The ends are exactly 0 and 1 at the extremes; rounding must not push them past.
  const low = successes === 0 ? 0 : Math.max(0, centre - halfWidth);
  const high = successes === trials ? 1 : Math.min(1, centre + halfWidth);
  return [low, high];
}

/** True when the two intervals share no point. */
export function disjoint(a: Interval, b: Interval): boolean {
  return a[1] < b[0] || b[1] < a[0];
}
