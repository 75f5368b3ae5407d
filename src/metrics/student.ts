/** Mean of a few repeated measurements with Student's interval: what seeds of one experiment give. */
import type { Interval } from './interval.js';

/** Two-sided 95% quantiles of Student's t by degrees of freedom, from 1. Source: any table, e.g. R's `qt(0.975, df)`. */
const T95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** The standard normal's, which t comes near as the degrees of freedom grow. */
const Z95 = 1.96;

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * Student's 95% interval of a mean, x̄ ± t · s / √n with s the sample's standard deviation; null below two values, which say nothing of
 * their spread. With three values t is 4.3: the interval is wide, as it must be.
 * Source: Student, "The probable error of a mean", Biometrika 6 (1908).
 */
export function studentInterval(values: readonly number[]): Interval | null {
  const n = values.length;
  if (n < 2) return null;
  const centre = mean(values);
  const variance = values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (n - 1);
  const halfWidth = studentQuantile(n - 1) * Math.sqrt(variance / n);
  return [centre - halfWidth, centre + halfWidth];
}

/** Beyond the table by the first two terms of the expansion in 1/df; right to the third decimal from there on. */
function studentQuantile(df: number): number {
  const z = Z95;
  return T95[df - 1] ?? z + (z ** 3 + z) / (4 * df) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * df ** 2);
}
