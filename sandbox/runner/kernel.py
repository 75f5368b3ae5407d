"""What the runner asks of the Linux kernel beyond Python's standard library: process attributes and the system call filter."""
import ctypes
import errno
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2

# All that a Python program needs which opens nothing and starts nothing. No call that takes a path is among them, so there are no files,
# whatever they are called; nor one that reads a clock, random bytes or what the host is. Any other call answers EPERM.
_X86_64 = dict(
    read=0, write=1, close=3, fstat=5, lseek=8, mmap=9, mprotect=10, munmap=11, brk=12, rt_sigaction=13, rt_sigprocmask=14,
    rt_sigreturn=15, readv=19, writev=20, sched_yield=24, mremap=25, madvise=28, dup=32, getpid=39, exit=60,
    sigaltstack=131, gettid=186, futex=202, restart_syscall=219, exit_group=231, set_robust_list=273, dup3=292, rseq=334,
)
_AARCH64 = dict(
    dup=23, dup3=24, close=57, lseek=62, read=63, write=64, readv=65, writev=66, fstat=80, exit=93, exit_group=94, futex=98,
    set_robust_list=99, sched_yield=124, restart_syscall=128, sigaltstack=132, rt_sigaction=134, rt_sigprocmask=135,
    rt_sigreturn=139, getpid=172, gettid=178, brk=214, munmap=215, mremap=216, mmap=222, mprotect=226, madvise=233, rseq=293,
)
# Signals of a process to itself, and of those the one that `abort` ends with.
_TGKILL = {'x86_64': 234, 'aarch64': 131}
_SIGABRT = 6
_ARCHITECTURES = {'x86_64': (0xC000003E, _X86_64), 'aarch64': (0xC00000B7, _AARCH64)}

_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_KILL, _ALLOW, _REFUSE = 0x80000000, 0x7FFF0000, 0x00050000 | errno.EPERM
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET, _ARGUMENT_BYTES = 0, 4, 16, 8


def set_no_new_privileges():
    _prctl(_SET_NO_NEW_PRIVS, 1)


def set_not_dumpable():
    """Keeps other processes of the same user out of this one's memory, descriptors and environment in /proc."""
    _prctl(_SET_DUMPABLE, 0)


class _Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]


def seccomp_filter():
    """The allow-list as a function that puts the calling process under it, for good."""
    machine = os.uname().machine
    architecture, allowed = _ARCHITECTURES[machine]
    numbers = sorted(allowed.values())
    before = _packed([
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
        # To the last instruction, past those of `abort`.
        *((_JUMP_IF_EQUAL, len(numbers) - at + 5, 0, number) for at, number in enumerate(numbers)),
        (_JUMP_IF_EQUAL, 0, 4, _TGKILL[machine]),
        (_LOAD, 0, 0, _ARGUMENTS_OFFSET),
    ])
    after = _packed([
        (_LOAD, 0, 0, _ARGUMENTS_OFFSET + 2 * _ARGUMENT_BYTES),
        (_JUMP_IF_EQUAL, 1, 0, _SIGABRT),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ])

    def install(own_id=os.getpid):
        # Under no other number than its own may it send a signal.
        own = _packed([(_JUMP_IF_EQUAL, 0, 2, own_id())])
        raw = before + own + after
        buffer = ctypes.create_string_buffer(raw, len(raw))
        program = _Program(len(raw) // 8, ctypes.cast(buffer, ctypes.c_void_p))
        _prctl(_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program))

    return install


def _packed(instructions):
    return b''.join(struct.pack('=HBBI', *instruction) for instruction in instructions)


def _prctl(option, *arguments):
    values = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    values += [ctypes.c_ulong(0)] * (4 - len(values))
    if _libc.prctl(ctypes.c_int(option), *values) != 0:
        raise OSError(ctypes.get_errno(), 'prctl %d' % option)
