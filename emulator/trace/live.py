"""A trace that can be followed while it grows: what a server shows as it happens."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from emulator.trace.events import Event, Trace, Values, _event

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.secrets import Masker


class LiveTrace(Trace):
    """A trace whose events are numbered from 1, whatever was forgotten meanwhile."""

    __slots__ = ("total",)

    def __init__(self, start: int, *, masker: Masker | None = None, limit: int | None = None):
        super().__init__(start, masker=masker, limit=limit)
        # How many events there have been.
        self.total = 0

    def record(self, at: int, kind: str, subject: str, /, **data: Any) -> None:
        """Add an event; `data` must not change afterwards."""
        super().record(at, kind, subject, **data)
        self.total += 1

    def record_each(
        self, at: int, kind: str, subject: str, names: tuple[str, ...], rows: Iterable[Values]
    ) -> None:
        """Add one event for each row."""
        rows = list(rows)
        super().record_each(at, kind, subject, names, rows)
        self.total += len(rows)

    def since(self, number: int) -> list[tuple[int, Event]]:
        """Return the events after the one of this number that are still kept, with theirs."""
        new = list(islice(reversed(self._events), self.total - number))
        first = self.total - len(new) + 1
        return list(enumerate(map(_event, reversed(new)), first))
