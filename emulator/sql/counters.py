"""How many rows a statement read and wrote: `rows_read`, `rows_written`.

The runtime's SQLite is patched to count; an ordinary one only tells how it goes about a statement
and how many rows changed. From that the counts follow exactly for what most statements are: a scan
of a table, a look-up by key, rows inserted, updated and deleted with their indexes. They are an
estimate where conditions, sub-queries or triggers decide. Rules seen in the runtime (1.20260730):

1. A scan reads each row; of an empty table, one.
2. A look-up by a key reads one row, found or not; by an index that is not unique, each that fits
   and one more, none if none fits.
3. The inner table of a join is read once for each row of the outer.
4. A row that is inserted is written once, and once more for each index; one that is updated, for
   each index over a column that changes; one that is deleted, once.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.sql.regulator import Action, Regulator
    from emulator.sql.statements import Statement

_STEP: Final = re.compile(
    r"(?P<kind>SCAN|SEARCH) (?!.*CONSTANT ROW)(?:TABLE )?(?P<table>\S+)(?P<how>.*)"
)
_BY_KEY: Final = re.compile(r"INTEGER PRIMARY KEY \(rowid=\?\)|sqlite_autoindex_\S+ \(\w+=\?\)")
_MOST_KNOWN: Final = 1_000


class _Step(NamedTuple):
    """A table that is gone through: `kind` is `scan`, `key` or `index`."""

    kind: str
    table: str
    parent: int


class _Course(NamedTuple):
    """How SQLite goes about a statement: what it reads, and what a changed row costs.

    `read` is how many rows it reads, where that is always the same.
    """

    steps: tuple[_Step, ...]
    in_order: bool
    cost: int
    read: int | None


_TOUCHES: Final = frozenset({sqlite3.SQLITE_READ, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_UNKNOWN: Final = _Course((), True, 1, 0)


class Counters:
    """Counts for the statements of one database."""

    def __init__(
        self, own: Callable[[str, Any], list[tuple[Any, ...]]], regulator: Regulator
    ) -> None:
        self._own = own
        self._regulator = regulator
        self._courses: dict[str, _Course] = {}
        self._sizes: dict[str, tuple[int, int]] = {}

    def forget(self) -> None:
        """The schema may be another."""
        self._courses.clear()
        self._sizes.clear()

    def study(self, statement: Statement) -> None:
        """Look at a statement that writes before it is run: SQL may ask for `changes()` after."""
        if statement.text not in self._courses:
            self._course_of(statement)

    def count(
        self, statement: Statement, rows: int, changes: tuple[int, int], version: int
    ) -> tuple[int, int]:
        """Rows read and written; `changes` are those of the statement itself and all of them.

        `version` is a number that grows when any table changes.
        """
        course = self._courses.get(statement.text) or self._course_of(statement)
        own, total = changes
        found = rows if statement.reads else own
        written = own * course.cost + (total - own)
        if course.read is not None:
            return course.read, written
        return self._read(statement, course, found, version), written

    def _read(self, statement: Statement, course: _Course, found: int, version: int) -> int:
        read, outer, parent = 0, 1, -1
        for kind, table, group in course.steps:
            if group != parent:
                outer, parent = 1, group
            if kind == "scan":
                size = max(self._size_of(table, version), 1)
            else:
                size = 1 if kind == "key" else found + bool(found)
            read += outer * size
            outer *= max(size, 1) if kind == "scan" else 1
        if "LIMIT" in statement.words and course.in_order and len(course.steps) == 1:
            return min(read, max(found, 1))
        return read

    def _size_of(self, table: str, version: int) -> int:
        known = self._sizes.get(table)
        if known is not None and known[0] == version:
            return known[1]
        try:
            ((size,),) = self._own(f"SELECT count(*) FROM {_quoted(table)}", ())
        except sqlite3.Error:  # a table-valued function, or a query within the query
            size = 1
        self._sizes[table] = version, size
        return int(size)

    def _course_of(self, statement: Statement) -> _Course:
        if "EXPLAIN" in statement.words or "PRAGMA" in statement.words:
            return _UNKNOWN
        seen: list[Action] = []
        self._regulator.seen = seen
        try:
            plan = self._own(f"EXPLAIN QUERY PLAN {statement.text}", _nothing(statement))
        except sqlite3.Error:
            return _UNKNOWN  # what is wrong with it will be told
        finally:
            self._regulator.seen = None
        details = [(row[1], str(row[3])) for row in plan]
        tables = {str(name) for code, name, *_ in seen if code in _TOUCHES}
        steps = tuple(
            _Step(
                _kind(match["kind"], match["how"]),
                _table(match["table"], statement.text, tables),
                parent,
            )
            for parent, detail in details
            if (match := _STEP.match(detail))
        )
        in_order = not any("TEMP B-TREE" in detail for _, detail in details)
        if len(self._courses) > _MOST_KNOWN:
            self._courses.clear()
        course = _Course(steps, in_order, self._cost(seen), _always_read(steps))
        self._courses[statement.text] = course
        return course

    def _cost(self, seen: list[Action]) -> int:
        """What one changed row writes, its indexes included."""
        direct = [action for action in seen if action[4] is None]
        updated = [action for action in direct if action[0] == sqlite3.SQLITE_UPDATE]
        for code, table, _, _, _ in direct:
            if code == sqlite3.SQLITE_INSERT and table and not updated:
                return self._entries(table, None)
            if code == sqlite3.SQLITE_UPDATE and table:
                columns = {str(action[2]) for action in updated if action[1] == table}
                return self._entries(table, columns)
            if code == sqlite3.SQLITE_DELETE:
                return 1
        return 1

    def _entries(self, table: str, columns: set[str] | None) -> int:
        """How often a row of the table is written: once, and for each index over the columns."""
        entries = 1
        for _, name, _, origin, partial, *_ in self._own(
            f"PRAGMA index_list({_quoted(table)})", ()
        ):
            indexed = {row[2] for row in self._own(f"PRAGMA index_info({_quoted(name)})", ())}
            is_table = origin == "pk" and self._is_without_rowid(table)
            if not partial and not is_table and (columns is None or columns & indexed):
                entries += 1
        return entries

    def _is_without_rowid(self, table: str) -> bool:
        rows = self._own(f"PRAGMA table_list({_quoted(table)})", ())
        return any(row[4] for row in rows)


def _always_read(steps: tuple[_Step, ...]) -> int | None:
    if not steps:
        return 0
    return 1 if len(steps) == 1 and steps[0].kind == "key" else None


def _kind(kind: str, how: str) -> str:
    if kind == "SCAN":
        return "scan"
    return "key" if _BY_KEY.search(how) else "index"


def _table(name: str, sql: str, tables: set[str]) -> str:
    """The table of a name in a plan, which may be its other name in the statement."""
    if name in tables:
        return name
    pattern = rf"(\w+)[\"`\]]?\s+(?:AS\s+)?[\"`\[]?{re.escape(name)}\b"
    for match in re.finditer(pattern, sql, re.IGNORECASE):
        if match[1] in tables:
            return match[1]
    return name


def _nothing(statement: Statement) -> Any:
    """Something for each parameter, where no value matters."""
    if statement.names:
        return dict.fromkeys(statement.names)
    return (None,) * statement.parameters


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
