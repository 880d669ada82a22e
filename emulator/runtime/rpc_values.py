"""Conversion of arguments and results between Python and the platform, as the SDK does it."""

from __future__ import annotations

import functools
import inspect
from datetime import UTC, datetime
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.ffi import property_key, typed_array
from emulator.runtime.profile import generation, is_modern
from emulator.runtime.proxies import JsProxy, double_proxy, host_proxy, to_memoryview, wrap
from emulator.runtime.pyproxy import PyProxy, python_function, to_host, unwrap
from emulator.runtime.to_py import FEW, have_no_index, in_order
from emulator.values import (
    SAFE,
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    RegExp,
    TypedArray,
    class_of,
    from_milliseconds,
    plain_number,
    to_milliseconds,
)

if TYPE_CHECKING:
    from collections.abc import Callable


# JavaScript class → the `workers` class for it (`Response`, `Request`, …); see `register_class`.
_CLASSES: Final[dict[str, Callable[[Any], Any]]] = {}


# What is the same on both sides: as an argument, and as a result.
UNCHANGED: Final = frozenset({str, bool, float, bytes})
PRIMITIVE: Final = frozenset({str, bool, int})
# What a result is in Python too; as an argument of older code, null is `jsnull`.
_SAME: Final = PRIMITIVE | {NoneType}
# Values with a Python side of their own; a binding hands them out as they are.
PASSTHROUGH: Final = frozenset(
    {
        "Blob",
        "ArrayBuffer",
        "TypedArray",
        "DataView",
        "Uint8Array",
        "Uint8ClampedArray",
        "Int8Array",
        "Uint16Array",
        "Int16Array",
        "Uint32Array",
        "Int32Array",
        "Float16Array",
        "Float32Array",
        "Float64Array",
        "BigInt64Array",
        "BigUint64Array",
        "FormData",
        "ReadableStream",
        "URLSearchParams",
        "Response",
        "Headers",
    }
)


def register_class(js_class: str, factory: Callable[[Any], Any]) -> None:
    """Make `python_from_rpc` turn instances of a JavaScript class into `factory(JsProxy)`."""
    _CLASSES[js_class] = factory
    plain_proxy.cache_clear()


@functools.cache
def plain_proxy(kind: type[Any]) -> type[JsProxy] | None:
    """The class of the proxies that a binding wraps for results of this type: of most host objects.

    None for what is called, handed out as it is or as a Python class of its own, and for
    types whose instances differ in that. Known by type, a wrapper costs a quarter of what it does
    by way of `from_canonical`.
    """
    js_class = vars(kind).get("js_class", "TestController")
    if js_class in {"TestController", *_CLASSES, *PASSTHROUGH}:
        return None
    proxy = host_proxy(kind)
    return None if any("__call__" in vars(base) for base in proxy.__mro__) else proxy


class JsDict(dict[str, Any]):
    """A dict from JavaScript whose keys are attributes too.

    A key with the name of a dict method (`items`, `get`) is reached by subscript only.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


JsDict.__module__ = "workers.rpc"


def python_to_rpc(value: Any) -> Any:
    """Convert a Python value to JavaScript, as for an argument of a binding.

    Raises `TypeError` for tuples, bytearrays, awaitables and regular expressions, anywhere inside.
    """
    if not is_modern():
        return _frozen().python_to_rpc(value)
    if hasattr(type(value), "_js_unwrap"):
        _convert_proxy(value)  # refuses what cannot be sent
        return getattr(value, "_binding", value)
    result = to_canonical(value)
    return double_proxy(result.obj) if isinstance(result, PyProxy) else wrap(result)


def to_canonical(value: Any) -> Any:
    """Return the canonical value that the platform gets for a Python one.

    The note of a `TypeError` says which part is refused, as `$.rows[0].id`.
    """
    kind = type(value)
    if kind in UNCHANGED or (kind is int and -SAFE < value < SAFE):
        return value
    null = UNDEFINED if generation() == 26 else None
    try:
        return _convert(value, null)
    except TypeError as error:
        if not hasattr(error, "__notes__"):
            path = _refused_part(value, "$", null)
            error.add_note(f"emulator: the value at {path} is the cause")
        raise


def _refused_part(value: Any, path: str, null: Any) -> str:
    """Find the part of a value that `_convert` refuses, by trying one after the other."""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        parts = [(f"{path}.{key}", item) for key, item in value.items()]
    elif isinstance(value, list):
        parts = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    for place, part in parts:
        try:
            _convert(part, null)
        except TypeError:
            return _refused_part(part, place, null)
    return path


def _convert(value: Any, null: Any) -> Any:
    kind = type(value)
    if kind in UNCHANGED:
        return value
    if kind is int:
        return value if -SAFE < value < SAFE else BigInt(value)
    if kind is dict or kind is JsDict:
        return {
            key if type(key) is str else property_key(key): (
                item if type(item) in UNCHANGED else _convert(item, null)
            )
            for key, item in value.items()
        }
    if kind is list:
        return [_convert(item, null) for item in value]
    if value is None:
        return null
    return convert_other(value, null)


def convert_other(value: Any, null: Any) -> Any:
    """Convert what is neither a primitive nor a plain dict or list."""
    if isinstance(value, JsException) or hasattr(type(value), "_js_unwrap"):
        return _convert_proxy(value)
    if isinstance(value, (tuple, bytearray)):
        raise TypeError(f"{type(value)} cannot be sent over RPC.")
    if isinstance(value, dict):
        return {property_key(key): _convert(item, null) for key, item in value.items()}
    if isinstance(value, list):
        return [_convert(item, null) for item in value]
    if isinstance(value, set):
        return JsSet(_convert(item, UNDEFINED) for item in value)
    if inspect.isawaitable(value):
        raise TypeError(f"Awaitable {type(value)} cannot be sent over RPC.")
    if isinstance(value, datetime):
        return from_milliseconds(to_milliseconds(value))
    if isinstance(value, memoryview) or type(value).__module__ == "array":
        return to_host(typed_array(value))
    plain = unwrap(value)
    return _convert_object(value) if isinstance(plain, PyProxy) else to_host(plain)


def _convert_proxy(value: Any) -> Any:
    held = unwrap(value)
    if inspect.isawaitable(value):
        raise TypeError(f"Awaitable {type(value)} cannot be sent over RPC.")
    if isinstance(held, RegExp):
        raise TypeError("RegExp cannot be sent over RPC.")
    if isinstance(held, PyProxy) and not _is_function(held.obj):
        return held
    return to_host(held)


def _is_function(value: Any) -> bool:
    """Whether JavaScript takes the proxy of a Python object for a function."""
    return callable(value) and not isinstance(value, type)


def _convert_object(value: Any) -> Any:
    if hasattr(value, "js_object"):
        return to_host(unwrap(value.js_object))
    if isinstance(value, Exception):
        return JsException("Error", str(value))
    if callable(value):
        return PyProxy(value) if isinstance(value, type) else python_function(value)
    _refuse_disabled(value)
    return PyProxy(value)


def _refuse_disabled(value: Any) -> None:
    """Look through an iterable for what cannot be sent; a generator is used up by that."""
    if isinstance(value, (str, bytes)):
        return
    try:
        items = iter(value)
    except TypeError:
        return
    for item in items:
        if isinstance(item, (tuple, bytearray)):
            raise TypeError(f"{type(item)} cannot be sent over RPC.")
        _refuse_disabled(item)


def python_from_rpc(obj: Any) -> Any:
    """Convert a JavaScript value to Python, as for the result of a binding.

    Objects and Maps become `JsDict`, Dates naive datetimes in UTC, buffers memoryviews, null and
    undefined None. Instances of other classes stay `JsProxy`.
    """
    if not is_modern():
        return _frozen().python_from_rpc(obj)
    if isinstance(obj, (JsProxy, JsException)):
        return from_canonical(unwrap(obj))
    return None if unwrap(obj) is None else obj


def from_canonical(value: Any) -> Any:
    """Return the Python value that user code sees for a canonical one."""
    kind = type(value)
    if kind in _SAME:
        return value
    if value is UNDEFINED:
        return None
    if kind is float:
        return plain_number(value)
    if kind is dict:
        # Copied in one go, since most items stay what they are.
        is_known = len(value) <= FEW and have_no_index(tuple(value))
        converted = JsDict(value if is_known else in_order(value))
        for key, item in converted.items():
            if type(item) not in _SAME:
                converted[key] = from_canonical(item)
        return converted
    if kind is list:
        return [item if type(item) in _SAME else from_canonical(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, (bytes, TypedArray, ArrayBuffer)):
        return to_memoryview(value)
    return _from_other(value)


def _from_other(value: Any) -> Any:
    if isinstance(value, JsMap):
        return JsDict((_key(key, "dict"), from_canonical(v)) for key, v in value.items())
    if isinstance(value, (set, frozenset, JsSet)):
        return {_key(item, "set") for item in value}
    if isinstance(value, dict):
        return JsDict({key: from_canonical(item) for key, item in in_order(value).items()})
    if isinstance(value, list):
        return [from_canonical(item) for item in value]
    if isinstance(value, JsException):
        return Exception(str(value)) if value.name == "Error" else value
    if isinstance(value, HostObject):
        return as_python_class(value)
    return wrap(value)


def as_python_class(value: HostObject) -> Any:
    """Return the `workers` class that stands for a host object; a `JsProxy` if there is none."""
    if value.js_class == "TestController":
        return None
    factory = _CLASSES.get(value.js_class)
    return wrap(value) if factory is None else factory(wrap(value))


def argument_of(value: Any) -> Any:
    """Return what a method that is called over RPC gets for a canonical argument, by the SDK."""
    kind = type(value)
    if kind in PRIMITIVE:
        return value
    return from_canonical(value) if is_modern() else _frozen().from_canonical(value)


def result_of(value: Any) -> Any:
    """Return the canonical value for what a method returned over RPC, by the SDK."""
    kind = type(value)
    if kind is str or kind is bool or (kind is int and -SAFE < value < SAFE):
        return value
    return to_canonical(value) if is_modern() else _frozen().to_canonical(value)


def _frozen() -> Any:
    from emulator.runtime import frozen_rpc

    return frozen_rpc


def _key(value: Any, container: str) -> Any:
    key = from_canonical(value)
    try:
        hash(key)
    except TypeError:
        raise JsException(
            "Error", f"Cannot use key of type {class_of(value)} as a key to a Python {container}"
        ) from None
    return key


python_from_rpc.__module__ = python_to_rpc.__module__ = "workers.rpc"
