"""Values on their way to SQLite and back.

JavaScript's numbers are doubles: `1` is stored as `1.0` where the column has no type, and integers
beyond 2**53 lose their last digits when they are read, both as in production.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.js_text import display
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    JsException,
    Symbol,
    TypedArray,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from emulator.sql.execution import SqlValue

_EXACT: Final = 2**53
_PLAIN: Final = frozenset({str, float, type(None)})


def javascript_row(row: Sequence[Any], blob: Callable[[bytes], Any]) -> list[Any]:
    """The values of a row, in which `blob` makes something of bytes."""
    return [
        value
        if type(value) in _PLAIN
        else (value if -_EXACT <= value <= _EXACT else float(value))
        if type(value) is int
        else blob(value)
        for value in row
    ]


def storage_value(value: Any) -> SqlValue:
    """What a parameter of `storage.sql.exec` becomes, as the runtime converts it.

    Raises `TypeError` (as `JsException`) for a BigInt and a symbol; an object that is no buffer is
    its text, even `true`.
    """
    if value is None or value is UNDEFINED:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, (bytes, ArrayBuffer, TypedArray)):
        return bytes(value)
    if isinstance(value, BigInt):
        raise JsException("TypeError", "Cannot convert a BigInt value to a number")
    if isinstance(value, Symbol):
        raise JsException("TypeError", "Cannot convert a Symbol value to a string")
    return display(value)
