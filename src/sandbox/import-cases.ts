/**
 * Programs that want a module or a file that is closed to them by way of the library, which may have it: what counts is whose code imports
 * or reads, not what it says of itself.
 */
import { fails, type Case, type Expectation } from './cases.js';
import { attack } from './exhaustion-cases.js';

const repr = (text: string): Expectation => ({ repr: text });
const forbidden = (what: string): Expectation => fails('forbidden', `module ${what} is not on the allow-list`);
const THREADING = forbidden('threading');
const SOCKET = forbidden('socket');
const OPENED = fails('forbidden', 'file access');

const CLOSED: readonly Case[] = [
  '_testcapi',
  '_testinternalcapi',
  '_testbuffer',
  '_xxsubinterpreters',
  '_xxtestfuzz',
  '_interpreters',
  'xxsubtype',
  'test.support',
  '_ctypes',
  '_posixsubprocess',
  '_socket',
  '_thread',
  '_signal',
  '_sha256',
  '_sha2',
  '_hashlib',
  '_uuid',
  'pwd',
  'resource',
].map((name) => attack(`imports ${name}`, `import ${name}\ndef f(): return 1`, forbidden(name)));

const IMPORTERS: readonly Case[] = [
  attack('a name of the library', 'def f(): exec("import threading", {"__name__": "random"})', THREADING),
  attack(
    'a file of the library',
    'import random\ndef f():\n    path = random.Random.seed.__code__.co_filename\n    exec(compile("import threading", path, "exec"), {"__name__": "random"})',
    THREADING,
  ),
  attack(
    'code that says it is of the library',
    'import random\ndef g():\n    import threading\ndef f():\n    g.__code__ = g.__code__.replace(co_filename=random.Random.seed.__code__.co_filename, co_name="seed")\n    g()',
    THREADING,
  ),
  attack(
    'a function with the names of the library',
    'import random, types\ndef g():\n    import threading\ndef f(): types.FunctionType(g.__code__, vars(random))()',
    THREADING,
  ),
  attack(
    'code in the names of the library',
    'import random\ndef f(): exec("import threading", vars(random))',
    THREADING,
  ),
  attack(
    'code put into a function of the library',
    'import random\ndef g(*a):\n    import threading\ndef f():\n    random.Random.shuffle.__code__ = g.__code__\n    random.shuffle([])',
    THREADING,
  ),
  attack('__import__ handed on', 'def f(): return list(map(__import__, ["threading"]))', THREADING),
  attack('__import__ in part', 'import functools\ndef f(): functools.partial(__import__, "threading")()', THREADING),
  attack(
    '__import__ called by the library',
    'import functools\ndef f(): functools.reduce(__import__, ["threading"], None) if 0 else functools.cached_property(lambda s: __import__("threading")).func(0)',
    THREADING,
  ),
  attack(
    'an __import__ of its own, from within the library',
    'import builtins\nplain = builtins.__import__\ndef f():\n    builtins.__import__ = lambda *a, **k: plain("threading")\n    import colorsys\n    return colorsys',
    THREADING,
  ),
  attack('import_module', 'import sys\ndef f(): return sys.modules["importlib"].import_module("threading")', THREADING),
  attack(
    'the import system in Python',
    'import sys\ndef f(): return sys.modules["importlib"].__import__("threading")',
    THREADING,
  ),
  attack(
    'steps of the import system',
    'import sys\ndef f(): return sys.modules["importlib"]._bootstrap._find_and_load("socket", None)',
    SOCKET,
  ),
  attack(
    'a call by the import system',
    'import sys\ndef f(): sys.modules["importlib"]._bootstrap._call_with_frames_removed(__import__, "threading")',
    THREADING,
  ),
  attack(
    'finders without their first',
    'import sys\ndef f():\n    del sys.meta_path[0]\n    return sys.modules["importlib"].import_module("socket")',
    SOCKET,
  ),
  attack(
    'a native module made by hand',
    'def f():\n    loader = __builtins__.__loader__\n    return loader.create_module(loader.find_spec("posix"))',
    forbidden('posix'),
  ),
  attack('a part of a package', 'from urllib import request', forbidden('urllib.request')),
  attack(
    'a relative import in the name of a package',
    'def f(): exec("from . import request", {"__package__": "urllib", "__name__": "urllib.x"})',
    forbidden('urllib.request'),
  ),
  attack(
    'a relative import by a specification',
    'import urllib\ndef f(): exec("from .request import urlopen", {"__spec__": urllib.__spec__, "__name__": "urllib.x", "__path__": []})',
    forbidden('urllib.request'),
  ),
  attack(
    'a class by its name, unpickled',
    'import pickle\ndef f(): return pickle.loads(b"cthreading\\nThread\\n.")',
    THREADING,
  ),
  attack('the same in Python', 'import pickle\ndef f(): return pickle._loads(b"cthreading\\nThread\\n.")', THREADING),
  attack(
    'a call that is unpickled',
    'import pickle\ndef f(): return pickle.loads(b"cos\\nsystem\\n(S\'id\'\\ntR.")',
    fails('forbidden', 'host access: os.system'),
  ),
  attack(
    'a codec by the name of a module',
    'import codecs\ndef f(): return codecs.lookup("_testcapi")',
    fails('runtime_error', 'LookupError'),
  ),
  attack('a configuration of logs by names', 'import logging.config', forbidden('logging.config')),
  attack(
    'a patch by a name',
    'from unittest.mock import patch\ndef f():\n    with patch("socket.socket"): return 1',
    SOCKET,
  ),
  attack('code in a timer', 'import timeit\ndef f(): return timeit.timeit("import threading", number=1)', THREADING),
  attack(
    'code in an example',
    'import doctest\ndef f(): return doctest.DocTestRunner(verbose=False).run(doctest.DocTestParser().get_doctest(">>> import threading\\n", {}, "x", "y", 0), out=len)',
    THREADING,
  ),
  attack(
    'a connection by a module that the library has loaded',
    'import xml.sax.saxutils, urllib\ndef f(): return urllib.request.urlopen("http://127.0.0.1/")',
    fails('forbidden', 'host access: urllib.Request'),
  ),
  // What is loaded can be looked up; that it can do nothing is not the policy's work.
  attack(
    'a loaded module, looked up',
    'import sys\ndef f(): return type(sys.modules["threading"]).__name__',
    repr("'module'"),
  ),
];

const READERS: readonly Case[] = [
  attack('the name of a reader', 'def f(): exec("open(\'/etc/passwd\')", {"__name__": "linecache"})', OPENED),
  attack(
    'a function with the names of a reader',
    'import linecache, types\ndef g(): return open("/etc/passwd").read()\ndef f(): return types.FunctionType(g.__code__, vars(linecache))()',
    OPENED,
  ),
  attack('a path', 'import pathlib\ndef f(): return pathlib.Path("/etc/passwd").read_text()', OPENED),
  attack('a document', 'import xml.etree.ElementTree as E\ndef f(): return E.parse("/etc/passwd")', OPENED),
  attack('a source text', 'import tokenize\ndef f(): return tokenize.open("/etc/passwd")', OPENED),
  attack('an archive', 'import gzip\ndef f(): return gzip.open("/etc/passwd").read()', OPENED),
  attack('a log', 'import logging\ndef f(): logging.basicConfig(filename="x.log")', OPENED),
  attack(
    'arguments from a file',
    'import argparse\ndef f(): return argparse.FileType("r")("/etc/passwd")',
    fails('forbidden'),
  ),
  attack('the source of the library', 'import sys\ndef f(): return open(sys.path[0]).read()', OPENED),
  attack(
    'a way out of the library',
    'import sys\ndef f(): return open(sys.path[0] + "/../../../../proc/uptime").read()',
    OPENED,
  ),
  attack(
    'all files of a folder',
    'import pathlib\ndef f(): return list(pathlib.Path("/").iterdir())',
    fails('forbidden', 'os.listdir'),
  ),
];

export const IMPORT_CASES: readonly Case[] = [...CLOSED, ...IMPORTERS, ...READERS];
