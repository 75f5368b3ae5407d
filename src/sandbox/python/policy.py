"""What a program may import and touch. Gives every sandbox the same `forbidden` outcome; isolation does not depend on it."""
import errno
import sys

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

    def __init__(self, Library):
        """`Library` is `StandardLibrary`, of which one is made once everything is in place."""
        self.blame = None
        self.active = False
        self._Library = Library
        self._library = None
        self._guards = frozenset()

    def refuse(self, error):
        if self.blame is None:
            self.blame = str(error)
        raise error

    def preload(self):
        """Import what programs use most, once, before any of them runs."""
        absence = _Absence(self._Library.nobody_has)
        sys.meta_path.insert(0, absence)
        for name in self._Library.preloaded:
            try:
                __import__(name)
            except ModuleNotFoundError:
                pass  # Not in every version of Python.
        sys.meta_path.remove(absence)
        # A record of a log would ask for it.
        sys.modules['logging'].logProcesses = False

    def install(self, import_codes=()):
        """`import_codes`: code beside CPython's own by which modules are imported."""
        import builtins
        import _imp

        # The working folder holds nothing to import.
        sys.path[:] = [path for path in sys.path if path]
        self._library = self._Library()
        for code in import_codes:
            self._library.add_to_import_system(code)
        policy, library, frame_at = self, self._library, sys._getframe
        plain_import, open_roots = builtins.__import__, library.open_roots

        def guarded_import(name, globals=None, locals=None, fromlist=(), level=0):
            if policy.active and type(name) is str and (level != 0 or name.partition('.')[0] not in open_roots):
                policy.judge_import(frame_at(1), name, globals, fromlist, level)
            return plain_import(name, globals, locals, fromlist, level)

        bootstrap = sys.modules['_frozen_importlib']
        plain_import_module = bootstrap._gcd_import

        def guarded_import_module(name, package=None, level=0):
            if policy.active and type(name) is str:
                policy.judge_import(frame_at(1), name, {'__package__': package}, (), level)
            return plain_import_module(name, package, level)

        absence = _Absence(library.nobody_has)

        class Gate:
            """Importers that go past `__import__` still meet this before a module is loaded."""

            @staticmethod
            def find_spec(name, path=None, target=None):
                if policy.active:
                    policy.judge_load(frame_at(1), name)
                    absence.find_spec(name)
                return None

        def guarded_creation(create):
            def guarded_create(spec, *arguments):
                if policy.active:
                    policy.judge_load(frame_at(1), spec.name)
                return create(spec, *arguments)
            # A native module imports others as it is made.
            library.add_to_import_system(guarded_create.__code__)
            return guarded_create

        def audit(event, arguments):
            if not policy.active:
                return
            if event in _READ_EVENTS:
                policy.judge_read(frame_at(1), event, arguments)
            elif event in _HOST_EVENTS or event.startswith('socket.'):
                policy.refuse(ForbiddenAccess('host access: ' + event))

        self._guards = frozenset((guarded_import.__code__, guarded_import_module.__code__))
        close_host(lambda what: policy.active and policy.refuse(ForbiddenAccess(what)))
        builtins.__import__ = guarded_import
        bootstrap._gcd_import = guarded_import_module
        for name in ('create_builtin', 'create_dynamic'):
            if hasattr(_imp, name):
                setattr(_imp, name, guarded_creation(getattr(_imp, name)))
        sys.meta_path.insert(0, Gate)
        print_exception = sys.modules['traceback'].print_exception
        # In C it looks for source text like a program that opens a file.
        sys.excepthook = sys.__excepthook__ = lambda kind, value, trace, /: print_exception(kind, value, trace)
        sys.addaudithook(audit)

    def judge_import(self, frame, name, namespace, fromlist, level):
        """`frame` is that of the importer. Raises where it may not import the name or one of `fromlist`."""
        absolute = self._absolute(name, namespace, level) if level else name
        wanted = [absolute]
        if type(fromlist) in (tuple, list):
            wanted += [absolute + '.' + each for each in fromlist if type(each) is str]
        for each in wanted:
            if not self._library.lends(each) and self._is_judged(each) and not self._is_admitted(frame, name):
                self.refuse(ForbiddenImport('module ' + each + ' is not on the allow-list'))

    def judge_load(self, frame, name):
        """A module is about to be loaded. `frame` is the import system's; behind it is a guard that has judged, or somebody who went past it."""
        if not self._library.lends(name) and self._is_judged(name) and not self._is_admitted(frame, name):
            self.refuse(ForbiddenImport('module ' + name + ' is not on the allow-list'))

    def judge_read(self, frame, event, arguments):
        """A file is opened or a folder listed: in the course of an import, by the library for its own ends, or by the program."""
        path = arguments[0]
        library, self.active = self._library, False
        try:
            asker = self._past_import_system(frame)
            if asker is not frame and asker is not None and asker.f_code in self._guards and library.holds_path(path):
                return
            # No flags at all: C code looks for source text, by the name that was given to a piece of code.
            for_source = event == 'open' and arguments[1] is not None and arguments[2] == 0
            is_missing = for_source or (asker is not None and library.is_reading(asker))
        finally:
            self.active = True
        if is_missing:
            raise FileNotFoundError(errno.ENOENT, 'No such file or directory', path)
        self.refuse(ForbiddenAccess('file access: ' + event))

    def _is_judged(self, name):
        """False for what is not CPython's: it is installed for programs, or is not there."""
        root = name.partition('.')[0]
        if root in self._library.gone:
            raise ModuleNotFoundError('No module named ' + repr(root), name=root)
        return self._library.knows(root)

    def _is_admitted(self, frame, name):
        """Whether the library itself imports: by a statement of its own, or in the course of an import that was judged already."""
        library, self.active = self._library, False
        try:
            asker = self._past_import_system(frame)
            return asker is not None and (asker.f_code in self._guards or library.is_importing(asker, name))
        finally:
            self.active = True

    def _past_import_system(self, frame):
        while frame is not None and self._library.is_import_system(frame.f_code):
            frame = frame.f_back
        return frame

    @staticmethod
    def _absolute(name, namespace, level):
        package = namespace.get('__package__') if type(namespace) is dict else None
        if type(package) is not str and type(namespace) is dict:
            package = getattr(namespace.get('__spec__'), 'parent', None)
        if type(package) is not str:
            return name
        base = package.rsplit('.', level - 1)[0]
        return base + '.' + name if name else base


class _Absence:
    """A finder by which modules are missing that not every sandbox has."""

    def __init__(self, names):
        self._names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in self._names:
            raise ModuleNotFoundError('No module named ' + repr(name), name=name)
        return None
