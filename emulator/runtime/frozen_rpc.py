"""RPC as the SDK frozen in the runtime does it (python-api.md 1.13).

a dict                  crosses as a Map; what comes back is a dict, not a `JsDict`
None                    crosses as undefined; null comes back as `jsnull`
a function              is refused
a method of a stub      is called when its coroutine is awaited, not before
"""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from importlib import import_module
from types import FunctionType
from typing import Any

from emulator.runtime import rpc_values
from emulator.runtime.ffi import map_key as _map_key
from emulator.runtime.profile import generation
from emulator.runtime.proxies import JsProxy, double_proxy, wrap
from emulator.runtime.pyproxy import PyProxy, jsnull, unwrap
from emulator.runtime.to_py import to_py
from emulator.values import (
    SAFE,
    UNDEFINED,
    BigInt,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    RegExp,
    settled,
)

_UNCHANGED = frozenset({str, bool, float, bytes})
_REFUSED = (tuple, bytearray, FunctionType)


def to_canonical(value: Any) -> Any:
    """Return the canonical value that crosses; raises `TypeError` for what is refused."""
    _refuse(value)
    return _convert(value)


def _refuse(value: Any) -> None:
    """Look for what cannot be sent, anywhere inside."""
    if isinstance(unwrap(value), RegExp):
        raise TypeError("RegExp cannot be sent over RPC.")
    if isinstance(value, _REFUSED):
        raise TypeError(f"{type(value)} cannot be sent over RPC.")
    if inspect.isawaitable(value):
        raise TypeError(f"Awaitable {type(value)} cannot be sent over RPC.")
    if isinstance(value, dict):
        for item in value.values():
            _refuse(item)
    elif isinstance(value, (list, set, frozenset)):
        for item in value:
            _refuse(item)


def _convert(value: Any) -> Any:
    kind = type(value)
    if kind in _UNCHANGED:
        return value
    if kind is int:
        return value if -SAFE < value < SAFE else BigInt(value)
    if value is None:
        return UNDEFINED
    if isinstance(value, dict):
        return JsMap((_map_key(key), _convert(item)) for key, item in value.items())
    if isinstance(value, list):
        return [_convert(item) for item in value]
    if isinstance(value, set):
        return JsSet(_convert(item) for item in value)
    return rpc_values.convert_other(value, UNDEFINED)


def from_canonical(value: Any) -> Any:
    """Return what user code sees of a canonical value that crossed."""
    if value is UNDEFINED:
        return None
    if value is None:
        return None if generation() == 26 else jsnull
    return to_py(value, default_converter=_as_python)


def _as_python(value: Any, convert: Any, cache: Any) -> Any:
    held = unwrap(value)
    if isinstance(held, datetime):
        moment = settled(held)
        if not isinstance(moment, datetime):
            return value
        return moment.astimezone(UTC).replace(tzinfo=None)
    if isinstance(held, JsException):
        return Exception(str(held)) if held.name == "Error" else held
    if isinstance(held, HostObject):
        return rpc_values.as_python_class(held)
    return value


def python_to_rpc(value: Any) -> Any:
    """Convert a Python value to JavaScript."""
    result = to_canonical(value)
    return double_proxy(result.obj) if isinstance(result, PyProxy) else wrap(result)


def python_from_rpc(obj: Any) -> Any:
    """Convert a JavaScript value to Python."""
    if isinstance(obj, (JsProxy, JsException)):
        return from_canonical(unwrap(obj))
    return obj


class _FetcherWrapper:
    """A stub: RPC methods, and `fetch` with the SDK's own signature."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__" or name == "_binding":
            raise AttributeError(name)
        attribute = getattr(self._binding, name)
        if not callable(attribute):
            return attribute

        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            values = [python_to_rpc(arg) for arg in args]
            options = {key: python_to_rpc(value) for key, value in kwargs.items()}
            result = attribute(*values, **options)
            return python_from_rpc(await result if hasattr(result, "then") else result)

        self.__dict__[name] = wrapper
        return wrapper

    def fetch(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request; see `workers.fetch`."""
        fetch = import_module("workers").fetch
        return fetch(*args, fetcher=self._binding.fetch, **kwargs)


class _DurableObjectNamespaceWrapper:
    """A namespace of Durable Objects: stubs are wrapped, ids are raw."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def __getattr__(self, name: str) -> Any:
        return getattr(self._binding, name)

    def get(self, *args: Any, **kwargs: Any) -> _FetcherWrapper:
        """Return the stub for an id."""
        return _FetcherWrapper(self._binding.get(*args, **kwargs))

    def getByName(self, *args: Any, **kwargs: Any) -> _FetcherWrapper:
        """Return the stub for a name."""
        return _FetcherWrapper(self._binding.getByName(*args, **kwargs))

    def jurisdiction(self, *args: Any, **kwargs: Any) -> _DurableObjectNamespaceWrapper:
        """Return the namespace restricted to a jurisdiction."""
        return _DurableObjectNamespaceWrapper(self._binding.jurisdiction(*args, **kwargs))


for _class in (_FetcherWrapper, _DurableObjectNamespaceWrapper):
    _class.__module__ = "workers._workers"

del _class
