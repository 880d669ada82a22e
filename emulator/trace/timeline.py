"""A trace as a timeline for people: a line an event, with longer texts indented below it.

    +0:00:05.000     emails   batch    id=7 size=2
    +0:00:05.000  !  emails   fault    fault=batch.emails#1:lose_ack
    +0:00:05.000  x  emails   settled  outcome=lost

`!` marks faults and `x` what was lost, as kinds.py says.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from emulator.trace.kinds import tone
from emulator.trace.written import Json, write_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MICROSECONDS: Final = 1_000_000
_WIDEST_COLUMN: Final = 40
_LONGEST_VALUE: Final = 160
_LONGEST_LINE: Final = 200
_FIRST_LINES: Final = 6
_LAST_LINES: Final = 16
_MARKS: Final = {"fault": "!", "lost": "x"}

# Shown without quotes: nothing in it can be mistaken for a number or for what follows.
_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./:@#*+-]*")
_JSON_WORDS: Final = ("true", "false", "null", "undefined")
# What would move the cursor, colour the terminal, or turn the direction of writing.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


class Row(NamedTuple):
    """An event as it is written: microseconds since the start, masked subject and data.

    `carried` are its payloads, which a timeline leaves out.
    """

    offset: int
    kind: str
    subject: str
    data: dict[str, Json]
    carried: dict[str, Json] = {}  # noqa: RUF012 (never changed)

    @property
    def mark(self) -> str:
        """`!` for a fault, `x` for what was lost, else a space."""
        return _MARKS.get(tone(self.kind, self.data), " ")


class Details(NamedTuple):
    """An event's data for people: what goes on its line, and the longer texts below it."""

    inline: str
    blocks: tuple[tuple[str, tuple[str, ...]], ...]


def timeline(start: int, rows: Sequence[Row], *, skipped: int = 0) -> str:
    """Return the timeline; `skipped` is the number of earlier events that are not in `rows`."""
    return "".join(f"{line}\n" for _, line in lines(start, rows, skipped=skipped))


def lines(start: int, rows: Sequence[Row], *, skipped: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the timeline's lines, each with its event's mark."""
    times = _align([row.offset for row in rows])
    subjects = [printable(row.subject) for row in rows]
    kinds = [printable(row.kind) for row in rows]
    widths = [_width(column) for column in (times, subjects, kinds)]
    yield " ", f"virtual time since {write_time(start)}"
    if skipped:
        yield " ", f"... {skipped:,} earlier events"
    for row, time, subject, kind in zip(rows, times, subjects, kinds, strict=True):
        shown = details(row.data)
        columns = (time.rjust(widths[0]), row.mark, subject.ljust(widths[1]), kind.ljust(widths[2]))
        yield row.mark, "  ".join((*columns, shown.inline)).rstrip()
        for name, block in shown.blocks:
            yield row.mark, f"        {printable(name)}:"
            yield from ((row.mark, f"        | {line}".rstrip()) for line in block)


def write_offset(offset: int) -> str:
    """Return microseconds since the start as `+0:00:05.000`, or `+2d 03:00:00.000`.

    Microseconds are shown only where there are any.
    """
    sign = "-" if offset < 0 else "+"
    seconds, fraction = divmod(abs(offset), _MICROSECONDS)
    days, rest = divmod(seconds, 86_400)
    hours, minutes, seconds = rest // 3600, rest // 60 % 60, rest % 60
    digits = f"{fraction:06d}" if fraction % 1000 else f"{fraction // 1000:03d}"
    day = f"{days}d {hours:02d}" if days else f"{hours}"
    return f"{sign}{day}:{minutes:02d}:{seconds:02d}.{digits}"


def details(data: dict[str, Json]) -> Details:
    """Return an event's data for people, long texts shortened."""
    inline: list[str] = []
    blocks: list[tuple[str, tuple[str, ...]]] = []
    for name, value in data.items():
        text = value if isinstance(value, str) else _tagged(value)
        if text is not None and "\n" in text.rstrip("\n"):
            blocks.append((name, _lines(text)))
        else:
            inline.append(f"{printable(name)}={_shorten(_show(value, top=True), _LONGEST_VALUE)}")
    return Details(" ".join(inline), tuple(blocks))


def printable(text: str) -> str:
    """Return text on one line, with what a terminal would not show as it is escaped."""
    if text.isascii() and text.isprintable():
        return text
    return _UNPRINTABLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    )


def _align(offsets: list[int]) -> list[str]:
    """Return the offsets with their decimal points below one another."""
    finest = any(offset % 1000 for offset in offsets)
    return [
        write_offset(offset) + ("   " if finest and offset % 1000 == 0 else "")
        for offset in offsets
    ]


def _width(column: list[str]) -> int:
    return min(max(map(len, column), default=0), _WIDEST_COLUMN)


def _lines(text: str) -> tuple[str, ...]:
    """Return the lines of a longer text; of very many the first ones and the last."""
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    left_out = len(lines) - _FIRST_LINES - _LAST_LINES
    if left_out > 1:
        lines[_FIRST_LINES:-_LAST_LINES] = [f"... {left_out:,} lines ..."]
    return tuple(_shorten(printable(line.expandtabs(4)), _LONGEST_LINE) for line in lines)


def _shorten(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest - 40]}... ({len(text):,} characters)"


def _show(value: Json, *, top: bool = False) -> str:
    """Return a written value on one line; at the top a plain word needs no quotes."""
    if isinstance(value, str):
        if top and _PLAIN.fullmatch(value) and value not in _JSON_WORDS:
            return value
        return printable(json.dumps(value, ensure_ascii=False))
    tagged = _tagged(value)
    if tagged is not None:
        return printable(tagged)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_show(key)}: {_show(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_show, value))}]"
    return json.dumps(value)


def _tagged(value: Json) -> str | None:
    """Return the text of a value that JSON has no form for, None for any other."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    (tag, inner), *_ = value.items()
    if tag in ("$number", "$date", "$regexp"):
        return str(inner)
    if tag in ("$undefined", "$circular", "$deep"):
        return tag[1:]
    if tag == "$bigint":
        return f"{inner}n"
    if tag == "$object":
        return f"<{inner}>"
    if tag == "$error" and isinstance(inner, dict):
        return f"{inner['type']}: {inner['message']}"
    if tag == "$bytes" and isinstance(inner, dict):
        return f"<{inner['length']:,} bytes {inner['base64']}>"
    if tag in ("$set", "$map"):
        return f"{tag[1:]} {_show(inner)}"
    return None
