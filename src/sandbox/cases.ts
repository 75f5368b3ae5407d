/** Ordinary programs that every sandbox must answer alike: one outcome, and for `ok` one repr, a call. */
import type { Limits, Outcome } from './sandbox.js';

export interface Case {
  readonly name: string;
  readonly code: string;
  readonly calls: readonly string[];
  /** One expectation a call: a repr, or an outcome that is not `ok` with a part of its detail. */
  readonly expect: readonly Expectation[];
  readonly limits?: Partial<Limits>;
}

export type Expectation =
  | { readonly repr: string }
  | { readonly outcome: Exclude<Outcome, 'ok'>; readonly detail: string };

const repr = (text: string): Expectation => ({ repr: text });
export const fails = (outcome: Exclude<Outcome, 'ok'>, detail = ''): Expectation => ({ outcome, detail });

export const CASES: readonly Case[] = [
  {
    name: 'every call gets its own result, in the order asked',
    code: 'def f(a, b=2):\n    return a * b',
    calls: ['3', '3, 4', '"ab", b=3', '[0]'],
    expect: [repr('6'), repr('12'), repr("'ababab'"), repr('[0, 0]')],
  },
  {
    name: 'one call failing leaves the others alone',
    code: 'def f(a):\n    return 10 // a',
    calls: ['3', '0', '"x"', '5'],
    expect: [
      repr('3'),
      fails('runtime_error', 'ZeroDivisionError: integer division or modulo by zero'),
      fails('runtime_error', 'TypeError'),
      repr('2'),
    ],
  },
  {
    name: 'a program that does not parse',
    code: 'def f(:\n    return 1',
    calls: ['', '1'],
    expect: [fails('syntax_error', 'SyntaxError'), fails('syntax_error', 'SyntaxError')],
  },
  {
    name: 'arguments that do not parse, or are more than arguments',
    code: 'def f(a):\n    return a',
    calls: ['1 +', '1) + f(2', '1', '1\n, *[]'],
    expect: [fails('syntax_error', 'SyntaxError'), fails('syntax_error', 'not the arguments'), repr('1'), repr('1')],
  },
  {
    name: 'arguments may name what the program defines',
    code: 'class P:\n    def __init__(self, x):\n        self.x = x\ndef f(p):\n    return p.x',
    calls: ['P(4)'],
    expect: [repr('4')],
  },
  {
    name: 'no f',
    code: 'def g():\n    return 1',
    calls: [''],
    expect: [fails('runtime_error', "NameError: name 'f' is not defined")],
  },
  {
    name: 'the module body raises',
    code: 'x = [][0]\ndef f():\n    return x',
    calls: ['', ''],
    expect: [fails('runtime_error', 'IndexError'), fails('runtime_error', 'IndexError')],
  },
  {
    name: 'endless recursion',
    code: 'def f(n):\n    return f(n + 1)',
    calls: ['0'],
    expect: [fails('runtime_error', 'RecursionError')],
  },
  {
    name: 'recursion through C code',
    code: 'from functools import lru_cache\n@lru_cache(None)\ndef f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)',
    calls: ['40', '300', '100000'],
    expect: [
      repr('102334155'),
      repr('222232244629420445529739893461909967206666939096499764990979600'),
      fails('runtime_error', 'RecursionError'),
    ],
  },
  {
    name: 'a main block does not run',
    code: 'def f():\n    return __name__ == "__main__"\nif __name__ == "__main__":\n    raise SystemExit',
    calls: [''],
    expect: [repr('False')],
  },
  {
    name: 'printing is not a result',
    code: 'def f():\n    print("o0000000142")\n    return 7',
    calls: [''],
    expect: [repr('7')],
  },
  {
    name: 'state between calls depends on their order',
    code: 'seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)',
    calls: ['1', '2', '3'],
    expect: [fails('nondeterministic'), repr('2'), fails('nondeterministic')],
  },
  {
    name: 'set order',
    code: 'def f():\n    return list({"apple", "orange", "banana", "cherry", "plum", "fig"})',
    calls: [''],
    expect: [fails('nondeterministic', 'gave [')],
  },
  {
    name: 'sets used in an order that is fixed',
    code: 'def f(text):\n    return sorted(set(text)), len({1, 2} | {3})',
    calls: ['"banana"'],
    expect: [repr("(['a', 'b', 'n'], 3)")],
  },
  { name: 'hash of a text', code: 'def f():\n    return hash("a")', calls: [''], expect: [fails('nondeterministic')] },
  { name: 'id', code: 'def f():\n    return id([])', calls: [''], expect: [fails('nondeterministic')] },
  {
    name: 'a repr with an address',
    code: 'def f():\n    return (i for i in range(3))',
    calls: [''],
    expect: [fails('nondeterministic', 'generator object')],
  },
  {
    name: 'unseeded random',
    code: 'import random\ndef f():\n    return random.random()',
    calls: [''],
    expect: [fails('nondeterministic')],
  },
  {
    name: 'seeded random',
    code: 'import random\ndef f(seed):\n    return random.Random(seed).randint(0, 99)',
    calls: ['7'],
    expect: [repr('41')],
  },
  {
    name: 'the clock',
    code: 'import time\ndef f():\n    return time.time() > 0',
    calls: [''],
    expect: [fails('nondeterministic')],
  },
  {
    name: 'entropy',
    code: 'import os\ndef f():\n    return len(os.urandom(8))',
    calls: [''],
    expect: [fails('nondeterministic')],
  },
  {
    name: 'the allowed modules are there',
    code: [
      'import math, re, json, itertools, functools, string, heapq, bisect, copy, statistics, fractions, decimal, typing, hashlib',
      'from collections import Counter, deque, OrderedDict, defaultdict, namedtuple',
      'from datetime import date, datetime',
      'from dataclasses import dataclass',
      'from enum import Enum',
      '@dataclass',
      'class Point:',
      '    x: int',
      'def f():',
      '    return (math.isqrt(17), re.findall("[a-c]+", "abxc"), Counter("aab").most_common(1), deque([1], 2), Point(3),',
      '            fractions.Fraction(3, 6), decimal.Decimal("1.10"), datetime.strptime("2024-02-29", "%Y-%m-%d").date(),',
      '            hashlib.md5(b"a").hexdigest()[:6], statistics.median([3, 1, 2]), json.dumps({"a": [1]}))',
    ].join('\n'),
    calls: [''],
    expect: [
      repr(
        "(4, ['ab', 'c'], [('a', 2)], deque([1], maxlen=2), Point(x=3), Fraction(1, 2), Decimal('1.10'), " +
          "datetime.date(2024, 2, 29), '0cc175', 2, '{\"a\": [1]}')",
      ),
    ],
  },
  {
    name: 'a module that is not installed',
    code: 'import numpy as np\ndef f():\n    return 1',
    calls: [''],
    expect: [fails('runtime_error', "ModuleNotFoundError: No module named 'numpy'")],
  },
  {
    name: 'a module outside the allow-list',
    code: 'def f():\n    import socket\n    return 1',
    calls: [''],
    expect: [fails('forbidden', 'socket')],
  },
  {
    name: 'text beyond ASCII',
    code: 'def f(s):\n    return s[::-1], "\\ud800"',
    calls: ['"żółć🙂"'],
    expect: [repr("('🙂ćłóż', '\\ud800')")],
  },
  {
    name: 'cyclic and nested results',
    code: 'def f(depth):\n    a = []\n    for _ in range(depth):\n        a = [a]\n    a.append(a)\n    return a',
    calls: ['1', '100000'],
    expect: [repr('[[], [...]]'), fails('runtime_error', 'RecursionError')],
  },
  {
    name: 'a result too long to return',
    code: 'def f(n):\n    return "x" * n',
    calls: ['5', '5000'],
    expect: [repr("'xxxxx'"), fails('output_limit', '5002 bytes')],
    limits: { resultBytes: 1000 },
  },
  {
    name: 'integers too long for text',
    code: 'def f(n):\n    return 10 ** n',
    calls: ['20', '5000'],
    expect: [repr('100000000000000000000'), fails('runtime_error', 'ValueError')],
  },
];
