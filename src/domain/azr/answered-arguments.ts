/** The arguments of a solver's answer as literals, so that no code of an answer ever meets the program it is about. */
import { runCalls } from './grading.js';
import { MAX_LITERAL_LENGTH, tryParseArguments, tryParseLiteral, type Arguments } from './literal.js';
import { withoutCall } from './notation.js';
import type { Grader } from './task.js';
import { pythonSource } from './value-text.js';
import type { PythonValue } from './value.js';

/** Stands for the program while arguments are evaluated, and returns them. */
const RECORDER = 'def f(*args, **kwargs):\n    return args, kwargs\n';

/**
 * The text between the brackets of a call with the answer's arguments, written anew from their values. Arguments that are no
 * literals, `'a' * 3`, are evaluated in a sandbox without the program. Null for what has no arguments of plain data: an answer that
 * does not parse, raises, runs too long, or gives other objects.
 * @throws {RunError} when the sandbox keeps failing
 */
export async function answeredArguments(answer: string, grader: Grader): Promise<string | null> {
  if (answer.length > MAX_LITERAL_LENGTH) return null;
  const text = withoutCall(answer);
  const written = tryParseArguments(text) ?? (await evaluatedArguments(text, grader));
  return written && writeArguments(written);
}

async function evaluatedArguments(text: string, grader: Grader): Promise<Arguments | null> {
  const [recorded] = await runCalls({ code: RECORDER, calls: [text] }, grader);
  const value = recorded?.outcome === 'ok' && recorded.repr !== null ? tryParseLiteral(recorded.repr) : null;
  return value && recordedArguments(value);
}

/** What the recorder returned: `((1, 2), {'key': 3})`. The answer's own code may have returned anything else. */
function recordedArguments(value: PythonValue): Arguments | null {
  if (value.type !== 'tuple') return null;
  const [positional, keywords, ...others] = value.items;
  if (positional?.type !== 'tuple' || keywords?.type !== 'dict' || others.length > 0) return null;
  const named: [string, PythonValue][] = [];
  for (const [key, item] of keywords.entries) {
    if (key.type !== 'str') return null;
    named.push([key.value, item]);
  }
  return { positional: positional.items, keywords: named };
}

/** A name is written as a key, so that a text which is no name stays data. */
function writeArguments({ positional, keywords }: Arguments): string {
  const named = keywords.map(([name, value]): [PythonValue, PythonValue] => [{ type: 'str', value: name }, value]);
  const unpacked = named.length === 0 ? [] : [`**${pythonSource({ type: 'dict', entries: named })}`];
  return [...positional.map(pythonSource), ...unpacked].join(', ');
}
