/**
 * The standard library as programs use it: all that its modules import by themselves is there, and what they read for their own ends
 * (source text, catalogues, time zones) is a file that does not exist rather than an access of the program's.
 */
import { fails, type Case, type Expectation } from './cases.js';

/** Some of the library is loaded by the program that uses it. */
const LIMITS = { timeoutMs: 20_000 } as const;

const repr = (text: string): Expectation => ({ repr: text });

/** One program, its calls and what each must give: a repr, or an outcome. */
export function library(
  name: string,
  code: readonly string[],
  ...expected: readonly (readonly [string, string | Expectation])[]
): Case {
  return {
    name: `library: ${name}`,
    code: code.join('\n'),
    calls: expected.map(([call]) => call),
    expect: expected.map(([, each]) => (typeof each === 'string' ? repr(each) : each)),
    limits: LIMITS,
  };
}

const CODECS: readonly Case[] = [
  library(
    'codecs of one byte a character',
    ['def f(text, *codecs):', '    return [text.encode(codec) for codec in codecs]'],
    ["'é€', 'cp1252', 'iso8859_15', 'mac_roman'", "[b'\\xe9\\x80', b'\\xe9\\xa4', b'\\x8e\\xdb']"],
    ["'Жx', 'koi8_r', 'cp866', 'iso8859_5'", "[b'\\xf6x', b'\\x86x', b'\\xb6x']"],
    ["'A1', 'cp037', 'cp500', 'hp_roman8'", "[b'\\xc1\\xf1', b'\\xc1\\xf1', b'A1']"],
  ),
  library(
    'codecs of several bytes a character',
    ['def f(text, *codecs):', '    return [text.encode(codec) for codec in codecs]'],
    [
      "'あ', 'shift_jis', 'euc_jp', 'iso2022_jp', 'cp932'",
      "[b'\\x82\\xa0', b'\\xa4\\xa2', b'\\x1b$B$\"\\x1b(B', b'\\x82\\xa0']",
    ],
    [
      "'中', 'gb2312', 'gbk', 'gb18030', 'big5', 'hz'",
      "[b'\\xd6\\xd0', b'\\xd6\\xd0', b'\\xd6\\xd0', b'\\xa4\\xa4', b'~{VP~}']",
    ],
    [
      "'한', 'euc_kr', 'cp949', 'johab', 'iso2022_kr'",
      "[b'\\xc7\\xd1', b'\\xc7\\xd1', b'\\xd0e', b'\\x1b$)C\\x0eGQ\\x0f']",
    ],
    [
      "'é', 'utf_7', 'utf_16_be', 'utf_32_le', 'utf_8_sig'",
      "[b'+AOk-', b'\\x00\\xe9', b'\\xe9\\x00\\x00\\x00', b'\\xef\\xbb\\xbf\\xc3\\xa9']",
    ],
    ["'bücher', 'punycode', 'idna'", "[b'bcher-kva', b'xn--bcher-kva']"],
  ),
  library(
    'every codec that has a name',
    [
      'from encodings.aliases import aliases',
      'def f():',
      '    names, unknown = sorted(set(aliases.values()) - {"mbcs", "oem"}), []',
      '    for name in names:',
      '        try:',
      '            "abc".encode(name).decode(name) == "abc" or unknown.append(name)',
      '        except LookupError as error:',
      '            if "not a text encoding" not in str(error): unknown.append(name)',
      '    return len(names) > 90, unknown',
    ],
    ['', '(True, [])'],
  ),
  library(
    'transforms of bytes and texts',
    ['import codecs', 'def f(data, *names):', '    return [codecs.encode(data, name) for name in names]'],
    [
      "b'abc', 'hex', 'base64', 'quopri', 'uu'",
      "[b'616263', b'YWJj\\n', b'abc', b'begin 666 <data>\\n#86)C\\n \\nend\\n']",
    ],
    ["'abc', 'rot13'", "['nop']"],
  ),
  library(
    'compressing codecs',
    ['import codecs', 'def f(name):', '    return codecs.decode(codecs.encode(b"ab" * 9, name), name)'],
    ["'bz2'", "b'ababababababababab'"],
    ["'zlib'", "b'ababababababababab'"],
  ),
  library(
    'how errors of codecs are handled',
    ['def f(how, codec="cp1252"):', '    return "a–ж".encode(codec, how)'],
    ["'replace'", "b'a\\x96?'"],
    ["'xmlcharrefreplace'", "b'a\\x96&#1078;'"],
    ["'namereplace'", "b'a\\x96\\\\N{CYRILLIC SMALL LETTER ZHE}'"],
    ["'strict'", fails('runtime_error', 'UnicodeEncodeError')],
    ["'strict', 'nonsense'", fails('runtime_error', 'LookupError: unknown encoding: nonsense')],
    ["'strict', 'socket'", fails('runtime_error', 'LookupError: unknown encoding: socket')],
  ),
  library(
    'a decoder that takes its bytes bit by bit',
    [
      'import codecs, io',
      'def f(name):',
      '    decoder = codecs.getincrementaldecoder(name)()',
      '    parts = [decoder.decode(bytes([byte])) for byte in "aé中".encode(name)]',
      '    return "".join(parts), io.TextIOWrapper(io.BytesIO("é中".encode(name)), name).read()',
    ],
    ["'gb18030'", "('aé中', 'é中')"],
    ["'utf_16'", "('aé中', 'é中')"],
  ),
];

const OWN_READS: readonly Case[] = [
  library(
    'a warning about a text that is an error',
    [
      'import warnings',
      'warnings.simplefilter("error")',
      'def f(text):',
      '    try: return eval(text)',
      '    except SyntaxError as error: return type(error).__name__, error.text',
    ],
    ["'1 is 1'", "('SyntaxError', None)"],
  ),
  library(
    'no line of a file in an error of syntax',
    [
      'import warnings',
      'warnings.simplefilter("error")',
      'def f(path):',
      '    try: compile("1 is 1", path, "exec")',
      '    except SyntaxError as error: return error.text',
    ],
    ["'/etc/passwd'", 'None'],
    ["'/proc/uptime'", 'None'],
  ),
  library(
    'a traceback close to the limit of recursion',
    [
      'import traceback',
      'def g(n):',
      '    try: return g(n + 1)',
      '    except RecursionError: return traceback.format_exc()[:9]',
      'def f(): return g(0)',
    ],
    ['', "'Traceback'"],
  ),
  library(
    'a traceback of recursion',
    [
      'import traceback',
      'def g(n): return g(n + 1)',
      'def f():',
      '    try: g(0)',
      '    except RecursionError: return traceback.format_exc().count("line 2, in g"), traceback.format_exc().splitlines()[-1]',
    ],
    ['', "(3, 'RecursionError: maximum recursion depth exceeded')"],
  ),
  library(
    'an error that is printed',
    [
      'import sys, traceback, io',
      'def f():',
      '    try: 1 / 0',
      '    except ZeroDivisionError: sys.excepthook(*sys.exc_info())',
      '    out = io.StringIO()',
      '    traceback.print_exception(ValueError("x"), file=out)',
      '    return out.getvalue()',
    ],
    ['', "'ValueError: x\\n'"],
  ),
  library(
    'source text of functions and modules',
    [
      'import inspect, linecache, string',
      'def f(what):',
      '    if what is None: return linecache.getlines("/etc/passwd")',
      '    return inspect.getsource(what)',
    ],
    ['None', '[]'],
    ['f', fails('runtime_error', 'OSError')],
    ['string', fails('runtime_error', 'OSError')],
  ),
  library(
    'warnings that name a file, catalogues and languages',
    [
      'import warnings, gettext, locale',
      'def f():',
      '    return warnings.formatwarning("a", UserWarning, "/etc/passwd", 1), gettext.find("a"), gettext.translation("a", fallback=True).gettext("b")',
    ],
    ['', "('/etc/passwd:1: UserWarning: a\\n', None, 'b')"],
  ),
  library(
    'a warning that is recorded',
    [
      'import warnings',
      'def f():',
      '    with warnings.catch_warnings(record=True) as seen:',
      '        warnings.simplefilter("always")',
      '        warnings.warn("a")',
      '    return [str(each.message) for each in seen]',
    ],
    ['', "['a']"],
  ),
];

export const OWN_NEEDS: readonly Case[] = [...CODECS, ...OWN_READS];
