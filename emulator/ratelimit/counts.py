"""How often each key was seen in the period that runs.

Theory of operation (miniflare, `ratelimit-object.worker.ts`, which says what production does). A
count belongs to a namespace, a key and a length of period; bindings with one `namespace_id` share
it. The limit is no part of it. Periods are aligned to the clock: all counts of a length start again
at the same instant. A call that is refused does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECOND = 1_000_000


class Place(NamedTuple):
    """What a count belongs to; `period` is in seconds."""

    namespace: str
    key: str
    period: int


class Counts:
    """The counts of the periods that run."""

    def __init__(self) -> None:
        self._counts: dict[Place, tuple[int, int]] = {}  # which period since the epoch, and count

    def __len__(self) -> int:
        return len(self._counts)

    def take(self, place: Place, limit: float, now: int) -> int | None:
        """Count a call at `now` (microseconds); the new count, or None if it is one too many."""
        period = now // (place.period * _SECOND)
        since, count = self._counts.get(place, (period, 0))
        if since != period:
            self._forget(place.period, period)
            count = 0
        if count >= limit:
            return None
        self._counts[place] = period, count + 1
        return count + 1

    def _forget(self, length: int, period: int) -> None:
        """Drop the counts of periods of this length that are over."""
        over = [
            place
            for place, (since, _) in self._counts.items()
            if place.period == length and since != period
        ]
        for place in over:
            del self._counts[place]

    def put(self, place: Place, period: int, count: int) -> None:
        """Take over a count."""
        self._counts[place] = period, count

    def rows(self) -> Iterator[tuple[Place, int, int]]:
        """Yield each count with its place and which period it is of."""
        for place, (period, count) in self._counts.items():
            yield place, period, count

    def clear(self) -> None:
        """Forget all."""
        self._counts.clear()
