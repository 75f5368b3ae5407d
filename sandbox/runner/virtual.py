"""A clock and entropy that are virtual, seeded and counted, so that a program that reads either is seen to, and reads what its
variant of the interpreter says rather than what the host does. A sleep takes no time."""
import os
import time


class Virtual:
    """The clock of one program, in nanoseconds since the epoch, and its random bytes."""

    def __init__(self, epoch_ms, entropy_seed):
        self.clock_reads = 0
        self.entropy_reads = 0
        self._epoch = epoch_ms * 1_000_000
        self._ticks = 0
        self._seed = entropy_seed
        self._state = entropy_seed

    def begin(self):
        """A program starts: everything from the beginning."""
        self.clock_reads = self.entropy_reads = self._ticks = 0
        self._state = self._seed
        # Python seeds it anew in every forked child.
        self._seed_random(self._seed)

    def read(self):
        self.clock_reads += 1
        self._ticks += 1000
        return self._epoch + self._ticks

    def sleep(self, nanoseconds):
        self.read()
        self._ticks += nanoseconds

    def random_bytes(self, size):
        if size < 0:
            raise ValueError('negative argument not allowed')
        self.entropy_reads += 1
        state, output = self._state, bytearray(size)
        for at in range(size):
            state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
            output[at] = state >> 24
        self._state = state
        return bytes(output)

    def install(self):
        """Takes the place of the host's. Modules that keep a function of `time` or `os` for themselves must be imported after."""
        self._install_time()
        os.urandom = lambda size, /: self.random_bytes(size)
        os.getrandom = lambda size, flags=0: self.random_bytes(size)
        self._install_datetime()
        self._install_random()

    def _install_time(self):
        read, begun = self.read, self._epoch
        seconds = lambda: read() / 1e9
        since_start = lambda: (read() - begun) / 1e9
        time.time, time.time_ns = seconds, read
        for name in ('monotonic', 'perf_counter', 'process_time', 'thread_time'):
            setattr(time, name, since_start)
            setattr(time, name + '_ns', lambda: read() - begun)
        time.clock_gettime = lambda clock, /: seconds()
        time.clock_gettime_ns = lambda clock, /: read()

        def sleep(duration, /):
            if duration < 0:
                raise ValueError('sleep length must be non-negative')
            self.sleep(int(duration * 1e9))

        time.sleep = sleep
        local, utc, text, ascii_text, formatted = time.localtime, time.gmtime, time.ctime, time.asctime, time.strftime
        time.localtime = lambda at=None, /: local(seconds() if at is None else at)
        time.gmtime = lambda at=None, /: utc(seconds() if at is None else at)
        time.ctime = lambda at=None, /: text(seconds() if at is None else at)
        time.asctime = lambda at=None, /: ascii_text(local(seconds()) if at is None else at)
        time.strftime = lambda form, at=None, /: formatted(form, local(seconds()) if at is None else at)

    def _install_datetime(self):
        import datetime

        read = self.read

        def now(cls, tz=None):
            microseconds = read() // 1000
            return cls.fromtimestamp(microseconds // 1_000_000, tz).replace(microsecond=microseconds % 1_000_000)

        def utcnow(cls):
            return now(cls)

        # Written in C, they read the host's clock. `today` asks `time.time`.
        _replace_in_type(datetime.datetime, 'now', classmethod(now))
        _replace_in_type(datetime.datetime, 'utcnow', classmethod(utcnow))

    def _install_random(self):
        import random

        plain_seed = random.Random.seed

        def seed(self_, a=None, version=2):
            if a is None:
                a = int.from_bytes(self.random_bytes(2496), 'little')
            plain_seed(self_, a, version)

        random.Random.seed = seed
        random.seed = random._inst.seed
        self._seed_random = random._inst.seed


def _replace_in_type(kind, name, value):
    """Sets an attribute of a type written in C, which refuses to be changed in the ordinary way."""
    import ctypes
    import gc

    gc.get_referents(kind.__dict__)[0][name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
