"""Runs the alarms of all objects when they are due; what becomes of them is `alarms.py`'s."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from emulator.bindings import calls
from emulator.clock import moment
from emulator.durations import MINUTE
from emulator.errors import Stuck, WorkerLoadError
from emulator.faults.sites import site_name
from emulator.findings import Finding
from emulator.objects import alarms, texts
from emulator.objects.context import AlarmInvocationInfo
from emulator.objects.event import Event, Outcome
from emulator.values import JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from emulator.loop import Timer
    from emulator.objects.live import LiveObject
    from emulator.objects.service import Objects
    from emulator.objects.space import Space
    from emulator.objects.stored import Alarm, Stored

# How often one object's alarm runs in one `settle()`.
MOST_RUNS: Final = 100
# Runs of one object's alarm at one instant, without a call from outside: far more than an alarm
# makes that does not set itself to now for ever.
_MOST_AT_ONCE: Final = 10_000
# How long one run may take (docs: Durable Objects limits).
_WALL_TIME: Final = 15 * MINUTE


class AlarmClock:
    """The alarms of one emulator."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._kernel = objects.kernel
        self._timers: dict[tuple[str, str], Timer] = {}
        self._runs: dict[tuple[str, str], int] = {}
        self._settling = False
        self._at_once: dict[tuple[str, str], tuple[tuple[int, int], int]] = {}
        self._copies: list[Timer] = []
        self._held: dict[tuple[str, str], tuple[Space, Stored]] = {}
        # Who waits for a run that a test asked for.
        self._waiting: dict[tuple[str, str], list[asyncio.Future[None]]] = {}

    def arm(self, space: Space, stored: Stored) -> None:
        """See to it that an alarm runs when it is due, and not while one runs."""
        key = space.key, stored.id
        timer = self._timers.pop(key, None)
        self._held.pop(key, None)
        if timer is not None:
            timer.cancel()
        alarm = stored.alarm
        if alarm is None or stored.running is not None:
            return
        if self._settling and self._runs.get(key, 0) >= MOST_RUNS:
            self._held[key] = space, stored
            return
        self._timers[key] = self._kernel.loop.kernel_at(
            max(alarm.due, self._kernel.now),
            partial(self.run, space, stored),
            owner=f"the alarm of {space.subject(stored)}",
        )

    @contextmanager
    def settling(self) -> Iterator[None]:
        """While it lasts, each alarm runs so many times at most; what is left goes on after it."""
        self._runs.clear()
        self._settling = True
        try:
            yield
        finally:
            self._settling = False
            for space, stored in list(self._held.values()):
                self.arm(space, stored)

    def clear(self) -> None:
        """Forget all alarms."""
        for timer in self._timers.values():
            timer.cancel()
        for copy in self._copies:
            copy.cancel()
        self._copies.clear()
        self._timers.clear()
        self._held.clear()
        self._at_once.clear()
        self._waiting.clear()

    # -- runs ------------------------------------------------------------------------------------

    def run_now(self, space: Space, stored: Stored) -> asyncio.Future[None]:
        """Run an alarm before it is due; the future is done when the run is over."""
        over: asyncio.Future[None] = self._kernel.loop.create_future()
        self._waiting.setdefault((space.key, stored.id), []).append(over)
        if stored.running is None:
            self.run(space, stored)
        return over

    def run(self, space: Space, stored: Stored) -> None:
        """Run an alarm."""
        key, alarm = (space.key, stored.id), stored.alarm
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if alarm is None:
            return
        self._runs[key] = self._runs.get(key, 0) + 1
        self._count_at_once(key, space, stored)
        stored.running = alarm
        run = _Run(self, space, stored, alarm)
        faults = self._kernel.faults.meet(site_name("alarm", space.label), retried=True)
        run.struck = bool(faults)
        for fault in faults:
            if fault.action == "duplicate":
                run.copy = fault.argument or 0
            else:
                run.ending = fault.action
        run.begin()

    def _count_at_once(self, key: tuple[str, str], space: Space, stored: Stored) -> None:
        """Abort the simulation where an alarm sets itself to now again and again."""
        present = self._kernel.now, self._kernel.pump.calls
        at, count = self._at_once.get(key, (present, 0))
        count = count % _MOST_AT_ONCE + 1 if at == present else 1
        self._at_once[key] = present, count
        if count == _MOST_AT_ONCE:
            text = (
                f"the alarm of {space.subject(stored)} ran {count:,} times at one instant. No time "
                "passes in between, so this never ends: let it set itself to a later time than now"
            )
            self._kernel.loop.abort(Stuck(text))

    def again(self, space: Space, stored: Stored, alarm: Alarm, delay: int) -> None:
        """Run an alarm once more, although it ended well: nobody knew."""
        timer = self._kernel.loop.kernel_at(
            self._kernel.now + delay,
            lambda: _Run(self, space, stored, alarm, is_copy=True).begin(),
            owner=f"the alarm of {space.subject(stored)}, once more",
        )
        self._copies.append(timer)

    def ended(self, space: Space, stored: Stored) -> None:
        """A run is over, and what comes next is known."""
        self.arm(space, stored)
        for over in self._waiting.pop((space.key, stored.id), ()):
            calls.resolve(over, None)

    def missing(self, live: LiveObject, name: str) -> None:
        """Tell of a class that has an alarm and no handler."""
        text = f"{live.space.class_name} has an alarm but no {name}(); production cannot run it"
        live.scope.find("missing_handler", text, None)


class _Run:
    """One run of an alarm."""

    __slots__ = (
        *("_alarm", "_clock", "_is_copy", "_live", "_space", "_stored", "_wall_time"),
        *("copy", "ending", "struck"),
    )

    def __init__(
        self,
        clock: AlarmClock,
        space: Space,
        stored: Stored,
        alarm: Alarm,
        *,
        is_copy: bool = False,
    ) -> None:
        self._clock = clock
        self._space = space
        self._stored = stored
        self._alarm = alarm
        self._is_copy = is_copy
        self._live: LiveObject | None = None
        self._wall_time: Timer | None = None
        self.copy: int | None = None
        self.ending = ""
        self.struck = False

    def begin(self) -> None:
        """Start the handler, unless a fault forbids it."""
        alarm, stored, space = self._alarm, self._stored, self._space
        kernel = self._clock._kernel
        subject = space.subject(stored)
        kernel.record("alarm", subject, set_for=moment(alarm.time), retry=alarm.retries)
        if self.ending == "fail":
            self._take(Outcome(error=JsException("Error", "internal error")))
            return
        if self.ending == "crash_before":
            live = space.live.get(stored.id)
            if live is not None:
                live.crash()
            else:
                kernel.record("crash", subject)
            self._take(Outcome(lost=True))
            return
        try:
            self._live = live = self._clock._objects.live(space, space.id_of(stored))
        except WorkerLoadError as error:
            self._take(Outcome(error=JsException("Error", str(error))))
            return
        event = Event("alarm", self._take, repeats=True)
        event.struck = self.struck
        self._wall_time = kernel.loop.kernel_at(
            kernel.now + _WALL_TIME, self._exceed, owner=f"{subject}: an alarm's wall time"
        )
        info = AlarmInvocationInfo(alarm.retries, alarm.time // 1_000)
        live.begin(event, live.alarm(event, info))

    def _exceed(self) -> None:
        if self._live is not None:
            self._live.reset(JsException("Error", texts.ALARM_TOO_LONG), overloaded=True)

    def _take(self, outcome: Outcome) -> None:
        """The run is over."""
        if self._wall_time is not None:
            self._wall_time.cancel()
        live = self._live
        if self.ending == "crash_after" and live is not None and not outcome.lost:
            outcome = Outcome(lost=True)
            self._settle(outcome)
            live.crash()
            return
        if outcome.error is not None and not outcome.lost and live is not None:
            live.scope.log("error", str(outcome.error))
        self._settle(outcome)

    def _settle(self, outcome: Outcome) -> None:
        clock, space, stored = self._clock, self._space, self._stored
        if self._is_copy:
            self._record("alarm_done" if outcome.error is None else "alarm_failed")
            return
        decided = alarms.is_decided(stored)
        stored.running = None
        if outcome.lost:
            self._put_off(decided=decided)
        elif outcome.error is not None:
            self._failed(outcome.error, decided=decided)
        else:
            self._record("alarm_done")
            if not decided:
                clock._objects.put_alarm(space, stored, None)
            if self.copy is not None:
                clock.again(space, stored, self._alarm, self.copy)
        clock.ended(space, stored)

    def _put_off(self, *, decided: bool) -> None:
        self._record("alarm_lost")
        if not decided:
            later = alarms.put_off(self._alarm, self._clock._kernel.now)
            self._clock._objects.put_alarm(self._space, self._stored, later)

    def _failed(self, error: JsException, *, decided: bool) -> None:
        objects, now = self._clock._objects, self._clock._kernel.now
        later = None if decided else alarms.retried(self._alarm, now)
        if later is not None:
            self._record("alarm_retry", due=moment(later.due))
        else:
            self._record("alarm_failed")
        if decided:
            return
        objects.put_alarm(self._space, self._stored, later)
        if later is None:
            self._dropped(error)

    def _dropped(self, error: JsException) -> None:
        kernel, space = self._clock._kernel, self._space
        last = error.message.strip().splitlines()[-1]
        text = f"the alarm failed {self._alarm.retries + 1} times and is not tried again: {last}"
        subject = space.subject(self._stored)
        if not self.struck:
            now = moment(kernel.now)
            kernel.findings.add(
                Finding("alarm_dropped", text, now, None, space.worker.name, subject)
            )

    def _record(self, kind: str, **facts: object) -> None:
        self._clock._kernel.record(kind, self._space.subject(self._stored), **facts)
