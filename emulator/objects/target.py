"""Where the calls of a stub go: one object, through the faults on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.errors import WorkerLoadError
from emulator.faults.sites import site_name
from emulator.objects import texts
from emulator.objects.event import Event, Outcome
from emulator.rpc.errors import carried
from emulator.values import JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from emulator.invocation import Invocation
    from emulator.objects.bindings import DurableObjectId
    from emulator.objects.live import LiveObject
    from emulator.objects.service import Objects
    from emulator.objects.space import Space
    from emulator.runtime.host import WebRequest

    Work = Callable[[LiveObject, Event], Coroutine[Any, Any, None]]


class ObjectTarget:
    """The other end of one stub.

    A stub whose object was reset while a call was in flight stays broken: each call fails with the
    same error, and a new stub works.
    """

    def __init__(self, objects: Objects, space: Space, id: DurableObjectId, binding: str) -> None:
        self.id = id
        self._objects: Objects | None = objects
        self._space = space
        self._binding = binding
        self._broken: JsException | None = None

    def disconnect(self) -> None:
        """Let go of the emulator, which is closed."""
        self._objects = None

    @property
    def objects(self) -> Objects:
        """The objects of the emulator; raises `RuntimeError` if it is closed."""
        if self._objects is None:
            raise RuntimeError(f"the emulator that {self._binding} belongs to is closed")
        return self._objects

    def renewed(self) -> ObjectTarget:
        """The same for another stub."""
        return self.objects.target(self._binding, self._space, self.id)

    def describe(self) -> str:
        """Say what is called."""
        known = self.id.id if self.id.name is None else self.id.name
        return f"the object {known} of {self._binding}"

    def call(self, caller: Invocation, method: str, arguments: list[Any]) -> asyncio.Future[Any]:
        """Call a method of the object."""
        return self._send(caller, method, lambda live, event: live.call(event, method, arguments))

    def fetch(self, caller: Invocation, request: WebRequest) -> asyncio.Future[Any]:
        """Send a request to the object."""
        return self._send(caller, "fetch", lambda live, event: live.fetch(event, request))

    def _send(self, caller: Invocation, method: str, work: Work) -> asyncio.Future[Any]:
        in_request = caller.is_test or (caller.in_request and not caller.main_done)
        sent = _Sent(self, caller, method, work, (in_request, caller.repeats()))
        site = "" if caller.is_test else self.objects.site(self._binding, method)
        return calls.call(caller, sent.perform, site=site, lost=texts.power_lost)


class _Sent:
    """A call on its way."""

    __slots__ = ("_answer", "_caller", "_evicts", "_live", "_method", "_target", "_where", "_work")

    def __init__(
        self,
        target: ObjectTarget,
        caller: Invocation,
        method: str,
        work: Work,
        where: tuple[bool, bool],
    ) -> None:
        self._target = target
        self._caller = caller
        self._method = method
        self._work = work
        self._where = where
        self._evicts = False

    def perform(self, actions: tuple[str, ...]) -> calls.Later:
        """Deliver it."""
        target, caller = self._target, self._caller
        if target._broken is not None:
            raise texts.again(target._broken)
        try:
            self._live = live = target.objects.live(target._space, target.id)
        except WorkerLoadError as error:
            raise JsException("Error", str(error)) from error
        self._evicts = "evict" in actions
        in_request, repeats = self._where
        event = Event(self._method, self._take, in_request=in_request, repeats=repeats)
        self._answer = calls.Later()
        live.kernel.record("object_call", live.subject, method=self._method, by=caller.subject)
        live.begin(event, self._work(live, event))
        return self._answer

    def _take(self, outcome: Outcome) -> None:
        error = outcome.error
        if error is None:
            self._answer.settle(outcome.value)
        else:
            self._fail(error, outcome)
        if self._evicts:
            self._live.evict()

    def _fail(self, error: JsException, outcome: Outcome) -> None:
        is_own = not (outcome.lost or hasattr(error, "durableObjectReset"))
        if is_own:
            sender = self._live.scope.flags
            seen = carried(error, sender, self._caller.flags)
        else:
            seen = texts.again(error)
            if not outcome.lost:
                self._target._broken = seen
        self._answer.settle(None, seen)


def site_of(binding: str, method: str) -> str:
    """The fault site of a call."""
    return site_name("object", binding, method)
