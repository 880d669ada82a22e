"""The view of the trace: the latest events as the chart of `Trace.to_html`, in a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

from emulator.server.dashboard.endpoints import FOLDER, Asked, Wrong, as_json, reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from emulator.server.dashboard.endpoints import Answer
    from emulator.server.desk import Desk

_USUAL: Final = 2_000
_MOST: Final = 20_000
# Beside the policy in the page, which names its script and its style.
_HEADERS: Final = {
    "content-security-policy": "frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of the trace."""

    async def page(request: Request) -> Response:
        try:
            last = Asked(request.query_params).number("last", _USUAL, most=_MOST)
        except Wrong as error:
            return as_json({"error": str(error)}, 400)
        html = desk.platform.kernel.trace.to_page(last=last)
        return Response(html.encode(), media_type="text/html; charset=utf-8", headers=_HEADERS)

    return [reads(desk, "/trace", _trace), Route(f"{FOLDER}/trace/page", page)]


def _trace(desk: Desk, asked: Asked) -> Answer:
    return {"last": desk.feed.last, "kept": len(desk.platform.kernel.trace)}
