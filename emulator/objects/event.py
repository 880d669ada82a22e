"""What happens to an object, and the scope in which its code runs.

All events of one incarnation share a scope, because work that an event begins may go on after it;
`EVENT` tells which of them the code that runs was begun by.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.invocation import Invocation
from emulator.values import UNDEFINED, JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.event_record import EventRecord
    from emulator.isolate import Isolate
    from emulator.objects.live import LiveObject


class Outcome(NamedTuple):
    """How an event ended; `lost` where the object lost its power, so that nobody knows."""

    value: Any = UNDEFINED
    error: JsException | None = None
    lost: bool = False


class Event:
    """A call, a request or an alarm, until `finish` is told its outcome.

    `in_request` and `repeats` say of the code that began it what an invocation says of itself.
    """

    __slots__ = ("event_record", "finish", "in_request", "name", "repeats", "struck")

    def __init__(
        self,
        name: str,
        finish: Callable[[Outcome], None],
        *,
        in_request: bool = False,
        repeats: bool = False,
    ) -> None:
        self.name = name
        self.finish = finish
        self.in_request = in_request
        self.repeats = repeats
        self.struck = False
        self.event_record: EventRecord | None = None


EVENT: ContextVar[Event | None] = ContextVar("emulator.object_event", default=None)


def over(_: Outcome) -> None:
    """What is told the outcome of an event that is over already: nobody."""


class ObjectScope(Invocation):
    """What the code of one object in memory belongs to, as long as it is there."""

    def __init__(self, isolate: Isolate, live: LiveObject, subject: str) -> None:
        super().__init__(isolate, subject)
        self.gate = live.gate
        self.limit = None
        self._live: LiveObject | None = live

    @property
    def in_request(self) -> bool:
        """Whether the test's own request waits on the event."""
        event = EVENT.get()
        return event is not None and event.in_request

    @in_request.setter
    def in_request(self, value: bool) -> None:
        """Its events know."""

    @property
    def event_record(self) -> EventRecord | None:
        """What happened in the event, where Workers tail this one."""
        event = EVENT.get()
        return None if event is None else event.event_record

    def repeats(self) -> bool:
        """Whether the platform repeats what began the event, should it fail."""
        event = EVENT.get()
        return event is not None and event.repeats

    @property
    def struck(self) -> bool:
        """Whether a fault hit the event."""
        event = EVENT.get()
        return event is not None and event.struck

    @struck.setter
    def struck(self, value: bool) -> None:
        event = EVENT.get()
        if event is not None:
            event.struck = value

    @property
    def waited_for(self) -> bool:
        """An object stays for what it has begun."""
        return True

    def track(self, call: Any) -> None:
        """A call that is not awaited is made all the same: the object stays for it."""
        self.forbid_in_global_scope()

    def track_promise(self, promise: Any) -> None:
        """As `track`."""

    def ignore(self, work: Awaitable[Any]) -> None:
        """As `track`."""

    def _meet_fault(self) -> None:
        """Its `waitUntil` promises nothing that a fault could break."""

    def end_if_idle(self) -> None:
        """Work given to `waitUntil` is done."""
        if self._live is not None:
            self._live.work_ended()

    def cut_power(self) -> None:
        """Cut the power of this object."""
        if self._live is not None:
            self._live.crash()

    def cut_links(self) -> None:
        """Let go of the emulator, which is closed."""
        super().cut_links()
        live, self._live, self.gate = self._live, None, None
        if live is not None:
            live.cut_links()
