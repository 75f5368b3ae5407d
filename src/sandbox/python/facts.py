"""Syntax facts of a program, from CPython's own ast. Computed before any code of the program runs; shape: SyntaxFacts in sandbox.ts."""
import ast

from dependence import used_parameters
from operations import read_functions

_DECISIONS = (
    ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.comprehension, ast.match_case,
)
# Decimal text of longer integers is refused by Python itself (sys.set_int_max_str_digits), so larger constants count as this one.
_LARGEST_INTEGER = 10 ** 4299


def syntax_facts(source):
    """Facts of a program that parses, ready for JSON. Raises what ast.parse raises."""
    tree = ast.parse(source)
    nodes, called_names, called_attributes = {}, {}, {}
    attributes, imports, variables = set(), set(), set()
    cyclomatic, reversed_slices, largest, depth = 1, 0, 0, 0

    # Own stack instead of recursion: a deep program must not exhaust the interpreter's.
    stack, walked = [(tree, 1)], []
    while stack:
        node, level = stack.pop()
        walked.append(node)
        kind = type(node)
        nodes[kind.__name__] = nodes.get(kind.__name__, 0) + 1
        if level > depth:
            depth = level
        for child in ast.iter_child_nodes(node):
            stack.append((child, level + 1))

        if isinstance(node, _DECISIONS):
            cyclomatic += 1
            if kind is ast.comprehension:
                cyclomatic += len(node.ifs)
        elif kind is ast.BoolOp:
            cyclomatic += len(node.values) - 1
        elif kind is ast.Call:
            if type(node.func) is ast.Name:
                called_names[node.func.id] = called_names.get(node.func.id, 0) + 1
            elif type(node.func) is ast.Attribute:
                called_attributes[node.func.attr] = called_attributes.get(node.func.attr, 0) + 1
        elif kind is ast.Attribute:
            attributes.add(node.attr)
        elif kind is ast.Import:
            imports.update(alias.name for alias in node.names)
        elif kind is ast.ImportFrom:
            imports.add('.' * node.level + (node.module or ''))
        elif kind is ast.Slice:
            reversed_slices += _is_minus_one(node.step)
        elif kind is ast.Constant and type(node.value) is int:
            largest = max(largest, abs(node.value))
        elif kind is ast.Name and type(node.ctx) is ast.Store:
            variables.add(node.id)

    return {
        'topLevel': [type(statement).__name__ for statement in tree.body],
        'functions': [
            {'name': name, 'parameters': parameters, 'used': used_parameters(parameters, operations)}
            for name, parameters, operations in read_functions(tree, walked)
        ],
        'nodes': nodes,
        'calledNames': called_names,
        'calledAttributes': called_attributes,
        'attributes': sorted(attributes),
        'imports': sorted(imports),
        'reversedSlices': reversed_slices,
        'largestInteger': str(min(largest, _LARGEST_INTEGER)),
        'depth': depth,
        'cyclomatic': cyclomatic,
        'lines': sum(1 for line in source.splitlines() if line.strip()),
        'variables': len(variables),
    }


def _is_minus_one(step):
    return (
        type(step) is ast.UnaryOp
        and type(step.op) is ast.USub
        and type(step.operand) is ast.Constant
        and step.operand.value == 1
    )
