/** Python literals on the host, exactly what `ast.literal_eval` takes: answers are data and are never executed. */
import { LiteralError } from './literal-cursor.js';
import { LiteralReader, type Arguments } from './literal-reader.js';
import { valuesEqual, type PythonValue } from './value.js';

export { LiteralError, MAX_LITERAL_LENGTH } from './literal-cursor.js';
export type { Arguments } from './literal-reader.js';

/**
 * The value of a Python literal, as `ast.literal_eval(text)`. Refused besides: `\N{…}` escapes, surrogates, texts past
 * `MAX_LITERAL_LENGTH`.
 * @throws {LiteralError}
 */
export function parseLiteral(text: string): PythonValue {
  return new LiteralReader(text).readExpression();
}

/** `parseLiteral`, or null for a text that is not a literal. */
export function tryParseLiteral(text: string): PythonValue | null {
  return orNull(() => parseLiteral(text));
}

/**
 * The text between the brackets of a call, with literal arguments only: `1, [2], key='x'`.
 * @throws {LiteralError} for anything else: unpacking, a positional argument after a keyword, a keyword given twice.
 */
export function parseArguments(text: string): Arguments {
  // Between its brackets a call has them on lines of their own, so that a comment swallows neither.
  return new LiteralReader(`${text}\n`).readArguments();
}

/** `parseArguments`, or null where it throws. */
export function tryParseArguments(text: string): Arguments | null {
  return orNull(() => parseArguments(text));
}

/** Whether two texts are literals of equal values (Python's `==`); a text that is not a literal equals nothing. */
export function literalEqual(a: string, b: string): boolean {
  const left = tryParseLiteral(a.trim());
  const right = left === null ? null : tryParseLiteral(b.trim());
  return left !== null && right !== null && valuesEqual(left, right);
}

function orNull<Result>(parse: () => Result): Result | null {
  try {
    return parse();
  } catch (error) {
    if (error instanceof LiteralError) return null;
    throw error;
  }
}
