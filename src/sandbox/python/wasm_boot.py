"""Boots the interpreter of the WASM sandbox up to the point where the host takes its snapshot; runs after the other sources, in __main__."""
import gc
import io
import os
import sys
import time
import warnings


def _install():
    read, write, view_of = os.read, os.write, memoryview
    # Neither warnings nor errors in finalizers are results, and printing them would open source files.
    warnings.simplefilter('ignore')
    sys.unraisablehook = lambda unraisable: None
    policy = Policy()
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

    def prepare_step():
        write_all(prepare(read_all()))

    def emit_step():
        token = read(0, 32)
        write_all(token + frame())

    def warm_up():
        # Specialises the adaptive interpreter and fills caches on the path that every program takes.
        sample = json.dumps({
            'code': 'def f(a, k):\n  s = 0\n  for i, x in enumerate(a):\n    s += x * i % k\n  return [s, sorted(a), {1, 2}]',
            'calls': ['[1, 2, 3], 7', '1', 'a=[3, 1], k=2', '1 +'], 'reverse': True, 'facts': True, 'resultBytes': 1000,
        }).encode()
        literals = json.dumps({'literals': ['[1, {"a": (2.5, None)}], x=-1', 'g(1)']}).encode()
        for _ in range(40):
            prepare(sample)
            execute()
            frame()
            prepare(literals)
        policy.active = False

    warm_up()
    return prepare_step, execute, emit_step


def _stream(descriptor):
    raw = io.FileIO(descriptor, 'w', closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw, 1 << 16), 'utf-8', 'backslashreplace', '\n')


sys.stdout = sys.__stdout__ = _stream(1)
sys.stderr = sys.__stderr__ = _stream(2)
__prepare, __execute, __emit = _install()
# Moves the addresses of everything that programs allocate, so that snapshots differ in them.
__padding = [[] for _ in range(int(os.environ.get('ADDRESS_SHIFT', '0')))]
os.environ.clear()
# Free heap inside the snapshot, so that ordinary programs do not grow the memory.
__free = bytearray(4 << 20)
del __free
gc.collect()
gc.freeze()
gc.disable()
os.write(1, b'READY')
time.time_ns()  # The host takes the snapshot inside this call: it is one that does not release the interpreter lock.
