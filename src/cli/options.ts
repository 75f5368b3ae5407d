/** Parsers of option values; each refuses what it cannot take with one clear line. */
import { InvalidArgumentError, Option } from 'commander';
import { SANDBOX_KINDS } from '../pipeline/open-sandbox.js';

const MOST_PORT = 65_535;

/** A whole number from 1. */
export function positiveInteger(text: string): number {
  return wholeNumber(text, 1);
}

/** A whole number from 0. */
export function nonNegativeInteger(text: string): number {
  return wholeNumber(text, 0);
}

/** A number above 0. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value <= 0)
    throw new InvalidArgumentError('Give a number above 0.');
  return value;
}

/** A TCP port, 0 for any that is free. */
export function portNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > MOST_PORT) {
    throw new InvalidArgumentError(`Give a whole number from 0 to ${MOST_PORT}.`);
  }
  return Number(text);
}

/** A path that is not empty, as an unset variable of a shell would leave it. */
export function folderName(text: string): string {
  if (text === '') throw new InvalidArgumentError('Give the path of a folder.');
  return text;
}

/** `--sandbox`, the same wherever programs run. */
export function sandboxOption(): Option {
  const what = 'where programs run: wasm is embedded, docker containers, auto docker where it works';
  return new Option('--sandbox <kind>', what).choices(SANDBOX_KINDS);
}

function wholeNumber(text: string, least: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least) {
    throw new InvalidArgumentError(`Give a whole number from ${least}.`);
  }
  return value;
}
