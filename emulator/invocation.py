"""One event handled by one isolate: its tasks, its background work, its end.

Theory of operation. An invocation starts with its *main* task, the handler. It lives on while work
given to `waitUntil` is pending. When both are done it *ends*: tasks that were neither awaited nor
given to `waitUntil` are cancelled, in the very moment in which the handler returns, so that one
that never started does not start. What still runs when that instant is over is frozen. A power cut
(`Isolate.kill`) ends it at once, without a line of it running.

    running ── main done, nothing pending ──────────────> ended ──> frozen
       └────── main done, background pending ─> lingering ──┘
                                                   └── 30 s after the answer: cancelled
"""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from emulator.background import LIMIT, Background
from emulator.clock import moment
from emulator.event_record import EventRecord, Place
from emulator.faults.sites import site_name
from emulator.findings import Finding
from emulator.location import caller, describe_error, format_error, raised_at
from emulator.logs import Log
from emulator.loose_ends import LooseEnds
from emulator.scope import SCOPE, Scope
from emulator.values import JsException
from emulator.websockets.line import pair

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

    from emulator.background import BackgroundTask
    from emulator.event_record import Onset
    from emulator.importer import ModuleSpace
    from emulator.isolate import Isolate
    from emulator.kernel import Kernel
    from emulator.location import Location
    from emulator.runtime.host import CacheService, WebRequest, WebResponse
    from emulator.runtime.promises import PyodideFuture
    from emulator.values import HostObject
    from emulator.websockets.line import End

_EXPORTS = "enable_ctx_exports"
_OURS = "pyodide.ffi.JsException: "
_DEFAULT = Place()
# The outcome of an event whose time was over.
CUT_BY_TIME = "exceededWallTime"
_GLOBAL_SCOPE = (
    "Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or connect()), "
    "setting a timeout, and generating random values are not allowed within global scope. To fix "
    "this error, perform this operation within a handler. "
    "https://developers.cloudflare.com/workers/runtime-apis/handlers/"
)
_OTHER_REQUEST = (
    "Cannot perform I/O on behalf of a different request. I/O objects (such as streams, "
    "request/response bodies, and others) created in the context of one request handler cannot be "
    "accessed from a different request's handler. This is a limitation of Cloudflare Workers which "
    "allows us to improve overall performance."
)


class Invocation(Scope):
    """An event being handled. Implements `emulator.runtime.host.Host` for the code it runs."""

    # A test's own calls on bindings are no fault sites.
    is_test = False
    # How many Workers its request has passed through, this one included.
    depth = 1
    # Whether it has a rule about effects, so that they are worth describing.
    minds_effects = False

    # What most keep to their end is here, and not set on each.
    struck = False  # a fault hit it: its findings are the fault's, not the code's
    main_done = False
    ended = False
    gone = False  # ended or killed, with nothing left to run
    # Whether the test's own request is waiting on this: decides a fault's class.
    in_request = False
    retried = False
    props: Mapping[str, Any] = MappingProxyType({})  # those of the binding that a call came by
    passes_through = False  # `passThroughOnException` was called
    limit: int | None = LIMIT  # of background work, after the answer
    # What happened in it, where Workers tail this one; see `watch`.
    _event_record: EventRecord | None = None
    _evicted = False  # a fault takes its background work when it has answered
    _leavers: list[Callable[[], None]] | None = None
    _partial: dict[str, str] | None = None  # lines that are not complete, by level

    def __init__(self, isolate: Isolate, event: str, *, subject: str = "", about: str = "") -> None:
        super().__init__()
        self.isolate = isolate
        self.kernel: Kernel = isolate.kernel
        self.worker = isolate.worker.name
        self.event = event
        self.subject = subject or event
        self.about = about or self.subject  # what findings call it: without its number
        self.space: ModuleSpace = isolate.space
        self.sender: object = object()  # who sent a request; subjects may be the same
        self.background = Background(self)
        self.on_end: Callable[[], None] = _nothing
        self.on_killed: Callable[[], None] = _nothing
        self._loose_ends = LooseEnds(self)

    # -- what the runtime modules ask (Host) -----------------------------------------------------

    @property
    def env(self) -> dict[str, Any]:
        return self.isolate.worker.env

    @property
    def flags(self) -> frozenset[str]:
        return self.isolate.worker.config.flags

    @property
    def exports(self) -> HostObject | None:
        """What `ctx.exports` is; None where the date does not have it."""
        return self.isolate.exports if _EXPORTS in self.flags else None

    @property
    def profile(self) -> str:
        return self.kernel.profile

    @property
    def alive(self) -> bool:
        """Whether a call it makes still has an effect."""
        return not (self.dead or self.ended)

    @property
    def waited_for(self) -> bool:
        """Whether the handler or work given to `waitUntil` goes on, within its time."""
        return not self.main_done or (self.background.pending and not self.background.out_of_time)

    def repeats(self) -> bool:
        """Whether the platform repeats the code that runs now, should it fail."""
        return self.retried

    @property
    def event_record(self) -> EventRecord | None:
        """What happened in it so far, where Workers tail this one."""
        return self._event_record

    @property
    def lasting(self) -> Invocation:
        """What functions belong to that this event hands out over RPC."""
        return self

    def sends(self, body: asyncio.Task[None]) -> None:
        """Told of the task that sends a body of its making."""

    def at_leave(self, callback: Callable[[], None]) -> None:
        """Call back when no line of it will run any more."""
        if self.gone:
            callback()
        elif self._leavers is None:
            self._leavers = [callback]
        else:
            self._leavers.append(callback)

    def missing_binding(self, name: str) -> str:
        absent = self.isolate.worker.absent.get(name)
        if absent is None:
            return ""
        if not self.is_test:
            self.find("missing_binding", str(absent), caller(), subject=f"binding {name}")
        return str(absent)

    def wait_until(self, work: Awaitable[Any]) -> None:
        self._allow_wait_until(work)
        self._meet_fault()
        self.background.add(work)

    def _allow_wait_until(self, work: Awaitable[Any]) -> None:
        try:
            self.forbid_in_global_scope()
            self.forbid_from_elsewhere()
        except JsException:
            if asyncio.iscoroutine(work):
                work.close()
            raise

    def _meet_fault(self) -> None:
        if self.in_request and self.kernel.faults.meet(site_name("wait_until", self.worker)):
            self.struck = self._evicted = True
            if self.main_done:
                # Work of work, given when the answer is out: lost before its first line.
                self.kernel.loop.kernel_soon(self.kill)

    @property
    def caches(self) -> CacheService:
        return self.kernel.caches

    def fetch(self, request: WebRequest) -> Awaitable[WebResponse]:
        self.forbid_in_global_scope()
        self.effect(f"a request to {request.url}")
        return self.kernel.outbound.send(self, request)

    def write(self, level: str, text: str) -> None:
        """Take what the code printed; each complete line is logged."""
        if self._partial is None:
            self._partial = {}
        *lines, rest = (self._partial.pop(level, "") + text).split("\n")
        for line in lines:
            self.log(level, line)
        if rest:
            self._partial[level] = rest

    def effect(self, what: str) -> None:
        """Told of an effect on the outside; only a Workflow's `run` has a rule about these."""

    def log(self, level: str, text: str, arguments: Sequence[Any] | None = None) -> None:
        """Keep a line; `arguments` are what `console` was given, where it was."""
        event_record = self.event_record
        if event_record is not None:
            event_record.log(self.kernel.now, level, [text] if arguments is None else arguments)
        self._keep_line(level, text)

    def _keep_line(self, level: str, text: str) -> None:
        kernel = self.kernel
        kernel.logs.append(Log(moment(kernel.now), self.worker, level, text))
        kernel.record("log", self.subject, level=level, text=text)

    def threw(self, error: BaseException, text: str = "") -> None:
        """Keep what its code failed with: a line here, an exception for who tails the Worker."""
        self.note_exception(error)
        self._keep_line("error", text or format_error(error, self.isolate.worker.folder))

    def note_exception(self, error: BaseException) -> None:
        """Keep what its code failed with for who tails the Worker."""
        event_record = self.event_record
        if event_record is None:
            return
        if isinstance(error, JsException):
            event_record.threw(self.kernel.now, error.name, error.message)
        else:
            text = format_error(error, self.isolate.worker.folder)
            event_record.threw(self.kernel.now, "PythonError", f"{text}\n")

    def fails(self, outcome: str = "exception") -> None:
        """Let its outcome be told as this one, unless it has failed already."""
        event_record = self.event_record
        if event_record is not None and event_record.outcome == "ok":
            event_record.outcome = outcome

    def urandom(self, size: int) -> bytes:
        self.reads("randomness")
        return self.kernel.surroundings.urandom(size)

    def socket_pair(self) -> tuple[End, End]:
        self.forbid_in_global_scope()
        return pair(self)

    def report(self, error: BaseException) -> None:
        text = format_error(error, self.isolate.worker.folder)
        self.threw(error, f"Uncaught {text.removeprefix(_OURS)}")
        shown = describe_error(error).removeprefix(_OURS)
        self.find("handler_exception", f"{self.about}: {shown}", raised_at(error))

    def track(self, call: Any) -> None:
        """Remember a binding call, to tell at the end whether it was ever awaited."""
        if self.event == "import":
            self.forbid_in_global_scope()
        self._loose_ends.track(call)

    def track_promise(self, promise: PyodideFuture) -> None:
        """Remember a promise, to tell at the end whether it is pending with nobody waiting."""
        self._loose_ends.track_promise(promise)

    def ignore(self, work: Awaitable[Any]) -> None:
        """Remember work that a global handler gave to `waitUntil` in vain."""
        self._allow_wait_until(work)
        self._loose_ends.ignore(work)

    def link_at(self, now: int) -> int:
        """Which of a chain of deliveries at one instant it is (queues/chain.py)."""
        return 0

    def forbid_in_global_scope(self) -> None:
        """Raise production's error for an effect at import time."""
        if self.event == "import":
            raise JsException("Error", _GLOBAL_SCOPE)

    def forbid_work_in_global_scope(self) -> None:
        """Raise it also where importing began work that goes on: tasks, timers of asyncio's."""
        timers = self.kernel.loop.timers_of(self)
        if not self.tasks and not timers:
            return
        error = JsException("Error", _GLOBAL_SCOPE)
        for timer in timers if not self.tasks else ():
            error.add_note(f"asyncio was to call {_name(timer._callback)} later.")
        for task in self.tasks:
            error.add_note(f"The work was begun at {self.place(_created(task))}.")
            task.get_coro().close()  # it never ran
        self.kernel.loop.kill(self)
        raise error

    def forbid_from_elsewhere(self) -> None:
        """Raise production's error where another event's code uses this `ctx`, or too late."""
        if not self.alive or SCOPE.get() not in (self, None):
            raise JsException("Error", _OTHER_REQUEST)

    # -- life ------------------------------------------------------------------------------------

    def watch(self, onset: Onset, place: Place = _DEFAULT) -> None:
        """Record what happens in it, where Workers tail this one."""
        if self.isolate.worker.tailed is not None:
            self._event_record = EventRecord(self.kernel.now, onset, place)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Run the handler as this invocation's main task."""
        self.isolate.invocations[self] = None
        self.kernel.loop.spawn(self, self._main(coroutine), self.event)

    async def _main(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        try:
            await coroutine
        finally:
            # Not reached after a power cut: the task is frozen then.
            try:
                self._main_finished()
            except Exception as error:  # the emulator's own: no user code runs here
                self.kernel.loop.abort(error)

    def _main_finished(self) -> None:
        self.main_done = True
        if self.dead:
            return  # a fault cut the power when the handler had answered
        if self._evicted:
            self.kill()
        elif not self.background.pending:
            self.end()
        elif self.limit is not None:
            self.background.start_limit(self.limit)

    def end_if_idle(self) -> None:
        """End if neither the handler nor background work goes on."""
        if self.main_done and not self.background.pending:
            self.end()

    def on_background_error(self, record: BackgroundTask, error: BaseException) -> None:
        """Report a failed task; a queue invocation fails its batch instead."""
        self.find(
            "background_error",
            f"a task given to waitUntil at {record.location} failed: {describe_error(error)}",
            raised_at(error) or self.background.place_of(record),
        )

    def end(self) -> None:
        """Everything is answered: cancel what nobody waits for, and freeze what goes on."""
        if self.ended or self.dead:
            return
        self.ended = True
        self.background.stop()
        current = asyncio.current_task(self.kernel.loop)
        left = [task for task in self.tasks if task is not current and not task.done()]
        if not self.background.out_of_time:
            self._loose_ends.report(left)
        self._loose_ends.forget()
        for task in left:
            task.cancel()
        self.on_end()
        if left:
            self.at_end_of_instant(self.freeze)
        else:
            self.freeze()

    def at_end_of_instant(self, step: Callable[[], None]) -> None:
        """Take the step when everything that is ready at this instant has run."""
        self.kernel.loop.kernel_at(self.kernel.now, step, owner="the end of an invocation")

    def freeze(self) -> None:
        """Let no line of it run any more."""
        if self.gone:
            return
        loop = self.kernel.loop
        current = asyncio.current_task(loop)
        if [task for task in self.tasks if task is not current and not task.done()]:
            loop.kill(self)
        else:
            for timer in loop.timers_of(self):
                timer.cancel()
        self._leave()
        self.on_killed = _nothing

    def cut_links(self) -> None:
        """Let go of the emulator, which is closed; what user code made stays."""
        super().cut_links()
        del self.isolate, self.kernel
        self.on_end = self.on_killed = _nothing
        self.background.cut_links()
        self._loose_ends.forget()

    def suspend(self) -> None:
        """Let no line of it run any more, while the platform still waits for it."""
        self.kernel.loop.kill(self)

    def cut_power(self) -> None:
        """Cut the power of what runs this: the Worker's isolates, or the object of its event."""
        self.isolate.worker.crash()

    def kill(self) -> None:
        """Power cut."""
        if self.gone:
            return
        self.background.lose()
        if self._event_record is not None and self._event_record.outcome != CUT_BY_TIME:
            self._event_record = None  # nobody is left who could tell
        self._leave()
        if not self.dead:
            self.kernel.loop.kill(self)
        self.on_killed()

    def _leave(self) -> None:
        self.gone = True
        if self._partial is not None:
            for level, text in self._partial.items():
                self.log(level, text)
            self._partial = None
        # What leads back to it would keep it until the garbage collector comes.
        self.on_end = _nothing
        if not self.dead:
            self._loose_ends.close()
            self.background.release()
        self.isolate.invocations.pop(self, None)
        event_record, self._event_record = self._event_record, None
        tailed = self.isolate.worker.tailed
        if event_record is not None and tailed is not None:
            tailed(self, event_record)
        leavers, self._leavers = self._leavers, None
        for callback in leavers or ():
            callback()

    # -- reports ---------------------------------------------------------------------------------

    def place(self, location: Location | None) -> str:
        """A location as reports show it."""
        return location.relative_to(self.isolate.worker.folder) if location else "(unknown line)"

    def find(
        self, code: str, message: str, location: Location | None, *, subject: str = ""
    ) -> None:
        """Add a finding, of this event or another subject, unless a fault struck this one."""
        kernel = self.kernel
        if self.struck:
            return
        kernel.findings.add(
            Finding(
                code=code,
                message=message,
                at=moment(kernel.now),
                location=self.place(location) if location else None,
                worker=self.worker,
                subject=subject or self.about,
            )
        )
        kernel.record("finding", self.subject, code=code, message=message)


def _nothing() -> None:
    """The default of both hooks."""


def _name(callback: object) -> str:
    """What a function that asyncio was given is called."""
    return str(getattr(callback, "__qualname__", None) or type(callback).__name__)


def _created(task: asyncio.Future[Any]) -> Location | None:
    created: Location | None = getattr(task, "created", None)
    return created
