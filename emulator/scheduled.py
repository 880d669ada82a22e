"""One run of a `scheduled` handler, whoever asked for it: a cron trigger, a test, another Worker.

A run, its background work included, may take 15 minutes (docs: Workers limits, "Cron Triggers");
what it gives to `waitUntil` has no limit of its own, and its failure is the run's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.clock import MICROSECONDS
from emulator.entrypoints import awaited
from emulator.event_record import Onset, Place
from emulator.foreign import is_foreign
from emulator.invocation import CUT_BY_TIME, Invocation
from emulator.runtime.proxies import wrap
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from emulator.isolate import Isolate

_WALL_TIME = 15 * 60 * MICROSECONDS
# workerd, api/global-scope.c++: such a run is not to be tried again.
_NO_HANDLER = (
    "Received a ScheduledEvent but we lack a handler for ScheduledEvents (a.k.a. Cron Triggers). "
    "Did you remember to export a scheduled() function?"
)


class ScheduledOutcome(tuple[str, "BaseException | None"]):
    """How a run ended, as `(outcome, error)`; `no_retry` is whether it called `noRetry()`."""

    no_retry: bool

    def __new__(
        cls, outcome: str, error: BaseException | None, *, no_retry: bool = False
    ) -> ScheduledOutcome:
        """Make the pair."""
        made = super().__new__(cls, (outcome, error))
        made.no_retry = no_retry
        return made


class ScheduledController(HostObject):
    """What a `scheduled` handler gets: `cron`, and `scheduledTime` in milliseconds."""

    js_class = "ScheduledController"
    js_members = frozenset({"cron", "scheduledTime", "noRetry"})

    def __init__(self, run: ScheduledRun, scheduled: int) -> None:
        self._run = run
        self.cron = run.cron
        self.scheduledTime = scheduled

    def noRetry(self, *_: Any) -> object:
        """Ask not to be run again, should it fail; nobody would."""
        self._run.no_retry = True
        return UNDEFINED


class ScheduledRun(Invocation):
    """One run of a `scheduled` handler; `outcome` is None until it ended."""

    def __init__(self, isolate: Isolate, cron: str, *, about: str = "") -> None:
        event = f"scheduled {cron}".rstrip()
        about = about or event
        super().__init__(isolate, event, subject=isolate.kernel.numbered(about), about=about)
        self.cron = cron
        self.entrypoint: str | None = None
        self.script = isolate.script  # what it sees of the module: whose `scheduled` is called
        self.limit = None
        self.outcome: str | None = None
        self.error: BaseException | None = None
        self.no_retry = False
        self.on_end, self.on_killed = self._finish, self.cut
        self._over: Callable[[ScheduledRun], None] = _nobody
        self._wall_time = self.kernel.loop.kernel_at(
            self.kernel.now + _WALL_TIME, self._exceed, owner="a cron run's wall time"
        )

    def begin(
        self,
        at: int,
        faults: Container[str] = (),
        *,
        over: Callable[[ScheduledRun], None] | None = None,
    ) -> None:
        """Run the handler for this instant; `over` is called once, when the outcome is known."""
        self._over = over or _nobody
        at_time = {"scheduledTime": at / 1000, "cron": self.cron}
        self.watch(Onset(at_time), Place(self.entrypoint))
        self.start(self._serve(ScheduledController(self, at // 1000), faults))

    async def _serve(self, controller: ScheduledController, faults: Container[str]) -> None:
        try:
            if "fail" in faults:
                raise JsException("Error", "internal error")
            if not self.script.handles("scheduled"):
                self.no_retry = True
                self.log("warn", _NO_HANDLER)
            await awaited(self.isolate.handler("scheduled", self, self.script)(wrap(controller)))
        except BaseException as error:
            if is_foreign(error):
                raise
            self.error = error
            self.threw(error)
        if "crash_after" in faults:
            self.isolate.worker.crash()

    # -- ends ------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Fix the outcome when all its work is done."""
        self.error = self.background.error if self.error is None else self.error
        if self.error is not None:
            self.fails()
        self._end_as("exception" if self.error is not None else "ok")

    def cut(self) -> None:
        """Its isolate lost power."""
        if self.outcome is None:
            self._end_as("canceled")

    def _exceed(self) -> None:
        self.log("error", f"{self.event} exceeded its wall time of 15 minutes")
        self.fails(CUT_BY_TIME)
        self._end_as(CUT_BY_TIME)
        self.kill()

    def _end_as(self, outcome: str) -> None:
        self._wall_time.cancel()
        self.outcome = outcome
        over, self._over = self._over, _nobody
        over(self)

    def cut_links(self) -> None:
        """Let go of the emulator, which is closed."""
        super().cut_links()
        self._over = _nobody


def _nobody(run: ScheduledRun) -> None:
    """Who is told the outcome where nobody asks."""
