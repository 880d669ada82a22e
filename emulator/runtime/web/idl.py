"""How JavaScript reads an argument: the few Web IDL conversions the web classes need.

Arguments are canonical values (`emulator.values`).
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.pyproxy import PyProxy, iterate, tell_unseen, to_host
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    Boxed,
    Function,
    HostObject,
    JsException,
    JsMap,
    LiteralMap,
    ProxiedDict,
    ProxiedList,
    TypedArray,
    class_of,
    format_number,
    to_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

# Objects whose toString() is their content; every other class answers "[object Class]".
_SELF_DESCRIBING: Final = frozenset({"URL", "URLSearchParams"})


def missing(value: object) -> bool:
    """Tell whether an optional argument was left out."""
    return value is UNDEFINED


def string(value: Any) -> str:
    """Return JavaScript's `String(value)`."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if value is None:
        return "null"
    if value is UNDEFINED:
        return "undefined"
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is float:
        return format_number(value)
    return _object_string(value)


def _object_string(value: Any) -> str:
    if isinstance(value, (ProxiedDict, ProxiedList)) and value.obj is not None:
        return str(value.obj)  # the Python object's own text, as of any proxy
    if isinstance(value, (list, tuple, TypedArray)) and class_of(value) != "DataView":
        items = value.view() if isinstance(value, TypedArray) else value
        return ",".join("" if item in (None, UNDEFINED) else string(item) for item in items)
    if isinstance(value, bytes):
        return ",".join(map(str, value))
    if isinstance(value, PyProxy):
        return str(value.obj)
    if isinstance(value, Boxed):
        return "Invalid Date" if value.kind == "Date" else string(value.value)
    if isinstance(value, BigInt):
        return str(value.value)
    if isinstance(value, Function):
        return value.source
    if isinstance(value, HostObject) and value.js_class in _SELF_DESCRIBING:
        return str(value)
    if isinstance(value, (str, JsException, ProxiedDict, datetime)):
        return str(value)
    return f"[object {class_of(value) or 'Object'}]"


def number(value: object) -> float:
    """Return JavaScript's `Number(value)`; NaN for what is no number."""
    return to_number(value)


def integer(value: object) -> int:
    """Return a number cut towards zero; 0 for NaN and the infinities."""
    result = to_number(value)
    return int(result) if math.isfinite(result) else 0


def buffer(value: object) -> bytes | None:
    """Return the bytes of a buffer or view, None for anything else."""
    if isinstance(value, bytes):
        return value
    return bytes(value) if isinstance(value, (ArrayBuffer, TypedArray)) else None


def array_buffer(data: bytes) -> ArrayBuffer:
    """Return an ArrayBuffer of `data`."""
    return ArrayBuffer(data)


def options(value: object) -> dict[str, Any]:
    """Return the members of an options object without those that are undefined."""
    if isinstance(value, JsMap):
        if not isinstance(value, LiteralMap):
            tell_unseen(value.keys(), "a Map")
            return {}
        value = {string(key): item for key, item in value.items()}
    if not isinstance(value, dict):
        return {}
    return {name: item for name, item in value.items() if item is not UNDEFINED}


def sequence(value: object) -> Iterable[Any] | None:
    """Return what iterating an object gives, None for what is no iterable object."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return None
    if isinstance(value, ProxiedDict):
        # Python's iterator of a dict: its keys.
        return list(value if value.obj is None else value.obj)
    try:
        return map(to_host, iterate(value))
    except JsException:
        return None


def throw(reason: object) -> BaseException:
    """Return what Python sees when JavaScript throws `reason`, which need not be an Error."""
    if isinstance(reason, PyProxy):
        reason = reason.obj
    if isinstance(reason, BaseException):
        return reason
    if isinstance(reason, str):
        return JsException("Error", reason)
    kind = "undefined" if reason is UNDEFINED else type(reason).__name__
    return JsException("Error", f"A value of type {kind} was thrown as an error! {string(reason)}")


def wrong_argument(method: str, owner: str, position: int, kind: str) -> JsException:
    """Return the runtime's TypeError for an argument of the wrong type."""
    return JsException(
        "TypeError",
        f"Failed to execute '{method}' on '{owner}': parameter {position} is not of type '{kind}'.",
    )


def wrong_construction(owner: str, position: int, kind: str) -> JsException:
    """Return the runtime's TypeError for a constructor's argument of the wrong type."""
    return JsException(
        "TypeError",
        f"Failed to construct '{owner}': constructor parameter {position} is not of type '{kind}'.",
    )


def wrong_field(field: str, owner: str, kind: str) -> JsException:
    """Return the runtime's TypeError for a member of an options object of the wrong type."""
    return JsException(
        "TypeError",
        f"Incorrect type for the '{field}' field on '{owner}': "
        f"the provided value is not of type '{kind}'.",
    )
