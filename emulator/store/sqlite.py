"""A store in one SQLite file, for a state that outlives the process.

The file is in WAL mode with `synchronous=NORMAL`: a commit has been written to the log before
`commit` returns, but is not flushed to the disk. A process killed at any instant loses nothing
that it committed, since the operating system has it. A machine that loses power may lose the last
commits, never part of one, and the file stays sound. `FULL` would flush at every commit, some
milliseconds each, for the sake of a power cut under a development server.

The process that opens the file holds SQLite's exclusive lock until it closes the file or dies,
however it dies; nothing is left behind that a user would have to delete.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from emulator.errors import StateError
from emulator.store import Loaded
from emulator.store.records import Record, decode, encode
from emulator.store.trouble import trouble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from emulator.store.records import Payload

APPLICATION_ID: Final = 0x576B456D
"""Marks the file as ours (`WkEm`); SQLite keeps it in the file's header."""

# Each brings a file from the version before to its own, counted from 1 and kept in `user_version`.
_MIGRATIONS: Final = (
    (
        "CREATE TABLE records (id INTEGER PRIMARY KEY, product TEXT NOT NULL, data BLOB NOT NULL)",
        "CREATE TABLE snapshots (product TEXT PRIMARY KEY, data BLOB NOT NULL)",
    ),
)


class SqliteStore:
    """Keeps records in the file at `path`, made if there is none; see `Store` for the methods.

    Raises `StateError`, naming the file, if it is damaged, foreign, written by a newer release, or
    open elsewhere, in this process or another.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = os.fspath(path)
        self._appended: list[tuple[str, bytes]] = []
        with trouble(self.path):
            # The emulator is used by one thread at a time, which need not be the one that made it.
            self._connection = sqlite3.connect(
                self.path, timeout=0, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
                self._stored = self._count()
            except BaseException:
                self._connection.close()
                raise

    @property
    def record_count(self) -> int:
        return self._stored + len(self._appended)

    def load(self) -> Loaded:
        self._appended = []
        with trouble(self.path):
            snapshots = self._connection.execute(
                "SELECT product, data FROM snapshots ORDER BY product"
            ).fetchall()
            rows = self._connection.execute(
                "SELECT id, product, data FROM records ORDER BY id"
            ).fetchall()
        snapshot = {
            product: decode(data, f"the snapshot of {product} in {self.path}")
            for product, data in snapshots
        }
        records = [
            Record(product, decode(data, f"record {number} of {product} in {self.path}"))
            for number, product, data in rows
        ]
        return Loaded(snapshot or None, records)

    def append(self, records: Iterable[Record]) -> None:
        self._appended.extend([(product, encode(payload)) for product, payload in records])

    def commit(self) -> None:
        if self._appended:
            self._write({})

    def compact(self, snapshot: Mapping[str, Payload]) -> None:
        self._write(snapshot)

    def close(self) -> None:
        self._appended = []
        with trouble(self.path):
            self._connection.close()

    def _write(self, snapshot: Mapping[str, Payload]) -> None:
        products = [(product,) for product in snapshot]
        states = [(product, encode(payload)) for product, payload in snapshot.items()]
        with self._transaction() as connection:
            connection.executemany(
                "INSERT INTO records (product, data) VALUES (?, ?)", self._appended
            )
            connection.executemany("DELETE FROM records WHERE product = ?", products)
            connection.executemany("REPLACE INTO snapshots VALUES (?, ?)", states)
        self._stored = self._count() if snapshot else self._stored + len(self._appended)
        self._appended = []

    def _prepare(self) -> None:
        # Nothing is written before the file is known to be ours.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        version = self._version()
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if version < len(_MIGRATIONS):
            self._migrate(version)

    def _migrate(self, version: int) -> None:
        with self._transaction() as connection:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")
            for statements in _MIGRATIONS[version:]:
                for statement in statements:
                    connection.execute(statement)

    def _version(self) -> int:
        application, version = self._pragma("application_id"), self._pragma("user_version")
        empty = not self._connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
        if application != APPLICATION_ID and not (empty and application == version == 0):
            raise StateError(f"{self.path} belongs to another program: use another file")
        if version > len(_MIGRATIONS):
            raise StateError(
                f"{self.path} has version {version}, this release reads up to {len(_MIGRATIONS)}:"
                " use the release that wrote it, or another file"
            )
        return version

    def _pragma(self, name: str) -> int:
        (value,) = self._connection.execute(f"PRAGMA {name}").fetchone()
        return int(value)

    def _count(self) -> int:
        (count,) = self._connection.execute("SELECT count(*) FROM records").fetchone()
        return int(count)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with trouble(self.path):
            self._connection.execute("BEGIN EXCLUSIVE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
