/** Parsers of option values; each refuses what it cannot take with one clear line. */
import { InvalidArgumentError } from 'commander';

/** A whole number from 1. */
export function positiveInteger(text: string): number {
  return wholeNumber(text, 1);
}

/** A whole number from 0. */
export function nonNegativeInteger(text: string): number {
  return wholeNumber(text, 0);
}

function wholeNumber(text: string, least: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least) {
    throw new InvalidArgumentError(`Give a whole number from ${least}.`);
  }
  return value;
}
