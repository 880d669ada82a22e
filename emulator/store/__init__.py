"""Where the platform's durable state is kept: records of changes, and snapshots that replace them.

The pure state machines (`emulator.queues.broker` and its like) turn every change into a record. A
store keeps them in order and gives them back; that is recovery, in a test's `restart()` and after a
killed process alike. A store knows a record's product (`"queues"`) and its payload, and nothing of
what they mean.

    append(records)      remember; nothing is durable yet
    commit()             one transaction for all that was appended: now it is durable
    compact(snapshot)    replace the records of the products in `snapshot` by their whole state
    load()               the snapshot, and the records committed since, in order
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.store.records import Payload, Record


class Loaded(NamedTuple):
    """What a store holds: a payload by product, or None if there never was one, and records."""

    snapshot: Mapping[str, Payload] | None
    records: list[Record]


class Store(Protocol):
    """Keeps records and snapshots; `StateError` when it cannot."""

    @property
    def record_count(self) -> int:
        """How many records there are since the last `compact`, those not committed included."""

    def load(self) -> Loaded:
        """Return what is durable; what was appended and never committed is forgotten."""

    def append(self, records: Iterable[Record]) -> None:
        """Remember records for the next `commit`. They must not be changed afterwards."""

    def commit(self) -> None:
        """Make durable all that was appended since the last time, all or nothing."""

    def compact(self, snapshot: Mapping[str, Payload]) -> None:
        """Commit, and replace every record of these products by the snapshot.

        The snapshot must contain the effect of all records of these products appended so far.
        """

    def close(self) -> None:
        """Let go of the file; what was not committed is lost. Closing twice does nothing."""
