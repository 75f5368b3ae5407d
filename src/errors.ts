/** The two ways a command fails: the user's input is wrong, or the run itself cannot go on. Every room may import this file. */

import { sayFaultsInWords } from './schema-words.js';

// Whoever refuses something imports this file.
sayFaultsInWords();

/** Bad input: a malformed or unknown setting, a missing or corrupt file, wrong usage. One clear line, exit code 2. */
export class UserError extends Error {
  readonly exitCode = 2;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UserError';
  }
}

export interface RunErrorOptions extends ErrorOptions {
  /** Lines that follow the message: what was found, example by example, where one line cannot tell what to do. */
  readonly details?: readonly string[];
}

/** A run that cannot go on: a locked run folder, a full disk, a dead sandbox. One clear line, and details where they help, exit code 1. */
export class RunError extends Error {
  readonly exitCode = 1;
  readonly details: readonly string[];

  constructor(message: string, { details = [], ...options }: RunErrorOptions = {}) {
    super(message, options);
    this.name = 'RunError';
    this.details = details;
  }
}

/** Why a file or folder could not be read, in words that follow its name; the system's code where there are none. */
export function readingFault(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'no code';
  switch (code) {
    case 'ENOENT':
      return 'does not exist';
    case 'ENOTDIR':
      return 'does not exist, a file stands on its way';
    case 'EISDIR':
      return 'is a folder';
    case 'EACCES':
    case 'EPERM':
      return 'may not be read, by its permissions';
    default:
      return `cannot be read (${code})`;
  }
}

const LONGEST = 160;

/** A text from outside, or of somebody's error, as part of a message: no line breaks, and not longer than a line can hold. */
export function inOneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line;
}
