"""What a `tail` handler gets: `TraceItem` and what it is made of (workerd, `api/trace.h`)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from emulator.tails.redaction import REDACTED, is_secret, redact_url
from emulator.values import UNDEFINED, HostObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.event_record import EventRecord
    from emulator.runtime.host import WebRequest

_MILLISECOND: Final = 1_000


class Shown(HostObject):
    """An object whose properties are its own, so that JSON has them."""

    js_class = "Object"

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def js_lookup(self, name: str) -> Any:
        """Return a property."""
        if name in self._values:
            return self._values[name]
        return super().js_lookup(name)

    def js_keys(self) -> Iterable[str]:
        """The properties."""
        return tuple(self._values)


class TraceItem(Shown):
    """What happened in one event."""

    js_class = "TraceItem"


class TraceLog(Shown):
    """What was logged."""

    js_class = "TraceLog"


class TraceException(Shown):
    """What code failed with."""

    js_class = "TraceException"


class FetchEventInfo(Shown):
    """A request, and its answer."""

    js_class = "FetchEventInfo"


class EventInfo(Shown):
    """An event of another kind."""

    js_class = "EventInfo"


class Response(Shown):
    """The answer to a request."""

    js_class = "Response"


class Request(Shown):
    """A request, without what looks secret."""

    js_class = "Request"
    js_members = frozenset({"getUnredacted"})

    def __init__(self, request: WebRequest, *, redacted: bool = True) -> None:
        self._request = request
        headers: dict[str, str] = {}
        for given, value in sorted(request.headers, key=lambda pair: pair[0].lower()):
            name = given.lower()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        super().__init__(
            {
                "cf": UNDEFINED,
                "headers": {
                    name: REDACTED if redacted and is_secret(name) else value
                    for name, value in headers.items()
                },
                "method": request.method,
                "url": redact_url(request.url) if redacted else request.url,
            }
        )

    def getUnredacted(self, *_: Any) -> Request:
        """The request with all it has."""
        return Request(self._request, redacted=False)


def trace_item(
    event_record: EventRecord, ended: int, *, script: str | None, version: str | None
) -> TraceItem:
    """What one tail Worker gets of an event; each has objects of its own."""
    place = event_record.place
    return TraceItem(
        {
            "event": _event(event_record),
            "eventTimestamp": event_record.at / _MILLISECOND,
            "logs": [
                TraceLog(
                    {
                        "timestamp": line.at / _MILLISECOND,
                        "level": line.level,
                        "message": copy.deepcopy(line.message),
                        "errorInfo": UNDEFINED,
                    }
                )
                for line in event_record.logs
            ],
            "exceptions": [
                TraceException(
                    {
                        "timestamp": thrown.at / _MILLISECOND,
                        "message": thrown.message,
                        "name": thrown.name,
                        "stack": UNDEFINED,
                    }
                )
                for thrown in event_record.exceptions
            ],
            "diagnosticsChannelEvents": [],
            "scriptName": script,
            "entrypoint": _optional(place.entrypoint),
            "scriptVersion": UNDEFINED if version is None else {"id": version},
            "dispatchNamespace": UNDEFINED,
            "scriptTags": UNDEFINED,
            "tailAttributes": UNDEFINED,
            "preview": UNDEFINED,
            "durableObjectId": _optional(place.object_id),
            "outcome": event_record.outcome,
            "executionModel": place.model,
            "truncated": event_record.truncated,
            "cpuTime": 0,  # the code of an emulator takes no time
            "wallTime": (ended - event_record.at) // _MILLISECOND,
        }
    )


def _event(event_record: EventRecord) -> Shown:
    onset = event_record.onset
    if onset.request is None:
        return EventInfo(copy.deepcopy(dict(onset.facts)))
    status = event_record.status
    return FetchEventInfo(
        {
            "response": UNDEFINED if status is None else Response({"status": status}),
            "request": Request(onset.request),
        }
    )


def _optional(text: str | None) -> object:
    return UNDEFINED if text is None else text
