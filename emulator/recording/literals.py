"""Python code, as `ruff format` leaves it: literals, calls, and where their lines break.

Texts are ASCII, whatever they hold. A call or a container that does not fit is written with one
item a line and a comma after the last, which the formatter keeps.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WIDTH: Final = 88
"""The line length of the formatter, unless a project says otherwise."""

_INDENT: Final = "    "
_MASKED: Final = re.compile(r"\[secret ([^\[\]]+)\]")


@dataclass(frozen=True, slots=True)
class Group:
    """Something in brackets: what stands before, the items, the bracket that closes."""

    head: str
    items: tuple[tuple[str, Code], ...]
    tail: str


Code: TypeAlias = "str | Group"
"""An expression: a text that is never broken, or a group that may be."""


def call(name: str, *args: Code, **named: Code | None) -> Group:
    """Return a call; arguments by name that are None are left out.

    >>> written("x = ", call("f", "1", y="2"))
    ['x = f(1, y=2)']
    """
    items = [("", arg) for arg in args]
    items += [(f"{key}=", value) for key, value in named.items() if value is not None]
    return Group(f"{name}(", tuple(items), ")")


def array(items: Sequence[Code]) -> Group:
    """Return a list."""
    return Group("[", tuple(("", item) for item in items), "]")


def table(items: Sequence[tuple[Code, Code]], *, spread: str = "") -> Group:
    """Return a dict, after the items of the one that is called `spread`."""
    pairs: list[tuple[str, Code]] = [(f"{one_line(key)}: ", value) for key, value in items]
    return Group("{", (*([("**", spread)] if spread else ()), *pairs), "}")


def one_line(code: Code) -> str:
    """Return an expression in one line."""
    if isinstance(code, str):
        return code
    inner = ", ".join(f"{label}{one_line(item)}" for label, item in code.items)
    return f"{code.head}{inner}{code.tail}"


def written(before: str, code: Code, after: str = "", *, indent: int = 0) -> list[str]:
    """Return the lines of a statement, or of an item of one."""
    margin = _INDENT * indent
    whole = f"{margin}{before}{one_line(code)}{after}"
    if isinstance(code, str) or not code.items or len(whole) <= WIDTH:
        return [whole]
    lines = [f"{margin}{before}{code.head}"]
    for label, item in code.items:
        lines += written(label, item, ",", indent=indent + 1)
    return [*lines, f"{margin}{code.tail}{after}"]


def assigned(name: str, code: Code, *, indent: int = 0) -> list[str]:
    """Return the lines of an assignment; a long text goes into brackets if it fits there."""
    lines = written(f"{name} = ", code, indent=indent)
    margin = _INDENT * (indent + 1)
    if isinstance(code, str) and len(lines[0]) > WIDTH >= len(margin) + len(code):
        return [f"{_INDENT * indent}{name} = (", f"{margin}{code}", f"{_INDENT * indent})"]
    return lines


# -- values ----------------------------------------------------------------------------------------


def text(value: str) -> str:
    r"""Return the literal of a text.

    >>> text("plain"), text('{"a": 1}'), text("caf\u00e9\n")
    ('"plain"', '\'{"a": 1}\'', '"caf\\xe9\\n"')
    """
    quote = _quote(value)
    return f"{quote}{_escaped(value, quote)}{quote}"


def octets(value: bytes) -> str:
    r"""Return the literal of bytes.

    >>> octets(b"\xff'")
    'b"\\xff\'"'
    """
    return f"b{text(value.decode('latin-1'))}" if value.isascii() else _octets(value)


def _octets(value: bytes) -> str:
    shown = value.decode("latin-1")
    quote = _quote(shown)
    inner = "".join(
        _escaped(char, quote) if char.isascii() else f"\\x{ord(char):02x}" for char in shown
    )
    return f"b{quote}{inner}{quote}"


def filled(value: str, variables: Mapping[str, str]) -> str:
    """Return a text whose masked secrets are those of `variables`, by expressions.

    >>> filled("Bearer [secret KEY]", {"KEY": "emulator.env.KEY"})
    'f"Bearer {emulator.env.KEY}"'
    """
    parts = _MASKED.split(value)
    known = [name in variables for name in parts[1::2]]
    if not any(known):
        return text(value)
    if parts == ["", parts[1], ""]:
        return variables[parts[1]]
    quote = '"'
    inner = _escaped(parts[0], quote, doubled=True)
    for name, after in zip(parts[1::2], parts[2::2], strict=True):
        inner += (
            f"{{{variables[name]}}}" if name in variables else f"[secret {_escaped(name, quote)}]"
        )
        inner += _escaped(after, quote, doubled=True)
    return f"f{quote}{inner}{quote}"


def json_value(value: Any, variables: Mapping[str, str]) -> Code:
    """Return the literal of a value of JSON."""
    match value:
        case str():
            return filled(value, variables)
        case list():
            return array([json_value(item, variables) for item in value])
        case dict():
            return table([(text(key), json_value(item, variables)) for key, item in value.items()])
        case float() if not isfinite(value):
            return f'float("{value}")'
        case _:  # a number, True, False, None
            return repr(value)


def name_of(value: str, default: str) -> str:
    """Return a Python name that is like a text.

    >>> name_of("Orders, 15:02", "x"), name_of("\u65e5", "x"), name_of("2nd", "x")
    ('orders_15_02', 'x', 'x_2nd')
    """
    name = re.sub(r"[^a-z0-9]+", "_", value.lower()).strip("_")[:60].rstrip("_")
    if name[:1].isdigit() or keyword.iskeyword(name):
        name = f"{default}_{name}"
    return name or default


def comment(value: str) -> str:
    """Return a text as it may stand in a comment: one line of ASCII."""
    return _escaped(value, "", doubled=False)


def _quote(value: str) -> str:
    return "'" if value.count('"') > value.count("'") else '"'


def _escaped(value: str, quote: str, *, doubled: bool = False) -> str:
    return "".join(_escapes(value, quote, doubled=doubled))


def _escapes(value: str, quote: str, *, doubled: bool) -> Iterator[str]:
    for char in value:
        if char == quote:
            yield f"\\{char}"
        elif char in "'\"":
            yield char
        elif doubled and char in "{}":
            yield char * 2
        else:
            yield ascii(char)[1:-1]
