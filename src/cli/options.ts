/** Parsers of option values; each refuses what it cannot take with one clear line. */
import { InvalidArgumentError } from 'commander';

/** A whole number from 1. */
export function positiveInteger(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < 1) {
    throw new InvalidArgumentError('Give a whole number from 1.');
  }
  return value;
}
