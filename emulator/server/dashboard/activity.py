"""The view of what Workers did: requests and other invocations, background work, log lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.clock import moment
from emulator.server.dashboard.endpoints import reads
from emulator.server.dashboard.shown import error_text, moment_text, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.secrets import Masker
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk
    from emulator.trace.events import Event

_BEGINS: Final = ("request", "scheduled", "batch", "service_call", "alarm")
_TOLD: Final = ("finding", "log")
_LONG: Final = 20_000


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of activity."""
    return [
        reads(desk, "/requests", _requests),
        reads(desk, "/background", _background),
        reads(desk, "/logs", _logs),
    ]


def _requests(desk: Desk, asked: Asked) -> Answer:
    """Return invocations of the events that are kept, the latest first."""
    first, rows = asked.part()
    masker = desk.platform.kernel.trace.masker
    found = _invocations(desk.platform.kernel.trace)
    if asked.flag("failed"):
        found = [one for one in found if one.failed]
    found.reverse()
    shown = [one.described(masker) for one in found[first : first + rows]]
    return {"total": len(found), "requests": shown, "failed": asked.flag("failed")}


class _Invocation:
    """One invocation, put together of its events."""

    __slots__ = ("begun", "cut", "ended", "status", "told")

    def __init__(self, begun: Event) -> None:
        self.begun = begun
        self.ended: Event | None = None
        self.status: Any = None
        self.cut = False
        self.told: list[Event] = []

    @property
    def failed(self) -> bool:
        """Whether something is wrong with it."""
        bad = isinstance(self.status, int) and self.status >= 500
        return bad or self.cut or any(_is_error(event) for event in self.told)

    def see(self, event: Event) -> None:
        if event.kind in ("response", "service_done", "service_error", "alarm_done"):
            self.ended, self.status = event, event.data.get("status")
        elif event.kind in ("disconnect", "lost", "alarm_lost"):
            self.cut = True
        elif event.kind in _TOLD:
            self.told.append(event)

    def described(self, masker: Masker) -> Answer:
        data = self.begun.data
        method = self.begun.subject.split(" ")[1] if self.begun.kind == "request" else ""
        return {
            "at": moment_text(moment(self.begun.at)),
            "kind": self.begun.kind,
            "subject": text_of(self.begun.subject, masker, most=2_000),
            "worker": data.get("worker"),
            "method": method,
            "url": text_of(str(data.get("url", "")), masker, most=2_000),
            "status": self.status if isinstance(self.status, int) else None,
            "ended": None if self.ended is None else moment_text(moment(self.ended.at)),
            "cut": self.cut,
            "failed": self.failed,
            "told": [_told(event, masker) for event in self.told[:50]],
        }


def _is_error(event: Event) -> bool:
    return event.kind == "finding" or event.data.get("level") == "error"


def _told(event: Event, masker: Masker) -> Answer:
    if event.kind == "finding":
        text, what = str(event.data.get("message")), str(event.data.get("code"))
    else:
        text, what = str(event.data.get("text")), str(event.data.get("level"))
    return {"what": what, "text": text_of(text, masker, most=_LONG), "error": _is_error(event)}


def _invocations(trace: Sequence[Event]) -> list[_Invocation]:
    found: list[_Invocation] = []
    latest: dict[str, _Invocation] = {}
    for event in trace:
        if event.kind in _BEGINS:
            latest[event.subject] = one = _Invocation(event)
            found.append(one)
        elif event.subject in latest:
            latest[event.subject].see(event)
    return found


def _background(desk: Desk, asked: Asked) -> Answer:
    first, rows = asked.part()
    masker = desk.platform.kernel.trace.masker
    tasks = list(desk.emulator.background)[::-1]
    return {
        "total": len(tasks),
        "tasks": [
            {
                "worker": task.worker,
                "event": text_of(task.event, masker, most=2_000),
                "created": moment_text(task.created),
                "location": task.location,
                "state": task.state,
                "error": error_text(task.error, masker, most=_LONG),
            }
            for task in tasks[first : first + rows]
        ],
    }


def _logs(desk: Desk, asked: Asked) -> Answer:
    first, rows = asked.part()
    masker = desk.platform.kernel.trace.masker
    logs = list(desk.emulator.logs)[::-1]
    return {
        "total": len(logs),
        "logs": [
            {
                "at": moment_text(log.at),
                "worker": log.worker,
                "level": log.level,
                "text": text_of(log.text, masker, most=_LONG),
            }
            for log in logs[first : first + rows]
        ],
    }
