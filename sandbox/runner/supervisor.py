"""PID 1 of a sandbox container. Takes requests on standard input, gives replies on standard output, runs no untrusted code itself.

A frame is 4 bytes of length, big-endian, then a JSON header, a newline and a body. Requests: `run` (its body goes to the child
unread) and `ping`. Replies: `hello` once, then `start` and `done` for each run, `pong`, and `bye` before it gives up by itself.
The body of `done` is what the child prepared before any code of the program ran, then the framed results.
"""
import array
import fcntl
import json
import os
import re
import select
import signal
import socket
import struct
import sys
import time

import library
from kernel import seccomp_filter, set_no_new_privileges, set_not_dumpable

PROTOCOL = 1
# Some engines leave other bytes on the stream first.
PREAMBLE = b'\n--propel-sandbox--\n'
MAX_PREAMBLE_BYTES = 1 << 16
MAX_REQUEST_BYTES = 32 << 20
MAX_PREPARED_BYTES = 64 << 20
# The host asks for a sign of life far more often.
IDLE_SECONDS = 600
PREPARE_SECONDS = 10
# A program that waits rather than computes gets so many times its limit on the wall.
WALL_FACTOR = 4
TOKEN_CHARACTERS = 32
# `P` and a length of 4 bytes.
PREPARED_HEAD = 5
CHUNK = 1 << 16

EXIT_NO_STACK, EXIT_DAMAGED, EXIT_NO_MEMORY = 96, 97, 98
FOLDER = os.path.dirname(os.path.abspath(__file__))
# In the order of the embedded sandbox, which has a last part of its own.
SOURCES = (
    'syntax.py', 'operations.py', 'dependence.py', 'facts.py', 'host.py', 'standard_library.py', 'policy.py', 'runner.py', 'zygote.py',
)
# They are modules for whoever reads them alone.
OWN_IMPORT = re.compile(r'^from (?:syntax|operations|dependence) import .*\n', re.MULTILINE)


class Zygote:
    """A template process of one hash seed, and the socket on which it takes orders."""

    def __init__(self, variant, source, archive):
        self.socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(other.fileno(), 3)
            os.dup2(archive, 4)
            # Standard streams of the kind that programs get: they remember whether they can seek.
            for number, end in enumerate(os.pipe()):
                os.dup2(end, number)
            os.closerange(5, 256)
            environment = {
                'PYTHONHASHSEED': str(variant['hashSeed']),
                'PYTHONUTF8': '1',
                'OPENBLAS_NUM_THREADS': '1',
                'LD_PRELOAD': os.path.join(FOLDER, 'virtual.so'),
            }
            os.execve(sys.executable, [sys.executable, '-S', '-s', '-B', '-c', source], environment)
        other.close()
        self.socket.settimeout(60)
        self.socket.send(json.dumps(variant).encode())
        if self.socket.recv(16) != b'ready':
            raise RuntimeError('a template process did not start')
        self.socket.settimeout(None)


class Supervisor:
    def __init__(self):
        self.zygotes = {}
        self.variants = self.archive = None
        self.source = OWN_IMPORT.sub('', '\n'.join(read_text(os.path.join(FOLDER, name)) for name in SOURCES))

    def serve(self):
        skip_preamble()
        kind, header, _ = receive()
        if kind != 'setup':
            give_up('the first request must be setup')
        packages = library.package_folders() if any(variant['packages'] for variant in header['variants']) else []
        self.variants = [{**variant, 'packageFolders': packages} for variant in header['variants']]
        # Above those that a template process is started with.
        self.archive = fcntl.fcntl(library.pack([library.library_folder(), *packages]), fcntl.F_DUPFD_CLOEXEC, 100)
        for index in range(header['ready']):
            self.zygote(index)
        send('hello', {'protocol': PROTOCOL, 'python': sys.version.split()[0], 'checks': confinement()})
        while True:
            kind, header, body = receive()
            if kind == 'ping':
                send('pong', {'id': header['id'], 'rssKiB': own_rss(), 'descriptors': len(os.listdir('/proc/self/fd')) - 1})
            elif kind == 'run':
                zygote = self.zygote(header['variant'])
                send('start', {'id': header['id']})
                run = Run(zygote, header, body)
                run.follow()
                left_over = self.sweep()
                end, parts = run.finish()
                if run.zygote_lost:
                    self.replace(header['variant'])
                send('done', {'id': header['id'], 'leftOver': left_over, **end}, *parts)
            else:
                give_up('unknown request')

    def zygote(self, index):
        if index not in self.zygotes:
            self.zygotes[index] = Zygote(self.variants[index], self.source, self.archive)
        return self.zygotes[index]

    def replace(self, index):
        zygote = self.zygotes.pop(index)
        kill(zygote.pid)
        zygote.socket.close()
        self.sweep()

    def sweep(self):
        """Kills everything in this container but the supervisor and its zygotes; returns how many were found."""
        own = {os.getpid(), *(zygote.pid for zygote in self.zygotes.values())}
        found = set()
        for attempt in range(300):
            others = [int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) not in own]
            alive = [pid for pid in others if kill(pid)]
            if not alive:
                return len(found)
            found.update(alive)
            reap()
            if attempt > 20:
                time.sleep(0.002)
        give_up('processes of a program could not be ended')


class Run:
    """One program in one child: its pipes, its time, its end."""

    def __init__(self, zygote, header, body):
        self.zygote, self.header = zygote, header
        self.token = os.urandom(TOKEN_CHARACTERS // 2).hex().encode()
        self.request = [memoryview(self.token), body]
        self.began = time.monotonic()
        self.seconds = header['timeoutMs'] / 1000
        self.deadline = self.began + PREPARE_SECONDS
        self.prepared_at = self.prepared_cpu = None
        self.milliseconds = 0.0
        self.pid = self.status = None
        self.stopped = None
        self.zygote_lost = False
        self.output_bytes = 0
        self.result = bytearray()
        self.result_limit = MAX_PREPARED_BYTES + header['replyBytes']
        self.oom_kills = oom_kills()

        source, self.request_pipe = os.pipe()
        self.output_pipe, output = os.pipe()
        self.error_pipe, errors = os.pipe()
        self.result_pipe, result = os.pipe()
        handed_over = (source, output, errors, result)
        limits = {
            'addressBytes': header['memoryMiB'] << 20,
            'cpuSeconds': int(PREPARE_SECONDS + self.seconds) + 2,
            'fileBytes': header['fileBytes'],
            'execute': header['execute'],
        }
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', handed_over))]
        try:
            zygote.socket.sendmsg([json.dumps(limits).encode()], rights)
        except OSError:
            self.lose_zygote()
        for descriptor in handed_over:
            os.close(descriptor)
        self.open = {self.output_pipe, self.error_pipe, self.result_pipe}
        for descriptor in (self.request_pipe, *self.open):
            os.set_blocking(descriptor, False)

    def follow(self):
        """Until the child has ended, whichever way."""
        poll = select.poll()
        # No events: only whether the host has gone.
        poll.register(0, 0)
        poll.register(self.zygote.socket, select.POLLIN)
        poll.register(self.request_pipe, select.POLLOUT)
        for descriptor in self.open:
            poll.register(descriptor, select.POLLIN)
        while self.status is None:
            left = self.deadline - time.monotonic()
            if left <= 0:
                left = self.past_deadline()
                if self.status is not None:
                    break
            for descriptor, event in poll.poll(max(left, 0.0005) * 1000):
                if descriptor == 0:
                    os._exit(0)
                elif descriptor == self.zygote.socket.fileno():
                    self.hear_zygote()
                elif descriptor == self.request_pipe:
                    self.feed(poll)
                else:
                    self.drain(descriptor, poll)
        if self.request_pipe is not None:
            os.close(self.request_pipe)
        if self.prepared_at is not None:
            self.milliseconds = (time.monotonic() - self.prepared_at) * 1000

    def past_deadline(self):
        """Stops a child that has had its time, on its own clock; gives one that has not a further deadline. Seconds to wait."""
        now = time.monotonic()
        if self.stopped is not None:
            # Told to die a second ago: its zygote does not answer.
            self.lose_zygote()
            return 0
        if self.prepared_at is not None:
            used = self.cpu_seconds() - self.prepared_cpu
            wall = now - self.prepared_at
            if used < self.seconds and wall < WALL_FACTOR * self.seconds:
                left = min(self.seconds - used, WALL_FACTOR * self.seconds - wall)
                self.deadline = now + max(left, 0.001)
                return left
        self.stop('timeout')
        return 1

    def stop(self, why):
        self.stopped = why
        self.deadline = time.monotonic() + 1
        if self.pid is not None:
            kill(self.pid)

    def lose_zygote(self):
        self.zygote_lost = True
        self.status = -1

    def hear_zygote(self):
        message = self.zygote.socket.recv(256)
        if not message:
            self.lose_zygote()
        elif message[:1] == b'P':
            self.pid = int(message[1:])
            if self.stopped is not None:
                kill(self.pid)
        else:
            self.status = int(message[1:].split()[0])

    def feed(self, poll):
        try:
            self.request[0] = self.request[0][os.write(self.request_pipe, self.request[0][:CHUNK]):]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.request.clear()
        if self.request and not self.request[0]:
            self.request.pop(0)
        if not self.request:
            poll.unregister(self.request_pipe)
            os.close(self.request_pipe)
            self.request_pipe = None

    def drain(self, descriptor, poll=None):
        """Takes what a pipe holds now; false at its end."""
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            if poll is not None:
                poll.unregister(descriptor)
            return False
        if descriptor == self.result_pipe:
            if len(self.result) <= self.result_limit:
                self.result += data
            if len(self.result) > self.result_limit and self.stopped is None:
                self.stop('damaged')
            if self.prepared_at is None and self.prepared_length() is not None:
                # The program's own time begins.
                self.prepared_at = time.monotonic()
                self.prepared_cpu = self.cpu_seconds()
                if self.stopped is None:
                    self.deadline = self.prepared_at + self.seconds
        else:
            self.output_bytes += len(data)
            if self.output_bytes > self.header['outputBytes'] and self.stopped is None:
                self.stop('output')
        return True

    def prepared_length(self):
        """Bytes of what the child said before any code of the program ran; None as long as it has not."""
        if len(self.result) < PREPARED_HEAD or self.result[:1] != b'P':
            return None
        length = struct.unpack('>I', self.result[1:PREPARED_HEAD])[0]
        return length if len(self.result) >= PREPARED_HEAD + length else None

    def cpu_seconds(self):
        """Processor time of the child. Its clock's number is made of its process id, as clock_getcpuclockid(3) makes it."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2) if self.pid is not None else 0.0
        except OSError:
            return 0.0

    def finish(self):
        """How the child ended, and the parts of the reply's body. Nothing is copied: results may be large."""
        for descriptor in (self.output_pipe, self.error_pipe, self.result_pipe):
            # All writers are dead.
            while self.drain(descriptor):
                pass
            os.close(descriptor)
        length = self.prepared_length()
        end = {'milliseconds': round(self.milliseconds, 3), 'prepared': length}
        if length is None:
            return {**end, **self.describe(False, False)}, []
        # What the program itself has written there comes before the token, which it has not seen.
        begin = PREPARED_HEAD + length
        at = self.result.find(self.token, begin)
        described = self.describe(at >= 0, len(self.result) > begin)
        view = memoryview(self.result)
        parts = [view[PREPARED_HEAD:begin]]
        if described['end'] == 'returned':
            parts.append(view[at + TOKEN_CHARACTERS:])
        return {**end, **described}, parts

    def describe(self, has_token, has_written):
        if self.zygote_lost:
            return {'end': 'lost'}
        if self.stopped is not None:
            return {'end': self.stopped}
        signal_number, code = self.status & 0x7F, self.status >> 8
        if signal_number == signal.SIGKILL:
            return {'end': 'memory' if oom_kills() > self.oom_kills else 'signal', 'signal': signal_number}
        if signal_number == signal.SIGXCPU:
            return {'end': 'timeout'}
        if signal_number:
            return {'end': 'signal', 'signal': signal_number}
        if code == EXIT_NO_MEMORY:
            return {'end': 'memory'}
        if code == EXIT_NO_STACK:
            return {'end': 'stack'}
        if code == 0 and has_token:
            return {'end': 'returned'}
        return {'end': 'damaged'} if code == EXIT_DAMAGED or has_written else {'end': 'exit', 'code': code}


def confinement():
    """What holds this container in, found out rather than believed; the host refuses a container where any of it is missing."""
    status = {}
    with open('/proc/self/status') as lines:
        for line in lines:
            name, _, value = line.partition(':')
            status[name] = value.strip()
    interfaces = sorted(os.listdir('/sys/class/net')) if os.path.isdir('/sys/class/net') else []
    return {
        'firstProcess': os.getpid() == 1,
        'unprivileged': os.getuid() != 0 and os.getgid() != 0,
        'noCapabilities': all(int(status[name], 16) == 0 for name in ('CapEff', 'CapPrm', 'CapInh', 'CapBnd')),
        'noNewPrivileges': status.get('NoNewPrivs') == '1',
        'noNetwork': [name for name in interfaces if name != 'lo'] == [],
        'nothingWritable': not any(writable(path) for path in ('/', '/tmp', '/dev/shm', '/var/tmp', '/run', '/opt/propel')),
        'memoryLimited': memory_limit() < 1 << 40,
        'systemCallsFiltered': filter_holds(),
    }


def writable(path):
    try:
        os.close(os.open(os.path.join(path, '.propel'), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        return True
    except OSError:
        return False


def memory_limit():
    for path in ('/sys/fs/cgroup/memory/memory.limit_in_bytes', '/sys/fs/cgroup/memory.max'):
        try:
            with open(path) as limit:
                text = limit.read().strip()
            return 1 << 62 if text == 'max' else int(text)
        except OSError:
            pass
    return 1 << 62


def filter_holds():
    """Puts a child under the filter: it must be able to write, and neither to fork, nor to open a socket or a file, nor to signal."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        refused = 0
        try:
            seccomp_filter()()
            for attempt in (os.fork, socket.socket, lambda: os.open('/', os.O_RDONLY), lambda: os.stat('/'), lambda: os.kill(1, 0)):
                try:
                    attempt()
                except PermissionError:
                    refused += 1
            os.write(writer, b'%d' % refused)
        finally:
            os._exit(0)
    os.close(writer)
    answer = os.read(reader, 8)
    os.close(reader)
    os.waitpid(pid, 0)
    return answer == b'5'


def oom_kills():
    """Processes of this container that the kernel has ended for want of memory."""
    for path in ('/sys/fs/cgroup/memory/memory.oom_control', '/sys/fs/cgroup/memory.events'):
        try:
            with open(path) as lines:
                for line in lines:
                    if line.startswith('oom_kill '):
                        return int(line.split()[1])
        except OSError:
            pass
    return 0


def read_text(path):
    with open(path) as file:
        return file.read()


def own_rss():
    with open('/proc/self/status') as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith('VmRSS'))


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except OSError:
        return False


def reap():
    """Buries orphans; zygotes bury their own children."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def read_exactly(size):
    data = bytearray()
    while len(data) < size:
        if not select.select([0], [], [], IDLE_SECONDS)[0]:
            os._exit(0)
        part = os.read(0, min(size - len(data), CHUNK))
        if not part:
            os._exit(0)
        data += part
    return data


def skip_preamble():
    seen = b''
    for _ in range(MAX_PREAMBLE_BYTES):
        seen = (seen + read_exactly(1))[-len(PREAMBLE):]
        if seen == PREAMBLE:
            return
    give_up('no preamble')


def receive():
    size = struct.unpack('>I', read_exactly(4))[0]
    if size > MAX_REQUEST_BYTES:
        give_up('a request of %d bytes' % size)
    data = read_exactly(size)
    newline = data.index(b'\n')
    header = json.loads(data[:newline])
    return header['kind'], header, memoryview(data)[newline + 1:]


def send(kind, header, *parts):
    head = json.dumps({'kind': kind, **header}).encode() + b'\n'
    size = len(head) + sum(map(len, parts))
    for part in (struct.pack('>I', size) + head, *parts):
        view = memoryview(part)
        while view:
            view = view[os.write(1, view):]


def give_up(why):
    send('bye', {'why': why})
    os._exit(70)


if __name__ == '__main__':
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    set_no_new_privileges()
    set_not_dumpable()
    try:
        Supervisor().serve()
    except Exception as error:
        give_up('%s: %s' % (type(error).__name__, error))
