"""The standard library in memory. A program has no system call left that takes a path, so the import system reads from here instead.

The supervisor packs the library's folders once into a file that exists in memory only; every template process maps the same pages.
"""
import json
import os
import stat
import struct
import sys

_HEAD = struct.Struct('>I')
# Their contents; of anything else, native modules above all, only that it is there.
_READ = ('.py', '.pyc')
# Nothing that a program is to import; some are no part of the smaller images.
_LEFT_OUT = frozenset('site-packages dist-packages test tests idlelib ensurepip lib2to3 tkinter turtledemo pydoc_data'.split())


def library_folder():
    return os.path.dirname(os.__file__)


def package_folders():
    """Where packages are installed, by pip and by Debian."""
    pip = '/usr/local/lib/python%d.%d/site-packages' % sys.version_info[:2]
    return [path for path in (pip, '/usr/lib/python3/dist-packages') if os.path.isdir(path)]


def pack(roots):
    """A descriptor of: 4 bytes of length, the index in JSON, contents. The index: path → [mode, time, size, names or offset or null]."""
    index, contents, offset = {}, [], 0
    for root in roots:
        for folder, inner, names in os.walk(root):
            inner[:] = [name for name in inner if name not in _LEFT_OUT]
            status = os.stat(folder)
            index[folder] = [status.st_mode, int(status.st_mtime), 0, sorted(inner + names)]
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.exists(path):
                    continue  # A link to what this image leaves out.
                status = os.stat(path)
                place = None
                if name.endswith(_READ):
                    with open(path, 'rb') as file:
                        data = file.read()
                    contents.append(data)
                    place, offset = offset, offset + len(data)
                index[path] = [status.st_mode, int(status.st_mtime), status.st_size, place]
    head = json.dumps(index).encode()
    descriptor = os.memfd_create('library')
    for part in (_HEAD.pack(len(head)), head, *contents):
        view = memoryview(part)
        while view:
            view = view[os.write(descriptor, view):]
    return descriptor


def serve(descriptor):
    """
    From here on the import system of this process looks into the archive and nowhere else.
    Gives the code by which it does, which is then a part of that system.
    """
    import importlib._bootstrap_external as importer
    import io
    import mmap
    import posix
    import types

    archive = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    begin = _HEAD.size + _HEAD.unpack_from(archive)[0]
    index, plain_open, frame_at = json.loads(archive[_HEAD.size:begin]), io.open_code, sys._getframe
    importing = (importer.SourceLoader.get_code.__code__, importer.SourcelessFileLoader.get_code.__code__)

    def find(path):
        entry = index.get(path.rstrip('/') if type(path) is str else None)
        if entry is None:
            raise FileNotFoundError(2, 'No such file or directory', path)
        return entry

    def status(path):
        mode, time, size, _ = find(path)
        return types.SimpleNamespace(st_mode=mode, st_mtime=time, st_size=size)

    def names(path):
        mode, _, _, inner = find(path)
        if not stat.S_ISDIR(mode):
            raise NotADirectoryError(20, 'Not a directory', path)
        return list(inner)

    def opened(path, mode='r'):
        _, _, size, offset = index.get(path, (None,) * 4)
        # For an import alone: source text is as absent as in the embedded sandbox.
        if type(offset) is not int or frame_at(2).f_code not in importing:
            return plain_open(path)  # Refused, like every other.
        return io.BytesIO(archive[begin + offset:begin + offset + size])

    files, streams = types.ModuleType('posix'), types.ModuleType('_io')
    files.__dict__.update(vars(posix), stat=status, listdir=names, getcwd=lambda: '/')
    streams.__dict__.update(vars(importer._io), open_code=opened, FileIO=opened)
    importer._os, importer._io = files, streams
    return [function.__code__ for function in (find, status, names, opened)]
