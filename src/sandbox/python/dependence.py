"""Which parameters of a function its returned value can depend on: a backward slice over its operations (operations.py).

A name is live where its value can still reach the result. Operations are followed backwards from every `return`; one that binds and
changes nothing live, and decides over no such operation, is dead code, and what it reads is not used by it.
"""
from operations import TooLarge


def used_parameters(parameters, operations):
    """Those of the parameters that the value can depend on; all of them where the operations are unknown or too many."""
    if operations is None:
        return parameters
    try:
        live = _Flow(operations).at_entry()
    except (RecursionError, TooLarge):
        return parameters
    return [name for name in parameters if live & operations.names[name]]


class _Flow:
    """Follows a function's operations backwards. Each step gives the names live before it, and whether the result can depend on it."""

    def __init__(self, function):
        self.function = function
        self.loops = []
        # Live where an exception may be caught; live after `finally`, which every exit passes; whether what raises decides.
        self.caught = self.passed = 0
        self.guarded = False
        # Closures read their names when they are called: those of closures that matter are live everywhere.
        self.always = 0

    def at_entry(self):
        """The names live where the function begins."""
        while True:
            before = self.always
            live, _ = self._block(self.function.block, self.always)
            if self.always == before:
                return live

    def _reads(self, expressions):
        mask = 0
        for expression in expressions:
            mask |= expression.reads
            self.always |= expression.captured
        return mask

    def _acts(self, expressions, live):
        return any([expression.suspends or expression.effects & live for expression in expressions])

    def _block(self, operations, live):
        matters = False
        for operation in reversed(operations):
            self.function.budget.spend(1)
            live, one = self._STEPS[operation.step](self, operation, live)
            live |= self.caught | self.always
            matters = matters or one
        return live, matters

    def _simple(self, operation, live):
        needed, bound, matters = 0, 0, False
        for names, change, expressions in operation.definitions:
            if names & live or (change is not None and change.effects & live):
                matters = True
                needed |= self._reads(expressions)
            bound |= names
        acts = self._acts(operation.evaluated, live)
        if acts or self.guarded:
            needed |= self._reads(operation.evaluated)
        # What closures hold, and what outlives the call, may be another's.
        return live & ~(bound & ~self.function.captured & ~1) | needed, matters or acts

    def _exit(self, operation, live):
        if operation.kind == 'return':
            return self._reads(operation.evaluated) | self.passed, True
        if operation.kind == 'raise':
            return (self._reads(operation.evaluated) if self.guarded else 0) | self.passed, True
        loop, after, head = self.loops[-1]
        return (after if operation.kind == 'break' else head) | self.passed, loop.matters

    def _branch(self, operation, live):
        before, matters = 0, False
        for bound, block in operation.blocks:
            inner, one = self._block(block, live)
            matters = matters or one or bool(bound & inner)
            before |= inner & ~(bound & ~self.function.captured)
        if matters or self.guarded or self._acts(operation.evaluated, before):
            before |= self._reads(operation.evaluated)
        return before, matters or self._acts(operation.evaluated, before)

    def _loop(self, operation, live):
        after, otherwise = self._block(operation.otherwise, live)
        while True:
            head, mattered = operation.head, operation.matters
            self.loops.append((operation, live, head | after))
            inner, one = self._block(operation.body, head | after)
            self.loops.pop()
            acts = self._acts(operation.evaluated, head | inner | after)
            operation.matters = mattered or one or otherwise or bool(operation.target & (inner | after)) or acts
            new = operation.head | (inner & ~(operation.target & ~self.function.captured)) | (0 if operation.endless else after)
            if operation.matters or self.guarded:
                new |= self._reads(operation.evaluated)
            operation.head = new
            if new == head and operation.matters == mattered:
                return new, operation.matters

    def _guarded(self, operation, live):
        outside = self.caught, self.passed, self.guarded
        last, matters = self._block(operation.last, live | (operation.returned if operation.last else 0))
        if operation.last:
            self.passed |= last
            self.caught |= last
        handled = self.caught
        for handler in operation.handlers:
            inner, one = self._branch(handler, last)
            handled |= inner
            matters = matters or one
        otherwise, one = self._block(operation.otherwise, last)
        matters = matters or one
        self.caught = handled
        while True:
            self.guarded = outside[2] or bool(operation.handlers and operation.matters)
            inner, one = self._block(operation.body, otherwise)
            if operation.matters or not (matters or one):
                break
            operation.matters = True
        self.caught, self.passed, self.guarded = outside
        return inner | handled, operation.matters

    _STEPS = {'simple': _simple, 'exit': _exit, 'branch': _branch, 'loop': _loop, 'guarded': _guarded}
