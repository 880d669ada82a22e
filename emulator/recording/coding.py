"""Bytes and stored values as JSON.

A body is text where its bytes are UTF-8, else `{"base64": "…"}`. A value of the store, which may
hold bytes anywhere, is JSON with `{"$bytes": body}` for these; a dict that itself has such a key is
`{"$dict": …}`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Json: TypeAlias = Any
"""What `json.loads` returns; whoever reads it checks its shape."""

_BYTES = "$bytes"
_DICT = "$dict"


def body_to_json(data: bytes) -> Json:
    """Return bytes as JSON.

    >>> body_to_json(b"hello"), body_to_json(b"\\xff")
    ('hello', {'base64': '/w=='})
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def body_from_json(value: Json) -> bytes:
    """Return the bytes that `body_to_json` wrote; raises `ValueError` for what it never writes."""
    match value:
        case str():
            return value.encode()
        case {"base64": str() as text}:
            try:
                return b64decode(text, validate=True)
            except Error as error:
                raise ValueError(f"a body is no base64: {error}") from None
        case _:
            raise ValueError(f"a body is neither a text nor base64: {value!r:.80}")


def value_to_json(
    value: Any, text: Callable[[str], str] = str, octets: Callable[[bytes], bytes] = bytes
) -> Json:
    """Return a value of the store as JSON, its texts and bytes passed through these functions."""

    def write(value: Any) -> Json:
        match value:
            case str():
                return text(value)
            case bytes() | bytearray() | memoryview():
                return {_BYTES: body_to_json(octets(bytes(value)))}
            case list() | tuple():
                return [write(item) for item in value]
            case dict():
                written = {text(key): write(item) for key, item in value.items()}
                return {_DICT: written} if any(key.startswith("$") for key in written) else written
            case _:
                return value

    return write(value)


def value_from_json(
    value: Json, text: Callable[[str], str] = str, octets: Callable[[bytes], bytes] = bytes
) -> Any:
    """Return the value that `value_to_json` wrote; raises `ValueError` for what it never writes."""

    def read(value: Json) -> Any:
        match value:
            case str():
                return text(value)
            case list():
                return [read(item) for item in value]
            case {"$bytes": data} if len(value) == 1:
                return octets(body_from_json(data))
            case {"$dict": dict() as inner} if len(value) == 1:
                return {text(key): read(item) for key, item in inner.items()}
            case dict():
                return {text(key): read(item) for key, item in value.items()}
            case _:
                return value

    return read(value)
