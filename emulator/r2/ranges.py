"""Which bytes of an object a `get` asks for: by numbers, or by the header `Range`.

A header that asks for nothing sensible, or for several ranges, gives the whole object, as the local
simulator (miniflare) has it; numbers are refused.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_UNIT: Final = re.compile(r" *bytes *=", re.IGNORECASE)
_RANGE: Final = re.compile(r" *(\d+)? *- *(\d+)? *")


class Range(NamedTuple):
    """What is asked for; at most one of offset and length, or a suffix."""

    offset: int | None = None
    length: int | None = None
    suffix: int | None = None


class Slice(NamedTuple):
    """Bytes of an object."""

    offset: int
    length: int


def part_of(asked: Range | str | None, size: int) -> Slice | None:
    """Return which bytes of an object of this size are asked for; None where there are none."""
    if asked is None:
        return Slice(0, size)
    if isinstance(asked, str):
        return _of_header(asked, size) or Slice(0, size)
    offset, length, suffix = asked
    if suffix is not None:
        suffix = min(suffix, size) if suffix > 0 else 0
        offset, length = size - suffix, suffix
    offset = offset or 0
    if length is None:
        length = size - offset
    if offset > size or length <= 0:
        return None
    return Slice(offset, min(length, size - offset))


def _of_header(text: str, size: int) -> Slice | None:
    """Return the one range that a header names, None where it does not name one."""
    unit = _UNIT.match(text)
    if unit is None:
        return None
    found: list[Slice] = []
    for item in text[unit.end() :].split(","):
        match = _RANGE.fullmatch(item)
        if match is None or match[1] is match[2] is None:
            return None
        one = _one(match[1], match[2], size)
        if one is None:
            return None
        if one.length:
            found.append(one)
    return found[0] if len(found) == 1 else None


def _one(start: str | None, end: str | None, size: int) -> Slice | None:
    if start is None:
        length = int(end or 0)
        return None if length >= size else Slice(size - length, length)
    first = int(start)
    last = size - 1 if end is None else int(end)
    if first > last or first >= size:
        return None
    return Slice(first, min(last, size - 1) - first + 1)
