"""Control pages of the server itself: what it runs, its clock, its events.

GET  /cdn-cgi/emulator/status          Workers, time, what keeps the code from running
POST /cdn-cgi/emulator/clock           {"advance": "3 days"}: moves the clock forward
GET  /cdn-cgi/emulator/events          events as they happen, as server-sent events
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from emulator.server.bodies import Json, json_of
from emulator.trace.written import write_datetime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from emulator.server.desk import Desk


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the pages, by the path behind the prefix of control pages."""

    async def status(request: Request) -> Response:
        return Json(_status(desk))

    async def clock(request: Request) -> Response:
        body = await json_of(request)
        asked = body.get("advance") if isinstance(body, dict) else None
        if not isinstance(asked, str | int | float) or isinstance(asked, bool):
            return Json({"error": 'give {"advance": "3 days"}, or a number of seconds'}, 400)
        await desk.emulator.advance(asked)  # raises `DurationError`
        return Json({"now": write_datetime(desk.emulator.now)})

    async def events(request: Request) -> Response:
        last = request.headers.get("last-event-id") or request.query_params.get("since") or ""
        since = int(last) if last.isdigit() else None
        return StreamingResponse(
            _stream(desk, since),
            media_type="text/event-stream",
            headers={"cache-control": "no-store"},
        )

    return [
        Route("/status", status),
        Route("/clock", clock, methods=["POST"]),
        Route("/events", events),
    ]


def _status(desk: Desk) -> dict[str, Any]:
    problem = desk.problem
    shown: dict[str, Any] = {
        "problem": None if problem is None else {"title": problem.title, "text": problem.text},
        "workers": list(desk.routing.workers),
        "routes": {route.pattern: route.worker for route in desk.routing.routes},
        "events": desk.feed.last,
        "clock": desk.options.clock,
    }
    if desk.is_running:
        kernel = desk.platform.kernel
        shown["now"] = write_datetime(desk.emulator.now)
        shown["offset_seconds"] = kernel.clock.offset / 1_000_000
    return shown


async def _stream(desk: Desk, since: int | None) -> AsyncIterator[str]:
    yield ": events of workers-emulator\n\n"
    async for told in desk.feed.follow(since):
        data = json.dumps(told.described(), separators=(",", ":"))
        yield f"id: {told.number}\nevent: {told.event.kind}\ndata: {data}\n\n"
