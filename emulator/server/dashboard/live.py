"""Telling the page that something happened: at most some times a second, whatever happens.

    event: change
    data: {"last": 1234, "running": true}

`last` is the number of the latest event of the feed. Without news it is said again now and then,
as what keeps the code from running is no event.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from emulator.server.dashboard.endpoints import FOLDER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from emulator.server.desk import Desk

_TOGETHER: Final = 0.2  # seconds in which events are told as one change
_SILENCE: Final = 5.0


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the stream of changes."""

    async def changes(request: Request) -> Response:
        headers = {"cache-control": "no-store"}
        return StreamingResponse(stream(desk), media_type="text/event-stream", headers=headers)

    return [Route(f"{FOLDER}/changes", changes)]


async def stream(
    desk: Desk, *, together: float = _TOGETHER, silence: float = _SILENCE
) -> AsyncIterator[str]:
    """Yield changes as server-sent events, until the server ends."""
    last = desk.feed.last
    yield _change(desk)
    while True:
        try:
            async with asyncio.timeout(silence):
                if not await _something(desk, last):
                    return
        except TimeoutError:
            pass
        else:
            await asyncio.sleep(together)
        last = desk.feed.last
        yield _change(desk)


async def _something(desk: Desk, last: int) -> bool:
    """Wait for an event after this one; false when the server ends."""
    following: Any = desk.feed.follow(last)
    try:
        async for _ in following:
            return True
        return False
    finally:
        await following.aclose()


def _change(desk: Desk) -> str:
    data = {"last": desk.feed.last, "running": desk.is_running, "problem": bool(desk.problem)}
    return f"event: change\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"
