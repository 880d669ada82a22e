"""When something falls due: a heap for each kind of thing, for all instances.

An entry is never taken out when what it stood for changes; it is told by its instant, which then
is not its owner's any more. Entries of one instant come in order of the instances' and of the
steps' numbers, so that a restored engine goes on in the order of the one it replaces.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, Protocol, get_args

from emulator.workflows.model import Lane

if TYPE_CHECKING:
    from emulator.workflows.model import Instant

_SMALL: Final = 256


class Owner(Protocol):
    """A step, a rollback, an instance whose retention counts, or an execution that may be idle."""

    due: Instant | None

    @property
    def lane(self) -> Lane:
        """What kind of thing falls due."""


# When, the numbers that decide between equals, the order of entry, whose instance, and whose.
Entry = tuple[int, int, int, int, object, Owner]


class Timers:
    """Pairs of an instance and an owner, by the owner's `due`."""

    def __init__(self) -> None:
        self._heaps: dict[Lane, list[Entry]] = {lane: [] for lane in get_args(Lane)}
        self._limits: dict[Lane, int] = {}
        self._entered = 0

    def add(self, rank: tuple[int, int], instance: object, owner: Owner) -> None:
        """Remember an owner by its `due`, unless it has none."""
        if owner.due is None:
            return
        self._entered += 1
        lane = owner.lane
        heap = self._heaps[lane]
        heappush(heap, (owner.due, *rank, self._entered, instance, owner))
        if len(heap) > self._limits.get(lane, _SMALL):
            heap[:] = [entry for entry in heap if entry[5].due == entry[0]]
            heapify(heap)
            self._limits[lane] = max(_SMALL, 2 * len(heap))

    def next(self, lane: Lane | None = None) -> Instant | None:
        """The earliest `due`, in one lane or in all."""
        first = self._first(lane)
        return None if first is None else first[0]

    def first(self, lane: Lane) -> tuple[object, Owner] | None:
        """The instance and owner that come first in a lane."""
        first = self._first(lane)
        return None if first is None else first[4:]

    def pop(self, now: Instant) -> tuple[object, Owner] | None:
        """The instance and owner that come first of what is due; each comes once."""
        first = self._first(None)
        if first is None or first[0] > now:
            return None
        heappop(self._heaps[first[5].lane])
        return first[4], first[5]

    def clear(self) -> None:
        """Forget everything."""
        for heap in self._heaps.values():
            heap.clear()

    def _first(self, lane: Lane | None) -> Entry | None:
        if lane is not None:
            return _top(self._heaps[lane])
        tops = [top for heap in self._heaps.values() if (top := _top(heap)) is not None]
        return min(tops, default=None)  # no two have the same order of entry


def _top(heap: list[Entry]) -> Entry | None:
    while heap and heap[0][5].due != heap[0][0]:
        heappop(heap)
    return heap[0] if heap else None
