"""Canonical values as tests see them: plain Python."""

from __future__ import annotations

from typing import Any

from emulator.values.buffers import ArrayBuffer, TypedArray
from emulator.values.containers import JsMap, JsSet
from emulator.values.numbers import plain_number
from emulator.values.types import UNDEFINED, BigInt, Boxed


def plain(value: Any) -> Any:
    """A canonical value as Python has it.

    What JavaScript has and Python has not becomes the nearest: a Map a dict, a Set a set (or a
    list, if it holds what a set cannot), buffers bytes, BigInt an int, undefined None. Dates are
    aware.

        >>> plain({"a": [1, 2.0, None, UNDEFINED]})
        {'a': [1, 2, None, None]}
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return {key: plain(item) for key, item in value.items()}
    if kind is list:
        return [plain(item) for item in value]
    if kind is float:
        return plain_number(value)
    return _nearest(value)


def _nearest(value: Any) -> Any:
    if value is UNDEFINED:
        return None
    if isinstance(value, (BigInt, Boxed)):
        return value.value
    if isinstance(value, (TypedArray, ArrayBuffer)):
        return bytes(value)
    if isinstance(value, JsMap):
        pairs = [(plain(key), plain(item)) for key, item in value.items()]
        return dict(pairs) if all(_hashable(key) for key, _ in pairs) else pairs
    if isinstance(value, (JsSet, set, frozenset)):
        items = [plain(item) for item in value]
        return set(items) if all(map(_hashable, items)) else items
    return value


def _hashable(value: Any) -> bool:
    return not isinstance(value, (dict, list, set))
