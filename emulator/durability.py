"""The durable state of one emulator: written in one transaction per run of the loop, and rebuilt.

A test's `restart()` and a process that was killed recover through the same lines: load the
snapshot and the records since, settle as lost what was in flight, go on.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from emulator.store import Store
from emulator.store.memory import MemoryStore
from emulator.store.records import Record

if TYPE_CHECKING:
    from emulator.kernel import Kernel
    from emulator.queues.service import Queues

_QUEUES = "queues"
_CLOCK = "clock"
# Records after which the state is written as a whole.
_COMPACT_EVERY = 10_000


class Durability:
    """Connects the state machines to their store."""

    def __init__(self, kernel: Kernel, queues: Queues, path: str | PathLike[str] | None) -> None:
        self._kernel = kernel
        self._queues = queues
        self._path = path
        self._store: Store = _open(path)
        kernel.on_commit(self.commit)

    def commit(self) -> None:
        """Make durable what changed since the last time."""
        records = self._queues.broker.take_records()
        if not records:
            return
        self._store.append([Record(_QUEUES, record) for record in records])
        if self._path is not None:
            self._store.append([Record(_CLOCK, [self._kernel.now])])
        self._store.commit()
        if self._store.record_count > _COMPACT_EVERY:
            self._compact()

    def recover(self) -> None:
        """Take over what the store has, at the start; the clock goes on where it stood."""
        loaded = self._store.load()
        times = [record.payload[0] for record in loaded.records if record.product == _CLOCK]  # type: ignore[index]
        if loaded.snapshot is not None and _CLOCK in loaded.snapshot:
            times.append(loaded.snapshot[_CLOCK][0])  # type: ignore[index]
        self._kernel.clock.now = max([self._kernel.clock.start, *times])
        self.restart()

    def restart(self) -> None:
        """Rebuild the platform's state from the store."""
        self.commit()
        loaded = self._store.load()
        snapshot = (loaded.snapshot or {}).get(_QUEUES)
        self._queues.rebuild(
            snapshot, [record.payload for record in loaded.records if record.product == _QUEUES]
        )
        self.commit()

    def clear(self) -> None:
        """Forget the durable state."""
        self._queues.broker.take_records()
        self._compact()

    def close(self) -> None:
        """Commit and let go of the file."""
        self.commit()
        self._store.close()

    def _compact(self) -> None:
        self._store.compact({_QUEUES: self._queues.broker.snapshot(), _CLOCK: [self._kernel.now]})


def _open(path: str | PathLike[str] | None) -> Store:
    if path is None:
        return MemoryStore()
    from emulator.store.sqlite import SqliteStore

    return SqliteStore(path)
