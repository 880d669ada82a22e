"""Runs of the `scheduled` handler.

A run, its background work included, may take 15 minutes (docs: Workers limits, "Cron Triggers");
what it gives to `waitUntil` has no limit of its own, and its failure is the run's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.clock import MICROSECONDS, instant
from emulator.foreign import is_foreign
from emulator.invocation import Invocation
from emulator.location import format_error
from emulator.runtime.proxies import wrap
from emulator.values import UNDEFINED, HostObject

if TYPE_CHECKING:
    from datetime import datetime

    from emulator.isolate import Isolate, Worker
    from emulator.kernel import Kernel
_WALL_TIME = 15 * 60 * MICROSECONDS


class Trigger(NamedTuple):
    """A cron expression, and the instant it fires for."""

    cron: str
    at: int


class ScheduledController(HostObject):
    """What a `scheduled` handler gets: `cron`, and `scheduledTime` in milliseconds."""

    js_class = "ScheduledController"
    js_members = frozenset({"cron", "scheduledTime", "noRetry"})

    def __init__(self, cron: str, scheduled: int) -> None:
        self.cron = cron
        self.scheduledTime = scheduled

    def noRetry(self, *_: Any) -> object:
        """Accepted, as in production."""
        return UNDEFINED


class ScheduledRun(Invocation):
    """One run of a `scheduled` handler; `outcome` is None until it ended."""

    def __init__(self, isolate: Isolate, cron: str) -> None:
        super().__init__(isolate, f"scheduled {cron}".rstrip())
        self.limit = None
        self._wall_time = self.kernel.loop.kernel_at(
            self.kernel.now + _WALL_TIME, self._exceed, owner="a cron run's wall time"
        )
        self.outcome: str | None = None
        self.error: BaseException | None = None

    def finish(self) -> None:
        """Fix the outcome when all its work is done."""
        self._wall_time.cancel()
        self.error = self.background.error if self.error is None else self.error
        self.outcome = "exception" if self.error is not None else "ok"

    def cut(self) -> None:
        """Its isolate lost power, or its time is over."""
        self._wall_time.cancel()
        self.outcome = "canceled"

    def _exceed(self) -> None:
        self.log("error", f"{self.event} exceeded its wall time of 15 minutes")
        self.kill()


class Cron:
    """Dispatches `scheduled` events."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def trigger(self, worker: Worker, cron: str | None, time: datetime | None) -> Trigger:
        """The trigger that is meant: without `cron` the Worker's first one, without `time` now.

        Raises `ValueError` for a `time` without a time zone.
        """
        if time is not None and time.tzinfo is None:
            raise ValueError(f"time is {time!r}, which has no time zone; give an aware datetime")
        known = (
            *worker.config.crons,
            *(cron for workflow in worker.config.workflows for cron in workflow.schedules),
        )
        text = cron if cron is not None else (known[0] if known else "")
        return Trigger(text, instant(time) if time is not None else self._kernel.now)

    def dispatch(self, worker: Worker, trigger: Trigger) -> ScheduledRun:
        """Start a run; raises `WorkerLoadError` for code that cannot be loaded."""
        run = ScheduledRun(worker.isolate, trigger.cron)
        run.on_end, run.on_killed = run.finish, run.cut
        self._kernel.record("scheduled", run.subject, cron=trigger.cron)
        run.start(self._run(run, ScheduledController(trigger.cron, trigger.at // 1000)))
        return run

    async def _run(self, run: ScheduledRun, controller: ScheduledController) -> None:
        try:
            result = run.isolate.handler("scheduled", run)(wrap(controller))
            if hasattr(result, "__await__"):
                await result
        except BaseException as error:
            if is_foreign(error):
                raise
            run.error = error
            run.log("error", format_error(error, run.isolate.worker.folder))
