"""Runs one program and its calls; what it returns is bytes, so that nothing a later call does can change an earlier result.

Three steps: `prepare` (parses and compiles, runs no code of the program), `execute` (runs it), `frame` (the results as one byte string).
Only what `prepare` says can be trusted by the host; `execute` shares its interpreter with the program, which may forge its own results.
"""
import ast
import builtins
import io
import itertools
import json
import opcode
import re
import sys


def make_runner(policy, syntax_facts):
    # Captured here, so that a program that patches builtins, sys or json does not reach them by name.
    compile_, exec_, eval_, repr_, str_, type_, len_, isinstance_ = compile, exec, eval, repr, str, type, len, isinstance
    encode, join, type_name = str.encode, b''.join, type.__dict__['__name__'].__get__
    parse, literal_eval, Call, Name, Expression = ast.parse, ast.literal_eval, ast.Call, ast.Name, ast.Expression
    settrace, setprofile, dumps, loads, pop = sys.settrace, sys.setprofile, json.dumps, json.loads, dict.pop
    BaseException_, Forbidden, range_, Module = BaseException, policy.forbidden, range, type(sys)
    nests_too_deep = _depth_check()
    # Another number an object, and every two in the opposite order.
    id_, most = id, sys.maxsize
    DETAIL = 500
    state, modules, this_module = {}, sys.modules, sys.modules['__main__']

    def opposite_id(obj, /):
        return most - id_(obj)

    opposite_id.__name__ = opposite_id.__qualname__ = 'id'
    opposite_id.__module__, opposite_id.__doc__ = 'builtins', id_.__doc__

    def describe(error):
        """`(status, detail)` of an exception; runs the exception's own __str__."""
        kind = type_(error)
        if isinstance_(error, MemoryError):
            return b'm', b'MemoryError'
        if isinstance_(error, Forbidden):
            return b'b', encode(str_(error), 'utf-8', 'backslashreplace')[:DETAIL]
        name = encode(type_name(kind), 'utf-8', 'backslashreplace')
        try:
            message = encode(str_(error), 'utf-8', 'backslashreplace')[:DETAIL]
        except BaseException_:
            message = b''
        return b'e', name + b': ' + message if message else name

    def error_text(error):
        return describe(error)[1].decode('utf-8', 'replace')

    def compile_call(text):
        tree = parse('f(\n' + text + '\n)', 'call', 'eval')
        if type_(tree.body) is not Call or type_(tree.body.func) is not Name:
            raise SyntaxError('not the arguments of one call')
        return compile_(tree, 'call', 'eval', dont_inherit=True)

    def prepare(request_bytes):
        """Request {code, calls, reverse, oppositeIds, facts, resultBytes} → {error, callErrors, facts, hashed, ids}; or {literals} → {literals}."""
        request = loads(request_bytes)
        if 'literals' in request:
            return encode(dumps({'literals': [canonical(text) for text in request['literals']]}))
        try:
            program = compile_(request['code'], 'task', 'exec', dont_inherit=True)
        except BaseException_ as error:
            return encode(dumps({'error': error_text(error), 'callErrors': [], 'facts': None, 'hashed': False, 'ids': False}))
        calls, errors = [], []
        for text in request['calls']:
            try:
                calls.append(compile_call(text))
                errors.append(None)
            except BaseException_ as error:
                calls.append(None)
                errors.append(error_text(error))
        facts = None
        if request['facts']:
            try:
                facts = syntax_facts(request['code'])
            except BaseException_:
                facts = None
        order = list(range_(len_(calls)))
        if request['reverse']:
            order.reverse()
        state.update(program=program, calls=calls, order=order, limit=request['resultBytes'])
        state['id'] = opposite_id if request['oppositeIds'] else id_
        codes = [code for code in (program, *calls) if code is not None]
        hashed, ids = any(map(uses_hash, codes)), any(map(uses_id, codes))
        return encode(dumps({'error': None, 'callErrors': errors, 'facts': facts, 'hashed': hashed, 'ids': ids}))

    def execute():
        calls, limit, order = state['calls'], state['limit'], state['order']
        results = state['results'] = [b's'] * len_(calls)
        # A module like any other: `pickle` and `typing` look names of the program's classes up in it.
        task = modules['task'] = Module('task')
        names = task.__dict__
        names['__builtins__'] = builtins
        builtins.id = pop(state, 'id')
        policy.active, policy.blame = True, None
        try:
            exec_(state['program'], names)
            failure = None
        except BaseException_ as error:
            failure = failed(error)
        settrace(None)
        setprofile(None)
        if policy.blame is not None:
            failure = b'b' + encode(policy.blame)
        for index in order:
            if calls[index] is None:
                continue
            if failure is not None:
                results[index] = failure
                continue
            policy.blame = None
            try:
                # The value dies here: its __del__ runs before the next call, not in a later one.
                text = encode(repr_(eval_(calls[index], names)), 'utf-8', 'backslashreplace')
                result = b'o' + text if len_(text) <= limit else b'l' + b'%d bytes of repr' % len_(text)
                if len_(text) <= limit and nests_too_deep(text):
                    result = b'eRecursionError: the result is nested too deep'
                text = None
            except BaseException_ as error:
                result = failed(error)
            settrace(None)
            setprofile(None)
            results[index] = result if policy.blame is None else b'b' + encode(policy.blame)
        # The last step is looked up there, in the embedded sandbox.
        modules['__main__'] = this_module

    def failed(error):
        try:
            status, detail = describe(error)
            return status + detail
        except BaseException_:
            return b'e'

    def frame():
        """Each call as status, length (8 digits) and text: o ok, e exception, m memory, b forbidden, s syntax, l too long."""
        return join([result[:1] + b'%08d' % (len_(result) - 1) + result[1:] for result in state['results']])

    return prepare, execute, frame


def warm_up(policy, prepare, execute, frame):
    """Specialises the adaptive interpreter and fills caches on the path that every program takes."""
    sample = json.dumps({
        'code': 'def f(a, k):\n  s = 0\n  for i, x in enumerate(a):\n    s += x * i % k\n  return [s, sorted(a), {1, 2}]',
        'calls': ['[1, 2, 3], 7', '1', 'a=[3, 1], k=2', '1 +'], 'reverse': True, 'oppositeIds': False, 'facts': True, 'resultBytes': 1000,
    }).encode()
    literals = json.dumps({'literals': ['[1, {"a": (2.5, None)}], x=-1', 'g(1)']}).encode()
    for _ in range(40):
        prepare(sample)
        execute()
        frame()
        prepare(literals)
    policy.active = False
    del sys.modules['task']


def standard_stream(descriptor):
    """Standard output or error of programs."""
    raw = io.FileIO(descriptor, 'w', closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw, 1 << 16), 'utf-8', 'backslashreplace', '\n')


def canonical(text):
    """Call arguments as canonical literals ('[1,2],x = 3' → '[1, 2], x=3'); None unless all are literals. Executes nothing."""
    try:
        call = ast.parse('f(\n' + text + '\n)', 'call', 'eval').body
        if type(call) is not ast.Call or type(call.func) is not ast.Name:
            return None
        parts = [show(ast.literal_eval(argument)) for argument in call.args]
        for keyword in call.keywords:
            if keyword.arg is None:
                return None
            parts.append(keyword.arg + '=' + show(ast.literal_eval(keyword.value)))
        return ', '.join(parts)
    except Exception:
        return None


def show(value):
    """repr of literal data, sets in an order that does not depend on the hash seed."""
    kind = type(value)
    if kind is list:
        return '[' + ', '.join([show(item) for item in value]) + ']'
    if kind is tuple:
        return '(' + ', '.join([show(item) for item in value]) + (',)' if len(value) == 1 else ')')
    if kind is dict:
        return '{' + ', '.join([show(key) + ': ' + show(item) for key, item in value.items()]) + '}'
    if kind is set:
        return '{' + ', '.join(sorted([show(item) for item in value])) + '}' if value else 'set()'
    return repr(value)


# What versions of CPython can show lies above; each has a limit of its own.
_DEEPEST_RESULT = 900
_STEP_OF_BRACKET = {ord(bracket): step for brackets, step in (('([{', 1), (')]}', -1)) for bracket in brackets}
_TEXTS = re.compile(rb"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+\"""", re.DOTALL)
_NO_BRACKETS = re.compile(rb'[^][(){}]+')


def _depth_check():
    """Whether a result's repr nests deeper than it may, as a function that the program cannot change."""
    count, no_texts, only_brackets, most, step = bytes.count, _TEXTS.sub, _NO_BRACKETS.sub, max, _STEP_OF_BRACKET.__getitem__
    running, apply, deepest = itertools.accumulate, map, _DEEPEST_RESULT

    def nests_too_deep(text):
        if count(text, b'[') + count(text, b'(') + count(text, b'{') <= deepest:
            return False
        return most(running(apply(step, only_brackets(b'', no_texts(b'', text)))), default=0) > deepest

    return nests_too_deep


_SET_OPCODES = bytes(opcode.opmap[name] for name in ('BUILD_SET', 'SET_ADD', 'SET_UPDATE'))
_BINARY_OP = opcode.opmap['BINARY_OP']
_SET_ARITHMETIC = frozenset(
    number for number, (name, sign) in enumerate(opcode._nb_ops) if sign.rstrip('=') in ('&', '|', '^', '-')
)
_HASH_NAMES = frozenset((
    'set', 'frozenset', 'hash', '__hash__', 'id', 'union', 'intersection', 'difference', 'symmetric_difference',
    'eval', 'exec', 'compile', 'globals', '__builtins__', '__import__', 'WeakSet',
))
_ID_NAMES = frozenset(('id', 'eval', 'exec', 'compile', 'globals', '__builtins__', 'builtins', '__import__'))
_VIEW_NAMES = frozenset(('keys', 'items'))


def uses_id(code):
    """Whether a code object, or one within it, names `id` or a way to reach it by text."""
    if not _ID_NAMES.isdisjoint(code.co_names):
        return True
    return any(type(constant) is type(code) and uses_id(constant) for constant in code.co_consts)


def uses_hash(code):
    """Whether a code object may depend on hash order: sets, hash(), set arithmetic on dict views, or ways to reach them by text."""
    pending = [code]
    while pending:
        code = pending.pop()
        names, raw = code.co_names, code.co_code
        if not _HASH_NAMES.isdisjoint(names):
            return True
        operations = raw[::2]
        for number in _SET_OPCODES:
            if number in operations:
                return True
        if not _VIEW_NAMES.isdisjoint(names):
            for operation, argument in zip(operations, raw[1::2]):
                if operation == _BINARY_OP and argument in _SET_ARITHMETIC:
                    return True
        for constant in code.co_consts:
            kind = type(constant)
            if kind is frozenset:
                return True
            if kind is type(code):
                pending.append(constant)
    return False
