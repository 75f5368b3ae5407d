/**
 * Programs that try to reach the host, forge results or outlive their sandbox. Each has the outcome it must get, and after
 * each the next program must find an interpreter that nobody has touched.
 */
import { fails, type Case } from './cases.js';
import { attack, TIMEOUT } from './exhaustion-cases.js';

const repr = (text: string): Case['expect'][number] => ({ repr: text });
const FORBIDDEN = fails('forbidden');
const DAMAGED = fails('runtime_error', 'the program damaged its interpreter');
/** An audit hook that is called within the runner, once the program's own code has ended. */
const HOOK = 'import sys\ndef hook(event, arguments):\n';
const HOOKED = 'sys.addaudithook(hook)\ndef f(): return 1';

const HOST: readonly Case[] = [
  attack('reads a file', 'def f(): return open("/etc/passwd").read()', FORBIDDEN),
  attack('writes a file', 'def f():\n    with open("out.txt", "w") as out: out.write("x")', FORBIDDEN),
  attack(
    'hides that it read a file',
    'def f():\n    try: return open("/etc/passwd").read()\n    except Exception: return "none"',
    FORBIDDEN,
  ),
  attack('opens a descriptor', 'import os\ndef f(): return os.open("/", 0)', FORBIDDEN),
  attack('opens through io', 'import io\ndef f(): return io.FileIO("/etc/hosts").read()', FORBIDDEN),
  attack('lists a folder', 'import os\ndef f(): return os.listdir("/")', FORBIDDEN),
  attack('removes a file', 'import os\ndef f(): os.remove("/tmp/x")', FORBIDDEN),
  attack('looks into its environment', 'import os\ndef f(): return dict(os.environ)', repr('{}')),
  attack(
    'asks whether files exist',
    'import os\ndef f(): return os.path.exists("/etc/passwd"), os.path.isdir("/"), os.access("/", 0), os.path.abspath("a")',
    repr("(False, False, False, '/a')"),
  ),
  attack('asks for its process', 'import os\ndef f(): return os.getpid()', FORBIDDEN),
  attack(
    'works with paths as text',
    'import os\ndef f(): return os.path.splitext(os.path.join("a", "b.c"))',
    repr("('a/b', '.c')"),
  ),
  attack('runs a command', 'import os\ndef f(): return os.system("id")', FORBIDDEN),
  attack('forks', 'import os\ndef f(): return os.fork()', FORBIDDEN),
  attack('imports subprocess', 'import subprocess\ndef f(): return subprocess.run(["id"])', FORBIDDEN),
  attack('imports socket', 'import socket\ndef f(): return socket.create_connection(("127.0.0.1", 80))', FORBIDDEN),
  attack(
    'fetches a page',
    'from urllib.request import urlopen\ndef f(): return urlopen("http://127.0.0.1")',
    FORBIDDEN,
  ),
  attack('loads native code', 'import ctypes\ndef f(): return 1', FORBIDDEN),
  attack('starts a thread', 'import threading\ndef f(): threading.Thread(target=print).start()', FORBIDDEN),
  attack(
    'starts a raw thread',
    'import queue\ndef f(): return queue.threading._start_new_thread(print, ())',
    fails('runtime_error'),
  ),
  attack('sets a signal handler', 'import signal\ndef f(): signal.alarm(1)', FORBIDDEN),
  attack('reads standard input', 'def f(): return input()', fails('runtime_error', 'EOFError')),
  attack('waits for standard input', 'import sys\ndef f(): return sys.stdin.read()', repr("''")),
];

const IMPORTS: readonly Case[] = [
  attack('__import__', 'def f(): return __import__("socket")', FORBIDDEN),
  attack('importlib', 'import importlib\ndef f(): return importlib.import_module("socket")', FORBIDDEN),
  attack(
    'importlib out of sys.modules',
    'import sys\ndef f(): return sys.modules["importlib"].import_module("socket")',
    FORBIDDEN,
  ),
  attack(
    'an import that is caught',
    'try:\n    import subprocess\nexcept ImportError:\n    pass\ndef f(): return 1',
    FORBIDDEN,
  ),
  attack(
    'a module deleted from sys.modules',
    'import sys\ndel sys.modules["math"]\nimport math\ndef f(): return math.floor(1.5)',
    repr('1'),
  ),
  attack(
    'a loader called directly',
    'def f(): return __builtins__.__loader__.load_module("posix").open("/etc/passwd", 0)',
    FORBIDDEN,
  ),
  attack(
    'exec with its own builtins',
    'def f():\n    exec("import socket", {"__builtins__": __builtins__})',
    FORBIDDEN,
  ),
  attack('the runner itself', 'import __main__\ndef f(): return 1', FORBIDDEN),
];

const FORGERY: readonly Case[] = [
  attack(
    'a result written to descriptor 1',
    'import os\ndef f():\n    os.write(1, b"0" * 32 + b"o00000002" + b"42")\n    return 1',
    repr('1'),
  ),
  attack(
    'a result written, then exit',
    'import os\ndef f():\n    os.write(1, b"0" * 32 + b"o0000000242")\n    os._exit(0)',
    fails('runtime_error', 'exit code 0'),
  ),
  attack('sys.exit', 'import sys\ndef f(): sys.exit(0)', fails('runtime_error', 'SystemExit')),
  attack('quit', 'def f(): quit()', fails('runtime_error')),
  attack('raise SystemExit in the module body', 'raise SystemExit(3)', fails('runtime_error', 'SystemExit: 3')),
  attack('os._exit in the module body', 'import os\nos._exit(7)', fails('runtime_error', 'exit code 7'), ['', '']),
  attack('os.abort', 'import os\ndef f(): os.abort()', fails('runtime_error')),
  attack('KeyboardInterrupt', 'def f(): raise KeyboardInterrupt', fails('runtime_error', 'KeyboardInterrupt')),
  attack('closed descriptors', 'import os\ndef f():\n    for d in range(3): os.close(d)\n    return 1', repr('1')),
  attack('a closed standard output', 'import sys\ndef f():\n    sys.stdout.close()\n    return 1', repr('1')),
  attack(
    'another emit step',
    'import sys\ndef f():\n    sys.modules["__main__"].__dict__["__emit"] = lambda: print("o00000001", flush=True)\n    return 1',
    fails('runtime_error', 'damaged'),
  ),
  attack(
    'an emit step that never ends',
    'import sys, itertools\ndef f():\n    sys.modules["__main__"].__dict__["__emit"] = lambda: sum(itertools.repeat(0))\n    return 1',
    TIMEOUT,
  ),
  attack(
    'a flood from the emit step',
    'import sys, os\ndef f():\n    sys.modules["__main__"].__dict__["__emit"] = lambda: [os.write(1, b"x" * 60000) for _ in range(10 ** 6)]\n    return 1',
    fails('runtime_error', 'damaged'),
  ),
  attack(
    'a repr that is no text',
    'class R:\n    def __repr__(self): return 5\ndef f(): return R()',
    fails('runtime_error', 'TypeError'),
  ),
  attack('a repr that lies', 'class R:\n    def __repr__(self): return "42"\ndef f(): return R()', repr('42')),
  attack(
    'a result that cannot be hashed or compared',
    'class R:\n    __hash__ = None\n    def __eq__(self, o): raise ValueError\n    def __repr__(self): return "R"\ndef f(): return R()',
    repr('R'),
  ),
  attack(
    'a repr with a lone surrogate',
    'class R:\n    def __repr__(self): return "\\udc80"\ndef f(): return R()',
    repr('\\udc80'),
  ),
  attack('a result too long', 'def f(): return list(range(10 ** 5))', fails('output_limit', 'bytes of repr')),
  attack(
    'an exception whose text raises',
    'class E(Exception):\n    def __str__(self): raise ValueError\ndef f(): raise E',
    fails('runtime_error', 'E'),
  ),
  attack(
    'an exception with a long text',
    'def f(): raise ValueError("x" * 10 ** 6)',
    fails('runtime_error', 'ValueError: xxx'),
  ),
];

const TAMPERING: readonly Case[] = [
  attack('other builtins', 'import builtins\nbuiltins.len = lambda x: 99\ndef f(): return len([])', repr('99')),
  attack(
    'another repr, len and print',
    '__builtins__.repr = __builtins__.len = __builtins__.print = lambda *a: "forged"\ndef f(): return 1',
    repr('1'),
  ),
  attack('no builtins', '__builtins__.__dict__.clear()\ndef f(): return 1', repr('1')),
  attack(
    'another str.join, json and hash',
    'import json, math, re\njson.dumps = json.loads = math.sqrt = lambda *a, **k: "forged"\nre.compile = None\ndef f(): return json.dumps([])',
    repr("'forged'"),
  ),
  attack(
    'another standard output',
    'import sys, io\nsys.stdout = sys.__stdout__ = sys.stderr = io.StringIO()\ndef f():\n    print(1)\n    return 1',
    repr('1'),
  ),
  attack(
    'frames of the runner',
    'import sys\ndef f():\n    frame = sys._getframe()\n    while frame.f_back: frame = frame.f_back\n    frame.f_globals.clear()\n    return 1',
    fails('runtime_error', 'damaged'),
  ),
  attack(
    'objects of the runner',
    'import sys\ndef f():\n    for o in sys.modules["gc"].get_objects():\n        if type(o) is dict and "results" in o: o["results"] = [b"o00000001x"] * 3\n    return 1',
    repr('1'),
  ),
  attack(
    'everything that can be cleared',
    'import sys\ndef f():\n    for o in sys.modules["gc"].get_objects():\n        if type(o) in (list, set) or (type(o) is dict and "__name__" not in o): o.clear()\n    return 1',
    fails('runtime_error'),
  ),
  attack(
    'a trace function',
    'import sys\ncount = [0]\ndef t(*a):\n    count[0] += 1\n    return t\nsys.settrace(t)\nsys.setprofile(t)\ndef f(): return 1',
    repr('1'),
  ),
  attack(
    'a monitor of every call',
    'import sys\nm = sys.monitoring\nm.use_tool_id(1, "x")\nm.register_callback(1, m.events.PY_START, lambda *a: 1 / 0)\nm.set_events(1, m.events.PY_START)\ndef f(): return 1',
    fails('runtime_error'),
  ),
  attack(
    'a limit of recursion too low',
    'import sys\ndef f():\n    sys.setrecursionlimit(12)\n    return 1',
    repr('1'),
  ),
  attack(
    'a garbage collector in the way',
    'import sys\ngc = sys.modules["gc"]\ngc.callbacks.append(lambda *a: 1 / 0)\ngc.enable()\ngc.set_threshold(1)\ndef f(): return [[] for _ in range(100)][:1]',
    repr('[[]]'),
  ),
  attack(
    'an audit hook of its own',
    'import sys\nsys.addaudithook(lambda *a: 1 / 0)\ndef f(): return 1',
    fails('runtime_error'),
  ),
  attack(
    'an error that leaves the runner',
    `${HOOK}    if event == "sys.settrace": raise ValueError\n${HOOKED}`,
    DAMAGED,
    ['', ''],
  ),
  attack(
    'an exit that leaves the runner',
    `${HOOK}    if event == "sys.setprofile": raise SystemExit(5)\n${HOOKED}`,
    DAMAGED,
  ),
  attack(
    'a lack of memory that leaves the runner',
    `${HOOK}    if event == "sys.settrace": raise MemoryError\n${HOOKED}`,
    fails('memory', 'no memory was left for the program'),
  ),
  attack(
    'a blame that is no text',
    'def f():\n    for cell in __builtins__.__import__.__closure__:\n        if type(cell.cell_contents).__name__ == "Policy": cell.cell_contents.blame = 5\n    return 1',
    DAMAGED,
  ),
  attack('finalizers kept for later', 'import weakref, atexit', FORBIDDEN),
  attack(
    'a broken code object',
    'def f():\n    g = lambda: 0\n    g.__code__ = g.__code__.replace(co_code=bytes([100, 200]) * 50, co_stacksize=0)\n    return g()',
    fails('runtime_error'),
  ),
];

export const ESCAPE_CASES: readonly Case[] = [...HOST, ...IMPORTS, ...FORGERY, ...TAMPERING];

/** Run after each attack: its result shows what an attack on the interpreter could have changed. */
export const WITNESS: Case = {
  name: 'the next program is unaffected',
  code: [
    'import sys, json, math, random, re, io, os',
    'def f(x):',
    '    print(x)',
    '    text = json.dumps({"a": [x, math.sqrt(16)]}), repr(len([1, 2])), re.sub("b", "c", "abb")',
    '    state = sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(), sys.stdout.closed, len(os.environ), __name__',
    '    return text, state, random.Random(3).random(), sum(range(10 ** 4)), type(sys.stdout).__name__, sys.modules["gc"].isenabled()',
  ].join('\n'),
  calls: ['1'],
  expect: [
    repr(
      "(('{\"a\": [1, 4.0]}', '2', 'acc'), (1000, None, None, False, 0, 'task'), 0.23796462709189137, 49995000, 'TextIOWrapper', False)",
    ),
  ],
};
