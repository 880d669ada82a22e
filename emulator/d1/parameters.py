"""What `bind` takes, and what becomes of it on the way to SQLite.

A statement's parameters go to the service as JSON: infinities and NaN arrive as null, buffers as
lists of numbers, and every number is a double (`1` in a column without a type is `1.0`).
"""

from __future__ import annotations

import math
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from emulator.d1.texts import type_error
from emulator.runtime.js_text import display
from emulator.values import ArrayBuffer, BigInt, JsException, Symbol, TypedArray, type_of

if TYPE_CHECKING:
    from emulator.sql.execution import SqlValue


# What a statement's `params` have as it was given.
UNCHANGED: Final = frozenset({str, float, int, NoneType})
# And what SQLite gets as it is there.
AS_SENT: Final = frozenset({str, NoneType})


def bound(value: Any) -> Any:
    """A value as `params` of a statement has it; raises D1's `D1_TYPE_ERROR`."""
    kind = type(value)
    if kind in UNCHANGED:
        return value
    if kind is bool:
        return int(value)
    if isinstance(value, (bytes, ArrayBuffer)):
        return list(bytes(value))
    if isinstance(value, TypedArray):
        return _elements(value)
    if type(value) is list and all(map(_is_byte, value)):
        return value
    if isinstance(value, Symbol):
        raise JsException("TypeError", "Cannot convert a Symbol value to a string")
    raise type_error(type_of(value), display(value))


def sent(value: Any) -> SqlValue:
    """A value of `params` as SQLite gets it; raises JSON's `TypeError` for a BigInt."""
    kind = type(value)
    if kind in AS_SENT:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return float(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if any(isinstance(item, BigInt) for item in value):
        raise JsException("TypeError", "Do not know how to serialize a BigInt")
    return bytes(int(item) & 0xFF if math.isfinite(item) else 0 for item in value)


def _elements(view: TypedArray) -> list[Any]:
    """The elements of a view; a DataView has none that could be counted."""
    if view.kind == "DataView":
        return []
    elements = view.view().tolist()
    return list(map(BigInt, elements)) if view.kind.startswith("Big") else elements


def _is_byte(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and 0 <= value < 256
