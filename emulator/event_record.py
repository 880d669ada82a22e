"""What happened in one event, kept for the Workers that tail its Worker (workerd, `io/tracer.c++`).

The kinds of events are those of workerd's `EventInfo`; what a fact is called is what a `tail`
handler reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from emulator.values import UNDEFINED, JsException, from_json, stringify

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.runtime.host import WebRequest

# Of logs, exceptions and what a request says of itself, in bytes (workerd, `MAX_TRACE_BYTES`).
MOST: Final = 256 * 1024
_TOO_MUCH_LOGGED: Final = (
    "Log size limit exceeded: More than 256KB of data (across console.log statements, exception, "
    "request metadata and headers) was logged during a single request. Subsequent data for this "
    "request will not be recorded in logs, appear when tailing this Worker's logs, or in Tail "
    "Workers."
)
_TOO_MUCH_FAILED: Final = "Trace resource limit exceeded; subsequent exceptions not recorded."
_TOO_LARGE: Final = "Trace resource limit exceeded; could not capture event info."
_LEVELS: Final = frozenset({"debug", "info", "log", "warn", "error"})


@dataclass(frozen=True, slots=True)
class Onset:
    """What an event is: a request, whose body is nobody's concern, or facts of another kind."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    request: WebRequest | None = None

    @classmethod
    def call(cls, method: str) -> Onset:
        """A call of a method over RPC."""
        return cls({"rpcMethod": method})


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event happens: what of a Worker it is for."""

    entrypoint: str | None = None
    model: str = "stateless"
    object_id: str | None = None


class Line(NamedTuple):
    """What was logged, with the instant; `message` is what `console` was given."""

    at: int
    level: str
    message: list[Any]


class Thrown(NamedTuple):
    """What code failed with, and when."""

    at: int
    name: str
    message: str


class EventRecord:
    """The trace of one event while it goes on; all of it is data that may cross to others."""

    def __init__(self, at: int, onset: Onset, place: Place) -> None:
        self.at = at
        self.onset = onset
        self.place = place
        self.logs: list[Line] = []
        self.exceptions: list[Thrown] = []
        self.outcome = "ok"
        self.status: int | None = None  # of the answer to a request
        self.truncated = False
        self._used = 0
        self._logs_full = self._exceptions_full = False
        self._weigh(at)

    def _weigh(self, at: int) -> None:
        if self.onset.request is None:
            return
        request = replace(self.onset.request, body=b"")
        self.onset = Onset(request=request)
        pairs = sum(len(name) + len(value) for name, value in request.headers)
        if not self._fits(len(request.url) + pairs):
            self.truncated = True
            self.logs.append(Line(at, "warn", [_TOO_LARGE]))
            self.onset = Onset(request=replace(request, url="", headers=()))

    def log(self, at: int, level: str, message: Sequence[Any]) -> None:
        """Keep what was logged."""
        if self._logs_full:
            return
        kept = [as_logged(one) for one in message]
        if not self._fits(len(stringify(kept))):
            self._logs_full = self.truncated = True
            self.logs.append(Line(at, "warn", [_TOO_MUCH_LOGGED]))
            return
        self.logs.append(Line(at, level if level in _LEVELS else "error", kept))

    def threw(self, at: int, name: str, message: str) -> None:
        """Keep what code failed with."""
        if self._exceptions_full:
            return
        if not self._fits(len(name) + len(message)):
            self._exceptions_full = self.truncated = True
            self.exceptions.append(Thrown(at, "Error", _TOO_MUCH_FAILED))
            return
        self.exceptions.append(Thrown(at, name, message))

    def _fits(self, size: int) -> bool:
        if self._used + size > MOST:
            return False
        self._used += size
        return True


def as_logged(value: Any) -> Any:
    """What is left of an argument of `console`: what JSON keeps of it, or its text.

    >>> as_logged({"a": [1, None]})
    {'a': [1, None]}
    """
    if isinstance(value, (str, bool, int)) or value is None:
        return value
    if value is UNDEFINED:
        return "undefined"
    if isinstance(value, BaseException):
        return str(value)
    try:
        text = stringify(value)
    except JsException:
        text = UNDEFINED
    return str(value) if text is UNDEFINED else from_json(text)
