"""A store that lasts as long as the process: what tests use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.store import Loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.store.records import Payload, Record


class MemoryStore:
    """Keeps records as they are; see `Store` for the methods."""

    def __init__(self) -> None:
        self._snapshot: dict[str, Payload] = {}
        self._records: list[Record] = []
        self._appended: list[Record] = []

    @property
    def record_count(self) -> int:
        return len(self._records) + len(self._appended)

    def load(self) -> Loaded:
        self._appended = []
        return Loaded(dict(self._snapshot) or None, list(self._records))

    def append(self, records: Iterable[Record]) -> None:
        self._appended.extend(records)

    def commit(self) -> None:
        self._records += self._appended
        self._appended = []

    def compact(self, snapshot: Mapping[str, Payload]) -> None:
        self.commit()
        self._records = [record for record in self._records if record.product not in snapshot]
        self._snapshot.update(snapshot)

    def close(self) -> None:
        self._appended = []
