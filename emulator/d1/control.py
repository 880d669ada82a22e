"""A D1 database in a test's hand: `emulator.d1["DB"]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.d1.parameters import bound
from emulator.d1.store import Query
from emulator.d1.texts import d1_error
from emulator.runtime.rpc import to_canonical
from emulator.sql import SqlError
from emulator.sql.statements import split
from emulator.sql.values import javascript_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.caller import Caller
    from emulator.d1.service import D1
    from emulator.d1.store import Store

# A wrong statement is shown at the line that gave it.
__tracebackhide__ = True

Row = dict[str, Any]


class D1Control:
    """One database as tests use it; get it from `emulator.d1`, by its binding or its name.

    Its methods are plain functions and no fault sites.
    """

    def __init__(self, service: D1, name: str, caller: Caller) -> None:
        self._service = service
        self._caller = caller.converting()
        self.name = name

    @property
    def _store(self) -> Store:
        return self._service.stores[self._service.names[self.name]]

    def execute(self, sql: str, *params: Any) -> list[Row]:
        """Run SQL and return the rows of its last statement, as dicts.

        All statements of the text are run, or none of them; `params` are those of the last.
        Values are as the Worker has them, but for blobs, which are bytes. Raises `JsException`
        with D1's text.

            emulator.d1["DB"].execute("INSERT INTO users (name) VALUES (?)", "ada")
            assert emulator.d1["DB"].execute("SELECT name FROM users") == [{"name": "ada"}]
        """
        return self._caller.inside(lambda: self._execute(sql, params))

    def _execute(self, sql: str, params: Sequence[Any]) -> list[Row]:
        *before, last = split(sql) or [sql]
        values = [bound(to_canonical(param)) for param in params]
        queries = [*map(Query, before), Query(last, values)]
        try:
            outcome = self._store.query(queries)[-1].outcome
        except SqlError as error:
            raise d1_error(str(error)) from None
        if any(query.writes for query in queries):
            self._service.record(f"d1 {self.name}", {"call": "execute", "sql": sql, "by": "test"})
        columns = outcome.columns
        return [dict(zip(columns, javascript_row(row, bytes), strict=True)) for row in outcome.rows]

    def rows(self, table: str) -> list[Row]:
        """All rows of a table, in the order in which they were inserted."""
        name = table.replace('"', '""')
        order = "" if self._is_without_rowid(table) else " ORDER BY rowid"
        return self.execute(f'SELECT * FROM "{name}"{order}')

    def _is_without_rowid(self, table: str) -> bool:
        quoted = table.replace('"', '""')
        found = self._caller.inside(
            lambda: self._store.database.own(f'PRAGMA table_list("{quoted}")')
        )
        return any(row[4] for row in found)

    @property
    def tables(self) -> list[str]:
        """The names of the tables, sorted, without those of SQLite and the platform."""
        found = self.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        names = [str(row["name"]) for row in found]
        return [name for name in names if not name.startswith(("sqlite_", "_cf_"))]

    @property
    def migrations(self) -> list[str]:
        """The names of the migrations that are applied, in order."""
        return self._caller.inside(self._store.applied_migrations)

    def apply_migrations(self) -> list[str]:
        """Apply the migrations that are not applied yet, and return their names.

        Only needed with `Emulator(apply_migrations=False)`, or when files came later. Raises
        `MigrationError` for one that fails, of which nothing stays.
        """
        return self._caller.inside(self._store.apply_migrations)

    def __repr__(self) -> str:
        return f"<D1 database {self.name}>"
