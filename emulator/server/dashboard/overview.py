"""What the frame of the page shows on every view: the time, what is wrong, how much there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.server.dashboard.endpoints import reads
from emulator.server.dashboard.findings import found_so_far
from emulator.server.dashboard.shown import now_text, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of the frame."""
    return [reads(desk, "/overview", _overview)]


def _overview(desk: Desk, asked: Asked) -> Answer:
    problem = desk.problem
    shown: Answer = {
        "running": desk.is_running,
        "problem": None if problem is None else {"title": problem.title, "text": problem.text},
        "workers": list(desk.routing.workers),
        "real": desk.options.clock == "real",
        "last": desk.feed.last,
    }
    if not desk.is_running:
        return shown
    kernel = desk.platform.kernel
    if problem is not None:
        shown["problem"]["text"] = text_of(problem.text, kernel.trace.masker)
    shown |= {
        "now": now_text(desk),
        "offset": kernel.clock.offset / 1_000_000,
        "counts": _counts(desk),
    }
    return shown


def _counts(desk: Desk) -> dict[str, Any]:
    emulator, platform = desk.emulator, desk.platform
    engine = platform.workflows.engine
    failed = [task for task in platform.kernel.background if task.state in ("failed", "lost")]
    return {
        "queues": platform.queues.stored,
        "workflows": sum(len(engine.instances(name)) for name in emulator.workflows),
        "objects": sum(len(one.objects) for one in emulator.durable_objects.values()),
        "requests": len(failed),
        "findings": len(found_so_far(desk)),
        "faults": len(emulator.faults.plan),
    }
