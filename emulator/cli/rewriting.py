"""`assert` in a scenario file says what it saw: `AssertionError: assert 2 == 1`.

pytest does so for its test modules; elsewhere the error has no text. An `assert` without a message
of its own gets one, made when it fails. Its parts are evaluated as ever, once and in order:

    assert left == right   ->   the values of both, for any operator of comparison
    assert not thing       ->   the value of the thing
    assert thing           ->   its value, unless that is False

Chains (`a < b < c`) stay as they are.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Final

_LONGEST: Final = 400
# A repr may tell where an object lies in memory, which is another place in each run.
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
# Names that no code of a user's can have.
_EXPLAIN: Final = "@explain"
_LEFT: Final = "@left"
_RIGHT: Final = "@right"

_OPERATORS: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def rewrite(source: bytes, path: str) -> Any:
    """Return the code of a file with its assertions rewritten; raises `SyntaxError`."""
    tree = _Rewriter().visit(ast.parse(source, path))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def helpers() -> dict[str, object]:
    """Return the globals that rewritten code needs."""
    return {_EXPLAIN: explain}


def explain(operator: str, *values: object) -> str:
    """Return what a failed assertion says."""
    shown = [_shown(value) for value in values]
    if len(shown) == 2:
        return f"assert {shown[0]} {operator} {shown[1]}"
    if operator:
        return f"assert {operator} {shown[0]}"
    return "" if values[0] is False else f"assert {shown[0]}"


def _shown(value: object) -> str:
    try:
        text = _ADDRESS.sub("", repr(value))
    except Exception as error:
        return f"<{type(value).__name__}, whose repr() raises {type(error).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"


class _Rewriter(ast.NodeTransformer):
    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        if node.msg is not None:
            return node
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            operator = _OPERATORS[type(test.ops[0])]
            test.left = _kept(_LEFT, test.left)
            test.comparators = [_kept(_RIGHT, test.comparators[0])]
            node.msg = _call(operator, _LEFT, _RIGHT)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test.operand = _kept(_LEFT, test.operand)
            node.msg = _call("not", _LEFT)
        elif not isinstance(test, ast.Compare | ast.Tuple):
            node.test = _kept(_LEFT, test)
            node.msg = _call("", _LEFT)
        if node.msg is not None:
            ast.copy_location(node.msg, node)
        return node


def _kept(name: str, value: ast.expr) -> ast.expr:
    """`(name := value)`: the value, remembered."""
    return ast.copy_location(ast.NamedExpr(ast.Name(name, ast.Store()), value), value)


def _call(operator: str, *names: str) -> ast.expr:
    values: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
    return ast.Call(ast.Name(_EXPLAIN, ast.Load()), [ast.Constant(operator), *values], [])
