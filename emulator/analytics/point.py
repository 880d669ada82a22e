"""Data points, as the runtime makes them of what user code gives (workerd, `analytics-engine*`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from emulator.runtime.js_text import display
from emulator.runtime.web.text import well_formed
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    HostObject,
    JsException,
    LiteralMap,
    Opaque,
    ProxiedList,
    TypedArray,
)
from emulator.values.numbers import to_number

if TYPE_CHECKING:
    from datetime import datetime

MOST: Final = 20
MOST_INDEXES: Final = 1
MOST_INDEX_BYTES: Final = 96
MOST_BLOB_BYTES: Final = 16_000
_PREFIX: Final = "writeDataPoint(): "
_BAD_TYPE: Final = (
    "Failed to execute 'writeDataPoint' on 'AnalyticsEngine': parameter 1 is not of type "
    "'AnalyticsEngineEvent'."
)

Blob = str | bytes | None


@dataclass(frozen=True, slots=True)
class DataPoint:
    """A point as it was written: when, by which Worker, and its values.

    A blob is a text, bytes, or None for one that was left out; without an index it is `""`.
    """

    at: datetime
    worker: str
    indexes: tuple[Blob, ...]
    blobs: tuple[Blob, ...]
    doubles: tuple[float, ...]


class Values(NamedTuple):
    """The values of a point."""

    indexes: tuple[Blob, ...] = ("",)
    blobs: tuple[Blob, ...] = ()
    doubles: tuple[float, ...] = ()


def values_of(event: Any, *, strict: bool) -> Values:
    """Return the values of a point; raises the runtime's `TypeError`.

    What is not `strict` checks nothing: the local runtime drops every point.
    """
    if event is UNDEFINED:
        return Values()
    if not isinstance(event, (Mapping, LiteralMap)):
        if strict and not isinstance(event, (HostObject, Opaque, list)):
            raise JsException("TypeError", _BAD_TYPE)
        return Values()  # an object of another kind has none of the properties
    indexes = _blobs(event, "indexes")
    blobs = _blobs(event, "blobs")
    doubles = tuple(float(to_number(item)) for item in _list(event, "doubles"))
    if strict:
        _check_indexes(indexes)
        _check_blobs(blobs)
        _check_count(doubles, MOST, "doubles")
    return Values(indexes or ("",), blobs, doubles)


def _list(event: Any, name: str) -> list[Any]:
    value = event.get(name, UNDEFINED)
    if value is UNDEFINED:
        return []
    if not isinstance(value, list) or isinstance(value, ProxiedList):
        text = f"Incorrect type for the '{name}' field on 'AnalyticsEngineEvent': the provided "
        raise JsException("TypeError", f"{text}value is not of type 'Array'.")
    return list(value)


def _blobs(event: Any, name: str) -> tuple[Blob, ...]:
    return tuple(map(_blob, _list(event, name)))


def _blob(value: Any) -> Blob:
    if value is None or value is UNDEFINED:
        return None
    if isinstance(value, (bytes, ArrayBuffer, TypedArray)):
        return bytes(value)
    return well_formed(display(value))


def _size(value: Blob) -> int:
    if isinstance(value, str):
        return len(value.encode())
    return 0 if value is None else len(value)


def _check_count(values: tuple[Any, ...], most: int, what: str) -> None:
    if len(values) > most:
        raise JsException("TypeError", f"{_PREFIX}Maximum of {most} {what} supported.")


def _check_indexes(indexes: tuple[Blob, ...]) -> None:
    _check_count(indexes, MOST_INDEXES, "indexes")
    if indexes and _size(indexes[0]) > MOST_INDEX_BYTES:
        text = f"{_PREFIX}Size of indexes[0] exceeds {MOST_INDEX_BYTES} bytes)."
        raise JsException("TypeError", text)


def _check_blobs(blobs: tuple[Blob, ...]) -> None:
    _check_count(blobs, MOST, "blobs")
    if sum(map(_size, blobs)) > MOST_BLOB_BYTES:
        text = f"{_PREFIX}Cumulative size of blobs exceeds {MOST_BLOB_BYTES} bytes)."
        raise JsException("TypeError", text)
