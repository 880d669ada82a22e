"""One D1 database: opened when it is first used, with its migrations applied."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from emulator.d1 import migrations
from emulator.d1.parameters import AS_SENT, sent
from emulator.d1.results import Answer
from emulator.d1.texts import NO_STATEMENTS, NOT_A_TEXT, TOO_LONG
from emulator.errors import StateError
from emulator.sql import Database, Source, SqlError
from emulator.sql.connection import remove
from emulator.sql.limits import Limits
from emulator.sql.statements import script

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from emulator.d1_config import Migrations
    from emulator.kernel import Kernel
    from emulator.sql.execution import SqlValue
    from emulator.sql.statements import Script

LIMITS: Final = Limits(too_long=TOO_LONG)
_COMMENT: Final = re.compile(r"^\s+--.*", re.MULTILINE)


class Query:
    """What is sent of a statement: its SQL, and its parameters as user code sees them."""

    def __init__(self, statement: Any, params: Sequence[Any] = ()) -> None:
        self.statement = statement
        self.params = params

    @property
    def writes(self) -> bool:
        """Whether it may write, as its words tell."""
        return isinstance(self.statement, str) and not script(self.statement).reads


class Store:
    """A database and what is known of it; `version` counts the calls that wrote."""

    def __init__(
        self, path: Path | None, kernel: Kernel, given: Migrations | None, *, migrate: bool
    ) -> None:
        self.version = 0
        self.migrations = given
        self._path = path
        self._kernel = kernel
        self._migrate = migrate
        self._database: Database | None = None

    @property
    def database(self) -> Database:
        """The database; raises `StateError` and `MigrationError` when it is opened."""
        if self._database is None:
            self._database = self._open()
        return self._database

    def _open(self) -> Database:
        kernel = self._kernel
        to_apply = self.migrations if self._migrate else None
        is_new = self._path is None or not self._path.exists()
        source = Source(lambda: kernel.now, kernel.random.randbytes)
        image = migrations.image(to_apply, kernel.clock.start) if is_new else None
        database = Database(self._path, source, LIMITS)
        try:
            if image is not None:
                database.load(image)
            elif to_apply is not None:
                migrations.apply(database, to_apply)
        except BaseException:
            database.close()
            raise
        return database

    def query(self, queries: Sequence[Query]) -> list[Answer]:
        """Run queries as one transaction; raises `SqlError`, and then nothing of them stays."""
        if len(queries) == 1:  # as most times: without lists of one
            text = _script_of(queries[0])
            if text is None:
                raise SqlError(NO_STATEMENTS)
            database = self._database or self.database
            if database.is_atomic(text):
                answer = self._run(database, text, _values_of(queries[0]))
                if not text.reads:
                    self.version += 1
                return [answer]
        found = [(text, query) for query in queries if (text := _script_of(query)) is not None]
        if not found:
            raise SqlError(NO_STATEMENTS)
        answers = self._run_all([(text, _values_of(query)) for text, query in found])
        if not all(text.reads for text, _ in found):
            self.version += 1
        return answers

    def _run_all(self, given: Sequence[tuple[Script, Sequence[SqlValue]]]) -> list[Answer]:
        database = self._database or self.database
        if len(given) == 1 and database.is_atomic(given[0][0]):
            return [self._run(database, *given[0])]
        database.begin()
        try:
            answers = [self._run(database, text, values) for text, values in given]
            database.commit()
        except BaseException:
            database.rollback()
            raise
        return answers

    def _run(self, database: Database, given: Script, values: Sequence[SqlValue]) -> Answer:
        size, last = database.size(), database.last_row_id
        outcome = database.run_script(given, values)
        after = database.size()
        changed = outcome.changes != 0 or outcome.last_row_id != last or after != size
        # As `Answer(...)`, but at C speed.
        return tuple.__new__(Answer, (outcome, after, changed, self._kernel.profile))

    def bookmark(self) -> str:
        """Where the database stands, as sessions pass it on: it grows with each call that wrote."""
        return f"{0:08x}-{self.version:08x}-{0:08x}-{0:032x}"

    # -- migrations ------------------------------------------------------------------------------

    def apply_migrations(self) -> list[str]:
        """Apply what is not applied yet; returns the names."""
        if self.migrations is None:
            return []
        names = migrations.apply(self.database, self.migrations)
        self.version += bool(names)
        return names

    def applied_migrations(self) -> list[str]:
        """The names of those that are applied, in order."""
        if self.migrations is None:
            return []
        return migrations.applied(self.database, self.migrations.table)

    # -- life ------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Make durable what was done."""
        if self._database is not None:
            self._database.flush()

    def restart(self, version: int) -> None:
        """As after a crash of the process: what was flushed is there.

        Raises `StateError` where there should be a file and is none.
        """
        self.version = version
        if version and self._path is not None and not self._path.exists():
            raise StateError(
                f"{self._path} is missing: put it back, or start with a new state file"
            )
        if self._database is not None:
            self._database.restart()

    def reset(self) -> None:
        """Throw everything away; the migrations are applied again at the next use."""
        self.version = 0
        self.close()
        if self._path is not None:
            remove(self._path)

    def close(self) -> None:
        """Let go of the database."""
        if self._database is not None:
            self._database.close()
            self._database = None


def _script_of(query: Query) -> Script | None:
    if not isinstance(query.statement, str):
        raise SqlError(NOT_A_TEXT)
    return _taken(query.statement)


def _values_of(query: Query) -> Sequence[SqlValue]:
    params = query.params
    return [value if type(value) in AS_SENT else sent(value) for value in params] if params else ()


@lru_cache(maxsize=1_000)
def _taken(sql: str) -> Script | None:
    """What the service takes this for; None where that is no query. A comment alone it takes."""
    return script(sql) if _COMMENT.sub("", sql).strip() else None
