"""What the runtime makes of the arguments of a KV call, before the service sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from emulator.runtime.web.streams import ReadableStream
from emulator.runtime.web.text import usv_string
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    JsException,
    LiteralMap,
    ProxiedList,
    Symbol,
    TypedArray,
    js_int32,
    to_json,
)

_NO_VALUE: Final = (
    "KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and ReadableStreams as values."
)


class Reading(NamedTuple):
    """The options of a read; no `type` is text."""

    type: str = "text"
    cache_ttl: int | None = None


class Writing(NamedTuple):
    """The options of a `put`; `metadata` is JSON."""

    expiration: int | None = None
    expiration_ttl: int | None = None
    metadata: str | None = None


class Listing(NamedTuple):
    """The options of a `list`."""

    prefix: str = ""
    limit: int = 0
    cursor: str | None = None


def names(value: Any) -> str | list[str]:
    """The name, or the list of names, that a read is for."""
    if isinstance(value, list) and not isinstance(value, ProxiedList):
        return [usv_string(item) for item in value]
    return usv_string(value)


def reading(options: Any) -> Reading:
    """The options of a read: the type alone, or an object."""
    if options is UNDEFINED or options is None:
        return Reading()
    if not isinstance(options, (Mapping, LiteralMap)):
        return Reading(usv_string(options))
    kind = _option(options, "type")
    return Reading("text" if kind is UNDEFINED else usv_string(kind), _number(options, "cacheTtl"))


def writing(options: Any) -> Writing:
    """The options of a `put`; null as metadata is none."""
    if not isinstance(options, (Mapping, LiteralMap)):
        return Writing()
    metadata = _option(options, "metadata")
    return Writing(
        _number(options, "expiration"),
        _number(options, "expirationTtl"),
        None if metadata is UNDEFINED or metadata is None else to_json(metadata),
    )


def listing(options: Any) -> Listing:
    """The options of a `list`; a limit of 0 or less is none."""
    if not isinstance(options, (Mapping, LiteralMap)):
        return Listing()
    prefix, cursor = _option(options, "prefix"), _option(options, "cursor")
    return Listing(
        "" if prefix is UNDEFINED or prefix is None else usv_string(prefix),
        _number(options, "limit") or 0,
        None if cursor is UNDEFINED or cursor is None else usv_string(cursor),
    )


def value(given: Any) -> bytes | ReadableStream:
    """The value of a `put`: a primitive is written as a text, other objects are refused."""
    if isinstance(given, bytes):
        return given
    if isinstance(given, (ArrayBuffer, TypedArray)):
        return bytes(given)
    if isinstance(given, ReadableStream):
        return given
    is_primitive = given is None or given is UNDEFINED
    if is_primitive or isinstance(given, (str, bool, int, float, BigInt, Symbol)):
        return usv_string(given).encode()
    raise JsException("TypeError", _NO_VALUE)


def _option(options: Any, name: str) -> Any:
    return options.get(name, UNDEFINED)


def _number(options: Any, name: str) -> int | None:
    found = _option(options, name)
    return None if found is UNDEFINED else js_int32(found)
