"""A template process: one hash seed, everything imported, no program ever seen. It forks a child for each program.

The child runs three steps by their names in this module, as the embedded sandbox does: `__prepare` reads the program, `__execute`
runs it, `__emit` hands over the results. What it sends: a byte `P` and a length, then the reply of `__prepare`, before any code
of the program runs; then, from `__emit`, the request's token, whether memory ran out (`f`, else `r`), the counts of clock and
entropy (8 digits each), and the results.
"""
import array
import gc
import json
import os
import resource
import signal
import socket
import struct
import sys
import time

_RUNNER_FOLDER = '/opt/propel'
_CONTROL, _RESULT, _STATUS = 3, 4, 5
# With less than this left a program cannot go on.
_NEARLY_FULL_BYTES = 4 << 20
# Exit codes of a child whose harness could not go on; a program that uses them says the same of itself.
_DAMAGED, _NO_MEMORY = 97, 98


def _install(variant):
    # First, for other modules keep functions of `time` and `os` for themselves.
    sys.path.insert(0, _RUNNER_FOLDER)
    from virtual import Virtual

    virtual = Virtual(variant['epochMs'], variant['entropySeed'])
    virtual.install()
    import warnings

    import facts
    import kernel
    import policy as policy_module
    import runner
    import standard_library

    confine = kernel.seccomp_filter()
    kernel.set_no_new_privileges()
    kernel.set_not_dumpable()
    # Neither warnings nor errors in finalizers are results, and printing them would open source files.
    warnings.simplefilter('ignore')
    sys.unraisablehook = lambda unraisable: None
    sys.stdout = sys.__stdout__ = runner.standard_stream(1)
    sys.stderr = sys.__stderr__ = runner.standard_stream(2)
    if variant['packages']:
        sys.path += [path for path in _package_folders() if os.path.isdir(path)]
    for name in variant['packages']:
        __import__(name)
    policy = policy_module.Policy(standard_library.StandardLibrary)
    policy.preload()
    sys.path.remove(_RUNNER_FOLDER)
    policy.install()
    prepare, execute, frame = runner.make_runner(policy, facts.syntax_facts)
    runner.warm_up(policy, prepare, execute, frame)
    read, write, duplicate, view_of, begin, leave = os.read, os.write, os.dup2, memoryview, virtual.begin, os._exit
    # Kept where a program that clears this module's names, or the builtins, does not reach.
    result_descriptor, status_descriptor, read_at, nearly_full_bytes = _RESULT, _STATUS, os.pread, _NEARLY_FULL_BYTES
    damaged, no_memory, NoMemory, integer, is_kind = _DAMAGED, _NO_MEMORY, MemoryError, int, issubclass
    request = {}

    def write_all(descriptor, data):
        view = view_of(data)
        while view:
            view = view[write(descriptor, view):]

    def prepare_step():
        reply = prepare(request.pop('body'))
        write_all(result_descriptor, b'P' + struct.pack('>I', len(reply)) + reply)
        if not request['execute'] or not reply.startswith(b'{"error": null'):
            leave(0)
        begin()

    def open_channel():
        # From here on what reaches descriptor 1 is no longer output but the reply.
        duplicate(result_descriptor, 1, False)

    def emit_step():
        memory = b'f' if nearly_full() else b'r'
        write_all(1, request['token'] + memory + b'%08d%08d' % (virtual.clock_reads, virtual.entropy_reads) + frame())

    def nearly_full():
        """Whether the program has come to the end of its memory at some time."""
        peak = integer(read_at(status_descriptor, 4096, 0).partition(b'VmPeak:')[2].split()[0]) * 1024
        return peak > request['addressBytes'] - nearly_full_bytes

    def enter(descriptors, limits):
        """The child's first steps: its request, its descriptors, its limits, its confinement. Then nothing is left to give away."""
        source, output, errors, result = descriptors
        body = []
        while part := read(source, 1 << 20):
            body.append(part)
        body = b''.join(body)
        request.update(token=body[:32], body=body[32:], execute=limits['execute'])
        request['addressBytes'] = limits['addressBytes'] + variant['ownBytes']
        null = os.open('/dev/null', os.O_RDONLY)
        # Those handed over lie above the ones they are moved to.
        for number, descriptor in enumerate((null, output, errors)):
            duplicate(descriptor, number)
        duplicate(result, _RESULT)
        os.close(_CONTROL)
        duplicate(os.open('/proc/self/status', os.O_RDONLY), _STATUS)
        os.closerange(_STATUS + 1, 256)
        set_limit = resource.setrlimit
        set_limit(resource.RLIMIT_CORE, (0, 0))
        set_limit(resource.RLIMIT_FSIZE, (limits['fileBytes'],) * 2)
        set_limit(resource.RLIMIT_CPU, (limits['cpuSeconds'],) * 2)
        set_limit(resource.RLIMIT_NOFILE, (64, 64))
        set_limit(resource.RLIMIT_AS, (request['addressBytes'],) * 2)
        confine()

    class Child:
        """Ends the child whatever happened in it. A `with` statement holds on to `__exit__`, so no program can take it away."""

        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            leave(0 if kind is None else no_memory if is_kind(kind, NoMemory) else damaged)

    for name in ('virtual', 'kernel', 'syntax', 'operations', 'dependence', 'facts', 'policy', 'runner', 'standard_library', 'ctypes', '_ctypes',
                 'ctypes._endian', 'resource', 'socket', '_socket', 'array', 'selectors', 'select', 'signal'):
        if name not in standard_library.PUBLIC_MODULES:
            sys.modules.pop(name, None)
    return prepare_step, execute, open_channel, emit_step, enter, Child()


def _serve(enter, fork, wait):
    """Forks a child for each message on the control socket and reports its end; comes back only in the child, ready to run."""
    control = socket.socket(fileno=_CONTROL)
    control.send(b'ready')
    while True:
        message, ancillary, _, _ = control.recvmsg(4096, socket.CMSG_SPACE(4 * array.array('i').itemsize))
        if not message:
            os._exit(0)
        descriptors = array.array('i')
        descriptors.frombytes(ancillary[0][2])
        child = fork()
        if child == 0:
            try:
                control.detach()
                enter(list(descriptors), json.loads(message))
                return
            except BaseException:
                os._exit(_DAMAGED)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(b'P%d' % child)
        _, status, usage = wait(child, 0)
        control.send(b'X%d %d' % (status, usage.ru_maxrss))


def _package_folders():
    """Where packages are installed: by pip, and by Debian."""
    version = 'python%d.%d' % sys.version_info[:2]
    return ['/usr/local/lib/%s/site-packages' % version, '/usr/lib/python3/dist-packages']


def _own_bytes():
    """Address space that this process takes before any program."""
    with open('/proc/self/statm') as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()


def _be_first_to_go():
    """Where the container's memory runs out, the kernel ends a program and not the supervisor."""
    try:
        with open('/proc/self/oom_score_adj', 'w') as score:
            score.write('1000')
    except OSError:
        pass


_be_first_to_go()
__variant = json.loads(sys.argv[1])
__variant['ownBytes'] = 0
# Kept from before the policy replaces them.
__fork, __wait = os.fork, os.wait4
__prepare, __execute, __open, __emit, __enter, __child = _install(__variant)
# Moves the addresses of everything that programs allocate.
__padding = [[] for _ in range(__variant['addressShift'])]
os.environ.clear()
signal.signal(signal.SIGINT, signal.SIG_DFL)
# Free heap, so that a program's first allocations find pages that are there.
__free = bytearray(1 << 20)
del __free
__variant['ownBytes'] = _own_bytes()
gc.collect()
gc.freeze()
gc.disable()
_serve(__enter, __fork, __wait)

# The child, in this module's own frame: as deep as in the embedded sandbox, so that programs may recurse as far.
with __child:
    __prepare()
    __execute()
    __open()
    __emit()
