/**
 * Programs that first do away with the policy of `policy.py`, as an attacker would, and then try what it forbids: what stands behind it
 * must hold alone. Each says `stopped` where it got nowhere, so that the same answer is right in every sandbox.
 */
import type { Case } from './cases.js';

const LIMITS = { timeoutMs: 20_000, memoryMiB: 128, outputBytes: 1 << 20, resultBytes: 1 << 16 } as const;

/** `unlocked` is whether the policy was found and ended. */
export const UNLOCK = `
import sys, os
def unlock():
    found = False
    for cell in __builtins__.__import__.__closure__ or ():
        if type(cell.cell_contents).__name__ == 'Policy':
            cell.cell_contents.active = False
            found = True
    return found
unlocked = unlock()
def attempt(action):
    try:
        return action()
    except (OSError, ImportError, AttributeError, ValueError, RuntimeError):
        return None
`;

/** Adds `call`: a system call by its number, past every function of Python. */
export const SYSCALL = `${UNLOCK}
def call(number, number_arm, *arguments):
    def act():
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        arm = 'aarch64' in getattr(sys.implementation, '_multiarch', '')
        values = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
        return libc.syscall(ctypes.c_long(number_arm if arm else number), *values)
    result = attempt(act)
    return 'stopped' if result is None or result == -1 else 'reached'
`;

export function isolation(name: string, code: string): Case {
  return { name, code, calls: [''], expect: [{ repr: "'stopped'" }], limits: LIMITS };
}

/** Name, number on x86-64, number on AArch64 (−1 where it has none), arguments as Python. */
const SYSTEM_CALLS: readonly (readonly [string, number, number, string])[] = [
  ['clone (fork)', 56, 220, '17, 0, 0, 0, 0'],
  ['clone with a new user namespace', 56, 220, '0x10000011, 0, 0, 0, 0'],
  ['fork', 57, -1, ''],
  ['vfork', 58, -1, ''],
  ['clone3', 435, 435, '0, 0'],
  ['execve', 59, 221, 'b"/usr/bin/python3\\0", 0, 0'],
  ['execveat', 322, 281, '-100, b"/usr/bin/python3\\0", 0, 0, 0'],
  ['kill of everything', 62, 129, '-1, 9'],
  ['kill of the supervisor', 62, 129, '1, 9'],
  ['kill of an interpreter', 62, 129, '2, 9'],
  ['SIGSTOP of every process', 62, 129, '-1, 19'],
  ['tgkill', 234, 131, '1, 1, 19'],
  ['rt_sigqueueinfo', 129, 138, '1, 9, 0'],
  ['pidfd_open', 434, 434, '1, 0'],
  ['ptrace of the supervisor', 101, 117, '16, 1, 0, 0'],
  ['process_vm_readv', 310, 270, '1, 0, 0, 0, 0, 0'],
  ['process_vm_writev', 311, 271, '1, 0, 0, 0, 0, 0'],
  ['kcmp', 312, 272, '1, 1, 0, 0, 0'],
  ['unshare of user and mount namespaces', 272, 97, '0x10020000'],
  ['setns', 308, 268, '0, 0'],
  ['mount', 165, 40, '0, b"/tmp\\0", b"tmpfs\\0", 0, 0'],
  ['umount2', 166, 39, 'b"/proc\\0", 2'],
  ['pivot_root', 155, 41, 'b"/\\0", b"/\\0"'],
  ['chroot', 161, 51, 'b"/tmp\\0"'],
  ['open_by_handle_at', 304, 265, '-100, 0, 0'],
  ['name_to_handle_at', 303, 264, '-100, b"/\\0", 0, 0, 0'],
  ['socket AF_INET', 41, 198, '2, 1, 0'],
  ['socket AF_UNIX', 41, 198, '1, 1, 0'],
  ['socket AF_NETLINK', 41, 198, '16, 3, 0'],
  ['socket AF_PACKET', 41, 198, '17, 3, 0'],
  ['socket AF_ALG', 41, 198, '38, 5, 0'],
  ['socketpair', 53, 199, '1, 1, 0, b"\\0" * 8'],
  ['shmget', 29, 194, '0x1234, 4096, 0o1666'],
  ['semget', 64, 190, '0x1234, 1, 0o1666'],
  ['msgget', 68, 186, '0x1234, 0o1666'],
  ['mq_open', 240, 180, 'b"queue\\0", 0o102, 0o666, 0'],
  ['memfd_create', 319, 279, 'b"left\\0", 0'],
  ['add_key', 248, 217, 'b"user\\0", b"left\\0", b"x", 1, -3'],
  ['keyctl', 250, 219, '0, -3, 1'],
  ['bpf', 321, 280, '0, 0, 0'],
  ['perf_event_open', 298, 241, '0, 0, -1, -1, 0'],
  ['io_uring_setup', 425, 425, '8, b"\\0" * 120'],
  ['userfaultfd', 323, 282, '1'],
  ['fanotify_init', 300, 262, '0, 0'],
  ['inotify_init1', 294, 26, '0'],
  ['eventfd2', 290, 19, '0, 0'],
  ['pipe2', 293, 59, 'b"\\0" * 8, 0'],
  ['prctl: dumpable again', 157, 167, '4, 1, 0, 0, 0'],
  ['prctl: a name of its own', 157, 167, '15, b"supervisor\\0", 0, 0, 0'],
  ['another seccomp filter', 317, 277, '1, 0, 0'],
  ['personality', 135, 92, '0x0040000'],
  ['setrlimit: more memory', 160, 164, '9, b"\\xff" * 16'],
  ['prlimit64: more memory', 302, 261, '0, 9, b"\\xff" * 16, 0'],
  ['setuid', 105, 146, '0'],
  ['setresuid', 117, 147, '0, 0, 0'],
  ['setgroups', 116, 159, '0, 0'],
  ['capset', 126, 91, 'b"\\0" * 8, b"\\xff" * 24'],
  ['setsid', 112, 157, ''],
  ['setpriority', 141, 140, '0, 0, 19'],
  ['sched_setscheduler', 144, 119, '0, 3, b"\\0" * 4'],
  ['sched_setaffinity', 203, 122, '0, 8, b"\\x01" + b"\\0" * 7'],
  ['alarm', 37, -1, '100'],
  ['setitimer', 38, 103, '0, b"\\0" * 32, 0'],
  ['timer_create', 222, 107, '0, 0, b"\\0" * 8'],
  ['clock_settime', 227, 112, '0, b"\\0" * 16'],
  ['ioctl: pushed into a terminal', 16, 29, '0, 0x5412, b"x"'],
  ['mkdirat', 258, 34, '-100, b"/tmp/left\\0", 0o777'],
  ['symlinkat', 266, 36, 'b"/\\0", -100, b"/tmp/left\\0"'],
  ['mknodat', 259, 33, '-100, b"/tmp/left\\0", 0o10666, 0'],
  ['unlinkat', 263, 35, '-100, b"/opt/propel/policy.py\\0", 0'],
  ['fchmodat', 268, 53, '-100, b"/opt/propel/policy.py\\0", 0o777'],
  ['ftruncate', 77, 46, '1, 0'],
  ['init_module', 175, 105, '0, 0, b"\\0"'],
  ['kexec_load', 246, 104, '0, 0, 0, 0'],
  ['reboot', 169, 142, '0xfee1dead, 672274793, 0, 0'],
  ['swapon', 167, 224, 'b"/tmp\\0", 0'],
  ['quotactl', 179, 60, '0, 0, 0, 0'],
  ['syslog', 103, 116, '3, b"\\0" * 64, 64'],
];

const FILES: readonly Case[] = [
  isolation(
    'a file written anywhere',
    `${UNLOCK}
def f():
    for folder in ('/tmp', '/dev/shm', '/var/tmp', '/run', '/', '/opt/propel', '/dev', '/proc', '/sys', '/home', '.'):
        if attempt(lambda: open(folder + '/left', 'wb').write(b'x')) is not None: return folder
    return 'stopped'`,
  ),
  ...[
    '/proc/1/environ',
    '/proc/1/mem',
    '/proc/1/maps',
    '/proc/1/fd/0',
    '/proc/1/root/etc/passwd',
    '/proc/1/cwd/etc/passwd',
    '/proc/kcore',
    '/proc/kmsg',
    '/dev/mem',
    '/dev/kmsg',
    '/dev/sda',
    '/dev/vda',
    '/etc/shadow',
    '/var/run/docker.sock',
    '/run/containerd/containerd.sock',
    '/sys/kernel/security/lockdown',
    '/root/.ssh/id_rsa',
  ].map((path) =>
    isolation(
      `reads ${path}`,
      `${UNLOCK}
def f():
    return 'stopped' if attempt(lambda: open(${JSON.stringify(path)}, 'rb').read(64)) in (None, b'') else 'reached'`,
    ),
  ),
  ...[
    '/proc/1/mem',
    '/proc/1/fd/1',
    '/proc/1/oom_score_adj',
    '/proc/sysrq-trigger',
    '/proc/sys/kernel/core_pattern',
    '/sys/fs/cgroup/memory/memory.limit_in_bytes',
    '/sys/fs/cgroup/memory.max',
    '/dev/console',
    '/dev/tty',
    '/opt/propel/policy.py',
    '/etc/passwd',
  ].map((path) =>
    isolation(
      `writes ${path}`,
      `${UNLOCK}
def f():
    return 'stopped' if attempt(lambda: os.write(os.open(${JSON.stringify(path)}, os.O_WRONLY), b'1')) is None else 'reached'`,
    ),
  ),
  isolation(
    "the memory of the interpreter's other processes",
    `${UNLOCK}
def f():
    me = attempt(lambda: os.readlink('/proc/self'))
    for name in attempt(lambda: sys.modules['posix'].listdir('/proc')) or []:
        if not name.isdigit(): continue
        status = attempt(lambda: open('/proc/' + name + '/status').read())
        if status is None or 'PPid:\\t1\\n' not in status and 'Pid:\\t1\\n' not in status: continue
        for file in ('mem', 'environ', 'maps'):
            if attempt(lambda: open('/proc/' + name + '/' + file, 'rb')) is not None: return name + file
    return 'stopped'`,
  ),
];

const CHANNELS: readonly Case[] = [
  {
    name: 'a reply written to every descriptor',
    code: `${UNLOCK}
def f():
    for descriptor in range(64):
        for text in (b'P\\0\\0\\0\\x02{}', b'\\0\\0\\0\\x02{}', b'0' * 32 + b'r' + b'0' * 16 + b'o0000000242'):
            attempt(lambda: os.write(descriptor, text))
    return 7`,
    calls: [''],
    expect: [{ repr: '7' }],
    limits: LIMITS,
  },
  {
    name: 'an int that lies about itself',
    code: 'class E(int):\n    def __repr__(self): return "42"\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\ndef f(): return E(1)',
    calls: [''],
    expect: [{ repr: '42' }],
    limits: LIMITS,
  },
  isolation(
    'an expected output in the frames and objects around it',
    `${UNLOCK}
def f():
    frame, names = sys._getframe(), set()
    while frame:
        names |= set(map(str, frame.f_locals)) | set(map(str, frame.f_globals))
        frame = frame.f_back
    for found in sys.modules['gc'].get_objects():
        if type(found) is dict: names |= {key for key in found if type(key) is str and len(key) < 20}
    return 'stopped' if names.isdisjoint({'expected', 'gold', 'target', 'label', 'solution'}) else 'reached'`,
  ),
  isolation(
    'the policy ended: no thread',
    `${UNLOCK}
def f():
    def act():
        import _thread
        _thread.start_new_thread(lambda: None, ())
        return True
    return 'stopped' if attempt(act) is None else 'reached'`,
  ),
];

export const ISOLATION_CASES: readonly Case[] = [
  {
    name: 'the policy can be ended from within',
    code: `${UNLOCK}\ndef f(): return unlocked`,
    calls: [''],
    expect: [{ repr: 'True' }],
    limits: LIMITS,
  },
  ...SYSTEM_CALLS.map(([name, x86, arm, args]) =>
    isolation(
      `system call ${name}`,
      `${SYSCALL}\ndef f(): return call(${x86}, ${arm}${args === '' ? '' : `, ${args}`})`,
    ),
  ),
  ...FILES,
  ...CHANNELS,
];
