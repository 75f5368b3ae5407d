/**
 * The standard library as programs use it: all that its modules import by themselves is there, and what they read for their own ends
 * (source text, catalogues, time zones) is a file that does not exist rather than an access of the program's.
 */
import { fails, type Case, type Expectation } from './cases.js';

/** Some of the library is loaded by the program that uses it. */
const LIMITS = { timeoutMs: 20_000 } as const;

const repr = (text: string): Expectation => ({ repr: text });

/** One program, its calls and what each must give: a repr, or an outcome. */
function library(
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

const MODULES: readonly Case[] = [
  library(
    'csv',
    [
      'import csv, io',
      'def f():',
      '    out = io.StringIO()',
      '    csv.DictWriter(out, ["a", "b"]).writerow({"a": 1, "b": "x,y"})',
      '    return out.getvalue(), list(csv.DictReader(io.StringIO("a,b\\n1,\\"2,3\\""))), csv.Sniffer().sniff("a;b\\nc;d").delimiter',
    ],
    ['', "('1,\"x,y\"\\r\\n', [{'a': '1', 'b': '2,3'}], ';')"],
  ),
  library(
    'html',
    [
      'import html',
      'from html.parser import HTMLParser',
      'class P(HTMLParser):',
      '    def handle_starttag(self, tag, attrs): seen.append((tag, attrs))',
      'seen = []',
      'def f():',
      '    del seen[:]',
      '    P().feed("<p class=x>a<br>")',
      '    return html.escape("<a b=\\"c\\">"), html.unescape("&lt;&eacute;&#65;"), list(seen)',
    ],
    ['', "('&lt;a b=&quot;c&quot;&gt;', '<éA', [('p', [('class', 'x')]), ('br', [])])"],
  ),
  library(
    'uuid, of names and by chance',
    ['import uuid', 'def f(version, *name):', '    return str(getattr(uuid, "uuid%d" % version)(*name))'],
    ["3, uuid.NAMESPACE_DNS, 'python.org'", "'6fa459ea-ee8a-3ca4-894e-db77e160355e'"],
    ["5, uuid.NAMESPACE_DNS, 'python.org'", "'886313e1-3b8a-5372-9b90-0c9aee199e5d'"],
  ),
  library('uuid4', ['import uuid', 'def f(): return uuid.uuid4()'], ['', fails('nondeterministic', 'random bytes')]),
  library('uuid1', ['import uuid', 'def f(): return uuid.uuid1()'], ['', fails('nondeterministic', 'clock')]),
  library(
    'urllib.parse',
    [
      'from urllib.parse import urlparse, urlencode, quote, parse_qs, urljoin',
      'def f():',
      '    return urlparse("http://u@h:8/p;q?a=b#c").port, urlencode({"a": "é &"}), quote("a/b c"), parse_qs("a=1&a=2"), urljoin("http://a/b/c", "../d")',
    ],
    ['', "(8, 'a=%C3%A9+%26', 'a/b%20c', {'a': ['1', '2']}, 'http://a/d')"],
  ),
  library(
    'xml.etree and xml.dom',
    [
      'import xml.etree.ElementTree as ET',
      'from xml.dom.minidom import parseString',
      'def f(text):',
      '    root = ET.fromstring(text)',
      '    return [each.get("k") for each in root.iter("b")], ET.tostring(root), parseString(text).documentElement.tagName',
    ],
    ['\'<a><b k="1">x</b><b/></a>\'', "(['1', None], b'<a><b k=\"1\">x</b><b /></a>', 'a')"],
    ["'<a>'", fails('runtime_error', 'ParseError')],
  ),
  library(
    'xml.sax, which imports connections that nobody opens',
    [
      'import xml.sax, xml.sax.saxutils',
      'class H(xml.sax.ContentHandler):',
      '    def __init__(self): self.seen = []',
      '    def startElement(self, name, attributes): self.seen.append((name, dict(attributes)))',
      'def f(text):',
      '    handler = H()',
      '    xml.sax.parseString(text, handler)',
      '    return handler.seen, xml.sax.saxutils.escape("<")',
    ],
    ['\'<a b="c"/>\'', "([('a', {'b': 'c'})], '&lt;')"],
  ),
  library(
    'time zones: of names there are none',
    [
      'import datetime, zoneinfo',
      'def f(name):',
      '    return zoneinfo.ZoneInfo(name) if name else zoneinfo.available_timezones()',
    ],
    ["''", 'set()'],
    ["'Europe/Paris'", fails('runtime_error', "ZoneInfoNotFoundError: 'No time zone found with key Europe/Paris'")],
  ),
  library(
    'strptime and time zones by offset',
    [
      'from datetime import datetime, timezone, timedelta',
      'def f(text, form):',
      '    return datetime.strptime(text, form).replace(tzinfo=timezone(timedelta(hours=2))).isoformat()',
    ],
    ["'29 Feb 2024 3 PM', '%d %b %Y %I %p'", "'2024-02-29T15:00:00+02:00'"],
  ),
  library(
    'programs as data',
    [
      'import ast, tokenize, io, symtable, codeop, keyword',
      'def f(text):',
      '    tokens = [tokenize.tok_name[each.type] for each in tokenize.generate_tokens(io.StringIO(text).readline)]',
      '    return ast.literal_eval("[1, (2, {3: None})]"), ast.unparse(ast.parse(text)), tokens[:3], symtable.symtable(text, "?", "exec").get_identifiers()',
    ],
    ["'x = 1  # y'", "([1, (2, {3: None})], 'x = 1', ['NAME', 'OP', 'NUMBER'], dict_keys(['x']))"],
  ),
  library(
    'texts of settings',
    [
      'import configparser, tomllib, shlex, plistlib, json',
      'def f():',
      '    parser = configparser.ConfigParser()',
      '    parser.read_string("[a]\\nb = 1")',
      '    return parser.getint("a", "b"), tomllib.loads("a = [1, 2.5]"), shlex.split("a \\"b c\\""), plistlib.loads(plistlib.dumps({"a": 1}))',
    ],
    ['', "(1, {'a': [1, 2.5]}, ['a', 'b c'], {'a': 1})"],
  ),
  library(
    'arguments of commands',
    [
      'import argparse',
      'def f(*arguments):',
      '    parser = argparse.ArgumentParser(prog="p")',
      '    parser.add_argument("n", type=int)',
      '    parser.add_argument("--flag", action="store_true")',
      '    return parser.parse_args(arguments)',
    ],
    ["'3', '--flag'", 'Namespace(n=3, flag=True)'],
    ["'x'", fails('runtime_error', 'SystemExit: 2')],
  ),
  library(
    'paths as text, and files that are not there',
    [
      'import pathlib, fnmatch, posixpath, mimetypes',
      'def f():',
      '    path = pathlib.Path("a") / "b.tar.gz"',
      '    return path.suffixes, path.exists(), path.is_dir(), fnmatch.filter(["a.py", "b.c"], "*.py"), mimetypes.guess_type("a.png")',
    ],
    ['', "(['.tar', '.gz'], False, False, ['a.py'], ('image/png', None))"],
  ),
  library(
    'addresses, messages, states',
    [
      'import ipaddress',
      'from http import HTTPStatus',
      'from http.cookies import SimpleCookie',
      'from email.message import EmailMessage',
      'def f():',
      '    message = EmailMessage()',
      '    message["To"] = "a@b.c"',
      '    message.set_content("x")',
      '    return ipaddress.ip_network("10.0.0.0/30").num_addresses, HTTPStatus(404).phrase, SimpleCookie("a=1")["a"].value, message["To"]',
    ],
    ['', "(4, 'Not Found', '1', 'a@b.c')"],
  ),
  library(
    'bytes made smaller',
    [
      'import gzip, bz2, zlib, binascii, quopri',
      'def f():',
      '    data = b"a" * 99',
      '    return gzip.decompress(gzip.compress(data, mtime=0)) == bz2.decompress(bz2.compress(data)) == data, quopri.encodestring(b"=")',
    ],
    ['', "(True, b'=3D')"],
  ),
  library(
    'objects kept as bytes, the classes of a program among them',
    [
      'import copy, pickle, copyreg',
      'from collections import OrderedDict, namedtuple',
      'from decimal import Decimal',
      'class A:',
      '    def __init__(self, x): self.x = x',
      'P = namedtuple("P", "x y")',
      'def f():',
      '    kept = pickle.loads(pickle.dumps([A(1), P(2, 3), Decimal("1.5"), OrderedDict(a=1)["a"], range(3), len]))',
      '    return kept[0].x, kept[1:], copy.deepcopy(A([1])).x',
    ],
    ['', "(1, [P(x=2, y=3), Decimal('1.5'), 1, range(0, 3), <built-in function len>], [1])"],
  ),
  library(
    'annotations that name the classes of a program',
    [
      'import typing, inspect, sys',
      'class Node:',
      '    next: "Node"',
      'def f(a: "Node" = None, *, b=1):',
      '    return typing.get_type_hints(Node), str(inspect.signature(f)), sys.modules[__name__].f is f',
    ],
    ['', "({'next': <class 'task.Node'>}, \"(a: 'Node' = None, *, b=1)\", True)"],
  ),
  library(
    'logging what is not shown, and what is',
    [
      'import logging',
      'logging.basicConfig(level=logging.INFO)',
      'log = logging.getLogger(__name__)',
      'def f(x):',
      '    log.debug("x is %s", x)',
      '    return x, log.isEnabledFor(logging.DEBUG)',
    ],
    ['3', '(3, False)'],
  ),
  library(
    'a log, whose records hold the time',
    ['import logging', 'def f(): logging.warning("x")'],
    ['', fails('nondeterministic', 'clock')],
  ),
  library(
    'tests that nobody runs',
    [
      'import doctest, math, unittest',
      'from unittest.mock import Mock, patch',
      'class T(unittest.TestCase):',
      '    def test_f(self): self.assertEqual(f(1), 2)',
      'def f(x):',
      '    """>>> f(1)\n    2"""',
      '    with patch("math.floor", Mock(return_value=x + 1)):',
      '        return math.floor(0.5)',
      'if __name__ == "__main__":',
      '    doctest.testmod()',
      '    unittest.main()',
    ],
    ['1', '2'],
  ),
  library(
    'functions with a module of their own',
    [
      'import contextvars, sched, gettext, graphlib, builtins, gc, errno, stat, locale',
      'def f():',
      '    variable = contextvars.ContextVar("v", default=1)',
      '    return variable.get(), gettext.ngettext("a", "b", 2), builtins.max(1, 2), gc.collect() >= 0, stat.filemode(0o100644), locale.localeconv()["decimal_point"]',
    ],
    ['', "(1, 'b', 2, True, '-rw-r--r--', '.')"],
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

export const LIBRARY_CASES: readonly Case[] = [...CODECS, ...MODULES, ...OWN_READS];
