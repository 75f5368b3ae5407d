/** Whether a recorded output that is no literal, `dict(k=1)` or `float('inf')`, stands for the value that came out. */
import { runCalls } from './grading.js';
import { literalEqual, MAX_LITERAL_LENGTH, tryParseLiteral } from './literal.js';
import type { Grader } from './task.js';

/**
 * Evaluates one text, and writes its value down so that equal values have one text or equal literals: a set in order, a dict by its
 * keys, infinity as a number. It knows the names that a `repr` of the standard library's data is written with.
 */
const EVALUATOR = `import collections, datetime, decimal, fractions, math
from array import array
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
inf, nan = math.inf, math.nan

def show(value):
    kind = type(value)
    if kind is list:
        return '[' + ', '.join(map(show, value)) + ']'
    if kind is tuple:
        return '(' + ''.join(show(item) + ', ' for item in value) + ')'
    if kind is dict:
        return '{' + ', '.join(sorted(show(key) + ': ' + show(item) for key, item in value.items())) + '}'
    if kind in (set, frozenset):
        items = ', '.join(sorted(map(show, value)))
        if kind is frozenset:
            return 'frozenset({' + items + '})'
        return '{' + items + '}' if value else 'set()'
    if kind is float and value in (inf, -inf):
        return '1e999' if value > 0 else '-1e999'
    return repr(value)

def f(value, /):
    return show(value)
`;

/** `literalEqual`, or `sameValue`. @throws {RunError} when the sandbox keeps failing */
export async function equalsRecorded(recorded: string, repr: string, grader: Grader): Promise<boolean> {
  return literalEqual(recorded, repr) || (await sameValue(recorded, repr, grader));
}

/**
 * Whether a recording that `literalEqual` does not hold equal to a result is of the same value all the same. Each of the two is evaluated
 * in a run of its own, far from the program, unless it is a literal; two literals are what they are.
 * @param repr what came out
 * @throws {RunError} when the sandbox keeps failing
 */
export async function sameValue(recorded: string, repr: string, grader: Grader): Promise<boolean> {
  const texts = [recorded.trim(), repr.trim()];
  if (texts.every((text) => tryParseLiteral(text) !== null)) return false;
  if (texts.some((text) => text.length > MAX_LITERAL_LENGTH)) return false;
  const [left = null, right = null] = await Promise.all(texts.map((text) => written(text, grader)));
  return left !== null && right !== null && (left === right || literalEqual(left, right));
}

/** The text of a value; null for what is none. */
async function written(text: string, grader: Grader): Promise<string | null> {
  const [shown] = await runCalls({ code: EVALUATOR, calls: [text] }, grader);
  const value = shown?.outcome === 'ok' && shown.repr !== null ? tryParseLiteral(shown.repr) : null;
  return value?.type === 'str' ? value.value : null;
}
