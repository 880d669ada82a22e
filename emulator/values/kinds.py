"""What JavaScript says of any value: its `typeof`, its class, the order of its properties."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from emulator.values.buffers import ArrayBuffer, TypedArray
from emulator.values.containers import JsMap, JsSet
from emulator.values.types import UNDEFINED, BigInt, Boxed, HostObject, JsException, Opaque, RegExp


def type_of(value: Any) -> str:
    """Return JavaScript's `typeof`."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    if value is UNDEFINED:
        return "undefined"
    if isinstance(value, BigInt):
        return "bigint"
    return value.typeof if isinstance(value, Opaque) else "object"


_CLASSES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "Boolean"),
    (str, "String"),
    (int, "Number"),
    (float, "Number"),
    (dict, "Object"),
    (list, "Array"),
    (bytes, "Uint8Array"),
    (datetime, "Date"),
    (set, "Set"),
    (frozenset, "Set"),
    (JsSet, "Set"),
    (BigInt, "BigInt"),
    (RegExp, "RegExp"),
    (ArrayBuffer, "ArrayBuffer"),
)


def class_of(value: Any) -> str:
    """Return `value.constructor.name`, or "" for null and undefined."""
    if isinstance(value, (HostObject, JsMap, Opaque)):
        return value.js_class
    if isinstance(value, JsException):
        return value.name
    if isinstance(value, (TypedArray, Boxed)):
        return value.kind
    for kind, name in _CLASSES:
        if isinstance(value, kind):
            return name
    return ""


def property_names(record: dict[str, Any]) -> list[str]:
    """Return the keys in JavaScript's order: array indices ascending, then the rest as inserted."""
    indices = [key for key in record if is_index(key)]
    if not indices:
        return list(record)
    return sorted(indices, key=int) + [key for key in record if not is_index(key)]


def is_index(key: str) -> bool:
    """Whether a property name is an array index (`"0"`, `"17"`, not `"01"`)."""
    return key.isascii() and key.isdigit() and (key == "0" or key[0] != "0") and len(key) < 11
