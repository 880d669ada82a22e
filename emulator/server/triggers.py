"""Handlers that something else than a request calls: `/cdn-cgi/handler/scheduled`.

As in `wrangler dev` (miniflare, `core/scheduled.ts`): `cron` and `time`, in milliseconds, are what
the handler gets; the answer is its outcome, with `format=json` an object, and its status is 500
unless the outcome is `ok`. `worker` names another Worker than the first.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, PlainTextResponse, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from emulator.server.desk import Desk

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER: Final = re.compile(r"\s*[+-]?\d+")


def scheduled(desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that runs a `scheduled` handler."""

    async def endpoint(request: Request) -> Response:
        query = request.query_params
        worker = query.get("worker")
        if worker is not None and worker not in desk.routing.workers:
            known = ", ".join(desk.routing.workers)
            return PlainTextResponse(f"there is no Worker {worker!r}; there are: {known}\n", 404)
        try:
            time = _time(query.get("time"))
        except (ValueError, OverflowError):
            return PlainTextResponse("time is not a number of milliseconds\n", 400)
        outcome, _ = await desk.emulator.scheduled(query.get("cron"), time, worker)
        status = 200 if outcome == "ok" else 500
        if query.get("format") == "json":
            return JSONResponse({"outcome": outcome, "noRetry": False}, status)
        return PlainTextResponse(outcome, status)

    return endpoint


def _time(text: str | None) -> datetime | None:
    """A time as JavaScript's `parseInt` reads it."""
    if not text:
        return None
    number = _NUMBER.match(text)
    if number is None:
        raise ValueError(text)
    return _EPOCH + timedelta(milliseconds=int(number[0]))
