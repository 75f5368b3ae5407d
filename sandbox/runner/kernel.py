"""What the runner asks of the Linux kernel beyond Python's standard library: process attributes and the system call filter."""
import ctypes
import errno
import os
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2

# All that a Python program needs which opens no file for writing and starts nothing. Any other call answers EPERM.
_X86_64 = dict(
    read=0, write=1, close=3, stat=4, fstat=5, lstat=6, poll=7, lseek=8, mmap=9, mprotect=10, munmap=11, brk=12,
    rt_sigaction=13, rt_sigprocmask=14, rt_sigreturn=15, pread64=17, readv=19, writev=20, access=21, select=23,
    sched_yield=24, mremap=25, madvise=28, dup=32, nanosleep=35, getpid=39, exit=60, uname=63, fcntl=72, getcwd=79,
    readlink=89, gettimeofday=96, getrlimit=97, getrusage=98, sysinfo=99, times=100, getuid=102, getgid=104, geteuid=107,
    getegid=108, getppid=110, sigaltstack=131, gettid=186, time=201, futex=202, sched_getaffinity=204, getdents64=217,
    restart_syscall=219, clock_gettime=228, clock_getres=229, clock_nanosleep=230, exit_group=231, openat=257,
    newfstatat=262, readlinkat=267, faccessat=269, pselect6=270, ppoll=271, set_robust_list=273, dup3=292, getrandom=318,
    statx=332, rseq=334, faccessat2=439,
)
_AARCH64 = dict(
    getcwd=17, dup=23, dup3=24, fcntl=25, faccessat=48, openat=56, close=57, getdents64=61, lseek=62, read=63, write=64,
    readv=65, writev=66, pread64=67, pselect6=72, ppoll=73, readlinkat=78, newfstatat=79, fstat=80, exit=93,
    exit_group=94, futex=98, set_robust_list=99, nanosleep=101, clock_gettime=113, clock_getres=114, clock_nanosleep=115,
    sched_getaffinity=123, sched_yield=124, restart_syscall=128, sigaltstack=132, rt_sigaction=134, rt_sigprocmask=135,
    rt_sigreturn=139, times=153, uname=160, getrusage=165, gettimeofday=169, getpid=172, getppid=173, getuid=174,
    geteuid=175, getgid=176, getegid=177, gettid=178, sysinfo=179, brk=214, munmap=215, mremap=216, mmap=222,
    mprotect=226, madvise=233, getrandom=278, statx=291, rseq=293, faccessat2=439,
)
_ARCHITECTURES = {'x86_64': (0xC000003E, _X86_64), 'aarch64': (0xC00000B7, _AARCH64)}

_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_KILL, _ALLOW, _REFUSE = 0x80000000, 0x7FFF0000, 0x00050000 | errno.EPERM
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET = 0, 4


def set_no_new_privileges():
    _prctl(_SET_NO_NEW_PRIVS, 1)


def set_not_dumpable():
    """Keeps other processes of the same user out of this one's memory, descriptors and environment in /proc."""
    _prctl(_SET_DUMPABLE, 0)


def seccomp_filter():
    """The allow-list as a function that puts the calling process under it, for good."""
    architecture, allowed = _ARCHITECTURES[os.uname().machine]
    numbers = sorted(allowed.values())
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
    ]
    code += [(_JUMP_IF_EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]
    code += [(_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    raw = b''.join(struct.pack('=HBBI', *instruction) for instruction in code)

    class Program(ctypes.Structure):
        _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]

    buffer = ctypes.create_string_buffer(raw, len(raw))
    program = Program(len(code), ctypes.cast(buffer, ctypes.c_void_p))

    def install(keep=buffer):
        _prctl(_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program))

    return install


def _prctl(option, *arguments):
    values = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    values += [ctypes.c_ulong(0)] * (4 - len(values))
    if _libc.prctl(ctypes.c_int(option), *values) != 0:
        raise OSError(ctypes.get_errno(), 'prctl %d' % option)
