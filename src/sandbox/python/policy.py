"""What a program may import and touch. Gives every sandbox the same `forbidden` outcome; isolation does not depend on it."""
import sys

ALLOWED_MODULES = frozenset('''
    __future__ abc array base64 binascii bisect calendar cmath collections colorsys contextlib copy dataclasses datetime
    decimal difflib enum fractions functools graphlib hashlib heapq io itertools json keyword math numbers operator os
    pprint queue random re reprlib secrets statistics string struct sys textwrap time timeit types typing unicodedata
    warnings weakref zlib
'''.split())

# Imported by C code or by allowed modules while a program runs, so imported beforehand and let through.
INTERNAL_MODULES = ('_strptime', '_pylong', 'locale', 'stringprep', 'encodings.idna', 'encodings.latin_1', 'encodings.ascii',
                    'encodings.utf_16', 'encodings.utf_32', 'encodings.unicode_escape', 'linecache', 'tracemalloc', 'traceback')
_LET_THROUGH = ALLOWED_MODULES | {name.partition('.')[0] for name in INTERNAL_MODULES} | {'encodings'}
# In the standard library of Python 3.11 only: nobody has them, whatever the version.
_GONE = frozenset('asynchat asyncore distutils imp smtpd'.split())
_KNOWN = (sys.stdlib_module_names | {'__main__'}) - _GONE

# Audit events of CPython that mean: the program reaches for the host.
_HOST_EVENTS = frozenset('''
    os.walk os.fwalk os.mkdir os.remove os.rename os.rmdir os.link os.symlink os.truncate os.utime
    os.chmod os.chown os.chdir os.system os.exec os.fork os.forkpty os.spawn os.posix_spawn os.startfile os.kill os.killpg
    os.putenv os.unsetenv os.lockf shutil.copyfile shutil.rmtree glob.glob tempfile.mkstemp tempfile.mkdtemp
    subprocess.Popen pty.spawn ctypes.dlopen mmap.__new__ webbrowser.open sqlite3.connect urllib.Request
'''.split())

_READ_EVENTS = frozenset(('open', 'os.listdir', 'os.scandir'))


class ForbiddenImport(ImportError):
    """A module of the standard library outside the allow-list."""


class ForbiddenAccess(PermissionError):
    """A file, process or connection of the host."""


class Policy:
    """Hooks of one interpreter. `blame` holds what the running stage did first, also when the program caught the error."""

    forbidden = (ForbiddenImport, ForbiddenAccess)

    def __init__(self):
        self.blame = None
        self.active = False

    def refuse(self, error):
        if self.blame is None:
            self.blame = str(error)
        raise error

    def preload(self):
        """Import everything allowed, once, before programs run."""
        for name in sorted(ALLOWED_MODULES):
            __import__(name)
        for name in INTERNAL_MODULES:
            try:
                __import__(name)
            except ModuleNotFoundError:
                pass  # Not in every version of Python.

    def install(self):
        import builtins
        import importlib._bootstrap_external as importer
        import zipimport

        # The working folder holds nothing to import.
        sys.path[:] = [path for path in sys.path if path]
        policy, plain_import = self, builtins.__import__
        trusted = frozenset(sys.modules) - {'__main__'}
        library = tuple(path + '/' for path in sys.path)
        readers = tuple(reader.__code__ for reader in (
            importer.FileLoader.get_data, importer.FileFinder._fill_cache, zipimport._get_data, zipimport._read_directory,
        ))
        caller = sys._getframe

        def reads_library(path):
            """Whether it is the import system that lists or opens the standard library's own folders."""
            return type(path) is str and (path + '/').startswith(library) and '/..' not in path and caller(2).f_code in readers

        def guarded_import(name, globals=None, locals=None, fromlist=(), level=0):
            if level == 0 and type(name) is str and policy.active:
                root = name.partition('.')[0]
                if root in _GONE:
                    raise ModuleNotFoundError('No module named ' + repr(root), name=root)
                if root in _KNOWN and root not in _LET_THROUGH:
                    importer = globals.get('__name__') if type(globals) is dict else None
                    if importer not in trusted:
                        policy.refuse(ForbiddenImport('module ' + root + ' is not on the allow-list'))
            return plain_import(name, globals, locals, fromlist, level)

        class Gate:
            """Importers that go past `__import__` still meet this before a module is loaded."""

            @staticmethod
            def find_spec(name, path=None, target=None):
                root = name.partition('.')[0]
                if policy.active and root in _KNOWN and root not in _LET_THROUGH:
                    raise ForbiddenImport('module ' + root + ' is not on the allow-list')
                return None

        def audit(event, arguments):
            if not policy.active:
                return
            if event in _READ_EVENTS:
                if not reads_library(arguments[0]):
                    policy.refuse(ForbiddenAccess('file access: ' + event))
            elif event in _HOST_EVENTS or event.startswith('socket.'):
                policy.refuse(ForbiddenAccess('host access: ' + event))

        close_host(lambda what: policy.active and policy.refuse(ForbiddenAccess(what)))
        builtins.__import__ = guarded_import
        sys.meta_path.insert(0, Gate)
        sys.addaudithook(audit)
