"""Cron triggers: runs of the `scheduled` handler, and what makes them.

1. Where virtual time passes a trigger's instant it fires, for the handler and for the Workflows
   that have this cron among their `schedules`. No call waits for it: its timer is passive. The
   local runtime never fires one.
2. Nobody repeats a run that failed.
3. At the site `cron.<worker>` a run may be missed, come twice, fail before its first line, or lose
   its power.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from emulator.clock import instant, moment
from emulator.cron_dialect import parse
from emulator.errors import WorkerLoadError
from emulator.faults.sites import site_name
from emulator.logs import Log
from emulator.scheduled import ScheduledRun

if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from datetime import datetime

    from emulator.cron_dialect import CronTimes
    from emulator.isolate import Worker
    from emulator.kernel import Kernel
    from emulator.loop import Timer
    from emulator.workflows.service import Workflows


class Trigger(NamedTuple):
    """A cron expression, and the instant it fires for."""

    cron: str
    at: int


class Cron:
    """Fires cron triggers, and dispatches `scheduled` events."""

    def __init__(self, kernel: Kernel, workflows: Workflows) -> None:
        self._kernel = kernel
        self._workflows = workflows
        # The next firing of each trigger.
        self._timers: dict[tuple[str, str], Timer] = {}

    def arm(self, workers: Iterable[Worker]) -> None:
        """Let the triggers of these Workers fire from now on."""
        self.disarm()
        if self._kernel.profile == "miniflare":
            return
        for worker in workers:
            for cron in triggers_of(worker):
                self._arm(worker, cron, parse(cron))

    def disarm(self) -> None:
        """Let none fire."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _arm(self, worker: Worker, cron: str, times: CronTimes) -> None:
        due = times.after(moment(self._kernel.now))
        if due is None:
            self._timers.pop((worker.name, cron), None)
            return

        def fire() -> None:
            self._arm(worker, cron, times)
            self._fire(worker, Trigger(cron, instant(due)))

        self._timers[worker.name, cron] = self._kernel.loop.kernel_at(
            instant(due), fire, owner=f"the cron {cron} of {worker.name}", passive=True
        )

    def _fire(self, worker: Worker, trigger: Trigger) -> None:
        self._workflows.fire(worker, *trigger)
        if trigger.cron not in worker.config.crons:
            return
        try:
            self.dispatch(worker, trigger)
        except WorkerLoadError as error:
            subject = f"scheduled {trigger.cron}"
            self._kernel.record("log", subject, level="error", text=str(error))
            self._kernel.logs.append(
                Log(moment(self._kernel.now), worker.name, "error", str(error))
            )

    def trigger(self, worker: Worker, cron: str | None, time: datetime | None) -> Trigger:
        """The trigger that is meant: without `cron` the Worker's first one, without `time` now.

        Raises `ValueError` for a `time` without a time zone.
        """
        if time is not None and time.tzinfo is None:
            raise ValueError(f"time is {time!r}, which has no time zone; give an aware datetime")
        known = triggers_of(worker)
        text = cron if cron is not None else (known[0] if known else "")
        return Trigger(text, instant(time) if time is not None else self._kernel.now)

    def dispatch(self, worker: Worker, trigger: Trigger) -> ScheduledRun:
        """Start a run; raises `WorkerLoadError` for code that cannot be loaded."""
        faults = self._kernel.faults.meet(site_name("cron", worker.name))
        for fault in faults:
            if fault.action == "duplicate":
                self._kernel.loop.kernel_at(
                    self._kernel.now + (fault.argument or 0),
                    lambda: self._start(worker, trigger, (), struck=True),
                    owner=f"the second run of the cron {trigger.cron}",
                )
        actions = tuple(fault.action for fault in faults)
        return self._start(worker, trigger, actions, struck=bool(faults))

    def _start(
        self, worker: Worker, trigger: Trigger, faults: Container[str], *, struck: bool
    ) -> ScheduledRun:
        run = ScheduledRun(worker.isolate, trigger.cron)
        run.struck = struck
        if "miss" in faults:
            self._kernel.record("lost", run.subject, cron=trigger.cron)
            run.cut()
            return run
        self._kernel.record("scheduled", run.subject, cron=trigger.cron)
        if "crash_before" in faults:
            worker.crash()
            run.cut()
            return run
        run.begin(trigger.at, faults)
        return run


def triggers_of(worker: Worker) -> list[str]:
    """The crons of a Worker and of its Workflows, each once, in the config's order."""
    config = worker.config
    of_workflows = (
        cron
        for workflow in config.workflows
        for cron in workflow.schedules
        if workflow.script == worker.name
    )
    return list(dict.fromkeys((*config.crons, *of_workflows)))
