/**
 * Programs that look for the host, for the real clock and for entropy, by every way that the standard library has, and for what would
 * tell them which pass over them it is. Each has the same outcome in every sandbox.
 */
import { fails, type Case } from './cases.js';
import { attack } from './exhaustion-cases.js';
import { isolation, SYSCALL, UNLOCK } from './isolation-cases.js';

const FORBIDDEN = fails('forbidden');
const MISSING = fails('runtime_error', 'FileNotFoundError');
const CLOCK = fails('nondeterministic', 'clock');
const ENTROPY = fails('nondeterministic', 'random bytes');
const repr = (text: string): Case['expect'][number] => ({ repr: text });

/** `LIBRARY` is the standard library's own folder, whatever it is called. */
const LIBRARY = 'import sys, os, io, queue\nLIBRARY = sys.path[1]\nposix = sys.modules["posix"]\n';

const FILES: readonly Case[] = (
  [
    ['out of the library by its parent folders', 'open(LIBRARY + "/../../../proc/uptime").read()', FORBIDDEN],
    ['out of the library by a name that begins alike', 'open(LIBRARY + "-other/x").read()', FORBIDDEN],
    ['a file of the library', 'open(LIBRARY + "/this.py").read()', FORBIDDEN],
    ['into the library', 'open(LIBRARY + "/this.py", "w").write("x")', FORBIDDEN],
    ['at the end of a file of the library', 'open(LIBRARY + "/this.py", "ab").write(b"x")', FORBIDDEN],
    ['a new file in the library', 'os.open(LIBRARY + "/new.py", os.O_CREAT | os.O_WRONLY)', FORBIDDEN],
    ['a path of bytes', 'open(os.fsencode(LIBRARY + "/../../../proc/uptime")).read()', FORBIDDEN],
    [
      'a path that an object gives',
      'open(type("P", (), {"__fspath__": lambda self: LIBRARY + "/../../../proc/uptime"})()).read()',
      FORBIDDEN,
    ],
    ['io.FileIO', 'io.FileIO(LIBRARY + "/../../../proc/uptime").read()', FORBIDDEN],
    ['a descriptor opened as a file', 'open(4, "rb").read()', FORBIDDEN],
    ['a path below a descriptor', 'os.open("uptime", os.O_RDONLY, dir_fd=3)', FORBIDDEN],
    ['posix.open', 'posix.open("/proc/uptime", os.O_RDONLY)', FORBIDDEN],
    ['tokenize.open', 'sys.modules["tokenize"].open("/proc/uptime")', FORBIDDEN],
    [
      "a loader's get_data",
      'sys.modules["_frozen_importlib_external"].FileLoader("x", "/x").get_data("/proc/uptime")',
      FORBIDDEN,
    ],
    [
      'a loader of source',
      'sys.modules["_frozen_importlib_external"].SourceFileLoader("x", "/proc/uptime").load_module()',
      fails('runtime_error', 'FileNotFoundError'),
    ],
    ['os.scandir', 'list(os.scandir(LIBRARY + "/.."))', FORBIDDEN],
    ['posix.listdir', 'posix.listdir(LIBRARY + "/../../..")', FORBIDDEN],
    ['os.walk', 'list(os.walk(LIBRARY))', FORBIDDEN],
    ['os.truncate', 'os.truncate(LIBRARY + "/this.py", 0)', FORBIDDEN],
    ['os.rename', 'os.rename(LIBRARY + "/this.py", "/tmp/x")', FORBIDDEN],
    ['os.readlink', 'os.readlink("/proc/self")', MISSING],
    ['posix.stat', 'posix.stat("/proc/uptime")', MISSING],
    ['os.stat below a descriptor', 'os.stat("uptime", dir_fd=3)', MISSING],
    ['os.path.getmtime', 'os.path.getmtime(LIBRARY)', MISSING],
    [
      'os.path.exists',
      '[os.path.exists(each) for each in ("/proc", LIBRARY, "/proc/self/fd/4")]',
      repr('[False, False, False]'),
    ],
    ['linecache', 'sys.modules["linecache"].getlines("/proc/uptime")', repr('[]')],
    ['zipimport', 'sys.modules["zipimport"].zipimporter("/proc/uptime")', fails('runtime_error', 'ZipImportError')],
    [
      'a module beside the library',
      '(sys.path.insert(0, LIBRARY + "/../../../proc"), __import__("uptime"))',
      fails('runtime_error', 'ModuleNotFoundError'),
    ],
    ['a descriptor that is not its own', 'os.read(4, 64)', fails('runtime_error', 'OSError')],
    ['the state of a descriptor that is not its own', 'os.fstat(5)', fails('runtime_error', 'OSError')],
    [
      'the state of its standard output',
      '(lambda s: (s.st_ino, s.st_size, s.st_mtime_ns))(os.fstat(1))',
      repr('(0, 0, 0)'),
    ],
  ] as const
).map(([name, expression, expected]) => attack(`files: ${name}`, `${LIBRARY}def f(): return ${expression}`, expected));

const TIME = 'import sys, os, time, datetime, queue, timeit, random, secrets\n';

const CLOCKS: readonly Case[] = [
  'os.times()',
  'sys.modules["posix"].times()',
  'time.monotonic_ns() > 0',
  'time.perf_counter() > 0',
  'time.process_time() >= 0',
  'time.clock_gettime(time.CLOCK_MONOTONIC) > 0',
  'time.localtime() is None',
  'time.gmtime() is None',
  'time.ctime() is None',
  'time.strftime("%Y") == ""',
  'datetime.datetime.now() is None',
  'datetime.datetime.utcnow() is None',
  'datetime.datetime.today() is None',
  'datetime.date.today() is None',
  'timeit.timeit("1", number=1) >= 0',
  'timeit.default_timer() > 0',
  'queue.Queue(1).get(timeout=0.5)',
  'queue.threading.Event().wait(0.5)',
].map((expression) =>
  attack(
    `the clock: ${expression}`,
    `${TIME}def f():\n    try: return ${expression}\n    except queue.Empty: return 1`,
    CLOCK,
  ),
);

const CHANCE: readonly Case[] = [
  'sys.modules["posix"].urandom(8)',
  'random.Random.__bases__[0]().random()',
  'random.Random.__mro__[1]().getrandbits(8)',
  'random.Random.__mro__[1](5).seed()',
  'random.Random() is None',
  'random.seed()',
  'random.SystemRandom().random()',
  'secrets.token_hex(4)',
  'secrets.randbelow(3)',
].map((expression) => attack(`entropy: ${expression}`, `${TIME}def f(): return ${expression}`, ENTROPY));

const OWN: readonly Case[] = [
  attack(
    'a lock is asked for, and no clock',
    `${TIME}def f():\n    q = queue.Queue()\n    q.put(1)\n    return q.get()`,
    repr('1'),
  ),
  attack(
    'a clock that is none',
    'import time\ndef f(): return time.clock_gettime(-1)',
    fails('runtime_error', 'OSError: [Errno 22]'),
  ),
  attack('a walk that takes no step', 'import os\ndef f(): return type(os.walk("/")).__name__', FORBIDDEN),
  attack(
    'a module loaded again, and no clock',
    'import sys\ndel sys.modules["decimal"]\nimport decimal\ndef f(): return decimal.Decimal(1)',
    repr("Decimal('1')"),
  ),
  attack(
    'how it was started',
    'import sys\ndef f(): return sys.argv, sys.executable, sys._xoptions',
    repr("(['-c'], '', {})"),
  ),
  attack(
    'how the interpreter was started',
    'import sys\ndef f(): return sys.orig_argv',
    repr("['python', '-S', '-s', '-B', '-c']"),
  ),
  attack(
    'its environment before Python',
    'import sys, os\ndef f(): return sys.modules["posix"].environ, dict(os.environ), os.getenv("LD_PRELOAD")',
    repr('({}, {}, None)'),
  ),
  attack(
    'seeds in the main module',
    `import sys
def f():
    texts = [repr(each) for each in vars(sys.modules['__main__']).values() if type(each) in (int, str, dict, list)]
    return [seed for seed in ('20011', '7919', '300007', '104729', '4000037', '1299709') if any(seed in text for text in texts)]`,
    repr('[]'),
  ),
  attack(
    'the pass it is in, in the frames around it',
    `import sys
def f():
    frame = sys._getframe()
    while frame.f_code.co_name != 'execute': frame = frame.f_back
    return sorted((name, each) for name, each in frame.f_locals.items() if name in ('order', 'reverse')), sorted(frame.f_locals['state'])`,
    repr("([('order', [0])], ['calls', 'limit', 'order', 'program', 'results'])"),
  ),
  attack('a replaced main module', 'import sys\nsys.modules["__main__"] = None\ndef f(): return 1', repr('1')),
  attack('no modules', 'import sys\nsys.modules.clear()\ndef f(): return 1', repr('1')),
  attack(
    'an order of addresses',
    'def f():\n    a, b = object(), object()\n    return id(a) < id(b)',
    fails('nondeterministic'),
  ),
  attack(
    'a result nested as deep as it may be',
    'def f(n):\n    a = []\n    for _ in range(n - 1): a = [a]\n    return a',
    repr('['.repeat(900) + ']'.repeat(900)),
    ['900'],
  ),
  attack(
    'a result nested too deep',
    'def f(n):\n    a = ()\n    for _ in range(n): a = {1: (a,)}\n    return a',
    fails('runtime_error', 'RecursionError'),
    ['500', '1000', '2000'],
  ),
  attack(
    'brackets in a text',
    'def f(): return ["[(\'" * 400, {"{": "\\"["}] * 2',
    repr(`[${Array.from({ length: 2 }, () => `"${"[('".repeat(400)}", {'{': '"['}`).join(', ')}]`),
  ),
  attack('os.abort', 'import os\ndef f(): os.abort()', fails('runtime_error', 'the interpreter gave up')),
];

/** Past the policy: what is left is the kernel's filter. */
const PAST_THE_POLICY: readonly Case[] = [
  ...[
    '/proc/uptime',
    '/proc/self/status',
    '/proc/self/cmdline',
    '/proc/cpuinfo',
    '/proc/loadavg',
    '/etc/hostname',
    '/dev/urandom',
    '/sys/kernel/mm',
    '/opt/propel/runner.py',
  ].map((path) =>
    isolation(
      `finds ${path}`,
      `${UNLOCK}
def f():
    ways = (lambda p: open(p, 'rb').read(1), lambda p: sys.modules['_io'].FileIO(p), lambda p: sys.modules['posix'].open(p, 0),
            lambda p: sys.modules['posix'].listdir(p), lambda p: sys.modules['_io'].open_code(p))
    for number, way in enumerate(ways):
        for path in (${JSON.stringify(path)}, sys.path[1] + '/../../..' + ${JSON.stringify(path)}):
            if attempt(lambda: way(path)) is not None: return number, path
    return 'stopped'`,
    ),
  ),
  ...(
    [
      ['open', 2, -1, 'b"/proc/uptime\\0", 0'],
      ['openat', 257, 56, '-100, b"/proc/uptime\\0", 0'],
      ['openat2', 437, 437, '-100, b"/proc/uptime\\0", b"\\0" * 24, 24'],
      ['stat', 4, -1, 'b"/\\0", b"\\0" * 256'],
      ['newfstatat', 262, 79, '-100, b"/\\0", b"\\0" * 256, 0'],
      ['statx', 332, 291, '-100, b"/\\0", 0, 2047, b"\\0" * 256'],
      ['access', 21, -1, 'b"/\\0", 0'],
      ['faccessat', 269, 48, '-100, b"/\\0", 0'],
      ['readlinkat', 267, 78, '-100, b"/proc/self\\0", b"\\0" * 64, 64'],
      ['getcwd', 79, 17, 'b"\\0" * 64, 64'],
      ['chdir', 80, 49, 'b"/\\0"'],
      ['statfs', 137, 43, 'b"/\\0", b"\\0" * 256'],
      ['getrandom', 318, 278, 'b"\\0" * 8, 8, 0'],
      ['clock_gettime of its process', 228, 113, '2, b"\\0" * 16'],
      ['times', 100, 153, 'b"\\0" * 64'],
      ['getrusage', 98, 165, '0, b"\\0" * 256'],
      ['sysinfo', 99, 179, 'b"\\0" * 256'],
      ['uname', 63, 160, 'b"\\0" * 512'],
      ['sched_getaffinity', 204, 123, '0, 128, b"\\0" * 128'],
      ['tgkill of another', 234, 131, '1, 1, 6'],
      ['tgkill of another, by no signal', 234, 131, '2, 2, 0'],
    ] as const
  ).map(([name, x86, arm, args]) =>
    isolation(`system call ${name}`, `${SYSCALL}\ndef f(): return call(${x86}, ${arm}, ${args})`),
  ),
];

export const HOST_CASES: readonly Case[] = [...FILES, ...CLOCKS, ...CHANCE, ...OWN, ...PAST_THE_POLICY];
