"""The rate limits of one emulator: who binds to them, and the counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.ratelimit.counts import Counts, Place

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.kernel import Kernel
    from emulator.ratelimit.bindings import Ratelimit
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

Record = list[Any]


class RateLimits:
    """Counts by namespace, key and period.

    A record is a place, which period since the epoch it is, and the count.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._bindings: list[Ratelimit] = []
        self._records: list[Record] = []
        self._counts = Counts()

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The rate limits of a Worker, by binding."""
        if not config.rate_limits:
            return {}
        from emulator.ratelimit.bindings import Ratelimit

        found = {one.binding: Ratelimit(one, self) for one in config.rate_limits}
        self._bindings += found.values()
        return {**found}

    def take(self, place: Place, limit: float) -> bool:
        """Count a call; whether it is within the limit."""
        now = self.kernel.now
        count = self._counts.take(place, limit, now)
        if count is not None:
            self._records.append([*place, now // (place.period * 1_000_000), count])
        return count is not None

    # -- life ------------------------------------------------------------------------------------

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        records, self._records = self._records, []
        return records

    def snapshot(self) -> Record:
        """All counts."""
        return [[*place, period, count] for place, period, count in self._counts.rows()]

    @property
    def stored(self) -> int:
        """How many counts there are."""
        return len(self._counts)

    def rebuild(self, snapshot: Record | None, records: Iterable[Record]) -> None:
        """Start again from stored counts."""
        self._counts.clear()
        for namespace, key, length, period, count in (*(snapshot or ()), *records):
            self._counts.put(Place(namespace, key, length), period, count)

    def reset(self) -> None:
        """Forget all counts."""
        self._records.clear()
        self._counts.clear()

    def close(self) -> None:
        """Let go of what user code may still hold."""
        while self._bindings:
            self._bindings.pop().disconnect()
