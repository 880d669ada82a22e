"""What statements gave: all at once, or row by row."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Row = tuple[Any, ...]


class Outcome(NamedTuple):
    """What the last of some statements gave.

    `changes` are rows inserted, updated and deleted by all of them, triggers included;
    `last_row_id` is that of the connection, whoever inserted last.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    changes: int
    last_row_id: int
    read: int
    written: int


class Reading:
    """The rows of a statement, read one by one: later changes may show in later rows.

    A statement that writes has done so when it was opened.
    """

    __slots__ = ("_check", "_rows", "columns", "read", "written")

    def __init__(
        self,
        rows: Iterator[Row],
        columns: tuple[str, ...],
        counts: tuple[int, int],
        check: Callable[[sqlite3.Error | None], Exception | None],
    ) -> None:
        self.columns = columns
        self.read, self.written = counts
        self._rows: Iterator[Row] | None = rows
        self._check = check

    def fetch(self) -> Row | None:
        """The next row, None after the last; raises `SqlError`."""
        if self._rows is None:
            return None
        problem = self._check(None)
        if problem is not None:
            raise problem
        try:
            row = next(self._rows, None)
        except sqlite3.Error as error:
            raise self._check(error) or error from None
        if row is None:
            self.close()
        return row

    def close(self) -> None:
        """Read no further."""
        self._rows = None
