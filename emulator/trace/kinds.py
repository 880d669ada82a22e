"""The kinds of events: the data each has, and what it means to a reader.

docs/trace.md has the same table for people. The emulator's tests hold what is recorded to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Kind(NamedTuple):
    """A kind of event: the keys of its data, in order, and those that are not always there.

    `tone` is what it means: `fault`, `lost`, `bad` (something failed), `done` or nothing. `brief`
    are the keys whose values name the event where there is no room for more.
    """

    keys: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    tone: str = ""
    brief: tuple[str, ...] = ()


_DELIVERY: Final = ("id", "attempt")
_ATTEMPT: Final = ("step", "attempt")

KINDS: Final[Mapping[str, Kind]] = {
    "request": Kind(("worker", "url")),
    "response": Kind(("status",), tone="done", brief=("status",)),
    "disconnect": Kind(tone="bad"),
    "wait_until": Kind(("location",), brief=("location",)),
    "log": Kind(("level", "text"), brief=("text",)),
    "finding": Kind(("code", "message"), tone="bad", brief=("code",)),
    "request_out": Kind(("method", "url"), ("key",), brief=("method", "url")),
    "response_in": Kind(("url", "status"), brief=("status",)),
    "send": Kind(("id", "by"), brief=("id",)),
    "batch": Kind(("worker", "messages"), brief=("messages",)),
    "ack": Kind(_DELIVERY, tone="done", brief=_DELIVERY),
    "retry": Kind(_DELIVERY, tone="bad", brief=_DELIVERY),
    "dead_letter": Kind(_DELIVERY, tone="bad", brief=_DELIVERY),
    "dropped": Kind(_DELIVERY, tone="lost", brief=_DELIVERY),
    # Of a delivery; of a message or an event that a fault dropped; of background work.
    "lost": Kind((), (*_DELIVERY, "type", "location"), "lost", ("id", "attempt", "type")),
    "expired": Kind(("id",), tone="lost", brief=("id",)),
    "pause": Kind(),
    "resume": Kind(),
    "purge": Kind(("messages",), brief=("messages",)),
    "workflow_created": Kind(),
    "workflow_run": Kind(),
    "workflow_hibernated": Kind(),
    "workflow_pausing": Kind(),
    "workflow_paused": Kind(),
    "workflow_resumed": Kind(),
    "workflow_restarted": Kind(),
    "workflow_deleted": Kind(),
    "workflow_ended": Kind(("status",), ("error",), "done", ("status",)),
    "step": Kind(_ATTEMPT, brief=_ATTEMPT),
    "step_done": Kind(_ATTEMPT, tone="done", brief=_ATTEMPT),
    "step_retry": Kind((*_ATTEMPT, "error"), tone="bad", brief=_ATTEMPT),
    "step_failed": Kind((*_ATTEMPT, "error"), tone="bad", brief=_ATTEMPT),
    "step_lost": Kind(_ATTEMPT, tone="lost", brief=_ATTEMPT),
    "sleep": Kind(("step", "milliseconds"), brief=("step",)),
    "wake": Kind(("step",), brief=("step",)),
    "wait": Kind(("step", "event", "milliseconds"), brief=("step",)),
    "wait_done": Kind(("step",), tone="done", brief=("step",)),
    "wait_timed_out": Kind(("step",), tone="bad", brief=("step",)),
    "event": Kind(("type",), brief=("type",)),
    "rollback": Kind(tone="bad"),
    "rollback_done": Kind(),
    "scheduled": Kind(("cron",), brief=("cron",)),
    "fault": Kind(("fault",), tone="fault", brief=("fault",)),
    "crash": Kind(tone="lost"),
    "evict": Kind(),
    "reload": Kind(),
    "restart": Kind(),
}

_UNKNOWN: Final = Kind()
_SERVER_ERROR: Final = 500


def tone(kind: str, data: Mapping[str, Any]) -> str:
    """Return what an event means: `fault`, `lost`, `bad`, `done`, or an empty text."""
    usual = KINDS.get(kind, _UNKNOWN).tone
    if usual in ("fault", "lost"):
        return usual
    if "lost" in (data.get("outcome"), data.get("state")):
        return "lost"
    status = data.get("status")
    failed = isinstance(status, int) and status >= _SERVER_ERROR or status == "terminated"
    if failed or "error" in data or data.get("level") in ("error", "critical"):
        return "bad"
    return usual


def brief(kind: str) -> tuple[str, ...]:
    """Return the keys whose values name an event of this kind."""
    return KINDS.get(kind, _UNKNOWN).brief
