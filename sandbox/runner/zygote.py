"""
A template process: one hash seed, everything imported, no program ever seen; a child of it runs each program. The last part of its source:
the shared files stand before, in one text, as in the embedded sandbox, so that names, file names and line numbers are the same.

The child runs three steps by their names in this module: `__prepare` reads the program, `__execute` runs it, `__emit` hands over the
results. What it sends: a byte `P` and a length, then the reply of `__prepare`, before any code of the program runs; then, from
`__emit`, the request's token, whether memory ran out (`f`, else `r`), the counts of clock and entropy (8 digits each), and the
results.
"""
import os
import sys
import warnings


def _install():
    # A program finds nothing among the loaded modules that is there only for what follows.
    ordinary = set(sys.modules)
    sys.path.insert(0, '/opt/propel')
    import _thread
    import ctypes
    import resource
    import signal
    import socket
    import struct

    import kernel
    import library

    CONTROL, ARCHIVE, RESULT = 3, 4, 4
    # Exit codes of a child whose harness could not go on, or that ran out of stack; a program that uses them says the same of itself.
    DAMAGED, NO_MEMORY, NO_STACK = 97, 98, 96
    MOST_ORDER_BYTES = 4096
    sys.path.pop(0)
    host = ctypes.PyDLL(None)
    host.virtual_setup.argtypes = [ctypes.c_uint64, ctypes.c_uint32]
    host.virtual_serve.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int)]
    host.virtual_serve.restype = ctypes.c_long
    host.virtual_clock_reads.restype = host.virtual_entropy_reads.restype = ctypes.c_uint64
    begin, end, serve = host.virtual_begin, host.virtual_end, host.virtual_serve
    clock_reads, entropy_reads = host.virtual_clock_reads, host.virtual_entropy_reads
    memory_ran_out, watch_stack = host.virtual_memory_ran_out, host.virtual_watch_stack
    control = socket.socket(fileno=CONTROL)
    variant = json.loads(control.recv(MOST_ORDER_BYTES))
    host.virtual_setup(variant['epochMs'] * 1_000_000, variant['entropySeed'])
    lock, reads = _thread.allocate_lock(), clock_reads()
    lock.acquire(False)
    host.virtual_locks_read(clock_reads() - reads)
    confine, set_limit, page_bytes = kernel.seccomp_filter(), resource.setrlimit, resource.getpagesize()
    limits_of = {name: getattr(resource, 'RLIMIT_' + name) for name in ('CORE', 'FSIZE', 'CPU', 'NOFILE', 'AS')}
    kernel.set_no_new_privileges()
    kernel.set_not_dumpable()
    be_first_to_go()
    serving = library.serve(ARCHIVE)
    os.close(ARCHIVE)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for name in set(sys.modules) - ordinary:
        del sys.modules[name]

    # Neither warnings nor errors in finalizers are results, and printing them would open source files.
    warnings.simplefilter('ignore')
    sys.unraisablehook = lambda unraisable: None
    policy = Policy(StandardLibrary)
    policy.preload()
    if variant['packages']:
        sys.path += variant['packageFolders']
    for name in variant['packages']:
        __import__(name)
    read, write, duplicate, close, open_, closerange = os.read, os.write, os.dup2, os.close, os.open, os.closerange
    pack, loads, view_of, leave = struct.pack, json.loads, memoryview, os._exit
    # Kept where a program that clears this module's names, or the builtins, does not reach.
    NoMemory, is_kind, OutOfReach, null = MemoryError, issubclass, BaseException, os.open('/dev/null', os.O_RDONLY)
    policy.install(serving)
    prepare, execute, frame = make_runner(policy, syntax_facts)
    warm_up(policy, prepare, execute, frame)
    order, descriptors, as_list, own_bytes = ctypes.create_string_buffer(MOST_ORDER_BYTES), (ctypes.c_int * 4)(), list, [0]
    request = {}

    def write_all(descriptor, data):
        view = view_of(data)
        while view:
            view = view[write(descriptor, view):]

    def prepare_step():
        reply = prepare(request.pop('body'))
        write_all(RESULT, b'P' + pack('>I', len(reply)) + reply)
        if not request['execute'] or not reply.startswith(b'{"error": null'):
            leave(0)
        begin()

    def open_channel():
        # From here on what reaches descriptor 1 is no longer output but the reply.
        end()
        duplicate(RESULT, 1, False)

    def emit_step():
        memory = b'f' if memory_ran_out() else b'r'
        write_all(1, request['token'] + memory + b'%08d%08d' % (clock_reads(), entropy_reads()) + frame())

    def serve_step():
        """Comes back only in a child: its request read, its descriptors, its limits, its confinement. Nothing is left to give away."""
        control.send(b'ready')
        length = serve(order, MOST_ORDER_BYTES, descriptors)
        try:
            enter(loads(order[:length]), *descriptors)
        except OutOfReach:
            leave(DAMAGED)

    def enter(limits, source, output, errors, result):
        body = []
        while part := read(source, 1 << 20):
            body.append(part)
        body = b''.join(body)
        request.update(token=body[:32], body=body[32:], execute=limits['execute'])
        # Those handed over lie above the ones they are moved to.
        for number, descriptor in enumerate((null, output, errors)):
            duplicate(descriptor, number)
        duplicate(result, RESULT)
        close(CONTROL)
        closerange(RESULT + 1, 256)
        address_bytes = limits['addressBytes'] + own_bytes[0]
        for name, most in (('CORE', 0), ('FSIZE', limits['fileBytes']), ('CPU', limits['cpuSeconds']), ('NOFILE', 64), ('AS', address_bytes)):
            set_limit(limits_of[name], (most, most))
        watch_stack(NO_STACK)
        confine()

    class Child:
        """Ends the child whatever happened in it. A `with` statement holds on to `__exit__`, so no program can take it away."""

        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            leave(0 if kind is None else NO_MEMORY if is_kind(kind, NoMemory) else DAMAGED)

    statm = open_('/proc/self/statm', os.O_RDONLY)

    def arrange():
        arrange_memory(variant['addressShift'])
        # Address space that this process takes before any program.
        own_bytes[0] = int(read(statm, 256).split()[0]) * page_bytes
        close(statm)

    return prepare_step, execute, open_channel, emit_step, serve_step, arrange, Child()


def be_first_to_go():
    """Where the container's memory runs out, the kernel ends a program and not the supervisor."""
    try:
        with open('/proc/self/oom_score_adj', 'w') as score:
            score.write('1000')
    except OSError:
        pass


sys.stdout = sys.__stdout__ = standard_stream(1)
sys.stderr = sys.__stderr__ = standard_stream(2)
__prepare, __execute, __open, __emit, __serve, __arrange, __child = _install()
# Free heap, so that a program's first allocations find pages that are there.
__free = bytearray(1 << 20)
del __free
__arrange()
# Its variant's seeds are in reach of it.
del __arrange, be_first_to_go
__serve()

# The child, in this module's own frame: as deep as in the embedded sandbox, so that programs may recurse as far.
with __child:
    __prepare()
    __execute()
    __open()
    __emit()
