"""SQL functions whose result would be the real time, or really random.

SQLite asks the machine for both. Functions of the same name take their place, in defaults, triggers
and views too: time is that of the emulator's clock, and does not move within a call, and random
values come from the emulator's seeded stream. The arithmetic of dates stays SQLite's own: a second,
empty database is asked, with the time written out instead of `now`.
"""

from __future__ import annotations

import re
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Functions of dates, with the places of their moments.
_DATES: Final[dict[str, tuple[int, ...]]] = {
    "date": (0,),
    "time": (0,),
    "datetime": (0,),
    "julianday": (0,),
    "unixepoch": (0,),
    "strftime": (1,),
    "timediff": (0, 1),
}
_CURRENT: Final = {"current_timestamp": slice(0, 19), "current_date": slice(0, 10)}
_SUBSECONDS: Final = frozenset({"subsec", "subsecond"})
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})*")


class Source(NamedTuple):
    """Where time (microseconds since 1970) and random bytes come from."""

    now: Callable[[], int]
    random_bytes: Callable[[int], bytes]


class Functions:
    """The functions of one connection."""

    def __init__(self, source: Source, largest: int) -> None:
        self._source = source
        self._largest = largest
        self._plain: sqlite3.Connection | None = None

    def install(self, connection: sqlite3.Connection) -> None:
        """Put them in the place of SQLite's own."""
        add = connection.create_function
        for name, moments in _DATES.items():
            if name == "timediff" and sqlite3.sqlite_version_info < (3, 43):
                continue
            # As SQLite's own, they may stand in an index, where `now` makes no sense.
            add(name, -1, self._date_function(name, moments), deterministic=True)
        for name, part in _CURRENT.items():
            add(name, 0, lambda part=part: self._now()[part], deterministic=True)
        add("current_time", 0, lambda: self._now()[11:19], deterministic=True)
        add("random", 0, self._random)
        add("randomblob", 1, self._random_blob)
        self._add_missing(connection)

    def close(self) -> None:
        """Let go of the second database."""
        if self._plain is not None:
            self._plain.close()
            self._plain = None

    def _now(self) -> str:
        """The present, as SQLite reads it: milliseconds, UTC."""
        moment = _EPOCH + timedelta(microseconds=self._source.now())
        return moment.isoformat(" ", "milliseconds")[:23]

    def _ask(self, expression: str, arguments: Sequence[Any]) -> Any:
        if self._plain is None:
            self._plain = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        (value,) = self._plain.execute(f"SELECT {expression}", arguments).fetchone()
        return value

    def _date_function(self, name: str, moments: tuple[int, ...]) -> Callable[..., Any]:
        def function(*given: Any) -> Any:
            arguments = list(given)
            for place in moments:
                self._write_out(arguments, place)
            return self._ask(f"{name}({','.join('?' * len(arguments))})", arguments)

        return function

    def _write_out(self, arguments: list[Any], place: int) -> None:
        """Give a moment that is now, or left out, as text."""
        if len(arguments) == place:
            arguments.append(self._now())
        elif len(arguments) > place and isinstance(arguments[place], str):
            word = arguments[place].lower()
            if word == "now":
                arguments[place] = self._now()
            elif word in _SUBSECONDS:
                arguments.insert(place, self._now())

    def _random(self) -> int:
        return int.from_bytes(self._source.random_bytes(8), "big", signed=True)

    def _random_blob(self, size: Any) -> bytes:
        count = max(int(size) if isinstance(size, (int, float)) else 1, 1)
        if count > self._largest:
            raise OverflowError  # which `sqlite3` turns into "string or blob too big"
        return self._source.random_bytes(count)

    # -- what an older SQLite does not have ------------------------------------------------------

    def _add_missing(self, connection: sqlite3.Connection) -> None:
        version = sqlite3.sqlite_version_info
        add = connection.create_function
        if version < (3, 41):
            add("unhex", -1, _unhex, deterministic=True)
        if version < (3, 43):
            add("octet_length", 1, self._octet_length, deterministic=True)
        if version < (3, 44):
            add("concat", -1, self._concat, deterministic=True)
            add("concat_ws", -1, self._concat_with, deterministic=True)

    def _octet_length(self, value: Any) -> int | None:
        length: int | None = self._ask("length(CAST(? AS BLOB))", (value,))
        return length

    def _text(self, value: Any) -> str:
        return str(self._ask("CAST(? AS TEXT)", (value,)))

    def _concat(self, *values: Any) -> str:
        return "".join(self._text(value) for value in values if value is not None)

    def _concat_with(self, separator: Any, *values: Any) -> str | None:
        if separator is None:
            return None
        return self._text(separator).join(
            self._text(value) for value in values if value is not None
        )


def _unhex(text: Any, ignored: Any = "") -> bytes | None:
    if text is None or ignored is None:
        return None
    digits = "".join(sign for sign in str(text) if sign not in str(ignored))
    return bytes.fromhex(digits) if _HEX.fullmatch(digits) else None
