"""Structured clone: canonical values to bytes and back, in V8's own serialization format.

Queue messages of type `v8`, workflow states and stored values are measured in these bytes, so the
layout is V8's (format 15): a value is a tag and its data, lengths and ids are LEB128, every object
gets the next id and is written as a back reference when it comes again. Not written: the stack of
an Error, and sparse arrays (our lists have no holes). A Python `set` has no order of its own; its
elements are written sorted by their bytes, so that equal sets give equal bytes.
"""

from __future__ import annotations

from typing import Any

from emulator.values.clone_reader import Reader
from emulator.values.clone_writer import HEADER, Writer
from emulator.values.types import (
    JsException,
)


def to_v8(value: Any) -> bytes:
    """Return the structured clone of `value` as bytes.

    Raises `JsException` named `DataCloneError` for functions, symbols, proxies of Python objects
    and instances of the platform's classes; its note says where in the value.
    """
    writer = Writer()
    try:
        writer.write(value, "$")
    except RecursionError:
        raise JsException("RangeError", "Maximum call stack size exceeded") from None
    return bytes(writer.out)


def from_v8(data: bytes) -> Any:
    """Return the value of bytes made by `to_v8`; raises `ValueError` for other bytes."""
    if data[:2] != HEADER:
        raise ValueError(f"not a structured clone of format 15: {data[:8]!r}")
    return Reader(data).read()
