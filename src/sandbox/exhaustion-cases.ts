/**
 * Programs that try to exhaust their sandbox: time, memory, stack, output. Each has the outcome it must get. Timeouts are
 * short: an endless program costs two of them.
 */
import { fails, type Case } from './cases.js';

const QUICK = { timeoutMs: 400, memoryMiB: 128, outputBytes: 1 << 20, resultBytes: 1 << 16 } as const;

/** Filling the memory or the output takes a while on a slow machine. */
const PATIENT = { ...QUICK, timeoutMs: 20_000 } as const;

/** A case whose calls all end alike. */
export function attack(
  name: string,
  code: string,
  expected: Case['expect'][number],
  calls: readonly string[] = [''],
): Case {
  const limits = expected === TIMEOUT ? QUICK : PATIENT;
  return { name, code, calls, expect: calls.map(() => expected), limits };
}

const repr = (text: string): Case['expect'][number] => ({ repr: text });
export const TIMEOUT = fails('timeout', 'twice');
const MEMORY = fails('memory');
const FLOOD = fails('output_limit', 'printed');

const TIME: readonly Case[] = [
  attack('endless loop', 'def f():\n    while True: pass', TIMEOUT),
  attack('endless loop in the module body', 'while True: pass\ndef f(): return 1', TIMEOUT, ['', '']),
  attack(
    'endless loop that catches everything',
    'def f():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass',
    TIMEOUT,
  ),
  attack(
    'endless loop in C',
    'import itertools\ndef f(): return sum(1 for _ in itertools.count()) + max(itertools.repeat(1))',
    TIMEOUT,
  ),
  attack('a power too large', 'def f(): return 3 ** 10 ** 8 % 7', TIMEOUT),
  attack(
    'a regular expression that backtracks',
    'import re\ndef f(): return re.match(r"(a+)+$", "a" * 60 + "b")',
    TIMEOUT,
  ),
  attack(
    'a __repr__ that never ends',
    'class R:\n    def __repr__(self):\n        while True: pass\ndef f(): return R()',
    TIMEOUT,
  ),
  attack(
    'an exception whose text never ends',
    'class E(Exception):\n    def __str__(self):\n        while True: pass\ndef f(): raise E',
    TIMEOUT,
  ),
  attack(
    'a __del__ that never ends',
    'class D:\n    def __del__(self):\n        while True: pass\ndef f(): return [D()] and 1',
    TIMEOUT,
  ),
  attack(
    'an await that never ends',
    'class A:\n    def __await__(self):\n        while True: yield\nasync def g():\n    await A()\ndef f():\n    c = g()\n    while True: c.send(None)',
    TIMEOUT,
  ),
  attack(
    'sleeping moves only the virtual clock',
    'import time\ndef f():\n    time.sleep(10 ** 6)\n    return 1',
    fails('nondeterministic', 'clock'),
  ),
];

const MEMORY_BOMBS: readonly Case[] = [
  attack('a list too large', 'def f(): return [0] * 10 ** 9', MEMORY),
  attack('a text too large', 'def f(): return "a" * (1 << 30)', MEMORY),
  attack('bytes too large', 'def f(): return bytearray(1 << 30)', MEMORY),
  attack('a text that doubles', 'def f():\n    s = "ab"\n    while True: s += s', MEMORY),
  attack('a list that doubles', 'def f():\n    a = [0]\n    while True: a += a', MEMORY),
  attack('a generator kept whole', 'def g():\n    while True: yield "x" * 100000\ndef f(): return list(g())', MEMORY),
  attack('an integer shifted too far', 'def f(): return 1 << (1 << 32)', MEMORY),
  attack('an endless chain of objects', 'def f():\n    a = None\n    while True: a = (a, [0] * 1000)', MEMORY),
  attack(
    'memory that is caught and tried again',
    'def f():\n    keep = []\n    while True:\n        try: keep.append("x" * (1 << 24))\n        except MemoryError: break\n    return len(keep) < 20',
    repr('True'),
  ),
  attack('a cached result of everything', 'def f():\n    return bytes(200 << 20)', MEMORY),
];

const STACK: readonly Case[] = [
  attack(
    'recursion without a Python limit',
    'import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(n): return 1 + f(n + 1)',
    MEMORY,
    ['0'],
  ),
  attack(
    'recursion in C',
    'import functools\ndef f():\n    g = lambda: 0\n    for _ in range(10 ** 5): g = functools.partial(g)\n    return g()',
    repr('0'),
  ),
  attack(
    'recursion through __getattr__',
    'class A:\n    def __getattr__(self, n): return getattr(self, n + "x")\ndef f(): return A().y',
    fails('runtime_error', 'RecursionError'),
  ),
  attack('brackets as deep as they may be', `def f(): return ${'('.repeat(200)}1${')'.repeat(200)}`, repr('1')),
  attack('lists as deep as they may be', `def f(a): return repr(a).count("[")`, repr('190'), [
    `${'['.repeat(190)}${']'.repeat(190)}`,
  ]),
  attack(
    'a bracket too many',
    `def f(): return ${'('.repeat(201)}1${')'.repeat(201)}`,
    fails('syntax_error', 'too many nested parentheses'),
  ),
  attack('brackets that a program reads', 'def f(n): return len(repr(eval("[" * n + "]" * n)))', repr('300'), [
    '150',
    'n=150',
  ]),
  attack(
    'brackets of calls, tables and functions',
    `def f(): return ${'str('.repeat(150)}1${')'.repeat(150)}, len(${'{1:'.repeat(150)}1${'}'.repeat(150)}), (${'lambda:('.repeat(150)}1${')'.repeat(150)})`,
    fails('nondeterministic', 'function'),
  ),
  attack('a sum of many terms', `def f(): return ${'1+'.repeat(2800)}1`, repr('2801')),
  attack('a sum of too many terms', `def f(): return ${'1+'.repeat(3200)}1`, fails('syntax_error', 'recursion')),
  attack('brackets nested too deep', `def f(): return ${'('.repeat(5000)}1${')'.repeat(5000)}`, fails('syntax_error')),
  attack('an expression nested too deep', `def f(): return ${'-'.repeat(50_000)}1`, fails('syntax_error')),
  attack('arguments nested too deep', 'def f(a): return 1', fails('syntax_error'), ['['.repeat(20_000)]),
  attack(
    'a chain of iterators',
    'def f():\n    g = iter([1])\n    for _ in range(5 * 10 ** 5): g = map(lambda x: x, g)\n    return list(g)',
    fails('runtime_error', 'RecursionError'),
  ),
];

const OUTPUT: readonly Case[] = [
  attack('one huge print', 'def f():\n    print("x" * (2 << 20))', FLOOD),
  attack('prints without end', 'def f():\n    while True: print("spam")', FLOOD),
  attack(
    'a million tiny unbuffered writes',
    'import os\ndef f():\n    for _ in range(3 * 10 ** 6): os.write(2, b"xx")',
    FLOOD,
  ),
  attack('a flood on standard error', 'import sys\ndef f():\n    while True: sys.stderr.write("e" * 1000)', FLOOD),
  attack(
    'a flood that catches everything',
    'def f():\n    while True:\n        try: print("x" * 10 ** 5)\n        except BaseException: pass',
    FLOOD,
  ),
];

export const EXHAUSTION_CASES: readonly Case[] = [...TIME, ...MEMORY_BOMBS, ...STACK, ...OUTPUT];
