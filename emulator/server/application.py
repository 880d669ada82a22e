"""The whole server as one ASGI application: control pages, and Workers for all other paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.server.asked import CONTROL
from emulator.server.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.server.control import Control
    from emulator.server.desk import Desk
    from emulator.server.guard import Guard


class Application:
    """What uvicorn serves."""

    def __init__(self, desk: Desk, guard: Guard) -> None:
        self.desk = desk
        self.gateway = Gateway(desk)
        self._guard = guard
        self._control: Control | None = None

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Answer one request, or serve one WebSocket connection."""
        if scope["type"] == "websocket":
            from emulator.server.sockets import Sockets

            await Sockets(self.desk)(scope, receive, send)
            return
        path: str = scope["path"]
        if path.startswith(CONTROL):
            from emulator.server.control import Control, is_control

            if is_control(path):
                if self._control is None:
                    self._control = Control(self.desk, self._guard)
                await self._control(scope, receive, send)
                return
        await self.gateway(scope, receive, send)
