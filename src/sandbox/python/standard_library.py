"""The standard library as programs may use it: what they may import, and whether a frame runs the library's own code."""
import _imp
import opcode
import sys
from posixpath import normpath as normal_path

# Pure: what they give depends on their arguments alone. What reads the clock or entropy in them is counted like any other use.
PUBLIC_MODULES = frozenset('''
    __future__ abc argparse array ast base64 binascii bisect builtins bz2 calendar cmath codecs codeop collections colorsys
    configparser contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib dis doctest email encodings enum
    errno fnmatch fractions functools gc getopt gettext graphlib gzip hashlib heapq hmac html http inspect io ipaddress itertools
    json keyword linecache locale logging math mimetypes ntpath numbers opcode operator optparse os pathlib pickle pickletools
    plistlib posixpath pprint queue quopri random re reprlib sched secrets shlex stat statistics string stringprep struct
    symtable sys textwrap this time timeit token tokenize tomllib traceback tracemalloc types typing unicodedata unittest urllib
    uuid warnings weakref xml zlib zoneinfo
'''.split())

# Parts of public packages that reach files, connections or threads.
CLOSED_PARTS = frozenset('''
    http.client http.cookiejar http.server logging.config logging.handlers urllib.error urllib.request urllib.response
    urllib.robotparser
'''.split())

# Native parts of public modules, and what C code imports in the name of whoever called it.
INTERNAL_MODULES = frozenset('''
    _ast _bisect _bz2 _codecs _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _collections_abc
    _compat_pickle _compression _csv _elementtree _io _markupbase _multibytecodec _pickle _pylong _strptime _symtable _zoneinfo
    pyexpat
'''.split())

# Imported before any program runs: what most programs use, what C code imports while they run, what reads the clock as it is loaded,
# and all native modules, which a container cannot load later. The other public modules are loaded from the library by the programs that use them.
PRELOADED_MODULES = tuple('''
    __future__ abc array ast base64 binascii bisect builtins calendar cmath codecs collections colorsys contextlib copy copyreg
    dataclasses datetime decimal difflib enum errno fractions functools gc graphlib hashlib heapq inspect io itertools json keyword
    linecache locale math numbers operator os pickle pprint queue random re reprlib secrets statistics string stringprep struct sys
    textwrap time timeit traceback tracemalloc types typing unicodedata warnings weakref zlib
    csv html logging pathlib urllib.parse uuid encodings.ascii encodings.idna encodings.latin_1 encodings.unicode_escape encodings.utf_16 encodings.utf_32
    _bz2 _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _compat_pickle _contextvars _csv
    _elementtree _multibytecodec _posixsubprocess _pylong _socket _strptime _symtable _zoneinfo pyexpat select selectors
'''.split())

# In the standard library of Python 3.11 only: nobody has them, whatever the version.
GONE = frozenset('asynchat asyncore distutils imp smtpd'.split())
# Internals of single versions, and CPython's own tests: `sys.stdlib_module_names` leaves them out, or does on another version.
_ALSO_KNOWN = frozenset('_bootsubprocess _pydatetime _pylong _sha2 _sha256 _sha512 _wmi test xxlimited xxlimited_35 xxsubtype __main__'.split())
_ALSO_KNOWN_PREFIXES = ('_test', '_xx', '_interp', '_ctypes_', '_sysconfigdata_', '__hello', '__phello')

# The embedded build has none of these. The library's own code does without them, and must in every sandbox.
NOBODY_HAS = frozenset('''
    _ctypes _curses _dbm _gdbm _hashlib _lzma _multiprocessing _posixshmem _pydecimal _pyio _ssl _uuid ctypes curses fcntl grp lzma
    mmap multiprocessing nis ossaudiodev pwd readline resource rlcompleter spwd ssl syslog termios uu venv webbrowser xdrlib
'''.split())

# They look for source text, catalogues, time zones and settings of their own accord.
_READERS = frozenset('gettext importlib inspect linecache locale pdb pkgutil site sysconfig traceback warnings zoneinfo'.split())
_READER_DEPTH = 16
_IMPORT_NAME = opcode.opmap['IMPORT_NAME']
# A pass may give programs another `id`.
_address_of = id


class StandardLibrary:
    """The library as it was before any program ran. What a frame says of itself, a program can forge; that its code is equal to
    the library's it cannot without doing what the library does."""

    preloaded, gone, nobody_has = PRELOADED_MODULES, GONE, NOBODY_HAS

    def __init__(self):
        self.folders = tuple(path for path in sys.path if path)
        self._known = (sys.stdlib_module_names | _ALSO_KNOWN) - GONE
        self._allowed = PUBLIC_MODULES | INTERNAL_MODULES
        self._closed_roots = frozenset(name.partition('.')[0] for name in CLOSED_PARTS)
        # Most imports are decided by this alone.
        self.open_roots = self._allowed - self._closed_roots
        self._hooks = tuple(sys.path_hooks)
        self._is_frozen, self._frozen_code = _imp.is_frozen, _imp.get_frozen_object
        self._codes = {}
        # Kept, so that no other code can come to lie where one of them lay.
        self._import_codes = _import_system_codes()
        self._import_system = set(map(id, self._import_codes))

    def knows(self, name):
        """Whether the name is one of CPython's, installed or not."""
        root = name.partition('.')[0]
        return root in self._known or root.startswith(_ALSO_KNOWN_PREFIXES)

    def lends(self, name):
        """Whether a program may import it."""
        root, dot, rest = name.partition('.')
        return root in self._allowed and (not dot or root + dot + rest.partition('.')[0] not in CLOSED_PARTS)

    def holds_path(self, path):
        """Whether a path lies in the library, whatever dots are in it."""
        if type(path) is not str:
            return False
        path = normal_path(path)
        return any(path == folder or path.startswith(folder + '/') for folder in self.folders)

    def is_import_system(self, code):
        return _address_of(code) in self._import_system

    def add_to_import_system(self, code):
        self._import_codes.append(code)
        self._import_system.add(_address_of(code))

    def holds_code(self, code, name):
        """Whether the code is equal to a piece of the library's module `name`."""
        if name not in self._codes:
            self._codes[name] = self._read_codes(name)
        return _identity(code) in self._codes[name]

    def is_importing(self, frame, name):
        """Whether the library's own code is at an `import` statement, and says this name in it."""
        code, at = frame.f_code, frame.f_lasti
        importer = frame.f_globals.get('__name__')
        if at < 0 or name not in code.co_names or code.co_code[at] != _IMPORT_NAME:
            return False
        return type(importer) is str and self.holds_code(code, importer)

    def is_reading(self, frame):
        """Whether the library's own code reads for its own ends, such as source text for a traceback."""
        names = []
        asking = frame
        while asking is not None and len(names) < _READER_DEPTH:
            name = asking.f_globals.get('__name__')
            if type(name) is not str:
                return False
            names.append(name)
            if name.partition('.')[0] in _READERS:
                break
            asking = asking.f_back
        else:
            return False
        for name in names:
            if not self.holds_code(frame.f_code, name):
                return False
            frame = frame.f_back
        return True

    def _read_codes(self, name):
        code = self._code_of(name)
        return frozenset() if code is None else frozenset(map(_identity, _with_nested(code)))

    def _code_of(self, name):
        if self._is_frozen(name):
            return self._frozen_code(name)
        parent = name.rpartition('.')[0].replace('.', '/')
        for folder in self.folders:
            for hook in self._hooks:
                try:
                    spec = hook(folder + '/' + parent if parent else folder).find_spec(name)
                except ImportError:
                    continue
                if spec is not None and spec.loader is not None:
                    return spec.loader.get_code(name)
        return None


def _import_system_codes():
    """All code of the import system, by which its frames are told."""
    codes = []
    for name in ('_frozen_importlib', '_frozen_importlib_external', 'zipimport'):
        space = vars(sys.modules[name])
        of_types = (each for kind in space.values() if type(kind) is type for each in vars(kind).values())
        for member in (*space.values(), *of_types):
            code = getattr(getattr(member, '__func__', member), '__code__', None)
            if code is not None:
                codes.extend(_with_nested(code))
    return codes


def _with_nested(code):
    codes = [code]
    for each in codes:
        codes.extend(constant for constant in each.co_consts if type(constant) is type(code))
    return codes


def _identity(code):
    """What makes two pieces of code do the same."""
    return code.co_code, code.co_names, code.co_name, code.co_firstlineno
