"""Deep conversion of JavaScript values to Python's containers: `JsProxy.to_py`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.proxies import JsProxy, to_memoryview, wrap
from emulator.runtime.pyproxy import (
    unwrap,
)
from emulator.values import (
    ArrayBuffer,
    JsException,
    JsMap,
    JsSet,
    LiteralMap,
    TypedArray,
    class_of,
    property_names,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FEW: Final = 32


def to_py(
    value: Any,
    *,
    depth: int = -1,
    default_converter: Callable[..., Any] | None = None,
    cache: dict[int, Any] | None = None,
) -> Any:
    """Return what `JsProxy.to_py` makes of a JavaScript value."""
    known: dict[int, Any] = {} if cache is None else cache
    if depth == 0:
        return wrap(value)
    if id(value) in known:
        return known[id(value)]

    def convert(item: Any) -> Any:
        return to_py(item, depth=depth - 1, default_converter=default_converter, cache=known)

    if isinstance(value, (dict, LiteralMap, JsMap)):
        record: dict[Any, Any] = {}
        known[id(value)] = record
        for key, item in in_order(value).items():
            record[_hashable(key, "dict")] = convert(item)
        return record
    if isinstance(value, list):
        values: list[Any] = []
        known[id(value)] = values
        values.extend(convert(item) for item in value)
        return values
    if isinstance(value, (set, frozenset, JsSet)):
        return {_hashable(item, "set") for item in value}
    if isinstance(value, (bytes, TypedArray, ArrayBuffer)):
        return to_memoryview(value)
    result = wrap(value)
    if default_converter is not None and isinstance(result, (JsProxy, JsException)):
        return default_converter(result, lambda item: convert(unwrap(item)), _remember)
    return result


def in_order(value: Any) -> Any:
    """Return an object's properties in JavaScript's order, which begins with the indices."""
    if isinstance(value, dict) and value and min(value) < ":":
        return {name: value[name] for name in property_names(value)}
    return value


@functools.lru_cache(maxsize=256)
def have_no_index(names: tuple[str, ...]) -> bool:
    """Whether `in_order` returns an object with these properties as it is.

    Most objects of up to `FEW` properties are made by the same code again and again; more names
    would take too long to find, and be kept.
    """
    return not names or min(names) >= ":"


def _remember(original: Any, converted: Any) -> None:
    """The `cache` argument of a default converter; nothing here needs it."""


def _hashable(value: Any, container: str) -> Any:
    key = wrap(value)
    if isinstance(key, JsProxy):
        raise JsException(
            "Error", f"Cannot use key of type {class_of(value)} as a key to a Python {container}"
        )
    return key
