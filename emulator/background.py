"""Work given to `waitUntil`.

Theory of operation. An invocation's `Background` is the work that goes on after its answer. With
the answer the limit begins to count; work whose time comes in the very microsecond of the limit is
still done, and what is pending when that instant is over is cancelled. A power cut, or the end of
the emulator, loses it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from emulator.clock import MICROSECONDS, moment
from emulator.location import Location, caller

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from datetime import datetime

    from emulator.invocation import Invocation
    from emulator.loop import Timer

State = Literal["pending", "done", "failed", "cancelled", "lost"]

# How long background work may go on after the answer (docs: Workers limits, "waitUntil").
LIMIT = 30 * MICROSECONDS
# What the runtime then says (workerd, `io-context.c++`).
_TIMED_OUT = (
    "waitUntil() tasks did not complete within the allowed time after invocation end and have been "
    "cancelled. See: https://developers.cloudflare.com/workers/runtime-apis/context/#waituntil"
)


@dataclass(slots=True)
class BackgroundTask:
    """One task given to `waitUntil`, as `emulator.background` lists it.

    `event` is the invocation it belongs to (`fetch POST /signup`), `created` the virtual time and
    `location` the line (`src/entry.py:12`) of the call; `error` is the exception of a failed one.
    `cancelled` is one whose 30 s ran out, or that cancelled itself; `lost` one that a crash, or the
    end of the emulator, cut off.
    """

    worker: str
    event: str
    created: datetime
    location: str
    state: State = "pending"
    error: BaseException | None = None


class Background:
    """The background work of one invocation."""

    # As it is where there is none.
    _pending = 0
    _limit: Timer | None = None
    # The first failure, and whether the limit has passed.
    error: BaseException | None = None
    out_of_time = False

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._given: list[tuple[BackgroundTask, asyncio.Future[Any], Location | None]] = []

    @property
    def pending(self) -> bool:
        """Whether there is work that has not ended."""
        return self._pending > 0

    def add(self, work: Awaitable[Any]) -> None:
        """Take work, and tell the invocation when all of it has ended."""
        owner = self._invocation
        kernel = owner.kernel
        where = caller()
        record = BackgroundTask(owner.worker, owner.event, moment(kernel.now), owner.place(where))
        kernel.background.append(record)
        kernel.record("wait_until", owner.subject, location=record.location)
        task = self._as_task(work)
        self._given.append((record, task, where))
        self._pending += 1
        task.add_done_callback(lambda done: self._ended(record, done))

    def place_of(self, record: BackgroundTask) -> Location | None:
        """The line on which this work was given."""
        return next((where for given, _, where in self._given if given is record), None)

    def _as_task(self, work: Awaitable[Any]) -> asyncio.Future[Any]:
        loop = self._invocation.kernel.loop
        if isinstance(work, asyncio.Future) and work.get_loop() is loop:
            return work
        return loop.create_task(_as_coroutine(work))

    def _ended(self, record: BackgroundTask, task: asyncio.Future[Any]) -> None:
        owner = self._invocation
        self._pending -= 1
        if record.state == "pending":
            record.state, record.error = _outcome(task)
            if record.error is not None:
                self.error = record.error if self.error is None else self.error
                owner.threw(record.error)
                owner.on_background_error(record, record.error)
        owner.end_if_idle()

    # -- its time --------------------------------------------------------------------------------

    def start_limit(self, limit: int) -> None:
        """Begin to count: what is still pending after `limit` is cancelled."""
        owner = self._invocation
        self._limit = owner.kernel.loop.kernel_at(
            owner.kernel.now + limit,
            lambda: owner.at_end_of_instant(self._time_out),
            owner="the limit of waitUntil",
        )

    def _time_out(self) -> None:
        owner = self._invocation
        if owner.ended or owner.dead:
            return
        self.out_of_time = True
        late = [given for given in self._given if not given[1].done()]
        if late:
            owner.log("warn", _TIMED_OUT)
        for record, task, where in late:
            record.state = "cancelled"
            owner.find(
                "wait_until_cancelled",
                f"a task given to waitUntil at {record.location} was cancelled 30 s after the "
                "response",
                getattr(task, "created", None) or where,
            )
            task.cancel()
        # A task may refuse to be cancelled; the invocation ends all the same.
        owner.at_end_of_instant(owner.end)

    def stop(self) -> None:
        """The invocation has ended; time counts no more."""
        if self._limit is not None:
            self._limit.cancel()

    def release(self) -> None:
        """Let go of the invocation, which is over, unless there is work that will tell it more."""
        if not self._given:
            del self._invocation

    def lose(self) -> None:
        """The power is cut: what is pending will never end."""
        self.stop()
        owner = self._invocation
        for record, task, _ in self._given:
            if record.state != "pending":
                continue
            if task.done():
                record.state, record.error = _outcome(task)
            else:
                record.state = "lost"
                owner.kernel.record("lost", owner.subject, location=record.location)

    def cut_links(self) -> None:
        """Let go of the tasks, and of what they refer to."""
        self._given.clear()
        self._limit = None


async def _as_coroutine(work: Awaitable[Any]) -> Any:
    return await work


def _outcome(task: asyncio.Future[Any]) -> tuple[State, BaseException | None]:
    if task.cancelled():
        return "cancelled", None
    error = task.exception()
    return ("failed" if error is not None else "done"), error
