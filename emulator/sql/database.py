"""One database of the platform: statements of user code, transactions, durability.

Theory of operation. SQLite's transaction is open from the first statement of a run of the loop to
`flush`, which commits it: one commit for all that a run did, as for the platform's other state.
Inside it `begin`, `commit` and `rollback` nest, as savepoints. What SQLite does only at a commit,
or to a transaction as a whole, is played where user code would meet it: foreign keys whose check
was put off are checked when the outermost level ends, `INSERT OR ROLLBACK` undoes the levels and
no more, and where the schema says such a thing (`ON CONFLICT ROLLBACK`), what came before a level
is committed first. So it is before a statement that writes and may be endless: SQLite rolls
everything back where one is interrupted.

The statements of one `run` that come before one that fails stay done. Who wants all or nothing puts
them between `begin` and `commit`, unless `is_atomic` says that it is not needed.
"""

from __future__ import annotations

import sqlite3
import weakref
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from emulator.sql import errors
from emulator.sql.budget import Budget
from emulator.sql.connection import connect, remove
from emulator.sql.counters import Counters
from emulator.sql.errors import SqlError
from emulator.sql.execution import Execution
from emulator.sql.functions import Functions
from emulator.sql.limits import LIMITS
from emulator.sql.reading import Outcome, Reading
from emulator.sql.regulator import Regulator
from emulator.sql.statements import script

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from emulator.sql.execution import SqlValue
    from emulator.sql.functions import Source
    from emulator.sql.limits import Limits
    from emulator.sql.statements import Script, Statement

_HAZARDS: Final = (
    "SELECT ifnull(max(sql LIKE '%rollback%'), 0), ifnull(max(sql LIKE '%deferr%'), 0)"
    " FROM sqlite_schema"
)
_ENTRIES: Final = "SELECT count(*) FROM sqlite_schema"
_MADE: Final = (
    "SELECT type, name, sql LIKE 'create virtual%' AS is_virtual FROM sqlite_schema "
    "WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
    "AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' ORDER BY is_virtual DESC, rowid"
)
_SEQUENCES: Final = "SELECT name FROM sqlite_schema WHERE name = 'sqlite_sequence'"


# How the database was before some statements: rows changed ever, tables and indexes.
_Before: TypeAlias = tuple[int, int]


class Database:
    """One database, in memory or in a file.

    Raises `StateError` where the file is damaged, foreign or cannot be written.
    """

    def __init__(self, path: Path | None, source: Source, limits: Limits = LIMITS) -> None:
        self.path: Final = path
        self.era = 0  # grows when everything is thrown away
        self.levels = 0  # of `begin`
        self.last_row_id = 0
        self._limits = limits
        self._regulator = Regulator()
        self._budget = Budget(limits.steps)
        self._functions = Functions(source, limits.length)
        self._counters = Counters(self.own, self._regulator)
        self._hazards: tuple[bool, bool] | None = None
        self._size: int | None = None
        self._readers: list[weakref.ref[sqlite3.Cursor]] = []
        self._open()

    def _open(self) -> None:
        self._connection = connect(
            self.path, self._limits, self._regulator, self._functions, self._budget
        )
        self._execution = Execution(
            self._connection, self._regulator, self.path, self._budget, self._limits
        )
        ((self._page_size,),) = self.own("PRAGMA page_size")
        self.levels = 0
        self.last_row_id = 0
        self._deferred = False
        self._forget_schema()

    # -- statements ------------------------------------------------------------------------------

    def run(self, sql: str, values: Sequence[SqlValue] = ()) -> Outcome:
        """Run statements, the last with these values, and read all rows of the last.

        Raises `SqlError` with the runtime's text.
        """
        return self.run_script(script(sql), values)

    def run_script(self, given: Script, values: Sequence[SqlValue] = ()) -> Outcome:
        """`run`, of what was taken apart already."""
        before = self._start(given)
        try:
            cursor = self._begin_last(given, values)
            rows = self._rows(cursor, given.last)
            counts = self._count(given.last, len(rows), cursor.rowcount, before)
            changes = self._connection.total_changes - before[0]
        except SqlError as error:
            self._failed(given, error)
            raise
        if not given.reads or given.may_defer:
            self._finish(given)
        self.last_row_id = cursor.lastrowid or 0
        last, columns = self.last_row_id, _columns(cursor)
        # As `Outcome(...)`, but at C speed.
        return tuple.__new__(Outcome, (columns, rows, changes, last, *counts))

    def open(self, sql: str, values: Sequence[SqlValue] = ()) -> Reading:
        """Run statements as `run` does, to read the rows of the last one by one."""
        given = script(sql)
        before = self._start(given)
        rows = None
        try:
            cursor = self._begin_last(given, values)
            if not given.last.reads:
                rows = self._rows(cursor, given.last)
            counts = self._count(given.last, len(rows or ()), cursor.rowcount, before)
        except SqlError as error:
            self._failed(given, error)
            raise
        self._finish(given)
        if rows is None:
            self._readers = [one for one in self._readers if one() is not None]
            self._readers.append(weakref.ref(cursor))
        source = cursor if rows is None else iter(rows)
        return Reading(source, _columns(cursor), counts, self._check_era(given.last))

    def own(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """Run one statement of the emulator's own and return its rows; nothing is forbidden."""
        return self._execution.own(sql, values)

    def is_atomic(self, given: Script) -> bool:
        """Whether SQLite itself undoes all of these statements when one fails."""
        if given.may_stop_halfway or given.may_defer:
            return False
        return given.reads or not (self._hazards or self._schema_hazards())[1]

    def _start(self, given: Script) -> _Before:
        if not (given.reads or self.levels) and (
            given.may_be_endless or (self._hazards or self._schema_hazards())[0]
        ):
            self.flush()
        if not self._connection.in_transaction:
            self.own("BEGIN")
        entries = 0
        if given.changes_schema:
            ((entries,),) = self.own(_ENTRIES)
        elif not given.reads:
            self._counters.study(given.last)
        return self._connection.total_changes, entries

    def _schema_hazards(self) -> tuple[bool, bool]:
        """Whether a table or trigger may roll back too much, or puts off foreign keys."""
        if self._hazards is None:
            ((rolls_back, defers),) = self.own(_HAZARDS)
            self._hazards = bool(rolls_back), bool(defers)
        return self._hazards

    def _begin_last(self, given: Script, values: Sequence[SqlValue]) -> sqlite3.Cursor:
        """Run all statements but the last, and begin to run that."""
        for part in given.head:
            if part.parameters:
                self._execution.refuse_parameters(part, errors.ONLY_LAST)
            self._rows(self._execution.execute(part, ()), part)
        return self._execution.execute(given.last, values)

    def _rows(self, cursor: sqlite3.Cursor, part: Statement) -> list[tuple[Any, ...]]:
        try:
            return cursor.fetchall()
        except sqlite3.Error as error:
            raise self._execution.explained(error, part) from None

    def _count(self, last: Statement, rows: int, own: int, before: _Before) -> tuple[int, int]:
        """Rows read and written by the last statement; `own` changes are without triggers."""
        now = self._connection.total_changes
        changed, had = before
        if last.changes_schema:
            ((entries,),) = self.own(_ENTRIES)
            made = max(entries - had, 0)
            return 1, made + (bool(made) and last.makes_table)
        changes = now - changed
        own = min(own, changes) if own >= 0 else changes
        return self._counters.count(last, rows, (own, changes), now)

    def _failed(self, given: Script, error: SqlError) -> None:
        if given.rolls_back and error.code.startswith("SQLITE_CONSTRAINT"):
            while self.levels:
                self.rollback()
        if not self._connection.in_transaction:  # the schema says so
            self.levels = 0
        self._finish(given)

    def _finish(self, given: Script) -> None:
        """See to what statements leave behind."""
        if not given.reads:
            self._size = None
            if given.changes_schema:
                self._forget_schema()
        hazards = self._hazards or self._schema_hazards()
        self._deferred = self._deferred or given.may_defer or hazards[1]

    def _forget_schema(self) -> None:
        self._size = self._hazards = None
        self._counters.forget()

    def _check_era(self, part: Statement) -> Callable[[sqlite3.Error | None], Exception | None]:
        """What a reading asks before each row, and about errors."""
        era = self.era

        def check(error: sqlite3.Error | None) -> Exception | None:
            if self.era != era:
                return SqlError(errors.DELETED)
            return None if error is None else self._execution.explained(error, part)

        return check

    # -- transactions ----------------------------------------------------------------------------

    def begin(self, *, lasting: bool = False) -> None:
        """Begin what happens as a whole; levels nest.

        A `lasting` one may still be open when the loop's run ends: what was done before does not
        wait for it to become durable.
        """
        if not self.levels and (lasting or self._schema_hazards()[0]):
            self.flush()
        if not self._connection.in_transaction:
            self.own("BEGIN")
        self.own(f"SAVEPOINT level_{self.levels}")
        self.levels += 1

    def commit(self) -> None:
        """Keep what was done since the last `begin`.

        Raises `SqlError`, and undoes it, where that is the outermost level and leaves rows that
        violate a foreign key. Does nothing where a statement rolled everything back.
        """
        if not self.levels:
            return
        if self.levels == 1 and self._deferred:
            self._check_foreign_keys()
        self.levels -= 1
        self.own(f"RELEASE level_{self.levels}")

    def rollback(self) -> None:
        """Undo what was done since the last `begin`."""
        if not self._connection.in_transaction:  # a signal ended a statement that wrote
            self.levels = 0
        if not self.levels:
            return
        self.levels -= 1
        self.own(f"ROLLBACK TO level_{self.levels}")
        self.own(f"RELEASE level_{self.levels}")
        self._forget_schema()

    def _check_foreign_keys(self) -> None:
        self._deferred = False
        violated = self.own("PRAGMA foreign_key_check")
        if violated:
            self.rollback()
        self.own("PRAGMA defer_foreign_keys = OFF")
        if violated:
            raise SqlError(errors.FOREIGN_KEY, "SQLITE_CONSTRAINT_FOREIGNKEY")

    def flush(self) -> None:
        """Make durable what is done, unless a level is open."""
        if self._connection.in_transaction and not self.levels:
            self.own("COMMIT")
            self._deferred = False

    # -- as a whole ------------------------------------------------------------------------------

    def size(self) -> int:
        """Bytes that its pages take, as `databaseSize` and `size_after` tell."""
        if self._size is None:
            self._size = self._page_size * self._execution.pages_in_use()
        return self._size

    def restart(self) -> None:
        """As after a crash of the machine it runs on: what was flushed is there, nothing else."""
        if self._connection.in_transaction:
            self.own("ROLLBACK")
        old = self._connection
        self._open()
        if self.path is None:
            old.backup(self._connection)
        old.close()

    def image(self) -> bytes:
        """All that the database holds, as the bytes of a file."""
        self.flush()
        with self._execution.trusted():
            return self._connection.serialize()

    def load(self, image: bytes) -> None:
        """Hold what `image` returned, in place of what is there."""
        if self.path is None:
            with self._execution.trusted():
                self._connection.deserialize(image)
        else:
            with closing(sqlite3.connect(":memory:", isolation_level=None)) as other:
                other.deserialize(image)
                other.backup(self._connection)
        self._forget_schema()

    def reset(self) -> None:
        """Throw everything away; what still reads is cancelled."""
        self.era += 1
        self.close()
        if self.path is not None:
            remove(self.path)
        self._open()

    def empty(self) -> None:
        """Drop all that user code made, as part of a transaction; what still reads is cancelled."""
        self.era += 1
        for reference in self._readers:
            if (cursor := reference()) is not None:
                cursor.close()
        self._readers.clear()
        if not self._connection.in_transaction:
            self.own("BEGIN")
        self.own("PRAGMA defer_foreign_keys = ON")
        for kind, name, _ in self.own(_MADE):
            quoted = name.replace('"', '""')
            # A virtual table takes tables of its own with it.
            self.own(f'DROP {kind} IF EXISTS "{quoted}"')
        for (name,) in self.own(_SEQUENCES):
            self.own(f"DELETE FROM {name}")
        self.own("PRAGMA defer_foreign_keys = OFF")
        self._deferred = False
        self._forget_schema()

    def close(self) -> None:
        """Let go of the database; what was not flushed is lost."""
        self._connection.close()
        self._functions.close()


def _columns(cursor: sqlite3.Cursor) -> tuple[str, ...]:
    described = cursor.description
    return () if described is None else tuple([column[0] for column in described])
