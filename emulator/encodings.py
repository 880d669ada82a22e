"""Encodings in which a client may send a text, undone: what it says, and where that stands.

A *reading* of a text is what it says once encodings are undone, each as a whole:

1. percent-encoding, in upper and lower case, of any characters, also such as need it not (RFC 3986,
   2.1: "%41" is "A"); bytes that are no UTF-8 are surrogates, as `surrogateescape` makes them;
2. backslash escapes of JSON, JavaScript and Python: `\\u002d`, `\\u{2d}`, `\\x2d`, `\\55`, `\\/`;
3. character references of HTML: `&#45;`, `&#x2D;`, `&amp;`.

Encodings lie in each other (JSON in a form, a form's answer in HTML), and which of them a text has
cannot be told: `readings` tries each order, up to `_DEEPEST`. That is much work for a long text, so
that `encoded` first finds the parts of one in which certain characters may stand encoded: whatever
the encodings, only these characters and those of the encodings are in such a part.
"""

from __future__ import annotations

import html
import re
import sys
from bisect import bisect_right
from functools import lru_cache
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DEEPEST: Final = 4

# What the encodings themselves are written with, and base64.
_ALWAYS: Final = frozenset(f"{ascii_letters}{digits}%\\&#;{{}}+/=-_")
_BETWEEN: Final = "\0"
_SHORT_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v"}


def _unquoted(text: str) -> str:
    return unquote(text, errors="surrogateescape")


def _percent_pieces(run: str) -> Iterator[tuple[int, int]]:
    for character in _unquoted(run):
        yield 1, len("%00") * len(character.encode("utf-8", "surrogateescape"))


def _unescaped(match: re.Match[str]) -> str:
    """Undo one backslash escape."""
    if (short := match["short"]) is not None:
        return _SHORT_ESCAPES.get(short, short)
    if (octal := match["octal"]) is not None:
        return chr(int(octal, 8))
    if match["low"] is not None:
        return bytes.fromhex(match["high"] + match["low"]).decode("utf-16-be")
    number = int(match[match.lastgroup or 0], 16)
    return chr(number) if number <= sys.maxunicode else match[0]


_PERCENT: Final = re.compile("(?:%[0-9A-Fa-f]{2})+")
_ESCAPE: Final = re.compile(
    r"""\\(?: U(?P<long>[0-9A-Fa-f]{8})
        |   (?P<short>["'\\/bfnrtv])
        |   u(?P<high>[dD][89abAB][0-9A-Fa-f]{2}) (?: \\u(?P<low>[dD][c-fC-F][0-9A-Fa-f]{2}) )?
        |   u(?P<unit>[0-9A-Fa-f]{4})
        |   u\{(?P<point>[0-9A-Fa-f]{1,6})\}
        |   x(?P<byte>[0-9A-Fa-f]{2})
        |   (?P<octal>[0-3]?[0-7]{1,2}) )""",
    re.VERBOSE | re.DOTALL,
)
_REFERENCE: Final = re.compile("&(?:#(?:[0-9]+|[xX][0-9A-Fa-f]+);?|[A-Za-z][A-Za-z0-9]*;)")


class _Encoding(NamedTuple):
    """How one is undone. `pieces`: the lengths, undone and as written, of a match's parts."""

    mark: str
    pattern: re.Pattern[str]
    undo: Callable[[str], str]
    pieces: Callable[[re.Match[str]], Iterator[tuple[int, int]]]


def _one_piece(undo: Callable[[re.Match[str]], str]) -> Callable[..., Iterator[tuple[int, int]]]:
    def pieces(match: re.Match[str]) -> Iterator[tuple[int, int]]:
        yield len(undo(match)), len(match[0])

    return pieces


def _referred(match: re.Match[str]) -> str:
    return html.unescape(match[0])


_ENCODINGS: Final = (
    _Encoding("%", _PERCENT, _unquoted, lambda match: _percent_pieces(match[0])),
    _Encoding("\\", _ESCAPE, lambda text: _ESCAPE.sub(_unescaped, text), _one_piece(_unescaped)),
    _Encoding("&", _REFERENCE, lambda text: _REFERENCE.sub(_referred, text), _one_piece(_referred)),
)


_MARKS: Final = "".join(encoding.mark for encoding in _ENCODINGS)


class Reading:
    """What a text says once an encoding of `source` is undone; the text itself has no source."""

    __slots__ = ("_encoding", "_pieces", "_source", "text")

    def __init__(
        self, text: str, source: Reading | None = None, encoding: _Encoding | None = None
    ) -> None:
        self.text = text
        self._source = source
        self._encoding = encoding
        self._pieces: list[tuple[int, int, int, int]] | None = None

    def undone(self) -> Iterator[Reading]:
        """Yield the readings with one encoding less."""
        for encoding in _ENCODINGS:
            if encoding.mark in self.text:
                text = encoding.undo(self.text)
                if text != self.text:
                    yield Reading(text, self, encoding)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the text itself the characters from `start` to before `end` stand."""
        if self._source is None or self._encoding is None:
            return start, end
        if self._pieces is None:
            self._pieces = list(self._find_pieces(self._source.text, self._encoding))
        return self._source.origin(self._written(start)[0], self._written(end - 1)[1])

    def _written(self, at: int) -> tuple[int, int]:
        """Return the start and the end of what stands in the source for a character."""
        assert self._pieces is not None
        index = bisect_right(self._pieces, at, key=lambda piece: piece[0]) - 1
        if index < 0:
            return at, at + 1
        _, end, start_written, end_written = self._pieces[index]
        if at < end:
            return start_written, end_written
        return end_written + at - end, end_written + at - end + 1

    @staticmethod
    def _find_pieces(source: str, encoding: _Encoding) -> Iterator[tuple[int, int, int, int]]:
        """Yield the parts that differ: start and end as undone, start and end in the source."""
        shrunk = 0
        for match in encoding.pattern.finditer(source):
            written = match.start()
            for length, length_written in encoding.pieces(match):
                start = written - shrunk
                yield start, start + length, written, written + length_written
                written += length_written
                shrunk += length_written - length


def readings(text: str) -> Iterator[Reading]:
    """Yield what a text may say, itself first.

    >>> [reading.text for reading in readings("%5Cu002D")]
    ['%5Cu002D', '\\\\u002D', '-']
    """
    latest = [Reading(text)]
    seen = {text}
    for depth in range(_DEEPEST + 1):
        following: list[Reading] = []
        for reading in latest:
            yield reading
            for undone in reading.undone() if depth < _DEEPEST else ():
                if undone.text not in seen:
                    seen.add(undone.text)
                    following.append(undone)
        latest = following


class Parts:
    """The parts of a text that a pattern finds, as one text, and where they stand."""

    __slots__ = ("_found", "_pattern", "_whole", "text")

    def __init__(self, whole: str, pattern: re.Pattern[str]) -> None:
        self._whole = whole
        self._pattern = pattern
        self._found: list[tuple[int, int]] | None = None
        self.text = _BETWEEN.join(pattern.findall(whole))

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the whole text the characters from `start` to before `end` stand."""
        if self._found is None:
            self._found, at = [], 0
            for match in self._pattern.finditer(self._whole):
                self._found.append((at, match.start()))
                at += len(match[0]) + len(_BETWEEN)
        at, whole = self._found[bisect_right(self._found, (start, len(self._whole))) - 1]
        return whole + start - at, whole + end - at


def encoded(characters: str) -> re.Pattern[str]:
    """Return a pattern for the parts of a text in which these characters may stand encoded.

    >>> encoded("-").findall("<a-b> Basic%20x [%2d] 5 % a")
    ['Basic%20x', '%2d']
    """
    return _pattern("".join(sorted({*characters} - _ALWAYS)))


@lru_cache(maxsize=64)
def _pattern(others: str) -> re.Pattern[str]:
    plain = f"{re.escape(''.join(sorted(_ALWAYS - {*_MARKS})))}{re.escape(others)}"
    marks = re.escape(_MARKS)
    # Possessive, and from the start of a part only: no character is looked at twice. The scheme
    # stays with what follows it, which says what that is.
    return re.compile(
        f"(?<![{marks}{plain}])(?:(?i:basic) )?[{plain}]*+[{marks}][{marks}{plain}]++"
    )
