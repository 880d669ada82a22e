"""How JavaScript prints values (`String(value)`) and lists their properties (`Object.keys`)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from emulator.runtime.profile import generation
from emulator.runtime.pyproxy import PyProxy, visible
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    Boxed,
    Function,
    HostObject,
    JsMap,
    JsSet,
    LiteralMap,
    Opaque,
    ProxiedDict,
    ProxiedList,
    RegExp,
    TypedArray,
    class_of,
    format_number,
    property_names,
    settled,
)

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


def display(value: Any) -> str:
    """Return `String(value)`."""
    if isinstance(value, (ProxiedDict, ProxiedList)):
        return repr(value) if value.obj is None else str(value.obj)
    if isinstance(value, list):
        return join(value, ",")
    if isinstance(value, bytes) or (isinstance(value, TypedArray) and value.kind != "DataView"):
        return ",".join(map(display, value if isinstance(value, bytes) else value.view()))
    if isinstance(value, datetime):
        return _display_date(settled(value))
    if isinstance(value, PyProxy):
        return str(value.obj)
    if isinstance(value, Function):
        return value.source
    if isinstance(value, Boxed):
        return "Invalid Date" if value.kind == "Date" else display(value.value)
    if isinstance(value, HostObject) and "toString" in value.js_members:
        return str(value.js_lookup("toString")())
    if isinstance(value, (dict, HostObject, JsMap, JsSet, set, frozenset, ArrayBuffer, TypedArray)):
        return f"[object {'Map' if isinstance(value, JsMap) else class_of(value)}]"
    if isinstance(value, (RegExp, Opaque)):
        return str(value)
    return _display_primitive(value)


def _display_date(moment: datetime | Boxed) -> str:
    if isinstance(moment, Boxed):
        return "Invalid Date"
    day = f"{DAYS[moment.weekday()]} {MONTHS[moment.month - 1]} {moment.day:02d}"
    return f"{day} {moment.year:04d} {moment:%H:%M:%S} GMT+0000 (Coordinated Universal Time)"


def join(values: list[Any], glue: str, *around: int) -> str:
    """Return `Array.prototype.join`: nothing for null, undefined and an array inside itself."""
    inside = (*around, id(values))
    parts = []
    for value in values:
        if isinstance(value, list):
            parts.append("" if id(value) in inside else join(value, ",", *inside))
        else:
            parts.append("" if value is None or value is UNDEFINED else display(value))
    return glue.join(parts)


def _display_primitive(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return format_number(value)
    if value is None:
        return "null"
    return str(value.value) if isinstance(value, BigInt) else str(value)


def own_names(value: Any) -> list[str]:
    """Return `Object.keys(value)`."""
    if isinstance(value, dict):
        return property_names(value)
    if isinstance(value, LiteralMap):
        return [str(key) for key in value.keys()]  # noqa: SIM118 - a Map iterates over its entries
    if isinstance(value, Boxed):
        return own_names(value.value) if value.kind == "String" else []
    if isinstance(value, (list, str, bytes)):
        return [str(index) for index in range(len(value))]
    if isinstance(value, TypedArray) and value.kind != "DataView":
        return [str(index) for index in range(len(value))]
    if isinstance(value, HostObject):
        return list(value.js_keys())
    if isinstance(value, PyProxy) and isinstance(value.obj, Mapping) and generation() > 26:
        return list(visible(value.obj) or ())
    return []
