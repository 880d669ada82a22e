"""Running single statements on a connection: parameters, permissions, errors in our words."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from emulator.sql import errors
from emulator.sql.errors import SqlError, sql_error
from emulator.sql.regulator import renames_to_reserved
from emulator.sql.statements import OWN, users, well_formed
from emulator.store.trouble import state_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from emulator.sql.budget import Budget
    from emulator.sql.limits import Limits
    from emulator.sql.regulator import Regulator
    from emulator.sql.statements import Statement

SqlValue = str | float | bytes | None
"""What user code may bind, and SQLite stores; an `int` would be stored as one."""

_PAGES: Final = f"{OWN}PRAGMA page_count"
_FREE_PAGES: Final = f"{OWN}PRAGMA freelist_count"


class Execution:
    """What executes statements of user code and of the emulator."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        regulator: Regulator,
        path: Path | None,
        budget: Budget,
        limits: Limits,
    ) -> None:
        self.connection = connection
        self._regulator = regulator
        self._budget = budget
        self._too_long = limits.too_long
        self._path = path
        self._counting = connection.cursor()

    def own(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """Run a statement of the emulator's own, which may do everything; returns its rows."""
        self._regulator.trusted = True
        self._budget.unlimited = True
        try:
            return self.connection.execute(OWN + sql, values).fetchall()
        except sqlite3.Error as error:
            self._budget.is_why(error)
            raise
        finally:
            self._regulator.trusted = self._budget.unlimited = False

    def pages_in_use(self) -> int:
        """How many pages of the database hold something.

        Asked after each statement that writes, and so with a cursor that stays.
        """
        self._regulator.trusted = True
        try:
            (pages,) = self._counting.execute(_PAGES).fetchone()
            (free,) = self._counting.execute(_FREE_PAGES).fetchone()
        finally:
            self._regulator.trusted = False
        return int(pages - free)

    @contextmanager
    def trusted(self) -> Iterator[None]:
        """A context in which nothing is forbidden: SQLite runs statements of its own, too."""
        self._regulator.trusted = True
        try:
            yield
        finally:
            self._regulator.trusted = False

    def execute(self, part: Statement, values: Sequence[SqlValue]) -> sqlite3.Cursor:
        """Begin to run a statement of user code; raises `SqlError`."""
        if part.empty:
            raise SqlError(errors.NO_STATEMENT)
        if "ALTER" in part.words and renames_to_reserved(part.text):
            raise SqlError(errors.NOT_AUTHORIZED, "SQLITE_AUTH")
        self._regulator.refusal = None
        self._budget.asked = 0
        try:
            given = self._bound(part, values) if part.names else values
            return self.connection.execute(part.given, given)
        except UnicodeEncodeError:
            return self.execute(part, [_well_formed(value) for value in values])
        except sqlite3.Error as error:
            raise self.explained(error, part) from None

    def refuse_parameters(self, part: Statement, refusal: str) -> None:
        """Raise that a statement's parameters are wrong, unless it is wrong itself."""
        problem = self._problem(part.text)
        raise SqlError(refusal) if problem is None else self.explained(problem, part)

    def explained(self, error: sqlite3.Error, part: Statement) -> Exception:
        """An error in the runtime's words; what is wrong with the file is a `StateError`.

        Raises what a signal's handler raised while the statement ran.
        """
        if self._budget.is_why(error):
            return SqlError(self._too_long, "SQLITE_INTERRUPT")
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if self._path is not None and code in errors.OF_THE_FILE:
            return state_error(self._path, error)
        return sql_error(error, part.text, self._says, self._regulator.refusal)

    def _bound(self, part: Statement, values: Sequence[SqlValue]) -> Mapping[str, SqlValue]:
        """The values by name, as `sqlite3` wants them where the parameters have names."""
        if len(values) != part.parameters:
            self.refuse_parameters(part, errors.WRONG_NUMBER)
        return dict(zip(part.names, values, strict=True))

    def _says(self, sql: str) -> str | None:
        problem = self._problem(sql)
        return None if problem is None else str(problem)

    def _problem(self, sql: str) -> sqlite3.Error | None:
        """What is wrong with a statement, which is not run."""
        explains = sql.lstrip()[:7].upper() == "EXPLAIN"
        try:
            self.connection.execute(users(sql) if explains else f"EXPLAIN {sql}").close()
        except sqlite3.Error as error:
            # Without a code it is Python's, which misses the parameters: SQLite is content.
            return error if hasattr(error, "sqlite_errorcode") else None
        return None


def _well_formed(value: SqlValue) -> SqlValue:
    return well_formed(value) if isinstance(value, str) else value
