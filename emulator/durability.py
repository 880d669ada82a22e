"""The durable state of one emulator: written in one transaction per run of the loop, and rebuilt.

A test's `restart()` and a process that was killed recover through the same lines: load the
snapshot and the records since, settle as lost what was in flight, go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from emulator.store.memory import MemoryStore
from emulator.store.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    from emulator.kernel import Kernel
    from emulator.store import Store
    from emulator.store.records import Payload

# The clock's records and snapshot are [now, how many processes opened the file, what was added to
# the machine's time]; the last is not in files of earlier releases.
_CLOCK = "clock"
# Records after which the state is written as a whole, unless that is longer.
_COMPACT_EVERY = 10_000


class Product(Protocol):
    """A part of the platform with a state of its own."""

    @property
    def stored(self) -> int:
        """How many things the state consists of, for the size of its snapshot."""

    def take_records(self) -> Sequence[Payload]:
        """The records of all changes since the last call."""

    def snapshot(self) -> Payload:
        """The whole state."""

    def rebuild(self, snapshot: Payload | None, records: Iterable[Payload]) -> None:
        """Start again from stored state."""


class Durability:
    """Connects the state machines to their store.

    A store that cannot write raises `StateError`, to the caller whose call was to become durable.
    What it did not take is kept and tried again at the next commit.
    """

    def __init__(
        self, kernel: Kernel, products: Mapping[str, Product], path: str | PathLike[str] | None
    ) -> None:
        self._kernel = kernel
        self._products = products
        self._keeps_time = path is not None
        self._opened = 1
        self._uncommitted = False
        self._store: Store = _open(path)
        kernel.on_commit(self.commit)

    @property
    def process(self) -> int:
        """How many processes have used the state so far, this one included."""
        return self._opened

    def commit(self) -> None:
        """Make durable what changed since the last time."""
        for name, product in self._products.items():
            records = product.take_records()
            if records:
                self._store.append([Record(name, record) for record in records])
                self._uncommitted = True
        if self._uncommitted:
            self._write()

    def _write(self) -> None:
        if self._keeps_time:
            self._store.append([Record(_CLOCK, self._time())])
        self._store.commit()
        self._uncommitted = False
        count = self._store.record_count
        if count > _COMPACT_EVERY and count > self._stored():
            self._compact()

    def _stored(self) -> int:
        return sum(product.stored for product in self._products.values())

    def recover(self) -> None:
        """Take over what the store has, at the start.

        The clock goes on where it stood. Random values do not start again from the seed, or ids
        that are in use would be given twice.
        """
        loaded = self._store.load()
        times = [record.payload for record in loaded.records if record.product == _CLOCK]
        if loaded.snapshot is not None and _CLOCK in loaded.snapshot:
            times.insert(0, loaded.snapshot[_CLOCK])
        if times:
            now, opened, offset = (*times[-1], 0)[:3]
            self._opened = opened + 1
            self._kernel.go_on(now, self._opened, offset)
        if loaded.snapshot is not None or loaded.records:
            self.restart()
        if self._keeps_time:
            self._write()

    def restart(self) -> None:
        """Rebuild the platform's state from the store."""
        self.commit()
        loaded = self._store.load()
        for name, product in self._products.items():
            snapshot = (loaded.snapshot or {}).get(name)
            records = [record.payload for record in loaded.records if record.product == name]
            product.rebuild(snapshot, records)
        self.commit()

    def come_back(self, process: int) -> None:
        """Go on as the process of this number that finds the state: `recover`, in this process."""
        self._opened = process
        self._kernel.go_on(self._kernel.now, process, self._kernel.clock.offset)
        self.restart()

    def clear(self) -> None:
        """Forget the durable state."""
        for product in self._products.values():
            product.take_records()
        self._compact()

    def close(self) -> None:
        """Commit, the present time included, and let go of the file."""
        try:
            self.commit()
            if self._keeps_time:
                self._write()
        finally:
            self._store.close()

    def _compact(self) -> None:
        states = {name: product.snapshot() for name, product in self._products.items()}
        self._store.compact({**states, _CLOCK: self._time()})
        self._uncommitted = False

    def _time(self) -> list[int]:
        return [self._kernel.now, self._opened, self._kernel.clock.offset]


def _open(path: str | PathLike[str] | None) -> Store:
    if path is None:
        return MemoryStore()
    from emulator.store.sqlite import SqliteStore

    return SqliteStore(path)
