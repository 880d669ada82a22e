"""What a request gets of an entry: the whole, a part, or that it has not changed.

The rules are the local simulator's (miniflare), where production's are not documented.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from emulator.cache.rules import Pairs
    from emulator.cache.store import Entry

_ETAG: Final = re.compile(r'(?:W/)?"(.+)"')
_DATE: Final = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d "
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT"
)
_UNIT: Final = re.compile(r" *bytes *=", re.IGNORECASE)
_RANGE: Final = re.compile(r" *(\d+)? *- *(\d+)? *")
_BOUNDARY: Final = "workers-emulator-byteranges"


class Answer(NamedTuple):
    """The parts of a response."""

    status: int
    status_text: str
    headers: Pairs
    body: bytes


class _Part(NamedTuple):
    """From the first byte to the last, both included."""

    start: int
    end: int


def answer(entry: Entry, asked: Pairs) -> Answer:
    """Return what a request with these headers gets."""
    headers = entry.headers
    if _is_unchanged(headers, asked):
        return Answer(304, "Not Modified", headers, b"")
    wanted = _value(asked, "range")
    if wanted is None or not entry.has_length:
        return Answer(entry.status, entry.status_text, headers, entry.body)
    parts = _parts(wanted, len(entry.body))
    if parts is None:
        unsatisfied = (("content-range", f"bytes */{len(entry.body)}"),)
        return Answer(416, "Range Not Satisfiable", unsatisfied, b"")
    if not parts:
        return Answer(entry.status, entry.status_text, headers, entry.body)
    return _partial(entry, parts)


def _is_unchanged(headers: Pairs, asked: Pairs) -> bool:
    known, etag = _value(asked, "if-none-match"), _etag(_value(headers, "etag") or "")
    if known is not None and etag is not None and _names(known, etag):
        return True
    since = _date(_value(asked, "if-modified-since"))
    modified = _date(_value(headers, "last-modified"))
    return since is not None and modified is not None and modified <= since


def _names(known: str, etag: str) -> bool:
    return known.strip() == "*" or etag in map(_etag, known.split(","))


def _partial(entry: Entry, parts: list[_Part]) -> Answer:
    size, body = len(entry.body), entry.body
    if len(parts) == 1:
        start, end = parts[0]
        part = body[start : end + 1]
        changed = {"content-range": f"bytes {start}-{end}/{size}", "content-length": str(len(part))}
        return Answer(206, "Partial Content", _with(entry.headers, changed), part)
    kind = _value(entry.headers, "content-type")
    lines = [_section(body, part, kind) for part in parts]
    whole = b"\r\n".join([*lines, f"--{_BOUNDARY}--".encode()])
    changed = {
        "content-type": f"multipart/byteranges; boundary={_BOUNDARY}",
        "content-length": str(len(whole)),
    }
    return Answer(206, "Partial Content", _with(entry.headers, changed), whole)


def _section(body: bytes, part: _Part, kind: str | None) -> bytes:
    head = [f"--{_BOUNDARY}"]
    if kind is not None:
        head.append(f"Content-Type: {kind}")
    head.append(f"Content-Range: bytes {part.start}-{part.end}/{len(body)}")
    return "\r\n".join([*head, "", ""]).encode() + body[part.start : part.end + 1]


def _parts(text: str, size: int) -> list[_Part] | None:
    """The parts that a Range header asks for, none for the whole, None for what cannot be had."""
    unit = _UNIT.match(text)
    if unit is None:
        return None
    listed = text[unit.end() :]
    found: list[_Part] = []
    for item in listed.split(",") if listed.strip() else ():
        match = _RANGE.fullmatch(item)
        if match is None or not (match[1] or match[2]):
            return None
        if match[1] is None:
            last = int(match[2])
            if last >= size:
                return []
            if last:
                found.append(_Part(size - last, size - 1))
            continue
        start, end = int(match[1]), int(match[2] or size - 1)
        if start >= size or start > end:
            return None
        found.append(_Part(start, min(end, size - 1)))
    return found


def _value(headers: Pairs, name: str) -> str | None:
    values = [value for key, value in headers if key == name]
    return ", ".join(values) if values else None


def _with(headers: Pairs, changed: dict[str, str]) -> Pairs:
    return (*(pair for pair in headers if pair[0] not in changed), *changed.items())


def _etag(text: str) -> str | None:
    """The tag without what says that it is weak."""
    found = _ETAG.fullmatch(text.strip())
    return None if found is None else found[1]


def _date(text: str | None) -> datetime | None:
    if text is None or _DATE.fullmatch(text) is None:
        return None
    try:
        return datetime.strptime(text, "%a, %d %b %Y %H:%M:%S GMT")
    except ValueError:
        return None
