"""A function's syntax tree as operations: what each statement reads, binds and may change. dependence.py follows them backwards.

Sets of names are integers, a bit a name; bit 0 stands for all data that outlives the call. Where the tree does not tell, an operation
may change everything that it reads: unknown functions, closures, aliases, classes, iterators kept in names.
"""
import ast

from syntax import FUNCTIONS, ProgramNames, bound_names, children, constant_test, definitions, paired_targets, parameters_of, walk

_WORLD = 1
# Of one function, read and followed.
_STEPS = 500_000

_SCOPES = (*FUNCTIONS, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, *_COMPREHENSIONS)
_OPERATIONS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Attribute, ast.Call, *_COMPREHENSIONS)
_SUSPENSIONS = (ast.Await, ast.Yield, ast.YieldFrom)
# Operators that change a list, set or dict in place as `+=` does.
_IN_PLACE = (ast.Add, ast.Sub, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor)

# Functions and methods whose results share nothing with their arguments, or only the elements of a new container.
_PLAIN_RESULTS = frozenset('''
    len int str float bool complex ord chr abs round divmod pow bin hex oct hash id repr ascii format isinstance issubclass callable
    any all range print bytes type deepcopy
    split rsplit splitlines join strip lstrip rstrip upper lower title capitalize swapcase casefold replace count index find rfind rindex
    startswith endswith isdigit isalpha isalnum isupper islower isspace isnumeric isdecimal istitle isidentifier zfill center ljust rjust
    encode decode partition rpartition translate removeprefix removesuffix expandtabs bit_length is_integer issubset issuperset
    isdisjoint maketrans format_map
'''.split())
_COPIES = frozenset('list tuple set frozenset dict sorted bytearray copy union intersection difference symmetric_difference'.split())
# They take all of an iterator that they are given.
_USING = frozenset('sum min max join any all'.split()) | _COPIES
_READING_METHODS = _PLAIN_RESULTS | _COPIES | frozenset('get items keys values most_common elements group groups'.split())
_CHANGING_METHODS = frozenset('''
    append extend insert remove pop clear sort reverse add discard update setdefault popitem appendleft popleft extendleft rotate
    intersection_update difference_update symmetric_difference_update subtract move_to_end
'''.split())


class TooLarge(Exception):
    """The function takes more steps to follow than it is worth."""


class Budget:
    """Steps that one function may take."""

    def __init__(self, steps):
        self.steps = steps

    def spend(self, steps):
        self.steps -= steps
        if self.steps < 0:
            raise TooLarge


def read_functions(tree, nodes):
    """
    (name, parameters, operations) of the functions that a module defines at its top level, in order; `name = lambda …` too. Operations
    are None where the program can reach any name of a running function, or is too large. `nodes`: all of the tree.
    """
    module, latest = ProgramNames(tree, nodes), {}
    for statement in tree.body:
        for name, definition in definitions(statement, latest):
            latest[name] = definition
            try:
                operations = None if module.reflects else Operations(module, definition)
            except (RecursionError, TooLarge):
                operations = None
            yield name, parameters_of(definition.args), operations


class _Expression:
    """What an evaluation reads, and what it may change besides giving a value."""
    __slots__ = ('reads', 'captured', 'bound', 'changed', 'reached', 'opaque', 'suspends', 'effects')

    def __init__(self):
        self.reads = 0
        # Names that a closure or generator within reads later; names that `:=` binds.
        self.captured = self.bound = 0
        # Names whose objects it changes at their top, and those within whose objects it changes something.
        self.changed = self.reached = 0
        # Opaque: it may change everything that it reads.
        self.opaque = self.suspends = False
        # All names through which its changes can be seen; known once the function has been read.
        self.effects = 0


class _Simple:
    """A statement that only defines and changes. `definitions`: (names bound, change of an object or None, expressions read)."""
    step = 'simple'
    __slots__ = ('definitions', 'evaluated')

    def __init__(self, definitions, evaluated):
        self.definitions, self.evaluated = definitions, evaluated


class _Exit:
    """`return`, `raise`, `break` or `continue`."""
    step = 'exit'
    __slots__ = ('kind', 'evaluated')

    def __init__(self, kind, evaluated):
        self.kind, self.evaluated = kind, evaluated


class _Branch:
    """Exactly one of the blocks, or none, runs: [(names bound on entry, block)]."""
    step = 'branch'
    __slots__ = ('evaluated', 'blocks')

    def __init__(self, evaluated, blocks):
        self.evaluated, self.blocks = evaluated, blocks


class _Loop:
    step = 'loop'
    __slots__ = ('evaluated', 'target', 'endless', 'body', 'otherwise', 'head', 'matters')

    def __init__(self, evaluated, target, endless, body, otherwise):
        self.evaluated, self.target, self.endless, self.body, self.otherwise = evaluated, target, endless, body, otherwise
        # Kept from visit to visit, so that loops in loops take no more rounds than there are names.
        self.head, self.matters = 0, False


class _Try:
    step = 'guarded'
    __slots__ = ('body', 'handlers', 'otherwise', 'last', 'returned', 'matters')

    def __init__(self, body, handlers, otherwise, last, returned):
        self.body, self.handlers, self.otherwise, self.last, self.returned = body, handlers, otherwise, last, returned
        self.matters = False


class Operations:
    """One function as operations, with the names that may share objects."""

    def __init__(self, module, definition):
        self.module = module
        self.budget = Budget(_STEPS)
        body = definition.body if isinstance(definition.body, list) else [definition.body]
        self.count = 1
        self.names = {name: self._new() for name in sorted((bound_names(body) - module.pure) | set(parameters_of(definition.args)))}
        # Classes of names: of one object, and of objects that may share anything. Parts may lie within another object.
        self.same, self.shared = [], []
        self.parts = self.captured = self.callables = 0
        self.expressions = []
        self.block = self._block(body) if isinstance(definition.body, list) else [_Exit('return', [self._read(definition.body)])]
        for expression in self.expressions:
            expression.effects = expression.bound | self._visible(expression.changed) | _spread(self.shared, expression.reached, self.budget)
            if expression.opaque:
                expression.effects |= _spread(self.shared, expression.reads | _WORLD, self.budget)

    def _new(self):
        self.count += 1
        return 1 << (self.count - 1)

    def _visible(self, changed):
        """Names through which a change of these objects at their top can be seen."""
        same = _spread(self.same, changed, self.budget)
        return _spread(self.shared, changed, self.budget) if same & self.parts else same

    def _share(self, mask, same=False):
        _join(self.shared, mask, self.budget)
        if same:
            self.parts |= mask
            _join(self.same, mask, self.budget)

    # Statements.

    def _block(self, statements):
        operations = []
        for statement in statements:
            operation = self._statement(statement)
            if operation is not None:
                operations.append(operation)
        return operations

    def _statement(self, node):
        kind = type(node)
        if kind is ast.Return:
            return _Exit('return', [self._read(node.value)] if node.value else [])
        if kind is ast.Expr:
            return _Simple([], [self._read(node.value)])
        if kind is ast.Assign:
            return self._assignment(node.targets, node.value)
        if kind is ast.AnnAssign:
            return self._assignment([node.target], node.value) if node.value else None
        if kind is ast.AugAssign:
            return self._augmented(node)
        if kind is ast.If:
            test = constant_test(node.test)
            taken, other = [(0, self._block(node.body if test is not False else []))], [(0, self._block(node.orelse if test is not True else []))]
            if test is not None:
                return _Branch([], taken if test else other)
            return _Branch([self._read(node.test)], taken + other)
        if kind is ast.While:
            test = constant_test(node.test)
            body = self._block([] if test is False else node.body)
            return _Loop([self._read(node.test)], 0, test is True, body, self._block(node.orelse))
        if kind is ast.For or kind is ast.AsyncFor:
            iterated = self._read(node.iter)
            iterated.opaque = iterated.opaque or not self.module.plain
            places = []
            target = self._target(node.target, iterated, places)
            self._element(target, iterated)
            body = [_Simple([(0, change, [iterated, place]) for change, place in places], []), *self._block(node.body)]
            return _Loop([iterated], target, False, body, self._block(node.orelse))
        if kind is ast.With or kind is ast.AsyncWith:
            return self._with(node)
        if isinstance(node, (ast.Try, ast.TryStar)):
            return self._try(node)
        if kind is ast.Match:
            return self._match(node)
        if isinstance(node, FUNCTIONS) or kind is ast.ClassDef:
            return self._nested(node)
        if kind is ast.Delete:
            places = []
            target = sum({self._target(each, _Expression(), places) for each in node.targets})
            return _Simple([(target, None, []), *((0, change, [place]) for change, place in places)], [place for _, place in places])
        if kind is ast.Assert:
            return _Branch([self._read(node.test)], [(0, [_Exit('raise', [])]), (0, [])])
        if kind is ast.Raise:
            return _Exit('raise', [self._read(each) for each in (node.exc, node.cause) if each])
        if kind is ast.Break or kind is ast.Continue:
            return _Exit('break' if kind is ast.Break else 'continue', [])
        return None

    def _assignment(self, targets, value):
        pairs, definitions, read, places = [], [], {}, []
        for target in targets:
            paired_targets(target, value, pairs)
        for target, part in pairs:
            expression = read.get(id(part)) or self._read(part)
            read[id(part)] = expression
            own = []
            names = self._target(target, expression, own)
            if type(target) is ast.Name:
                self._bind(names, part, expression)
            else:
                self._element(names, expression)
            definitions.append((names, None, [expression]))
            definitions.extend((0, change, [expression, place]) for change, place in own)
            places += own
        if len(targets) > 1:
            self._share(sum({names for names, _, _ in definitions}), same=True)
        return _Simple(definitions, [*read.values(), *(place for _, place in places)])

    def _augmented(self, node):
        value, target = self._read(node.value), node.target
        if type(target) is not ast.Name:
            places = []
            self._target(target, value, places)
            return _Simple([(0, change, [value, place]) for change, place in places], [value, *(place for _, place in places)])
        old = self._new_expression()
        old.reads = self._name(target.id, None)
        self._share(old.reads | value.reads)
        number = type(node.value) is ast.Constant and type(node.value.value) in (int, float) and type(node.op) is not ast.Mult
        change = None
        if not self.module.plain or (isinstance(node.op, _IN_PLACE) and not number):
            change = self._new_expression()
            change.changed = old.reads
        return _Simple([(old.reads, change, [value, old])], [value])

    def _target(self, target, value, places):
        """The names that a target binds; adds (change of an object, expression of the place) to `places`."""
        names, stack = 0, [target]
        while stack:
            node = stack.pop()
            if type(node) is ast.Name:
                names |= self._name(node.id, None)
            elif isinstance(node, (ast.Tuple, ast.List)):
                stack.extend(node.elts)
            elif type(node) is ast.Starred:
                stack.append(node.value)
            else:
                place, change = self._read(node), self._new_expression()
                owner = self._read(node.value)
                if type(node.value) is ast.Name and self.module.plain:
                    change.changed = owner.reads
                else:
                    change.reached = owner.reads
                self.parts |= value.reads
                self._share(owner.reads | value.reads)
                places.append((change, place))
        return names

    def _bind(self, names, value, expression):
        """After this the names may hold the value's object, one within it, or one that holds it."""
        everything, stack = names | expression.reads, [value]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is ast.IfExp:
                stack += [node.body, node.orelse]
            elif kind is ast.BoolOp:
                stack += node.values
            elif kind is ast.NamedExpr or kind is ast.Starred:
                stack.append(node.value)
            elif kind is ast.Name or not self.module.plain or expression.opaque or expression.captured:
                self._share(everything, same=True)
                if expression.captured:
                    self.callables |= names
            elif isinstance(node, _DISPLAYS):
                self.parts |= expression.reads
                self._share(everything)
            elif kind is ast.Attribute or (kind is ast.Subscript and type(node.slice) is not ast.Slice):
                self._element(names, expression)
            elif kind is ast.Call:
                called = getattr(node.func, 'attr', None) or getattr(node.func, 'id', None)
                if called not in _PLAIN_RESULTS:
                    self._share(everything)
                    self.parts |= 0 if called in _COPIES else names
            elif kind is ast.BinOp or kind is ast.Subscript:
                self._share(everything)

    def _element(self, names, expression):
        self.parts |= names
        self._share(names | expression.reads)

    def _with(self, node):
        evaluated, names = [], 0
        for item in node.items:
            expression = self._read(item.context_expr)
            evaluated.append(expression)
            if item.optional_vars is not None:
                bound = self._target(item.optional_vars, expression, [])
                self._share(bound | expression.reads, same=True)
                names |= bound
        # A context may swallow what its body raises.
        swallowing = _Try(self._block(node.body), [_Branch([], [(0, [])])], [], [], 0)
        return _Branch(evaluated, [(names, [swallowing])])

    def _try(self, node):
        handlers = []
        for handler in node.handlers:
            caught = [self._read(handler.type)] if handler.type else []
            name = self._name(handler.name, None) if handler.name else 0
            handlers.append(_Branch(caught, [(name, self._block(handler.body))]))
        # What `finally` changes may be what is returned.
        returned = 0
        for inner in [*node.body, *node.handlers, *node.orelse] if node.finalbody else []:
            for each in walk(inner):
                if type(each) is ast.Return and each.value is not None:
                    returned |= self._read(each.value).reads
        return _Try(self._block(node.body), handlers, self._block(node.orelse), self._block(node.finalbody), returned)

    def _match(self, node):
        subject, blocks = self._read(node.subject), []
        evaluated = [subject]
        for case in node.cases:
            names = 0
            for part in walk(case.pattern):
                if isinstance(part, (ast.MatchValue, ast.MatchClass)):
                    evaluated.append(self._read(part.value if type(part) is ast.MatchValue else part.cls))
                name = getattr(part, 'rest', None) or (getattr(part, 'name', None) if isinstance(part, ast.pattern) else None)
                names |= self._name(name, None) if name else 0
            self._share(names | subject.reads, same=True)
            guard = self._read(case.guard) if case.guard else None
            block = self._block(case.body)
            blocks.append((names, [_Branch([guard], [(0, block), (0, [])])] if guard else block))
        return _Branch(evaluated, [*blocks, (0, [])])

    def _nested(self, node):
        expression, name = self._read(node), self._name(node.name, None)
        self.callables |= name
        self._share(name | expression.reads, same=True)
        # The body of a function runs when it is called, and such calls are opaque; decorators and classes run at once.
        expression.opaque = bool(node.decorator_list) or type(node) is ast.ClassDef
        expression.bound = expression.changed = expression.reached = 0
        expression.suspends = False
        return _Simple([(name, None, [expression])], [expression])

    # Expressions.

    def _name(self, name, scope):
        if scope is not None and name in scope:
            return scope[name]
        mask = self.names.get(name)
        if mask is not None:
            return mask
        return 0 if self.module.is_pure(name) else _WORLD

    def _new_expression(self):
        expression = _Expression()
        self.expressions.append(expression)
        return expression

    def _read(self, root):
        """Everything below a node. A scope maps the names of comprehensions and nested functions to bits of their own."""
        into, used_at_once = self._new_expression(), set()
        stack = [(root, None, False)]
        while stack:
            node, scope, later = stack.pop()
            kind = type(node)
            if kind is ast.Name:
                if type(node.ctx) is ast.Load or later:
                    mask = self._name(node.id, scope)
                    into.reads |= mask
                    if later:
                        into.captured |= mask
                continue
            if not self.module.plain and isinstance(node, _OPERATIONS):
                into.opaque = True
            if kind is ast.Call:
                self._call(node, scope, into)
                if (getattr(node.func, 'id', None) or getattr(node.func, 'attr', None)) in _USING:
                    used_at_once.update(map(id, node.args))
            elif isinstance(node, _COMPREHENSIONS):
                keeps = type(node) is ast.GeneratorExp and id(node) not in used_at_once
                stack += self._comprehension(node, scope, later, later or keeps)
                continue
            elif isinstance(node, _SCOPES):
                body = node.body if isinstance(node.body, list) else [node.body]
                inner = dict(scope or ())
                inner.update((name, self._new()) for name in bound_names(body) | set(parameters_of(node.args)))
                outside = [*node.args.defaults, *filter(None, node.args.kw_defaults), *getattr(node, 'decorator_list', ())]
                stack.extend((each, scope, later) for each in outside)
                stack.extend((each, inner, True) for each in body)
                continue
            elif kind is ast.IfExp and constant_test(node.test) is not None:
                stack.append((node.body if constant_test(node.test) else node.orelse, scope, later))
                continue
            elif kind is ast.BoolOp:
                for value in node.values:
                    stack.append((value, scope, later))
                    if constant_test(value) is (type(node.op) is ast.Or):
                        break
                continue
            elif kind is ast.NamedExpr:
                name = self._name(node.target.id, scope)
                into.bound |= name
                into.reads |= name
                self.captured |= name
                self.parts |= name
            elif kind is ast.Nonlocal or kind is ast.Global:
                for name in node.names:
                    into.reads |= self._name(name, None)
                    into.captured |= self._name(name, None)
            elif isinstance(node, _SUSPENSIONS):
                into.suspends = True
            stack += [(each, scope, later) for each in children(node)]
        self.captured |= into.captured
        if into.bound:
            self._share(into.reads, same=True)
        return into

    def _comprehension(self, node, scope, later, later_within):
        pending, inner = [], dict(scope or ())
        for index, generator in enumerate(node.generators):
            pending.append((generator.iter, dict(inner), later_within) if index else (generator.iter, scope, later))
            bound = 0
            for part in walk(generator.target):
                if type(part) is ast.Name:
                    inner[part.id] = self._new()
                    bound |= inner[part.id]
            # They hold elements of what is iterated over.
            self.parts |= bound
            names = [self._name(part.id, pending[-1][1]) for part in walk(generator.iter) if type(part) is ast.Name]
            for mask in names:
                self._share(bound | mask)
            pending.extend((test, inner, later_within) for test in generator.ifs)
        results = [node.key, node.value] if type(node) is ast.DictComp else [node.elt]
        return pending + [(each, inner, later_within) for each in results]

    def _call(self, node, scope, into):
        function, given = node.func, [*node.args, *(keyword.value for keyword in node.keywords)]
        # A function of the program's own, given to another one, may be called there.
        into.opaque = into.opaque or any(self._is_callable(each, scope) for each in given)
        if type(function) is ast.Name:
            bound = function.id in self.names or (scope is not None and function.id in scope)
            into.opaque = into.opaque or bound or not self.module.is_pure(function.id)
            return
        if type(function) is not ast.Attribute:
            into.opaque = True
            return
        owner = function.value
        root = owner
        while type(root) is ast.Attribute:
            root = root.value
        mask = self._name(root.id, scope) if type(root) is ast.Name else None
        if mask == 0:
            # A function of a module or a type: list.append changes its argument.
            into.opaque = into.opaque or function.attr in _CHANGING_METHODS
            return
        if function.attr in _CHANGING_METHODS and mask != _WORLD:
            changed = self._names_in(owner, scope)
            if type(owner) is ast.Name:
                into.changed |= changed
            else:
                into.reached |= changed
            held = 0
            for each in given:
                held |= self._names_in(each, scope)
            self.parts |= held
            self._share(changed | held)
        elif function.attr not in _READING_METHODS or (mask == _WORLD and function.attr not in _PLAIN_RESULTS):
            into.opaque = True

    def _is_callable(self, node, scope):
        if type(node) is ast.Attribute:
            return node.attr in _CHANGING_METHODS
        if type(node) is not ast.Name:
            return False
        mask = self._name(node.id, scope)
        return bool(mask & self.callables) or (mask == _WORLD and node.id in self.module.bound)

    def _names_in(self, node, scope):
        mask = 0
        for part in walk(node):
            if type(part) is ast.Name:
                mask |= self._name(part.id, scope)
        return mask


def _join(classes, mask, budget):
    """Makes one class of the names and of the classes that hold one of them."""
    if mask & (mask - 1) == 0:
        return
    budget.spend(1 + len(classes))
    apart = []
    for members in classes:
        if members & mask:
            mask |= members
        else:
            apart.append(members)
    classes[:] = [*apart, mask]


def _spread(classes, mask, budget):
    budget.spend(1 + len(classes))
    for members in classes:
        if members & mask:
            mask |= members
    return mask


