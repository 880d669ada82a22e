"""A trace that can be followed while it grows: what a server shows as it happens."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from emulator.trace.events import Event, Trace, Values, _event
from emulator.trace.payloads import Payload
from emulator.trace.written import KEPT, kept

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.secrets import Masker

# Of thousands of events that are kept in memory none may be large.
_LARGEST: Final = 65_536
_LEFT_OUT: Final = Payload("http", b"(left out, because it is large)")


def _kept(value: Any) -> Any:
    if type(value) is Payload:
        return _LEFT_OUT if len(value.data) > _LARGEST else value
    return kept(value)


class LiveTrace(Trace):
    """A trace whose events are numbered from 1, whatever was forgotten meanwhile.

    Payloads of more than 64 KiB are left out.
    """

    __slots__ = ("total",)

    _plain = KEPT - {Payload}
    _kept = staticmethod(_kept)

    def __init__(self, start: int, *, masker: Masker | None = None, limit: int | None = None):
        super().__init__(start, masker=masker, limit=limit)
        # How many events there have been.
        self.total = 0

    def add(self, at: int, kind: str, subject: str, data: dict[str, Any]) -> None:
        """Add an event with data that is its own."""
        super().add(at, kind, subject, data)
        self.total += 1

    def record_each(
        self, at: int, kind: str, subject: str, names: tuple[str, ...], rows: Iterable[Values]
    ) -> None:
        """Add one event for each row."""
        rows = [tuple(map(_kept_of_row, row)) for row in rows]
        super().record_each(at, kind, subject, names, rows)
        self.total += len(rows)

    def since(self, number: int) -> list[tuple[int, Event]]:
        """Return the events after the one of this number that are still kept, with theirs."""
        new = list(islice(reversed(self._events), self.total - number))
        first = self.total - len(new) + 1
        return list(enumerate(map(_event, reversed(new)), first))


def _kept_of_row(value: str | int | bytes | None) -> str | int | bytes | None:
    if isinstance(value, bytes) and len(value) > _LARGEST:
        return _LEFT_OUT.data
    return value
