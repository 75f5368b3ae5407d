"""What a syntax tree says of names: scopes, what a program may reach, and which calls change nothing."""
import ast
import builtins

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# A program with one of these can reach any name of a running function.
_REFLECTIVE = frozenset('''
    eval exec compile locals globals vars dir __import__ __builtins__ inspect gc importlib _getframe settrace setprofile f_locals
    __closure__ __globals__ __code__ __traceback__ exc_info
'''.split())
_PURE_BUILTINS = frozenset(dir(builtins)) - frozenset('next setattr delattr open input breakpoint'.split())
# Modules whose functions change neither their arguments nor anything else.
_PURE_MODULES = frozenset('math cmath string re itertools collections statistics fractions json textwrap copy functools'.split())
# Iterators that are kept change where they are only read.
_ITERATORS = frozenset('iter map filter zip enumerate reversed itertools'.split())


def children(node):
    found = []
    for field in node._fields:
        value = getattr(node, field, None)
        if type(value) is list:
            found += [each for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST) and field != 'ctx' and field != 'op':
            found.append(value)
    return found


def walk(node):
    pending = [node]
    # It grows while it is gone through.
    for each in pending:
        pending += children(each)
    return pending


def definitions(statement, latest):
    if isinstance(statement, FUNCTIONS):
        yield statement.name, statement
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        value = statement.value
        known = latest.get(value.id) if type(value) is ast.Name else value if type(value) is ast.Lambda else None
        for target in statement.targets if type(statement) is ast.Assign else [statement.target]:
            if known is not None and type(target) is ast.Name:
                yield target.id, known


def parameters_of(arguments):
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    if arguments.vararg:
        names.append(arguments.vararg.arg)
    names.extend(argument.arg for argument in arguments.kwonlyargs)
    if arguments.kwarg:
        names.append(arguments.kwarg.arg)
    return names


class ProgramNames:
    """What the whole program says of its functions."""

    def __init__(self, tree, nodes):
        self.reflects = False
        # With classes any operation may change anything that it meets; with iterators in names, any reading.
        self.plain = True
        self.pure = set()
        self.bound = bound_names(tree.body)
        for node in nodes:
            kind = type(node)
            if kind is ast.Name or kind is ast.Attribute:
                self._named(node.id if kind is ast.Name else node.attr)
            elif kind is ast.ClassDef:
                self.plain = False
            elif kind is ast.Assign or kind is ast.NamedExpr:
                self.plain = self.plain and not _is_iterator(node.value)
            elif kind is ast.Import:
                self.pure.update(alias.asname or alias.name for alias in node.names if alias.name in _PURE_MODULES)
            elif kind is ast.ImportFrom and node.module in _PURE_MODULES and node.level == 0:
                self.pure.update(alias.asname or alias.name for alias in node.names)

    def _named(self, name):
        self.reflects = self.reflects or name in _REFLECTIVE
        self.plain = self.plain and name != 'iter' and name != 'next'

    def is_pure(self, name):
        """Whether a name that the function does not bind is a builtin or an import that changes nothing."""
        return name in self.pure or (name in _PURE_BUILTINS and name not in self.bound)


def _is_iterator(value):
    if type(value) is ast.Call:
        function = value.func
        while type(function) is ast.Attribute:
            function = function.value
        return type(function) is ast.Name and function.id in _ITERATORS
    return type(value) is ast.GeneratorExp


def bound_names(nodes):
    """Names bound in one scope; nested functions and classes, and the targets of comprehensions, are scopes of their own."""
    names, outer, stack = set(), set(), list(nodes)
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is not ast.Load:
                names.add(node.id)
        elif isinstance(node, FUNCTIONS) or kind is ast.ClassDef:
            names.add(node.name)
        elif kind is ast.comprehension:
            stack += [node.iter, *node.ifs]
        elif kind is ast.Global or kind is ast.Nonlocal:
            outer.update(node.names)
        elif kind is ast.alias:
            names.add(node.asname or node.name.partition('.')[0])
        elif kind is not ast.Lambda:
            if kind is ast.MatchMapping:
                names.add(node.rest)
            elif kind is ast.ExceptHandler or kind is ast.MatchAs or kind is ast.MatchStar:
                names.add(node.name)
            stack += children(node)
    return names - outer - {None}


def constant_test(test):
    """Whether a test is true, where it is a constant; else None."""
    if type(test) is ast.UnaryOp and type(test.op) is ast.Not:
        value = constant_test(test.operand)
        return None if value is None else not value
    return bool(test.value) if type(test) is ast.Constant else None


def paired_targets(target, value, pairs):
    """`a, b = b, c` is two assignments made at once."""
    sequences = isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List))
    if sequences and len(target.elts) == len(value.elts) and not any(type(each) is ast.Starred for each in target.elts + value.elts):
        for inner, part in zip(target.elts, value.elts):
            paired_targets(inner, part, pairs)
    else:
        pairs.append((target, value))
