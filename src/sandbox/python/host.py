"""What `os`, `time` and `sys` tell of the host, taken out of an interpreter: the same names with the same answers in every sandbox."""
import errno
import gc
import sys

# What a program may use of the module `posix` as it is: no path, no process, no other descriptor than the standard ones.
_KEPT = frozenset('''
    _exit _path_normpath abort close closerange device_encoding fspath fstat isatty lseek read sched_yield strerror times urandom write
    DirEntry error stat_result statvfs_result terminal_size times_result uname_result
'''.split())
# What reaches the host or tells of it. Not every build has them and few raise audit events, so all are replaced.
_REFUSED = frozenset('''
    chmod dup execl execle execlp execlpe execv execve execvp execvpe fdatasync fork forkpty fpathconf fsync ftruncate cpu_count
    get_blocking get_inheritable getgid getloadavg getlogin getpid getppid getuid kill killpg link listdir mkdir nice open pathconf
    popen posix_fadvise posix_fallocate posix_spawn posix_spawnp pread preadv putenv pwrite pwritev readv remove rename replace rmdir
    scandir set_blocking set_inheritable setgid setuid spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe startfile
    symlink sysconf system truncate uname unlink unsetenv utime wait waitpid waitstatus_to_exitcode writev WIFSTOPPED WSTOPSIG
'''.split())
# What looks for a file: a program finds none, whatever the host holds.
_FINDS_NOTHING = frozenset('stat lstat readlink statvfs chdir'.split())
# Numbers and tables that say nothing of this host.
_CONSTANTS = frozenset('''
    EX_CANTCREAT EX_CONFIG EX_DATAERR EX_IOERR EX_NOHOST EX_NOINPUT EX_NOPERM EX_NOUSER EX_OK EX_OSERR EX_OSFILE EX_PROTOCOL
    EX_SOFTWARE EX_TEMPFAIL EX_UNAVAILABLE EX_USAGE F_LOCK F_OK F_TEST F_TLOCK F_ULOCK NGROUPS_MAX O_ACCMODE O_APPEND O_CLOEXEC O_CREAT
    O_DIRECTORY O_DSYNC O_EXCL O_NOCTTY O_NOFOLLOW O_NONBLOCK O_RDONLY O_RDWR O_RSYNC O_SYNC O_TRUNC O_WRONLY R_OK W_OK X_OK
    access environ getcwd getcwdb
'''.split())
# Written in Python in `os`, where the system has what they need.
_OF_SOME_SYSTEMS = 'fwalk _fwalk _walk _spawnvef P_NOWAIT P_NOWAITO P_WAIT'.split()
_CLOCKS = '''
    CLOCK_BOOTTIME CLOCK_MONOTONIC_RAW CLOCK_PROCESS_CPUTIME_ID CLOCK_TAI CLOCK_THREAD_CPUTIME_ID clock_settime clock_settime_ns
    pthread_getcpuclockid thread_time thread_time_ns tzset
'''.split()
_LOADING = ('getdlopenflags', 'setdlopenflags')
_THREADS = ('get_native_id',)


def close_host(refuse):
    """Replaces and removes. `refuse` is told what a program has asked for; it raises, unless nothing is refused now."""
    import importlib._bootstrap_external as importer
    import os
    import posix
    import time
    import types

    def refusing(name):
        original = vars(posix).get(name)

        def refused(*arguments, **named):
            refuse('host access: os.' + name)
            if original is None:
                raise NotImplementedError('os.' + name)
            return original(*arguments, **named)

        return refused

    def finds_nothing(path, *arguments, **named):
        raise FileNotFoundError(errno.ENOENT, 'No such file or directory', path)

    if importer._os is posix:
        # The import system goes on with what it had.
        importer._os = types.ModuleType('posix')
        importer._os.__dict__.update(vars(posix))
    for name in list(vars(posix)):
        if name not in _KEPT and name not in _CONSTANTS and not name.startswith('__'):
            delattr(posix, name)
            if hasattr(os, name):
                delattr(os, name)
    # What `subprocess` keeps, which other modules import and nobody can use.
    posix.WNOHANG = os.WNOHANG = 1
    posix.access = lambda path, mode, **named: False
    posix.getcwd, posix.getcwdb = lambda: '/', lambda: b'/'
    posix.environ.clear()
    os.environ.clear()
    # A generator in some versions, which says nothing before its first step.
    os.walk = refusing('walk')
    replaced = {name: refusing(name) for name in _REFUSED} | dict.fromkeys(_FINDS_NOTHING, finds_nothing)
    for name, function in replaced.items():
        setattr(posix, name, function)
    for name in (*replaced, 'access', 'getcwd', 'getcwdb'):
        setattr(os, name, getattr(posix, name))
    # Asked for by modules that see a `fork`.
    posix.register_at_fork = os.register_at_fork = lambda **named: None
    for name in ('supports_dir_fd', 'supports_effective_ids', 'supports_fd', 'supports_follow_symlinks'):
        setattr(os, name, set())
    os.__all__ = sorted(name for name in os.__all__ if hasattr(os, name))
    # A clock that is none is a wild address to some C libraries.
    clocks = (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC)
    for name in ('clock_gettime', 'clock_gettime_ns', 'clock_getres'):
        setattr(time, name, _of_clocks(clocks, getattr(time, name)))
    threads = [sys.modules[name] for name in ('_thread', 'threading') if name in sys.modules]
    for module, names in ((os, _OF_SOME_SYSTEMS), (time, _CLOCKS), (sys, _LOADING), *((each, _THREADS) for each in threads)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    # How an interpreter was started holds what tells one pass over a program from another.
    sys.argv, sys.orig_argv, sys.executable, sys._base_executable = ['-c'], ['python', '-S', '-s', '-B', '-c'], '', ''


def _of_clocks(clocks, function):
    def of_clock(clk_id, /):
        if clk_id not in clocks:
            raise OSError(22, 'Invalid argument')
        return function(clk_id)
    return of_clock


def arrange_memory(shift):
    """
    Moves the addresses of everything that programs allocate, and turns the order in which small pieces are handed out with the shift's
    parity, so that an answer that depends on addresses comes out another way in another pass. The last step of a boot.
    """
    gc.collect()
    gc.disable()
    kept = [[] for _ in range(shift)]
    # In reach of nobody, and never collected.
    kept.append(kept)
    # Of every size that the allocator tells apart, the smallest two by what is that small.
    sizes = [(16, object), (32, lambda: complex(1, len(kept)))]
    sizes += [(length + 48, lambda length=length: bytes(bytearray(length))) for length in range(0, 480, 8)]
    for size, make in sizes:
        # Enough of the smallest that a pool holds many of them.
        pieces = sorted([make() for _ in range(2048 if size <= 32 else 256 if size < 176 else 64)], key=id, reverse=shift % 2 == 0)
        # A pool of which nothing is in use would be laid out anew.
        every = max(2, 2048 // size)
        kept.append(pieces[::every])
        del pieces[::every]
        # The last one given back is the first one to be handed out.
        while pieces:
            pieces.pop(0)
    gc.freeze()
