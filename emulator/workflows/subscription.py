"""The events of an instance as `subscribe` tells them (I26, §11 L5).

Each durable change is one or two events, numbered from 1 in each instance. They are kept as long as
the emulator lives, so that whoever subscribes late hears of everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from emulator.values import UNDEFINED, from_v8
from emulator.workflows.grammar import shown_config
from emulator.workflows.shown import REDACTED, STREAM, stream_text

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Mapping

    from emulator.kernel import Kernel
    from emulator.workflows.engine import Engine
    from emulator.workflows.journal import Step
    from emulator.workflows.model import Record

    Facts = dict[str, Any]

_ENDS: Final[Mapping[str, str]] = {
    "complete": "workflow_completed",
    "errored": "workflow_errored",
    "terminated": "workflow_terminated",
}
_PLAIN: Final[Mapping[str, str]] = {
    "pausing": "workflow_waiting_for_pause",
    "pause": "workflow_paused",
    "resume": "workflow_queued",
    "restart": "workflow_queued",
    "rollback": "rollback_started",
}


class Feed:
    """The events of one instance, and who waits for more.

    Records are noted, and told as events when somebody asks for them.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._events: list[Facts] = []
        self._noted: list[Noted] = []
        self._waiting: list[asyncio.Future[None]] = []

    def note(self, noted: Noted) -> None:
        """Take note of a record, and wake whoever waits if it is an event."""
        self._noted.append(noted)
        if self._waiting:
            known = len(self._events)
            if len(self.events) > known:
                self._wake()

    @property
    def events(self) -> list[Facts]:
        """All events up to now."""
        if self._noted:
            noted, self._noted = self._noted, []
            for one in noted:
                self._tell(one)
        return self._events

    def _tell(self, noted: Noted) -> None:
        _, _, id, at, *_ = noted.record
        for name, facts in told(noted):
            number = len(self._events) + 1
            head = {"type": name, "eventId": number, "timestamp": at // 1000}
            self._events.append({**head, "instanceId": id, **facts})

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def more(self) -> asyncio.Future[None]:
        """Resolves when there is another event."""
        future: asyncio.Future[None] = self._kernel.loop.create_future()
        self._waiting.append(future)
        return future


class Reader:
    """One subscription: it goes through a feed, and ends with the instance."""

    def __init__(
        self, feed: Feed, *, cursor: int = 0, wanted: frozenset[str] | None = None
    ) -> None:
        self.feed = feed
        self.cursor = cursor  # the number of the last event that was looked at
        self._wanted = wanted
        self._over = False

    def take(self) -> dict[str, Any] | None:
        """The next event, as `value` with `done` false; `done` after the last; None if none is
        there yet."""
        while not self._over:
            if self.cursor == len(self.feed.events):
                self._over = bool(self.cursor) and self.feed.events[-1]["type"] in _ENDS.values()
                if not self._over:
                    return None
                break
            event = self.feed.events[self.cursor]
            self.cursor += 1
            self._over = event["type"] in _ENDS.values()
            if self._wanted is None or event["type"] in self._wanted:
                return {"value": event, "done": False}
        return {"value": UNDEFINED, "done": True}


class Noted(NamedTuple):
    """A record, and what its events tell that is not in it, as it was then.

    `step` is the step it is about and `times` its attempts; of a beginning `times` is that of the
    executions, of which the first has the instance's `params`.
    """

    record: Record
    step: Step | None = None
    times: int = 0
    params: bytes = b""


def note(engine: Engine, record: Record) -> Noted | None:
    """Return what is to be noted of a record; None if it is no event."""
    kind, workflow, id = record[0], record[1], record[2]
    if kind in _STEPS:
        step = engine.step_of(workflow, id, record[4])
        return Noted(record, step, step.attempts)
    if kind == "begin":
        view = engine.status(workflow, id)
        return Noted(record, None, view.executions, view.params)
    return Noted(record) if kind in _OF_INSTANCE else None


def told(noted: Noted) -> Iterator[tuple[str, Facts]]:
    """The events that a record is, with what they tell."""
    record = noted.record
    kind = record[0]
    if noted.step is not None:
        for name, facts in _STEPS[kind](noted):
            yield name, {"stepName": noted.step.target, **facts}
    elif kind == "create":
        yield "workflow_queued", {}
    elif kind == "begin":
        if noted.times == 1:
            yield "workflow_started", {"params": from_v8(noted.params)}
        yield "workflow_running", {}
    elif kind == "end":
        _, _, _, _, status, output, error, *_ = record
        result: Facts = {}
        if status == "complete":
            result["output"] = _value(output)
        elif error is not None:
            result["error"] = {"name": error[0], "message": error[1]}
        yield _ENDS[status], result
    else:
        yield _PLAIN[kind], {}


def _value(data: bytes | None) -> Any:
    if data is not None and data.startswith(STREAM):
        return stream_text(data)
    return UNDEFINED if data is None else from_v8(data)


def _started(noted: Noted) -> Iterator[tuple[str, Facts]]:
    assert noted.step is not None
    assert noted.step.config is not None
    if noted.record[0] == "step":
        yield "step_started", {"config": shown_config(noted.step.config)}
    yield "attempt_started", {"attempt": noted.times}


def _done(noted: Noted) -> Iterator[tuple[str, Facts]]:
    assert noted.step is not None
    yield "attempt_completed", {"attempt": noted.times}
    hidden = noted.step.config is not None and noted.step.config.sensitive
    output = noted.record[5]
    value = REDACTED if hidden else _value(output)
    yield "step_completed", {"output": value}


def _failed(noted: Noted) -> Iterator[tuple[str, Facts]]:
    record = noted.record
    name, message = record[5]
    facts: Facts = {"attempt": noted.times, "error": {"name": name, "message": message}}
    if record[0] == "failure":
        if record[6] is not None:
            facts["retryDelayMs"] = record[6]
        yield "attempt_errored", facts
    else:
        yield "attempt_errored", facts
        yield "step_errored", {}


def _one(
    name: str, facts: Callable[[Record], Facts]
) -> Callable[[Noted], Iterator[tuple[str, Facts]]]:
    def events(noted: Noted) -> Iterator[tuple[str, Facts]]:
        yield name, facts(noted.record)

    return events


_STEPS: Final[Mapping[str, Callable[[Noted], Iterator[tuple[str, Facts]]]]] = {
    "step": _started,
    "attempt": _started,
    "success": _done,
    "failure": _failed,
    "failed": _failed,
    "sleep": _one("sleep_started", lambda record: {"durationMs": record[8]}),
    "wake": _one("sleep_completed", lambda record: {}),
    "wait": _one("wait_started", lambda record: {"eventType": record[8]}),
    "take": _one("wait_completed", lambda record: {}),
    "expire": _one("wait_timed_out", lambda record: {}),
}
_OF_INSTANCE: Final = frozenset({"create", "end", *_PLAIN})
