"""What all parts of one emulator share: its loop, clock, randomness, faults, trace and findings."""

from __future__ import annotations

import itertools
import random
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from emulator.capture import Capture
from emulator.clock import LATEST
from emulator.collector import Collector
from emulator.faults import Fault, Faults
from emulator.findings import Findings
from emulator.importer import finder
from emulator.location import format_error, raised_at
from emulator.logs import Logs
from emulator.loop import SimLoop
from emulator.pump import Pump
from emulator.surroundings import Surroundings
from emulator.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from emulator.background import BackgroundTask
    from emulator.bindings.outbound import Outbound
    from emulator.clock import Clock
    from emulator.location import Location
    from emulator.runtime.host import CacheService
    from emulator.scope import Scope
    from emulator.secrets import Masker
    from emulator.trace.events import Values

Profile = Literal["production", "miniflare"]


class Kernel:
    """One simulation without its products; queues, ingress and isolates are built on it."""

    def __init__(
        self,
        *,
        clock: Clock,
        seed: int,
        faults: Fault | Iterable[str | Fault],
        profile: Profile,
        masker: Masker,
        trace: Trace | None = None,
    ) -> None:
        self.profile = profile
        self.seed = seed
        self.clock = clock
        # First, because a plan may be wrong and a loop must be closed.
        now = partial(attrgetter("now"), clock)  # asked at each call: without a frame of Python's
        self.faults = Faults(now, faults, on_fired=self._trace_fault, remember=trace is None)
        self.loop = SimLoop(self.clock)
        self.pump = Pump(self.loop, self._describe_pending)
        self.trace = Trace(clock.start, masker=masker) if trace is None else trace
        self.findings = Findings(masker)
        self.logs = Logs(masker)
        self.background: list[BackgroundTask] = []
        self.outbound: Outbound
        self.caches: CacheService
        self.surroundings = Surroundings(self.clock, seed)
        self._capture = Capture()
        self._collector = Collector()
        # The emulator's own choices: ids, orders. Apart from the Worker's random values.
        self.random = random.Random(f"choices {seed}")
        # What picks the invocation that goes on first, and by which seed.
        self._schedule: tuple[int, random.Random] | None = None
        self.pending: list[Callable[[], list[str]]] = []
        self._numbers: dict[str, int] = {}  # of invocations, by what they are called
        self._commits: list[Callable[[], None]] = []
        self.loop.before_run = self._enter
        self.loop.after_run = self._leave
        self.loop.on_scope = _show_modules
        self.loop.on_contention = self._contended
        self.loop.on_lost_error = self._lost_error
        self.loop.on_never_awaited = _never_awaited

    @property
    def now(self) -> int:
        """Virtual now, in microseconds since the epoch."""
        return self.clock.now

    def record(self, kind: str, subject: str, **data: Any) -> None:
        """Write an event of this instant to the trace."""
        self.trace.add(self.clock.now, kind, subject, data)

    def record_dict(self, kind: str, subject: str, data: dict[str, Any]) -> None:
        """`record`, with data that is a dict already, and this event's own."""
        self.trace.add(self.clock.now, kind, subject, data)

    def record_each(
        self, kind: str, subject: str, names: tuple[str, ...], rows: Iterable[Values]
    ) -> None:
        """Write several events of this instant, one for each row of texts and numbers."""
        self.trace.record_each(self.clock.now, kind, subject, names, rows)

    def numbered(self, subject: str) -> str:
        """Return a subject's own name: `request GET /` the first time, then `request GET / #2`.

        Events of two invocations must not be taken for those of one.
        """
        number = self._numbers[subject] = self._numbers.get(subject, 0) + 1
        return subject if number == 1 else f"{subject} #{number}"

    def _contended(self) -> Callable[[int], int] | None:
        """Several invocations are ready: first come, first served, unless a fault decides."""
        seed = self.faults.schedule()
        if seed is None:
            self._schedule = None
            return None
        if self._schedule is None or self._schedule[0] != seed:
            self._schedule = seed, random.Random(f"schedule {seed}")
        return self._schedule[1].randrange

    def hexadecimal(self, digits: int) -> str:
        """A random lower-case hexadecimal text of the emulator's choosing."""
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"

    def on_commit(self, commit: Callable[[], None]) -> None:
        """Call `commit` before anything this instant allowed becomes visible outside."""
        self._commits.append(commit)

    def limit(self, span: int) -> int:
        """The instant so many microseconds from now, or the latest that the clock can have."""
        return min(self.now + span, LATEST)

    def commit(self) -> None:
        """Make durable what happened so far: one transaction for a whole run of the loop."""
        for commit in self._commits:
            commit()

    def inside(self, function: Callable[[], Any]) -> Any:
        """Call a synchronous function as if the simulation ran it."""
        if self.loop.draining:
            return function()
        return self.loop.call_inside(function)

    def go_on(self, now: int, process: int, offset: int = 0) -> None:
        """Take up what an earlier process left: its time, and randomness that does not repeat."""
        self.clock.resume(now, offset)
        self.random.seed(f"choices {self.seed} of process {process}")
        self.surroundings.seed(self.seed + (process << 64))

    def forget(self, keep: int) -> None:
        """Keep so many findings, sites and numbers of subjects; these may then begin at 1 again."""
        self.findings.forget(keep)
        self.faults.forget(keep)
        for subject in list(self._numbers)[: max(len(self._numbers) - keep, 0)]:
            del self._numbers[subject]

    def reset(self) -> None:
        """Forget everything that happened; the clock goes back to the start."""
        self.clock.restart()
        # Tasks hash by number, and the order of a set of them depends on it.
        self.loop.numbers = itertools.count(1)
        self.random.seed(f"choices {self.seed}")
        self.surroundings.seed(self.seed)
        self.faults.reset()
        self._numbers.clear()
        self.trace.clear()
        self.trace.masker.forget()
        self.findings.clear()
        self.logs.clear()
        self.background.clear()
        self.outbound.sent.clear()
        self.outbound.servers.clear()

    def close(self) -> None:
        """Stop the loop and give back what was borrowed from the process."""
        self._capture.close()
        self.surroundings.close()
        self.loop.close()

    def _enter(self) -> None:
        self._collector.enter()
        self.surroundings.enter()
        self._capture.enter()

    def _leave(self) -> None:
        finder.activate(None)
        self._capture.leave()
        self.surroundings.leave()
        self._collector.leave()
        self.commit()

    def _lost_error(self, scope: Scope | None, details: dict[str, Any]) -> None:
        """An exception nobody took: user code's is logged, the emulator's own reaches the test."""
        error = details.get("exception")
        if error is None:
            return
        worker: Any = None if getattr(scope, "is_test", True) else scope
        task = details.get("task") or details.get("future")
        if worker is None or not (raised_at(error) or getattr(task, "created", None)):
            self.loop.abort(error)
        else:
            text = format_error(error, worker.isolate.worker.folder)
            worker.log("error", f"{details['message']}\n{text}")

    def _trace_fault(self, fault: Fault) -> None:
        self.record("fault", fault.site, fault=str(fault))

    def _describe_pending(self) -> list[str]:
        return [line for describe in self.pending for line in describe()]


def _never_awaited(scope: Scope | None, name: str, where: Location | None) -> bool:
    """A coroutine of user code was dropped; whether it became a finding."""
    worker: Any = None if getattr(scope, "is_test", True) else scope
    if worker is None:
        return False
    worker.find(
        "never_awaited",
        f"the coroutine {name}() made at {worker.place(where)} was never awaited: await it, or "
        "give it to waitUntil",
        where,
    )
    return True


def _show_modules(scope: Scope | None) -> None:
    space = getattr(scope, "space", None)
    if space is not None and space is not finder.space:
        finder.activate(space)
