"""The pages under `/cdn-cgi/`, a prefix that Cloudflare reserves.

`/cdn-cgi/handler/scheduled` and `/cdn-cgi/handler/email` are those of `wrangler dev`. Everything
under `/cdn-cgi/emulator/` comes in parts: a part is a module of this package with

    def routes(desk: Desk) -> Sequence[BaseRoute]

whose paths begin behind that prefix (`Route("/events", events)`). It is named in `PARTS`, and
imported at the first request for a control page. Its endpoints are plain Starlette, run on the
server's event loop beside the simulation, and need no locks: they await methods of `desk.emulator`
(or `desk.act`), and what these did is durable when they return. `guard.py` has asked who may come
in before an endpoint is called; errors of the emulator's own become answers here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from emulator.errors import EmulatorClosed, EmulatorError, StateError
from emulator.server.asked import CONTROL
from emulator.server.bodies import Json
from emulator.server.guard import COOKIE, SAFE, Refused, limited
from emulator.server.problem import NotRunning
from emulator.server.triggers import email, scheduled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from emulator.server.desk import Desk
    from emulator.server.guard import Guard

PARTS: Final = (
    "emulator.server.dashboard",
    "emulator.server.rest",
    "emulator.server.status",
    "emulator.server.faults",
)
PREFIX: Final = "/cdn-cgi/emulator"
_REST: Final = f"{PREFIX}/client/"
TRIGGERS: Final = {
    "/cdn-cgi/handler/scheduled": scheduled,
    "/cdn-cgi/mf/scheduled": scheduled,
    "/cdn-cgi/handler/email": email,
}
_UNAVAILABLE: Final = (NotRunning, EmulatorClosed, StateError)


def is_control(path: str) -> bool:
    """Whether a path is the server's own; Workers get all others."""
    return path in TRIGGERS or path == PREFIX or path.startswith(f"{PREFIX}/")


class Control:
    """The control pages of one desk, behind their guard."""

    def __init__(self, desk: Desk, guard: Guard) -> None:
        self._desk = desk
        self._guard = guard
        self._pages: Starlette | None = None

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Answer one HTTP request."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        query = scope.get("query_string", b"").decode("latin-1")
        acts = not scope["path"].startswith(PREFIX)
        try:
            self._guard.check(scope["method"], headers, query, acts=acts)
        except Refused as error:
            await _refusal(scope["path"], error)(scope, receive, send)
            return
        if self._guard.brings_token(query) and scope["method"] == "GET":
            await self._remember(scope, receive, send)
            return
        if self._pages is None:
            self._pages = _pages(self._desk)
        recorder = self._desk.recorder
        if recorder is not None and self._desk.is_running and (acts or scope["method"] not in SAFE):
            watch = await recorder.action(scope, receive, send)
            receive, send = watch.receive, watch.send
        await self._pages(scope, limited(receive), send)

    async def _remember(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a browser's cookie have the token, and its address bar no more."""
        answer = Response(status_code=303, headers={"location": scope["path"]})
        assert self._guard.token is not None
        answer.set_cookie(COOKIE, self._guard.token, httponly=True, samesite="strict", path=CONTROL)
        await answer(scope, receive, send)


def _pages(desk: Desk) -> Starlette:
    parts = [route for name in PARTS for route in import_module(name).routes(desk)]
    triggers = [Route(path, made(desk), methods=["GET", "POST"]) for path, made in TRIGGERS.items()]
    handlers = {Refused: _refused, EmulatorError: _failed}
    return Starlette(
        routes=[*triggers, Mount(PREFIX, routes=parts)],
        exception_handlers=handlers,  # type: ignore[arg-type]
    )


async def _refused(request: Request, error: Refused) -> Response:
    return _refusal(request.url.path, error)


def _refusal(path: str, error: Refused) -> Response:
    """What the guard refuses, in the words of who asked."""
    if path.startswith(_REST):
        from emulator.server.rest.answers import ApiError, failure

        return failure(ApiError(error.status, 10000, str(error)))
    return PlainTextResponse(f"{error}\n", error.status)


async def _failed(request: Request, error: EmulatorError) -> Response:
    return Json({"error": str(error)}, 503 if isinstance(error, _UNAVAILABLE) else 400)
