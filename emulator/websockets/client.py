"""The test as a client of WebSockets: `emulator.websocket("/chat")`."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from emulator.errors import WebSocketClosed, WebSocketRefused
from emulator.pump import Goal
from emulator.runtime.host import NO_CODE, Close, Refused
from emulator.trace import socket_message

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator

    import httpx

    from emulator.kernel import Kernel
    from emulator.runtime.host import Frame
    from emulator.websockets.line import End

# pytest leaves these frames out of a failing test's traceback.
__tracebackhide__ = True

_NORMAL: Final = 1000
# The longest message that Cloudflare takes, in bytes, and the code it closes with otherwise
# (workerd, `api/tests/websocket-client-error-test.js`).
_LARGEST: Final = 32 * 1024 * 1024
_TOO_LARGE: Final = 1009


class WebSocket:
    """A connection to a Worker, from the client's side.

    `messages` are those that have arrived and were not taken yet: text as `str`, binary as `bytes`.
    `response` is the answer that opened the connection, `closed` how it ended: the `Close` that the
    Worker sent, or one that is not `clean`; None while it is open.
    """

    def __init__(
        self, kernel: Kernel, end: End, subject: str, url: str, response: httpx.Response
    ) -> None:
        self.url = url
        self.response = response
        self.closed: Close | None = None
        self.messages: deque[str | bytes] = deque()
        self._kernel = kernel
        self._end = end
        self._subject = subject
        self._left = False
        self._changed: asyncio.Future[None] | None = None
        end.line.name = subject

    async def opened(self) -> WebSocket:
        """Begin to take messages; those that are there have arrived when this returns."""
        await self._act("opened()", lambda: self._end.listen(self._arrived))
        return self

    @property
    def subprotocol(self) -> str | None:
        """The protocol that the Worker chose."""
        chosen: str | None = self.response.headers.get("sec-websocket-protocol")
        return chosen

    async def send(self, message: str | bytes) -> None:
        """Send a message; what it makes due at this instant has run when this returns.

        Raises `WebSocketClosed` on a connection that is closed.
        """
        if not isinstance(message, (str, bytes, bytearray, memoryview)):
            raise TypeError(f"send() takes str or bytes, not {type(message).__name__}")
        self._check_open("send")
        frame = message if isinstance(message, str) else bytes(message)
        await self._act("send()", lambda: self._put(frame))

    async def send_json(self, value: Any) -> None:
        """Send a value as JSON, in a text message."""
        await self.send(json.dumps(value))

    async def receive(self, *, advance: bool = True) -> str | bytes:
        """Return the next message, and wait for one if there is none.

        The clock moves by itself meanwhile, unless told not to. Raises `WebSocketClosed` when the
        connection ends first, and `Stuck` when no message can ever come.
        """
        await self._until(lambda: bool(self.messages), "receive()", advance=advance)
        if not self.messages:
            raise WebSocketClosed("receive()", self.closed)
        return self.messages.popleft()

    async def receive_json(self, *, advance: bool = True) -> Any:
        """Return the next message, which is JSON, as Python."""
        return json.loads(await self.receive(advance=advance))

    async def close(self, code: int = _NORMAL, reason: str = "") -> None:
        """Close the connection; on one that is closed, do nothing."""
        if not (self._left or self.closed is not None):
            self._left = True
            await self._act("close()", lambda: self._put(Close(code, reason)))

    async def disconnect(self) -> None:
        """Break the connection, as a client does that loses its network: without a Close."""
        self._left = True
        if self.closed is None:
            self.closed = Close(1006, clean=False)
        await self._act("disconnect()", self._end.drop)

    async def wait_closed(self) -> Close:
        """Wait for the end of the connection; messages that come before are kept."""
        await self._until(lambda: False, "wait_closed()", advance=True)
        assert self.closed is not None
        return self.closed

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        while True:
            try:
                yield await self.receive()
            except WebSocketClosed:
                return

    async def __aenter__(self) -> WebSocket:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._kernel.loop.is_closed():
            await self.close()

    def __repr__(self) -> str:
        state = "open" if self.closed is None else f"closed with {self.closed.code}"
        return f"<WebSocket to {self.url}, {state}>"

    # -- inside ----------------------------------------------------------------------------------

    def _put(self, frame: str | bytes | Close) -> None:
        size = 0 if isinstance(frame, Close) else _size(frame)
        if size > _LARGEST:
            self._refused(Refused(_TOO_LARGE, f"Message is too large: {size} > {_LARGEST}"))
            return
        if isinstance(frame, Close):
            facts: dict[str, Any] = {"code": frame.code, "reason": frame.reason, "by": "client"}
            self._kernel.record("socket_closed", self._subject, **facts)
        else:
            self._kernel.record("socket_in", self._subject, **socket_message(frame))
        self._end.send_now(frame)

    def _refused(self, refused: Refused) -> None:
        """The runtime takes no such frame: it says so, and the connection is over."""
        self._left, self.closed = True, Close(refused.code, refused.reason)
        facts: dict[str, Any] = {"code": refused.code, "reason": refused.reason, "by": "Worker"}
        self._kernel.record("socket_closed", self._subject, **facts)
        self._end.refuse(refused)

    def _arrived(self, frame: Frame) -> None:
        assert not isinstance(frame, Refused)  # a Worker's own frames are all of them good
        if isinstance(frame, Close):
            self.closed = frame
            facts: dict[str, Any] = {"code": frame.code, "reason": frame.reason, "by": "Worker"}
            self._kernel.record("socket_closed", self._subject, **facts)
            if frame.clean and not self._end.closed:
                self._left = True
                self._end.send_now(Close(frame.code, frame.reason))
        else:
            self._kernel.record("socket_out", self._subject, **socket_message(frame))
            self.messages.append(frame)
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done():
            changed.set_result(None)

    def _check_open(self, call: str) -> None:
        if self._left or self.closed is not None:
            raise WebSocketClosed(f"{call}()", self.closed or Close(NO_CODE))

    async def _act(self, name: str, action: Callable[[], None]) -> None:
        kernel = self._kernel
        done: asyncio.Future[None] = kernel.loop.create_future()

        def act() -> None:
            action()
            done.set_result(None)

        kernel.loop.kernel_soon(act)
        if kernel.pump.inside:
            await done
        else:
            await kernel.pump.reach(Goal(f"WebSocket.{name}", done.done))

    async def _until(self, met: Callable[[], bool], name: str, *, advance: bool) -> None:
        kernel = self._kernel
        if kernel.pump.inside:
            while not (met() or self.closed is not None):
                if self._changed is None:
                    self._changed = kernel.loop.create_future()
                await self._changed
        elif not (met() or self.closed is not None):
            goal = Goal(
                f"WebSocket.{name} from {self.url}",
                lambda: met() or self.closed is not None,
                advance=advance,
            )
            await kernel.pump.reach(goal)


def _size(message: str | bytes) -> int:
    """How many bytes a message has; a text has as many at least as it has letters."""
    if isinstance(message, bytes) or len(message) * 4 <= _LARGEST:
        return len(message)
    return len(message.encode("utf-8", "surrogatepass"))


class Connecting:
    """A connection that is yet to be opened: to be awaited, or used with `async with`."""

    def __init__(self, connect: Callable[[], Awaitable[WebSocket]]) -> None:
        self._connect = connect
        self._socket: WebSocket | None = None

    def __await__(self) -> Generator[Any, None, WebSocket]:
        return self._connect().__await__()

    async def __aenter__(self) -> WebSocket:
        self._socket = await self._connect()
        return self._socket

    async def __aexit__(self, *error: object) -> None:
        if self._socket is not None:
            await self._socket.__aexit__(*error)


def refused(url: str, response: httpx.Response) -> WebSocketRefused:
    """The error of a request for a connection that got another answer."""
    text = response.text[:200]
    return WebSocketRefused(
        f"{url} did not open a WebSocket: the Worker answered {response.status_code}"
        f"{f': {text}' if text else ''}",
        response,
    )
