/**
 * All that may come out differently on CPython 3.12 for 32 bits (the embedded sandbox), 3.12 for 64 bits (containers on a registry's
 * image) and 3.11 for 64 bits (containers on Debian's packages). What is not listed here is the same everywhere, up to the numbers at which
 * memory runs out. An order that hashes of text decide is `nondeterministic` when four hash seeds do not agree on it; on two texts they may by chance.
 */
import { fails, type Case, type Expectation } from './cases.js';
import type { Sandbox } from './sandbox.js';

export interface Difference {
  readonly name: string;
  readonly code: string;
  readonly call: string;
  readonly embedded: Expectation;
  readonly container312: Expectation;
  readonly container311: Expectation;
}

const repr = (text: string): Expectation => ({ repr: text });

/** @param wide on 64 bits, whatever the version */
function wordSize(name: string, code: string, embedded: Expectation, wide: Expectation, call = ''): Difference {
  return { name, code, call, embedded, container312: wide, container311: wide };
}

/** @param newer on 3.12, @param older on 3.11 */
function version(name: string, code: string, newer: Expectation, older: Expectation, call = ''): Difference {
  return { name, code, call, embedded: newer, container312: newer, container311: older };
}

export const DIFFERENCES: readonly Difference[] = [
  wordSize(
    'the largest index',
    'import sys\ndef f(): return sys.maxsize',
    repr('2147483647'),
    repr('9223372036854775807'),
  ),
  wordSize('the modulus of hashes', 'def f(): return hash(2 ** 31 + 6)', repr('7'), repr('2147483654')),
  wordSize(
    'the order of a set of floats',
    'def f(): return list({0.1, 0.7, 0.2, 3.3})',
    repr('[0.2, 0.7, 3.3, 0.1]'),
    repr('[0.1, 0.7, 3.3, 0.2]'),
  ),
  wordSize(
    'the order of a set of large numbers',
    'def f(): return list({2 ** 40, 2 ** 41 + 3, 5, 2 ** 33 + 1})',
    repr('[1099511627776, 5, 2199023255555, 8589934593]'),
    repr('[1099511627776, 8589934593, 2199023255555, 5]'),
  ),
  wordSize(
    'the order of a set of tuples',
    'def f(): return list({(1, 4), (2, 3)})',
    repr('[(1, 4), (2, 3)]'),
    repr('[(2, 3), (1, 4)]'),
  ),
  wordSize(
    'the order of a set of negative numbers',
    'def f(): return list({-1, -4, -3, -2})',
    repr('[-1, -4, -3, -2]'),
    repr('[-4, -3, -1, -2]'),
  ),
  wordSize('sizes of objects', 'import sys\ndef f(): return sys.getsizeof([])', repr('28'), repr('56')),
  wordSize(
    'lengths from 2 ** 31',
    'def f(): return len(range(2 ** 31))',
    fails('runtime_error', 'OverflowError'),
    repr('2147483648'),
  ),
  version('compensated sums of floats', 'def f(): return sum([0.1] * 10)', repr('1.0'), repr('0.9999999999999999')),
  version('quotes inside f-strings', "def f(): return f'{'a'}'", repr("'a'"), fails('syntax_error')),
  version('type parameters', 'def f[T](x: T) -> T: return x', repr('1'), fails('syntax_error'), '1'),
  version(
    'itertools.batched',
    'import itertools\ndef f(): return list(itertools.batched("abc", 2))',
    repr("[('a', 'b'), ('c',)]"),
    fails('runtime_error', 'AttributeError'),
  ),
  version(
    'math.sumprod',
    'import math\ndef f(): return math.sumprod([1, 2], [3, 4])',
    repr('11'),
    fails('runtime_error', 'AttributeError'),
  ),
  version(
    'slices as keys',
    'def f(): return {slice(1): 2}',
    repr('{slice(None, 1, None): 2}'),
    fails('runtime_error', 'TypeError'),
  ),
  version(
    'levels of recursion',
    'def f(n): return n if n == 0 else f(n - 1)',
    fails('runtime_error', 'RecursionError'),
    repr('0'),
    '996',
  ),
  version(
    'levels of recursion through C code',
    'from functools import lru_cache\n@lru_cache(None)\ndef f(n): return n if n < 2 else f(n - 1) + 1',
    repr('900'),
    fails('runtime_error', 'RecursionError'),
    '900',
  ),
  version(
    'comprehensions have no frame of their own',
    'import sys\ndef f(): return [sys._getframe().f_code.co_name for _ in range(1)]',
    repr("['f']"),
    repr("['<listcomp>']"),
  ),
];

/** The list as cases for one sandbox, told by its interpreter. */
export function differenceCases(sandbox: Sandbox): Case[] {
  const column =
    sandbox.name === 'wasm'
      ? 'embedded'
      : sandbox.versions['python']?.startsWith('3.11.') === true
        ? 'container311'
        : 'container312';
  return DIFFERENCES.map((each) => ({
    name: each.name,
    code: each.code,
    calls: [each.call],
    expect: [each[column]],
  }));
}
