"""The line between the SDK's classes and the JavaScript objects they stand for."""

from __future__ import annotations

from typing import Any

from emulator.runtime import proxies
from emulator.runtime.proxies import JsProxy
from emulator.runtime.pyproxy import jsnull, to_host, unwrap
from emulator.values import JsException, class_of


def behind(value: Any) -> Any:
    """Return the canonical value that JavaScript sees for an argument."""
    return to_host(unwrap(value))


def class_name(value: Any) -> str | None:
    """Return `value.constructor.name` of a proxy, None for a Python object."""
    if isinstance(value, JsException):
        return value.name
    if isinstance(value, JsProxy):
        return class_of(unwrap(value)) or "Object"
    return None


def wrap(value: Any) -> Any:
    """Return a canonical value as user code sees it."""
    return proxies.wrap(value)


def null_to_none(value: Any) -> Any:
    """Return None for `jsnull`."""
    return None if value is jsnull else value


def plain(value: Any) -> Any:
    """Return `to_js(value, dict_converter=Object.fromEntries)` as a canonical value."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    return behind(value)


def python_exception(error: JsException) -> Exception:
    """Return the error as the SDK passes it on: some are Python's own."""
    if error.name == "RangeError":
        return ValueError(error.message)
    if error.name == "TypeError":
        return TypeError(error.message)
    return error
