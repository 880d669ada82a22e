"""The view of the clock: now, and what falls due next; and moving it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from emulator.durations import describe
from emulator.server.dashboard.endpoints import Wrong, acts, reads
from emulator.server.dashboard.shown import now_text, text_of, time_text
from emulator.timers import describe as describe_timer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.handles import Timer
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of the clock."""
    return [
        reads(desk, "/clock", _clock),
        acts(desk, "/clock/advance", _advance),
        acts(desk, "/clock/next", _next),
    ]


def _clock(desk: Desk, asked: Asked) -> Answer:
    kernel = desk.platform.kernel
    first, rows = asked.part()
    timers = kernel.loop.timers
    return {
        "now": now_text(desk),
        "real": desk.options.clock == "real",
        "offset": kernel.clock.offset / 1_000_000,
        "total": len(timers),
        "timers": [_timer(desk, timer) for timer in timers[first : first + rows]],
    }


def _timer(desk: Desk, timer: Timer) -> Answer:
    kernel = desk.platform.kernel
    pending = describe_timer(timer)
    return {
        "due": time_text(timer.due),
        "in": describe(max(timer.due - kernel.now, 0)),
        "owner": text_of(pending.owner, kernel.trace.masker, most=1_000),
        "location": pending.location,
        "passive": timer.passive,
    }


async def _advance(desk: Desk, asked: Asked) -> Answer:
    await desk.emulator.advance(asked.text("duration"))  # raises `DurationError`
    return {"now": now_text(desk)}


async def _next(desk: Desk, asked: Asked) -> Answer:
    """Move the clock to what falls due next, and let it run."""
    kernel = desk.platform.kernel
    timers = kernel.loop.timers
    if not timers:
        raise Wrong("nothing is pending: no timer, no delayed message, no cron")
    await desk.emulator.advance(timedelta(microseconds=max(timers[0].due - kernel.now, 0)))
    return {"now": now_text(desk)}
