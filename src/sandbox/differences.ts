/**
 * All that may come out differently on CPython 3.12 for WASI of 32 bits (the embedded sandbox), 3.12 for Linux of 64 bits (containers on a
 * registry's image) and 3.11 for Linux of 64 bits (containers on Debian's packages). What is not listed here is the same everywhere, up to the numbers at
 * which memory runs out, the words of an exception, and what an interpreter counts of its own work (`gc.get_count`, `abc.get_cache_token`). An order that
 * hashes of text decide is `nondeterministic` when four hash seeds do not agree on it; on two texts they may by chance.
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

/** @param wide on Linux of 64 bits, whatever the version */
function wordSize(name: string, code: string, embedded: Expectation, wide: Expectation, call = ''): Difference {
  return { name, code, call, embedded, container312: wide, container311: wide };
}
/** Of WASI and its C library, against Linux and glibc. */
const system = wordSize;

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
  wordSize(
    'sizes beyond an index',
    'def f(): return "ab" * 2 ** 40',
    fails('runtime_error', 'OverflowError'),
    fails('memory'),
  ),
  wordSize(
    'sizes of C types',
    'import array, struct\ndef f(): return struct.calcsize("l"), struct.calcsize("P"), array.array("l").itemsize',
    repr('(4, 4, 4)'),
    repr('(8, 8, 8)'),
  ),
  wordSize(
    'the greatest precision of decimal',
    'import decimal\ndef f(): return decimal.MAX_PREC',
    repr('425000000'),
    repr('999999999999999999'),
  ),
  wordSize(
    'addresses of what the interpreter holds',
    'def f(): return id(None) < 2 ** 23',
    fails('nondeterministic', 'gave True, then False'),
    repr('False'),
  ),
  system('the platform', 'import sys\ndef f(): return sys.platform', repr("'wasi'"), repr("'linux'")),
  system(
    'numbers of system errors',
    'import os\ndef f(): return os.strerror(2), type(OSError(2, "x")).__name__',
    repr("('Permission denied', 'PermissionError')"),
    repr("('No such file or directory', 'FileNotFoundError')"),
  ),
  system(
    'the last digit of functions that the C library computes',
    'import cmath, math\ndef f(): return math.cbrt(2), cmath.exp(1 + 2j)',
    repr('(1.2599210498948732, (-1.1312043837568138+2.471726672004819j))'),
    repr('(1.2599210498948734, (-1.1312043837568135+2.4717266720048188j))'),
  ),
  system(
    'years before 1000 in strftime',
    'import datetime\ndef f(): return datetime.date(5, 1, 1).strftime("%Y-%m-%d")',
    repr("'0005-01-01'"),
    repr("'5-01-01'"),
  ),
  system(
    'what the time zone of gmtime is called',
    'import time\ndef f(): return time.strftime("%Z", time.gmtime(0))',
    repr("'UTC'"),
    repr("'GMT'"),
  ),
  system('the thread', 'import reprlib\ndef f(): return reprlib.get_ident() == 0', repr('True'), repr('False')),
  system(
    'blocks that the allocator has given out',
    'import sys\ndef f(): return sys.getallocatedblocks() == 0',
    repr('True'),
    repr('False'),
  ),
  system(
    'a wait that ends by itself in a queue written in C',
    'import queue\ndef f(): return queue.SimpleQueue().get(timeout=5)',
    fails('timeout'),
    fails('runtime_error', 'Empty'),
  ),
  system(
    'frames below that of a program',
    'import sys\ndef f():\n    frame, depth = sys._getframe(), 0\n    while frame: frame, depth = frame.f_back, depth + 1\n    return depth',
    repr('5'),
    repr('4'),
  ),
  {
    name: 'which native modules are part of the interpreter',
    code: 'import sys\ndef f(): return "_testcapi" in sys.builtin_module_names, "_csv" in sys.builtin_module_names',
    call: '',
    embedded: repr('(True, True)'),
    container312: repr('(False, False)'),
    container311: repr('(False, True)'),
  },
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
    'tests tell how long they took',
    'import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\ndef f():\n    result = unittest.TestResult()\n    T("test").run(result)\n    return result.testsRun',
    fails('nondeterministic', 'clock'),
    repr('1'),
  ),
  version(
    'keys made from passwords, without OpenSSL',
    'import hashlib\ndef f(): return hashlib.pbkdf2_hmac("md5", b"a", b"b", 1)[:2]',
    fails('runtime_error', 'AttributeError'),
    repr("b'9\\xf9'"),
  ),
  version(
    'texts of warnings',
    'import warnings\nwarnings.simplefilter("error")\ndef f():\n    try: eval("1 is 1")\n    except SyntaxError as error: return error.msg',
    repr(`'"is" with \\'int\\' literal. Did you mean "=="?'`),
    repr(`'"is" with a literal. Did you mean "=="?'`),
  ),
  version(
    'comprehensions have no frame of their own',
    'import sys\ndef f(): return [sys._getframe().f_code.co_name for _ in range(1)]',
    repr("['f']"),
    repr("['<listcomp>']"),
  ),
  version(
    'the folder of the library',
    'import sys\ndef f(): return sys.path[1]',
    repr("'/usr/local/lib/python3.12'"),
    repr("'/usr/lib/python3.11'"),
  ),
  version('the version', 'import sys\ndef f(): return sys.version_info[:2]', repr('(3, 12)'), repr('(3, 11)')),
  version(
    'the tables of characters',
    'import unicodedata\ndef f(): return unicodedata.unidata_version',
    repr("'15.0.0'"),
    repr("'14.0.0'"),
  ),
  version(
    'the repr of an OrderedDict',
    'from collections import OrderedDict\ndef f(): return OrderedDict(a=1)',
    repr("OrderedDict({'a': 1})"),
    repr("OrderedDict([('a', 1)])"),
  ),
  version(
    'the repr of a ParamSpecArgs that is of no ParamSpec',
    'import typing\ndef f(): return typing.ParamSpecArgs(-5)',
    repr('-5.args'),
    fails('runtime_error', 'AttributeError'),
  ),
  version(
    'how randrange takes what is no integer',
    'import random\ndef f(): return random.randrange("a")',
    fails('runtime_error', 'TypeError'),
    fails('runtime_error', 'ValueError'),
  ),
  version(
    'the default of expovariate',
    'import random\ndef f(): return random.Random(1).expovariate() > 0',
    repr('True'),
    fails('runtime_error', 'TypeError'),
  ),
  version(
    'flags that are no integers',
    'def f(): return "a\\nb".splitlines("x")',
    repr("['a\\n', 'b']"),
    fails('runtime_error', 'TypeError'),
  ),
  version(
    'arguments of the base classes of files',
    'import io\ndef f(): return type(io.IOBase(1)).__name__',
    fails('runtime_error', 'TypeError'),
    repr("'IOBase'"),
  ),
  version(
    'enumerations without members',
    'import enum\ndef f(): return enum.IntFlag(1.5)',
    fails('runtime_error', 'TypeError'),
    fails('runtime_error', 'ValueError'),
  ),
  version(
    'how the limit of digits is told',
    'import sys\ndef f(): return sys.flags.int_max_str_digits',
    repr('4300'),
    repr('-1'),
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
