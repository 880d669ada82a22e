"""The kinds of events: the data each has, and what it means to a reader.

docs/trace.md has the same table for people. The emulator's tests hold what is recorded to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Kind(NamedTuple):
    """A kind of event: the keys of its data, in order, and those that are not always there.

    `payloads` are the keys of what it carries, where it carries something. `tone` is what it means:
    `fault`, `lost`, `bad` (something failed), `done` or nothing. `brief` are the keys whose values
    name the event where there is no room for more.
    """

    keys: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    payloads: tuple[str, ...] = ()
    tone: str = ""
    brief: tuple[str, ...] = ()


_DELIVERY: Final = ("id", "attempt")
_ATTEMPT: Final = ("step", "attempt")
_LOST: Final = (*_DELIVERY, "type", "location", "cron")
_BODY: Final = ("body",)
_OUTPUT: Final = ("output",)

KINDS: Final[Mapping[str, Kind]] = {
    "request": Kind(("worker", "url"), payloads=_BODY),
    "response": Kind(("status",), ("asset",), payloads=_BODY, tone="done", brief=("status",)),
    "disconnect": Kind(tone="bad"),
    "socket_in": Kind(payloads=("message",)),
    "socket_out": Kind(payloads=("message",)),
    "socket_closed": Kind(("code", "reason", "by"), brief=("code",)),
    "wait_until": Kind(("location",), brief=("location",)),
    "log": Kind(("level", "text"), brief=("text",)),
    "finding": Kind(("code", "message"), tone="bad", brief=("code",)),
    "request_out": Kind(("method", "url"), ("key",), _BODY, brief=("method", "url")),
    "response_in": Kind(("url", "status"), brief=("status",)),
    "send": Kind(("id", "by"), payloads=_BODY, brief=("id",)),
    "batch": Kind(("worker", "messages"), brief=("messages",)),
    "lease": Kind(("messages", "milliseconds"), brief=("messages",)),
    "ack": Kind(_DELIVERY, tone="done", brief=_DELIVERY),
    "retry": Kind(_DELIVERY, tone="bad", brief=_DELIVERY),
    "dead_letter": Kind(_DELIVERY, tone="bad", brief=_DELIVERY),
    "dropped": Kind(_DELIVERY, tone="lost", brief=_DELIVERY),
    # A delivery; an event that a fault dropped, by type; background work, by location; a cron run.
    "lost": Kind((), _LOST, tone="lost", brief=_LOST),
    "expired": Kind(("id",), tone="lost", brief=("id",)),
    "pause": Kind(),
    "resume": Kind(),
    "purge": Kind(("messages",), brief=("messages",)),
    "hasten": Kind(("id",), brief=("id",)),
    "queue_created": Kind(),
    "queue_changed": Kind(),
    "queue_deleted": Kind(("messages",), brief=("messages",)),
    "workflow_created": Kind(payloads=("params",)),
    "workflow_run": Kind(),
    "workflow_hibernated": Kind(),
    "workflow_pausing": Kind(),
    "workflow_paused": Kind(),
    "workflow_resumed": Kind(),
    "workflow_restarted": Kind(),
    "workflow_deleted": Kind(),
    "workflow_ended": Kind(("status",), ("error",), _OUTPUT, "done", ("status",)),
    "step": Kind(_ATTEMPT, brief=_ATTEMPT),
    "step_done": Kind(_ATTEMPT, payloads=_OUTPUT, tone="done", brief=_ATTEMPT),
    "step_retry": Kind((*_ATTEMPT, "error"), tone="bad", brief=_ATTEMPT),
    "step_failed": Kind((*_ATTEMPT, "error"), tone="bad", brief=_ATTEMPT),
    "step_lost": Kind(_ATTEMPT, tone="lost", brief=_ATTEMPT),
    "sleep": Kind(("step", "milliseconds"), brief=("step",)),
    "wake": Kind(("step",), brief=("step",)),
    "wait": Kind(("step", "event", "milliseconds"), brief=("step",)),
    "wait_done": Kind(("step",), tone="done", brief=("step",)),
    "wait_timed_out": Kind(("step",), tone="bad", brief=("step",)),
    "event": Kind(("type",), payloads=("payload",), brief=("type",)),
    "rollback": Kind(tone="bad"),
    "rollback_done": Kind(),
    "query": Kind(("call", "sql", "by"), ("changes", "error"), brief=("call", "sql")),
    "object_started": Kind(("id",)),
    "object_call": Kind(("method", "by"), brief=("method",)),
    "object_error": Kind(("method", "error"), tone="bad", brief=("error",)),
    "object_stored": Kind((), ("put", "deleted"), tone="done", brief=("put", "deleted")),
    "alarm_set": Kind(("time",), brief=("time",)),
    "alarm": Kind(("set_for", "retry"), brief=("retry",)),
    "alarm_done": Kind(tone="done"),
    "alarm_retry": Kind(("due",), tone="bad", brief=("due",)),
    "alarm_failed": Kind(tone="bad"),
    "alarm_lost": Kind(tone="lost"),
    "reset": Kind(("error",), tone="bad", brief=("error",)),
    "kv": Kind(("call", "by"), ("key", "keys", "prefix", "stale", "error"), brief=("call", "key")),
    "service_call": Kind(("method", "by"), ("url", "cron", "queue", "messages"), brief=("method",)),
    "service_done": Kind(tone="done"),
    "service_error": Kind(("error",), tone="bad", brief=("error",)),
    "cache": Kind(("call", "url", "outcome", "by"), brief=("call", "outcome")),
    "assets": Kind(("url", "status", "by"), ("asset",), brief=("status",)),
    "ratelimit": Kind(("key", "success", "by"), brief=("key",)),
    "data_point": Kind(("by", "indexes", "blobs", "doubles"), brief=("indexes", "blobs")),
    "email": Kind(("id", "to", "title", "by"), brief=("to", "title")),
    "email_in": Kind(("sender", "to", "title"), brief=("sender", "title")),
    "r2": Kind(
        ("call", "by"),
        ("key", "keys", "prefix", "part", "size", "refused", "error"),
        brief=("call", "key"),
    ),
    "tail": Kind(("of", "outcome"), brief=("of",)),
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
    failed = (isinstance(status, int) and status >= _SERVER_ERROR) or status == "terminated"
    if failed or "error" in data or data.get("level") in ("error", "critical"):
        return "bad"
    return usual


def misfit(kind: str, names: Iterable[str]) -> str:
    """Return why data of these names is not that of an event of this kind; empty if it is."""
    known = KINDS.get(kind)
    if known is None:
        return f"{kind} is no kind of event"
    given = dict.fromkeys(names)
    allowed = (*known.keys, *known.optional, *known.payloads)
    more = [name for name in given if name not in allowed]
    less = [name for name in known.keys if name not in given]
    return f"{kind} has {more} and lacks {less}" if more or less else ""


def brief(kind: str) -> tuple[str, ...]:
    """Return the keys whose values name an event of this kind."""
    return KINDS.get(kind, _UNKNOWN).brief
