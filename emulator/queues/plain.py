"""Message bodies as tests see them: plain Python values."""

from __future__ import annotations

from typing import Any

from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    JsMap,
    JsSet,
    TypedArray,
    decode_body,
    plain_number,
)


def plain_body(body: bytes, content_type: str) -> Any:
    """A stored body as it was sent.

    What JavaScript has and Python has not becomes the nearest: a Map a dict, a Set a set (or a
    list, if it holds what a set cannot), buffers bytes, BigInt an int, undefined None. Dates are
    aware.

        >>> plain_body(b'{"a": [1, 2.0, null]}', "json")
        {'a': [1, 2, None]}
    """
    return _plain(decode_body(body, content_type))


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    if kind is list:
        return [_plain(item) for item in value]
    if kind is float:
        return plain_number(value)
    return _nearest(value)


def _nearest(value: Any) -> Any:
    if value is UNDEFINED:
        return None
    if isinstance(value, BigInt):
        return value.value
    if isinstance(value, (TypedArray, ArrayBuffer)):
        return bytes(value)
    if isinstance(value, JsMap):
        pairs = [(_plain(key), _plain(item)) for key, item in value.items()]
        return dict(pairs) if all(_hashable(key) for key, _ in pairs) else pairs
    if isinstance(value, (JsSet, set, frozenset)):
        items = [_plain(item) for item in value]
        return set(items) if all(map(_hashable, items)) else items
    return value


def _hashable(value: Any) -> bool:
    return not isinstance(value, (dict, list, set))
