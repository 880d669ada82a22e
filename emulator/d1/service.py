"""The D1 databases of one emulator: which there are, who binds to them, what lasts.

SQLite is imported when a Worker with a database is loaded, and opens one when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from emulator.d1.bindings import D1Database
    from emulator.d1.store import Store
    from emulator.kernel import Kernel
    from emulator.sql import DatabaseFolder
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

Record = list[Any]


class D1:
    """D1 databases; what tests see of one is `control.D1`.

    A record is a database's id and how many calls have written to it. The rows themselves are in
    SQLite, and made durable before the records are.
    """

    def __init__(self, kernel: Kernel, folder: DatabaseFolder | None, *, migrate: bool) -> None:
        self._kernel = kernel
        self._migrate = migrate
        self._folder = folder
        self._bindings: list[D1Database] = []
        self._written: dict[str, int] = {}
        self.stores: dict[str, Store] = {}  # by the id
        self.names: dict[str, str] = {}  # binding or name -> id

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The databases of a Worker, by binding."""
        if not config.databases:
            return {}
        from emulator.d1.bindings import D1Database

        found = {}
        for database in config.databases:
            store = self._store(database.id, database)
            self.names.setdefault(database.binding, database.id)
            self.names.setdefault(database.name, database.id)
            found[database.binding] = D1Database(database.binding, store, self)
        self._bindings += found.values()
        return {**found}

    def _store(self, id: str, config: Any) -> Store:
        from emulator.d1.store import Store

        store = self.stores.get(id)
        if store is None:
            file = None if self._folder is None else self._folder.file("d1", id)
            store = self.stores[id] = Store(
                file, self._kernel, config.migrations, migrate=self._migrate
            )
        return store

    def record(self, subject: str, facts: dict[str, Any]) -> None:
        """Write a query to the trace; the facts are the event's own."""
        self._kernel.record_dict("query", subject, facts)

    # -- life ------------------------------------------------------------------------------------

    def take_records(self) -> Sequence[Record]:
        """Make durable what changed since the last time, and return how often each was written."""
        records = []
        for id, store in self.stores.items():
            store.flush()
            if store.version != self._written.get(id, 0):
                self._written[id] = store.version
                records.append([id, store.version])
        return records

    def snapshot(self) -> Record:
        """How often each database was written."""
        return [[id, store.version] for id, store in self.stores.items() if store.version]

    def rebuild(self, snapshot: Record | None, records: Iterable[Record]) -> None:
        """Start again from what is durable."""
        versions = dict([*(snapshot or ()), *records])
        for id, store in self.stores.items():
            self._written[id] = versions.get(id, 0)
            store.restart(self._written[id])

    @property
    def stored(self) -> int:
        """How many databases there are."""
        return len(self.stores)

    def reset(self) -> None:
        """Empty every database."""
        self._written.clear()
        for store in self.stores.values():
            store.reset()

    def close(self) -> None:
        """Let go of the databases, and of what user code may still hold."""
        while self._bindings:
            self._bindings.pop().disconnect()
        for store in self.stores.values():
            store.close()
