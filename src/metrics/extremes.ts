/** The largest and the smallest of lists of any length; as arguments of `Math.max` a long list would pass what the engine's stack holds. */

/** The largest value; −∞ of none, NaN where one is. */
export function largest(values: Iterable<number>): number {
  let most = -Infinity;
  for (const value of values) most = Math.max(most, value);
  return most;
}

/** The smallest value; ∞ of none, NaN where one is. */
export function smallest(values: Iterable<number>): number {
  let least = Infinity;
  for (const value of values) least = Math.min(least, value);
  return least;
}
