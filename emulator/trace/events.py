"""Events and the list of them.

An event has a time, a kind (`send`, `batch`, `fault`), a subject (the queue, the Workflow instance
or the invocation it happened to: its lane) and data. The trace is written in three ways:
`render()` for people, `to_jsonl()` for programs, `to_html()` for a browser. The same events give
the same bytes, in any process and on any Python (written.py says how values are written). Secrets
are masked as a trace is written; in memory it holds what happened.

kinds.py has the kinds and the data of each. What an event carries (a body, a result) is a `Payload`
in its data, which timelines and comparisons leave out.

Data is kept by reference: what is recorded must not be changed afterwards. Exceptions, and objects
that are no canonical values, are replaced by what will be written of them, so that a trace keeps
nothing else alive.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

from emulator.clock import moment
from emulator.secrets import Masker
from emulator.trace.page import page, section
from emulator.trace.payloads import Payload
from emulator.trace.timeline import Row, timeline
from emulator.trace.written import KEPT, Json, kept, write_time, written

if TYPE_CHECKING:
    from datetime import datetime
    from os import PathLike


class Event(NamedTuple):
    """Something that happened; `at` is in microseconds since the Unix epoch."""

    at: int
    kind: str
    subject: str
    data: dict[str, Any]

    @property
    def time(self) -> datetime:
        """When it happened, as an aware datetime."""
        return moment(self.at)


Values: TypeAlias = tuple[str | int | bytes | None, ...]
# The last name of rows whose `body` is serialized, by this type.
_BODY_TYPE = "content_type"
# Data as a dict, or as names and values.
_Stored: TypeAlias = (
    tuple[int, str, str, dict[str, Any]] | tuple[int, str, str, tuple[str, ...], Values]
)


def _event(stored: _Stored) -> Event:
    if len(stored) == 4:
        return tuple.__new__(Event, stored)  # as `Event(*stored)`, but at C speed
    at, kind, subject, names, row = stored
    data: dict[str, Any] = dict(zip(names, row, strict=True))
    if names[-1] == _BODY_TYPE:
        data["body"] = Payload(data.pop(_BODY_TYPE), data["body"])
    return Event(at, kind, subject, data)


class Trace(Sequence[Event]):
    """All that happened since `start` (in microseconds since the Unix epoch), in order.

    `masker` knows the secrets that no text may show. With `limit` only the latest events are kept,
    for a server that runs for days.
    """

    __slots__ = ("_events", "masker", "start")

    # Types whose values are kept as they are, and what is kept of others.
    _plain = KEPT
    _kept = staticmethod(kept)

    def __init__(
        self, start: int, *, masker: Masker | None = None, limit: int | None = None
    ) -> None:
        self.start = start
        self.masker = masker if masker is not None else Masker()
        self._events: deque[_Stored] = deque(maxlen=limit)

    def record(self, at: int, kind: str, subject: str, /, **data: Any) -> None:
        """Add an event; `data` must not change afterwards."""
        self.add(at, kind, subject, data)

    def add(self, at: int, kind: str, subject: str, data: dict[str, Any]) -> None:
        """`record`, with data that is this event's own; what follows a trace overrides this one."""
        plain = self._plain
        for value in data.values():
            if type(value) not in plain:  # seldom
                data.update({key: self._kept(value) for key, value in data.items()})
                break
        self._events.append((at, kind, subject, data))

    def record_each(
        self, at: int, kind: str, subject: str, names: tuple[str, ...], rows: Iterable[Values]
    ) -> None:
        """Add one event for each row of data: texts, numbers and None, in the order of `names`.

        A `body` in bytes comes with its `content_type`, the last of the names: both are a payload.
        """
        # Tuples of such values are nothing to the garbage collector, a dict is.
        self._events.extend([(at, kind, subject, names, row) for row in rows])

    def clear(self) -> None:
        """Forget everything."""
        self._events.clear()

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return map(_event, self._events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        if isinstance(index, slice):
            return list(map(_event, list(self._events)[index]))
        return _event(self._events[index])

    def __repr__(self) -> str:
        return f"<Trace: {len(self)} events since {write_time(self.start)}>"

    def render(self, *, last: int | None = None) -> str:
        """Return a timeline for people, in virtual time since the start; `last` events only."""
        skipped = 0 if last is None else max(len(self) - last, 0)
        return timeline(self.start, list(self._rows(skipped)), skipped=skipped)

    def to_jsonl(self) -> str:
        """Return one JSON object a line, with `at`, `kind`, `subject` and `data`, in this order.

        `at` is `2026-01-01T00:00:00.000000Z`, always with microseconds; `data` an object whose
        values are written as `emulator.trace.written` says. The text is ASCII.
        """
        return self._write_lines(payloads=True)

    def outline(self) -> str:
        """Return the JSON lines without payloads, by which two runs are compared."""
        return self._write_lines(payloads=False)

    def _write_lines(self, *, payloads: bool) -> str:
        described = (self.described(event, payloads=payloads) for event in self)
        return "".join(
            json.dumps(line, separators=(",", ":"), allow_nan=False) + "\n" for line in described
        )

    def described(self, event: Event, *, payloads: bool = True) -> dict[str, Json]:
        """Return an event as a JSON object, as in `to_jsonl`, secrets masked."""
        at, kind, subject, data = event
        return {
            "at": write_time(at),
            "kind": kind,
            "subject": self.masker(subject),
            "data": written(data if payloads else _told(data), self.masker),
        }

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write a page of its own, without outside resources: a chart, and the timeline as text.

        It has a lane for each queue, Workflow instance and invocation, and shows payloads.
        """
        Path(path).write_bytes(self.to_page().encode("utf-8"))

    def to_page(self, *, last: int | None = None) -> str:
        """Return the page that `to_html` writes; of the `last` events only."""
        skipped = 0 if last is None else max(len(self) - last, 0)
        return page(self.start, list(self._rows(skipped, payloads=True)))

    def to_section(self) -> str:
        """Return the part of a page that shows the trace, for one made by `trace.page.document`."""
        return section(self.start, list(self._rows(0, payloads=True)))

    def _rows(self, skipped: int, *, payloads: bool = False) -> Iterator[Row]:
        for at, kind, subject, data in map(_event, islice(self._events, skipped, None)):
            values = written(_told(data), self.masker)
            carried = written(_carried(data), self.masker) if payloads else {}
            assert isinstance(values, dict)
            assert isinstance(carried, dict)
            yield Row(at - self.start, kind, self.masker(subject), values, carried)


def _told(data: dict[str, Any]) -> dict[str, Any]:
    """Return an event's data without what it carries."""
    return {key: value for key, value in data.items() if type(value) is not Payload}


def _carried(data: dict[str, Any]) -> dict[str, Any]:
    """Return what an event carries."""
    return {key: value for key, value in data.items() if type(value) is Payload}
