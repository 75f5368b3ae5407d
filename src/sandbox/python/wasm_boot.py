"""Boots the interpreter of the WASM sandbox up to the point where the host takes its snapshot; runs after the other sources, in __main__."""
import os
import sys
import time
import warnings


# Exit codes of an interpreter whose runner could not go on; a program that uses them says the same of itself.
_DAMAGED, _NO_MEMORY = 97, 98


def _install():
    # Kept where a program that clears this module's names, or the builtins, does not reach.
    read, write, view_of, leave, is_kind, NoMemory = os.read, os.write, memoryview, os._exit, issubclass, MemoryError
    # Neither warnings nor errors in finalizers are results, and printing them would open source files.
    warnings.simplefilter('ignore')
    sys.unraisablehook = lambda unraisable: None
    policy = Policy(StandardLibrary)
    policy.preload()
    policy.install()
    prepare, execute, frame = make_runner(policy, syntax_facts)

    def read_all():
        parts = []
        while True:
            part = read(0, 65536)
            if not part:
                return b''.join(parts)
            parts.append(part)

    def write_all(data):
        view = view_of(data)
        while view:
            view = view[write(1, view):]

    class Step:
        """Ends the interpreter with what the host can tell where an error leaves the runner. A `with` statement holds on to `__exit__`."""

        def __enter__(self):
            return self

        def __exit__(self, kind, error, traceback):
            if kind is not None:
                leave(_NO_MEMORY if is_kind(kind, NoMemory) else _DAMAGED)

    def prepare_step():
        write_all(prepare(read_all()))

    def emit_step():
        token = read(0, 32)
        write_all(token + frame())

    warm_up(policy, prepare, execute, frame)
    return prepare_step, execute, emit_step, Step()


sys.stdout = sys.__stdout__ = standard_stream(1)
sys.stderr = sys.__stderr__ = standard_stream(2)
# The policy clears the environment.
__shift = int(os.environ.get('ADDRESS_SHIFT', '0'))
__prepare, __execute, __emit, __step = _install()
# Free heap inside the snapshot, so that ordinary programs do not grow the memory.
__free = bytearray(4 << 20)
del __free
arrange_memory(__shift)
del __shift
os.write(1, b'READY')
time.time_ns()  # The host takes the snapshot inside this call: it is one that does not release the interpreter lock.
