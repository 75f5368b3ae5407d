/** Numbers as people read them; the same on every machine. */
import type { Interval } from '../metrics/interval.js';

/** What stands where there is no number. */
export const MISSING = '–';

/** 0.2651 → `26.5%`. */
export function percent(share: number, digits = 1): string {
  return `${(100 * share).toFixed(digits)}%`;
}

/** [0.236, 0.297] → `23.6–29.7`. */
export function percentRange([low, high]: Interval): string {
  return `${(100 * low).toFixed(1)}–${(100 * high).toFixed(1)}`;
}

/** A number with fixed digits, or a dash. */
export function decimal(value: number | null, digits: number): string {
  return value === null || Number.isNaN(value) ? MISSING : value.toFixed(digits).replace('-', '−');
}

/** 12000 → `12,000`. */
export function count(value: number): string {
  return String(value).replaceAll(/\B(?=(\d{3})+$)/g, ',');
}

/** 8.24 → `8.2 s`, 102 → `1 min 42 s`, 7200 → `2 h 0 min`. */
export function duration(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** All phases of an arm together. */
export function totalSeconds(seconds: { readonly [phase: string]: number }): number {
  return Object.values(seconds).reduce((sum, value) => sum + value, 0);
}
