// Why a public module of the standard library is closed to programs: the reasons of standard_library.py's list, for the documentation.
export const REASONS = {
  'files and folders': `dbm filecmp fileinput glob lzma mailbox modulefinder netrc pkgutil py_compile pyclbr compileall shelve shutil sqlite3
    tabnanny tarfile tempfile trace wave zipapp zipfile`,
  'network connections': `ftplib http.client http.cookiejar http.server imaplib logging.config logging.handlers poplib select selectors smtplib
    socket socketserver ssl urllib.error urllib.request urllib.response urllib.robotparser webbrowser wsgiref xmlrpc`,
  'threads, processes, signals': `_thread asyncio concurrent faulthandler multiprocessing pty signal subprocess threading`,
  'facts of the host': `fcntl getpass grp platform posix pwd resource sysconfig syslog termios tty`,
  'native code and memory': 'ctypes mmap',
  'terminals, windows, sound, other systems':
    'curses msvcrt nt readline rlcompleter tkinter turtle turtledemo winreg winsound',
  'the interpreter, its import system and its tools': `__main__ atexit bdb cProfile cmd code ensurepip idlelib importlib lib2to3 marshal pdb profile
    pstats pydoc pydoc_data runpy site sre_compile sre_constants sre_parse venv zipimport nturl2path genericpath antigravity`,
  'deprecated: not in Python 3.13': `aifc audioop cgi cgitb chunk crypt imghdr mailcap msilib nis nntplib ossaudiodev pipes sndhdr spwd sunau
    telnetlib uu xdrlib`,
};

/** Module → reason. */
export const REASON_OF = new Map(
  Object.entries(REASONS).flatMap(([reason, names]) =>
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, reason]),
  ),
);
