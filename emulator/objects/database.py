"""The SQLite database of one object: its tables, and from its first use all else that it keeps.

Theory of operation. Values and alarm stay in memory too (`stored.py`), where code reads them; what
a turn changed is written here when it ends, in the transaction of what it did by SQL. A mark,
`user_version`, is on a database that has taken them over: one without it was cut off before that
was durable, and what the state file has counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.objects.stored import Alarm, Unchanged
from emulator.sql import Database, Source, SqlError
from emulator.sql.statements import script
from emulator.sql.values import javascript_row
from emulator.values import JsException
from emulator.values.plain import plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from emulator.kernel import Kernel
    from emulator.objects.stored import Changes, Stored
    from emulator.sql import Reading

_MARK: Final = "PRAGMA user_version = 1"
_VALUES: Final = (
    "CREATE TABLE IF NOT EXISTS _cf_KV (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID"
)
_FACTS: Final = "CREATE TABLE IF NOT EXISTS _cf_METADATA (key INTEGER PRIMARY KEY, value TEXT)"
_EXISTS: Final = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?"


class ObjectDatabase:
    """What an object keeps, as far as it is in SQLite."""

    def __init__(self, path: Path | None, kernel: Kernel) -> None:
        source = Source(now=lambda: kernel.now, random_bytes=kernel.random.randbytes)
        self._database = Database(path, source)
        self._written = False

    def size(self, stored: Stored, *, lasting: bool) -> int:
        """Bytes that its pages take."""
        self._enter(stored, lasting=lasting)
        own = self._database.own
        ((page,),), ((pages,),) = own("PRAGMA page_size"), own("PRAGMA page_count")
        ((free,),) = own("PRAGMA freelist_count")
        return int(page * (pages - free))

    @property
    def is_taken_over(self) -> bool:
        """Whether the object's values are here."""
        ((mark,),) = self._database.own("PRAGMA user_version")
        return bool(mark)

    def load(self, stored: Stored) -> None:
        """Give an object what was made durable here."""
        if not self.is_taken_over:
            return
        stored.load((), list(stored.values))
        stored.alarm = None
        if self._has("_cf_KV"):
            stored.load(self._database.own("SELECT key, value FROM _cf_KV"), ())
        if self._has("_cf_METADATA"):
            for (text,) in self._database.own("SELECT value FROM _cf_METADATA WHERE key = 1"):
                stored.alarm = Alarm(*map(int, text.split()))

    def _has(self, table: str) -> bool:
        ((count,),) = self._database.own(_EXISTS, (table,))
        return bool(count)

    # -- what code does --------------------------------------------------------------------------

    def open(self, stored: Stored, sql: str, values: Sequence[Any], *, lasting: bool) -> Reading:
        """Run SQL of user code inside the levels that are open; raises `SqlError`."""
        self._enter(stored, lasting=lasting)
        self._written = self._written or not script(sql).reads
        return self._database.open(sql, values)

    def read(self, sql: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        """Run SQL of a test's that only reads; raises `SqlError` and `ValueError`."""
        if not script(sql).reads:
            raise ValueError(f"sql() of a test reads, and this writes: {sql}")
        outcome = self._database.run(sql, values)
        rows = [javascript_row(row, bytes) for row in outcome.rows]
        return [dict(zip(outcome.columns, map(plain, row), strict=True)) for row in rows]

    def _enter(self, stored: Stored, *, lasting: bool) -> None:
        while self._database.levels < stored.depth:
            self._database.begin(lasting=lasting)
        if not self.is_taken_over:
            self._database.own(_MARK)
            if stored.values:
                self._database.own(_VALUES)
            values, alarm = stored.committed
            for put in values.items():
                self._put(*put)
            if alarm is not None:
                self._put_alarm(alarm)
            self._written = True

    def empty(self, stored: Stored) -> None:
        """Drop all that the object made; what still reads is cancelled."""
        self._enter(stored, lasting=False)
        self._database.empty()
        self._written = True

    # -- levels ----------------------------------------------------------------------------------

    def commit_level(self, depth: int) -> JsException | None:
        """Keep what was done beyond so many levels; the error where that cannot be."""
        try:
            while self._database.levels > depth:
                self._database.commit()
        except SqlError as error:
            return JsException("Error", str(error))
        return None

    def rollback_level(self, depth: int) -> None:
        """Undo what was done beyond so many levels."""
        while self._database.levels > depth:
            self._database.rollback()
        if not depth:
            self._written = False

    @property
    def is_written(self) -> bool:
        """Whether something was written by SQL that is not durable."""
        return self._written

    def keep(self, stored: Stored, changes: Changes | None) -> JsException | None:
        """Make durable what a turn did; the error where a foreign key forbids it."""
        if changes is not None:
            self._enter(stored, lasting=False)
            self._write(changes)
        problem = self.commit_level(0)
        self._written = False
        if problem is None:
            self._database.flush()
        return problem

    def put_alarm(self, stored: Stored, alarm: Alarm | None) -> None:
        """Make durable what the platform made of the alarm."""
        self._enter(stored, lasting=False)
        self._put_alarm(alarm)
        self.commit_level(0)
        self._database.flush()

    def _write(self, changes: Changes) -> None:
        for put in changes.puts:
            self._put(*put)
        for key in changes.deletes:
            self._database.own("DELETE FROM _cf_KV WHERE key = ?", (key,))
        if not isinstance(changes.alarm, Unchanged):
            self._put_alarm(changes.alarm)

    def _put(self, key: str, value: bytes) -> None:
        if not self._has("_cf_KV"):
            self._database.own(_VALUES)
        self._database.own("INSERT OR REPLACE INTO _cf_KV VALUES (?, ?)", (key, value))

    def _put_alarm(self, alarm: Alarm | None) -> None:
        if not self._has("_cf_METADATA"):
            self._database.own(_FACTS)
        if alarm is None:
            self._database.own("DELETE FROM _cf_METADATA")
        else:
            text = " ".join(map(str, alarm))
            self._database.own("INSERT OR REPLACE INTO _cf_METADATA VALUES (1, ?)", (text,))

    # -- life ------------------------------------------------------------------------------------

    def restart(self) -> None:
        """As after a crash: what was made durable is there."""
        self._database.restart()
        self._written = False

    def close(self) -> None:
        """Let go of it."""
        self._database.close()
