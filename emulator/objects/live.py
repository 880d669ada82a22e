"""One object in memory: its instance, the events that happen to it, and how it ends.

Theory of operation. The first event makes the instance; a constructor that fails takes the
incarnation with it. Events run in turns (`gate.py`). When a turn is over, what it wrote becomes
durable, and only then do answers leave, as calls do: the output gate. So nobody ever learns of what
a power cut takes back.

    constructing ──> running ──┬── evicted when nothing goes on: no trace but its memory
                               ├── reset by an error of its own: all events fail with that
                               └── lost its power: all events fail as if the network had
"""

from __future__ import annotations

from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from emulator.bindings import calls
from emulator.durations import SECOND
from emulator.event_record import EventRecord, Onset, Place
from emulator.foreign import is_foreign
from emulator.gate import SECTION, InputGate
from emulator.location import format_error, waiting_at
from emulator.objects import texts
from emulator.objects.context import AlarmInvocationInfo, DurableObjectState
from emulator.objects.event import EVENT, ObjectScope, Outcome, over
from emulator.rpc.bodies import across
from emulator.rpc.carriage import carry
from emulator.rpc.entry import (
    call_handler,
    call_method,
    handler_of,
    method_of,
    request_for,
    response_of,
)
from emulator.rpc.errors import outgoing
from emulator.runtime.proxies import wrap
from emulator.runtime.rpc import raw_env
from emulator.scope import SCOPE
from emulator.tasks import start
from emulator.values import JsException, from_milliseconds
from emulator.websockets import handshake

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Coroutine

    from emulator.gate import Section
    from emulator.isolate import Isolate
    from emulator.loop import Timer
    from emulator.objects.event import Event
    from emulator.objects.service import Objects
    from emulator.objects.space import Space
    from emulator.objects.stored import Stored
    from emulator.runtime.host import WebRequest

# How long `blockConcurrencyWhile` may take (docs; workerd, `io/io-context.c++`).
_BLOCKED: int = 30 * SECOND

# Of one that leaves when nothing goes on in it.
_LEAVES = Outcome()

# What `ctx.abort` ends its caller with, of this SDK's or of one that is vendored: the object is
# reset on purpose, as by a call, and no error is left unhandled.
_RESETS: Final = "DurableObjectAbort"


class _Failed(Exception):
    """User code failed, and the event is over."""


class LiveObject:
    """One incarnation of an object."""

    def __init__(self, home: Objects, space: Space, stored: Stored, isolate: Isolate) -> None:
        kernel = home.kernel
        self.home = home
        self.space = space
        self.stored = stored
        self.kernel = kernel
        self.subject = space.subject(stored)
        self.gate = InputGate(kernel.loop, self._end_turn)
        self.scope = ObjectScope(isolate, self, self.subject)
        self.transactions = 0  # that keep a turn's writes from becoming durable
        self._context = Context()
        self._context.run(SCOPE.set, self.scope)
        self._isolate = isolate
        self._instance: Any = None
        self._constructed = False
        self._running: dict[Event, None] = {}
        self._answers: list[tuple[Event, Outcome]] = []
        self._at_turn_end: Callable[[], None] | None = None
        self._timers: dict[Timer, None] = {}
        self._leaving = False
        self._left: list[asyncio.Future[None]] = []

    @property
    def gone(self) -> bool:
        """Whether it is in memory no more."""
        return self.scope.dead or self.scope.gone

    @property
    def busy(self) -> bool:
        """Whether events go on, or work given to `waitUntil`, or a section."""
        return bool(
            self._running
            or self.scope.background.pending
            or self.gate.root.running is not None
            or self.gate.root.sections
        )

    # -- events ----------------------------------------------------------------------------------

    def begin(self, event: Event, work: Coroutine[Any, Any, None]) -> None:
        """Let an event happen; it runs when the gate lets it in."""
        if not self._constructed:
            self._constructed = True
            self.kernel.record("object_started", self.subject, id=self.stored.id)
            self._spawn(event, self._construct(), "the constructor of an object")
        self._running[event] = None
        self._spawn(event, work, event.name)

    def _spawn(
        self,
        event: Event | None,
        work: Coroutine[Any, Any, None],
        name: str,
        section: Section | None = None,
    ) -> None:
        context = self._context.copy()
        context.run(EVENT.set, event)
        if section is not None:
            context.run(SECTION.set, section)
        start(self.kernel.loop, work, self.scope, context, name)

    async def _construct(self) -> None:
        try:
            cls = self.space.class_in(self._isolate)
            self._instance = cls(wrap(DurableObjectState(self)), raw_env())
        except BaseException as error:
            self.pass_on(error)
            reason = outgoing(error, self.scope.isolate.worker.folder)
            last = reason.message.strip().splitlines()[-1]
            self.kernel.record("object_error", self.subject, method="constructor", error=last)
            self._at_turn_end = lambda: self._die(Outcome(error=reason))

    async def call(self, event: Event, method: str, arguments: list[Any]) -> None:
        """Call a method with arguments that crossed already."""
        self._watch(event, Onset.call(method))
        try:
            function = method_of(self._instance, method)
            result = await self._user(event, call_method(function, arguments))
            self._over(event, Outcome(carry(result, self.scope)))
        except _Failed:
            return
        except JsException as error:
            self._over(event, Outcome(error=error))

    async def fetch(self, event: Event, request: WebRequest) -> None:
        """Let it answer a request."""
        self._watch(event, Onset(request=request))
        try:
            handler = handler_of(self._instance, self._named("fetch"))
            arguments = (request_for(request), None, None)
            answer = await self._user(event, call_handler(handler, *arguments))
            response = handshake.check(request, response_of(answer))
            self._name_frames(response.socket)
            if event.event_record is not None:
                event.event_record.status = response.status
            body = across(response.body, self.scope)
            self._over(event, Outcome(replace(response, body=body)))
        except _Failed:
            return
        except JsException as error:
            self._over(event, Outcome(error=error))

    def _name_frames(self, end: Any) -> None:
        """Let faults strike what arrives at an end that its code accepted."""
        if end is not None and end.other.holder is self.scope:
            end.other.site = self.space.label

    async def alarm(self, event: Event, info: AlarmInvocationInfo) -> None:
        """Run its alarm."""
        self._watch(event, Onset({"scheduledTime": from_milliseconds(info.scheduledTime)}))
        try:
            handler = handler_of(self._instance, self._named("alarm"))
        except JsException as error:
            self.home.alarms.missing(self, self._named("alarm"))
            self._over(event, Outcome(error=error))
            return
        with suppress(_Failed):
            await self._user(event, call_handler(handler, wrap(info)))
            self._over(event, Outcome())

    async def socket_event(
        self, event: Event, method: str, arguments: Callable[[], list[Any]]
    ) -> None:
        """Run a handler of the sockets that it holds; what it raises nobody sees but the log."""
        facts = {"webSocketEventType": method.removeprefix("webSocket").lower()}
        self._watch(event, Onset({"getWebSocketEvent": {**facts, **closing(arguments())}}))
        given = [wrap(argument) for argument in arguments()]
        name = self._named(method)
        handler = getattr(self._instance, name, None)
        if not callable(handler):
            text = f"{self.space.class_name} has no method {name}: a WebSocket's event is lost"
            self.scope.find("missing_handler", text, None)
            self._over(event, Outcome())
            return
        try:
            await call_handler(handler, *given)
        except BaseException as error:
            self.pass_on(error)
            last = format_error(error, self.scope.isolate.worker.folder).strip().splitlines()[-1]
            self.kernel.record("object_error", self.subject, method=method, error=last)
            if type(error).__name__ == _RESETS:
                self.scope.note_exception(error)
            else:
                self.scope.report(error)
            self.scope.fails()
        self._over(event, Outcome())

    def _named(self, handler: str) -> str:
        return f"on_{handler}" if self._isolate.script.legacy else handler

    async def _user(self, event: Event, work: Awaitable[Any]) -> Any:
        """Run user code; raises `_Failed` where it failed, which is told."""
        try:
            return await work
        except BaseException as error:
            self.pass_on(error)
            reason = outgoing(error, self.scope.isolate.worker.folder)
            self.scope.note_exception(error)
            self.scope.fails()
        last = reason.message.strip().splitlines()[-1]
        self.kernel.record("object_error", self.subject, method=event.name, error=last)
        self._over(event, Outcome(error=reason))
        raise _Failed

    def pass_on(self, error: BaseException) -> None:
        """Raise again what is no failure of the object's code."""
        if is_foreign(error) or self.scope.dead:
            raise error

    def _watch(self, event: Event, onset: Onset) -> None:
        """Record what happens in an event, where Workers tail this one."""
        if self.space.worker.tailed is not None:
            place = Place(self.space.class_name, "durableObject", self.stored.id)
            event.event_record = EventRecord(self.kernel.now, onset, place)

    def _tell(self, event: Event) -> None:
        """Tell those who tail the Worker that an event is over."""
        event_record, event.event_record = event.event_record, None
        tailed = self.space.worker.tailed
        if event_record is not None and tailed is not None:
            tailed(self.scope, event_record)

    def _over(self, event: Event, outcome: Outcome) -> None:
        """An event is over; its answer waits for what the turn wrote."""
        self._answers.append((event, outcome))

    # -- turns -----------------------------------------------------------------------------------

    def _end_turn(self) -> None:
        if self.gone:
            return
        problem = None if self.transactions else self.home.commit(self)
        if problem is not None:
            self.reset(problem)
            return
        if self._at_turn_end is not None:
            self._at_turn_end()
            return
        answers, self._answers = self._answers, []
        for event, outcome in answers:
            self._running.pop(event, None)
            finish, event.finish = event.finish, over
            finish(outcome)
            self._tell(event)
        if self._leaving:
            self.work_ended()

    def meet(self, operation: str, *, writes: bool) -> None:
        """Meet the fault site of a storage operation that is about to happen.

        After a write the power stays until all that the turn writes is durable: nothing parts it.
        """
        if self.meet_first(operation):
            if not writes:
                self._cut_here()
            self.doom()

    def meet_first(self, operation: str) -> bool:
        """As `meet`, of one that takes its time: whether the power goes when it has happened."""
        event = EVENT.get()
        faults = self.kernel.faults.meet(
            self.space.site(operation),
            in_request=event is not None and event.in_request,
            retried=event is not None and event.repeats,
        )
        if not faults:
            return False
        self.scope.struck = True
        if faults[0].action == "crash_before":
            self._cut_here()
        return True

    def doom(self) -> None:
        """Let the power go when what the turn writes is durable."""
        self._at_turn_end = self.crash

    def _cut_here(self) -> NoReturn:
        self.crash()
        self.kernel.loop.cut_here()

    # -- what its code does to it ----------------------------------------------------------------

    def block(self, function: Callable[[], Awaitable[Any]]) -> asyncio.Future[Any]:
        """Call a function with all events kept out that it did not begin.

        An error of it resets the object, and so does a time of 30 s.
        """
        loop = self.kernel.loop
        done: asyncio.Future[Any] = loop.create_future()
        event = EVENT.get()

        def begin(section: Section) -> None:
            timer = loop.kernel_at(
                self.kernel.now + _BLOCKED, self._blocked_too_long, owner=f"{self.subject}: blocked"
            )
            self._timers[timer] = None
            work = self._section(section, timer, function, done)
            self._spawn(event, work, "blockConcurrencyWhile", section)

        try:
            self.gate.enter(begin)
        except OverflowError:
            return calls.refuse(JsException("Error", texts.NESTED))
        return done

    async def _section(
        self,
        section: Section,
        timer: Timer,
        function: Callable[[], Awaitable[Any]],
        done: asyncio.Future[Any],
    ) -> None:
        try:
            value = await function()
        except BaseException as error:
            self.pass_on(error)
            self.reset(outgoing(error, self.scope.isolate.worker.folder))
            return
        timer.cancel()
        self._timers.pop(timer, None)
        self.gate.leave(section)
        calls.resolve(done, value)

    def _blocked_too_long(self) -> None:
        self.reset(JsException("Error", texts.BLOCKED_TOO_LONG), overloaded=True)

    def check_caller(self) -> None:
        """Raise the runtime's error where code of something else uses what is this object's."""
        if SCOPE.get() is not self.scope:
            raise JsException("Error", texts.OTHER_OBJECT)

    # -- ends ------------------------------------------------------------------------------------

    def reset(self, error: JsException, *, overloaded: bool = False) -> None:
        """End this incarnation because of an error; what the turn wrote is dropped."""
        if not self.gone:
            self.kernel.record("reset", self.subject, error=error.message.splitlines()[-1])
            self._die(Outcome(error=texts.reset_by(error, overloaded=overloaded)))

    def crash(self) -> None:
        """Cut the power: no line of it runs again, and nobody knows what it did."""
        if not self.gone:
            self.kernel.record("crash", self.subject)
            self.home.renew(self.space.worker)
            self._die(Outcome(error=texts.power_lost(), lost=True))

    def evict(self) -> asyncio.Future[None] | None:
        """Drop its memory when nothing of it goes on; the future says when, None is at once."""
        if self.gone:
            return None
        if self.busy:
            self._leaving = True
            left: asyncio.Future[None] = self.kernel.loop.create_future()
            self._left.append(left)
            return left
        self.kernel.record("evict", self.subject)
        self.home.renew(self.space.worker)
        self._die(_LEAVES)
        return None

    def work_ended(self) -> None:
        """See whether it may leave now."""
        if self._leaving and not self.gone and not self.busy:
            self.evict()

    def describe_pending(self) -> list[str]:
        """What it waits for, a line each."""
        waiting = [(waiting_at(task.get_coro()), task) for task in self.scope.tasks]
        return [
            f"{self.subject} waits at {self.scope.place(where)}"
            for where, task in waiting
            if where is not None and not task.done()
        ]

    def cut_links(self) -> None:
        """Let go of the emulator, which is closed; code that is frozen may hold this."""
        del self.home, self.space, self.kernel, self.gate, self._isolate

    def stop(self) -> None:
        """End it without a word: the emulator is closed or reset."""
        if not self.gone:
            self._die(None)

    def _die(self, outcome: Outcome | None) -> None:
        self._at_turn_end = None
        self.home.drop(self)
        running, self._running = list(self._running), {}
        self._answers.clear()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self.gate.close()
        sockets = self.space.sockets.get(self.stored.id)
        if outcome is _LEAVES:
            if sockets is not None:
                sockets.sleep()
            self.scope.freeze()
        else:
            self.scope.kill()
            if sockets is not None:
                sockets.drop()
        for event in running:
            finish, event.finish = event.finish, over
            if outcome is not None:
                finish(outcome)
                self._end_recording(event, outcome)
        for left in self._left:
            calls.resolve(left, None)

    def _end_recording(self, event: Event, outcome: Outcome) -> None:
        """An incarnation ends with an event going on: what a power cut takes nobody can tell."""
        if outcome.lost or outcome.error is None:
            event.event_record = None
        elif event.event_record is not None:
            event.event_record.threw(self.kernel.now, outcome.error.name, outcome.error.message)
            event.event_record.outcome = "exception"
            self._tell(event)


def closing(arguments: list[Any]) -> dict[str, Any]:
    """What the event of a connection that closed says of it."""
    if len(arguments) < 4:
        return {}
    _, code, _, was_clean = arguments
    return {"code": code, "wasClean": was_clean}
