"""What lasted: the pairs of events that begin and end a thing.

A request lasts until its response, a batch until its first message is settled, a `run` until its
memory goes, an attempt, a sleep, a wait, an outbound request until the event that says so. What
the trace does not see end stays open, up to the last event that its lane has.

1. Begin and end belong together by lane and by the data they share; of several that are open the
   first one ends. A message is settled in the lane of its queue, by its id.
2. A crash ends what runs of its Worker, and the restart of the platform ends everything. A `run`
   that starts again without an end was ended by the crash or the eviction before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from emulator.trace.timeline import Row

_Name = tuple[object, ...]
_NamedBy = Callable[["Row"], list["_Name"]]


class Span(NamedTuple):
    """Something that lasted from one event to another; `end` is None where the trace has none."""

    start: int
    end: int | None
    is_cut: bool = False


def _by_lane(*keys: str) -> _NamedBy:
    return lambda row: [(row.subject, *map(str, map(row.data.get, keys)))]


def _messages(row: Row) -> list[_Name]:
    queue, messages = row.subject.rpartition(" #")[0], row.data.get("messages")
    ids = messages if isinstance(messages, list) else []
    return [(queue, str(id).rpartition("#")[0]) for id in ids]


def _leased(row: Row) -> list[_Name]:
    messages = row.data.get("messages")
    ids = messages if isinstance(messages, list) else []
    return [(row.subject, str(id).rpartition("#")[0]) for id in ids]


_SETTLED: Final = ("ack", "retry", "dead_letter", "dropped", "lost")
# What begins, what ends it, and how either names it.
_PAIRS: Final[Sequence[tuple[str, tuple[str, ...], _NamedBy, _NamedBy]]] = (
    ("request", ("response",), _by_lane(), _by_lane()),
    ("service_call", ("service_done", "service_error"), _by_lane(), _by_lane()),
    ("batch", _SETTLED, _messages, _by_lane("id")),
    ("lease", _SETTLED, _leased, _by_lane("id")),
    ("request_out", ("response_in",), _by_lane("url"), _by_lane("url")),
    (
        "step",
        ("step_done", "step_retry", "step_failed", "step_lost"),
        _by_lane("step", "attempt"),
        _by_lane("step", "attempt"),
    ),
    ("sleep", ("wake",), _by_lane("step"), _by_lane("step")),
    ("wait", ("wait_done", "wait_timed_out"), _by_lane("step"), _by_lane("step")),
    (
        "workflow_run",
        ("workflow_hibernated", "workflow_ended", "workflow_deleted", "workflow_restarted"),
        _by_lane(),
        _by_lane(),
    ),
    ("rollback", ("rollback_done",), _by_lane(), _by_lane()),
    ("workflow_paused", ("workflow_resumed", "workflow_ended"), _by_lane(), _by_lane()),
    ("pause", ("resume",), _by_lane(), _by_lane()),
)
_BEGINS: Final[Mapping[str, _NamedBy]] = {kind: named for kind, _, named, _ in _PAIRS}
_ENDS: Final[Mapping[str, Sequence[tuple[str, _NamedBy]]]] = {
    end: tuple((kind, named) for kind, ends, _, named in _PAIRS if end in ends)
    for _, all_ends, _, _ in _PAIRS
    for end in all_ends
}
# What an isolate's end ends; what waits in the platform's state goes on.
_IN_MEMORY: Final = frozenset({"request", "service_call", "batch", "request_out", "workflow_run"})


def spans(rows: Sequence[Row]) -> list[Span]:
    """Return what lasted, in order of beginning."""
    pairing = _Pairing(rows)
    for index, row in enumerate(rows):
        pairing.see(index, row)
    return [pairing.spans[start] for start in sorted(pairing.spans)]


class _Pairing:
    """Goes through the events once; `_open` has the beginnings by kind and name, oldest first."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.spans: dict[int, Span] = {}
        self._open: dict[tuple[str, _Name], list[int]] = {}
        self._cuts: list[tuple[int, bool]] = []

    def see(self, index: int, row: Row) -> None:
        for kind, named in _ENDS.get(row.kind, ()):
            for name in named(row):
                self._end((kind, name), index)
        if row.kind in ("crash", "evict"):
            self._cuts.append((index, row.kind == "crash"))
        if row.kind == "crash":
            self._cut_worker(index, row.subject.removeprefix("worker "))
        if row.kind == "restart":
            self._cut_all(index)
        if row.kind in _BEGINS:
            self._begin(index, row)

    def _begin(self, index: int, row: Row) -> None:
        names = _BEGINS[row.kind](row)
        if row.kind == "workflow_run":
            self._end_earlier_run(names[0], index)
        self.spans[index] = Span(index, None)
        for name in names:
            self._open.setdefault((row.kind, name), []).append(index)

    def _end(self, key: tuple[str, _Name], index: int, *, is_cut: bool = False) -> None:
        starts = self._open.pop(key, [])
        open_still = [start for start in starts if self.spans[start].end is None]
        if open_still:
            first, *others = open_still
            self.spans[first] = Span(first, index, is_cut)
            if others:
                self._open[key] = others

    def _end_earlier_run(self, name: _Name, index: int) -> None:
        starts = self._open.get(("workflow_run", name))
        if not starts:
            return
        after = [cut for cut in self._cuts if cut[0] > starts[0]]
        at, is_crash = after[-1] if after else (index, False)
        self._end(("workflow_run", name), at, is_cut=is_crash)

    def _cut_worker(self, index: int, worker: str) -> None:
        """End what a crash ends: the invocations of the Worker, and their outbound requests."""
        lanes = {
            self._rows[start].subject: None
            for start in self._running()
            if self._rows[start].data.get("worker") == worker
        }
        for start in self._running():
            if self._rows[start].subject in lanes:
                self.spans[start] = Span(start, index, is_cut=True)

    def _cut_all(self, index: int) -> None:
        for start in self._running():
            self.spans[start] = Span(start, index, is_cut=True)

    def _running(self) -> Iterator[int]:
        for (kind, _), starts in list(self._open.items()):
            if kind in _IN_MEMORY:
                yield from (start for start in starts if self.spans[start].end is None)
