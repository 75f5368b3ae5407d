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

/**
 * 95% interval of the difference p₁ − p₂ of two independent proportions, each a count of a number: with Wilson's ends lᵢ, uᵢ of each,
 * d − √((p₁−l₁)² + (u₂−p₂)²) to d + √((u₁−p₁)² + (p₂−l₂)²). Of what was not observed at all it is [−1, 1].
 * Source: R. G. Newcombe, "Interval estimation for the difference between independent proportions", Statistics in Medicine 17 (1998), method 10.
 */
export function differenceInterval(
  [k1, n1]: readonly [count: number, of: number],
  [k2, n2]: readonly [count: number, of: number],
): Interval {
  const [l1, u1] = wilsonInterval(k1, n1);
  const [l2, u2] = wilsonInterval(k2, n2);
  if (n1 === 0 || n2 === 0) return [-1, 1];
  const [p1, p2] = [k1 / n1, k2 / n2];
  const d = p1 - p2;
  return [d - Math.hypot(p1 - l1, u2 - p2), d + Math.hypot(u1 - p1, p2 - l2)];
}
