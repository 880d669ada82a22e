"""The process of a server: its socket, its signals, and its end.

The first Ctrl-C (or SIGTERM) stops taking connections and lets what is in flight finish, for some
seconds; then it is told what remains. Where a Worker spins it is told at once where.
The second one ends the process at once. In both cases what
is durable stays as it is, and the next start goes on from there.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from emulator.server.connections import Connection
from emulator.server.spinning import Watchdog, held_up_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from emulator.server.application import Application

_BACKLOG: Final = 2048
# Longer ones than Cloudflare takes arrive, so that Workers see what they see there.
_MOST_SOCKET_BYTES: Final = 2 * 33_554_432
_LOOK: Final = 0.02
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class _Unexpected(logging.Handler):
    """Tells of exceptions of the server's own code; of broken connections uvicorn need not tell."""

    def __init__(self, application: Application, say: Callable[[str], None]) -> None:
        super().__init__()
        self._application = application
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not KeyboardInterrupt:
            self._say(self._application.desk.masker()(self.format(record)))


# What can be done about an error of `bind`, by its number; all that is not here is a bad host.
_WAYS_OUT: Final = {
    errno.EADDRINUSE: "another server runs there: stop it, or choose another port with --port "
    "(0 takes a free one)",
    errno.EACCES: "this port is not for everybody: choose one above 1023 with --port",
}
_BAD_HOST: Final = "give an address of this machine with --host, such as 127.0.0.1 or 0.0.0.0"


class CannotListen(Exception):
    """The address cannot be listened on; the text says why, and what to do."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises `CannotListen`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, or asyncio would not turn Nagle's algorithm off: 40 ms a request.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        made.close()
        # A name that is not found has numbers of its own.
        number = 0 if isinstance(error, socket.gaierror) else getattr(error, "errno", 0)
        way_out = _WAYS_OUT.get(number, _BAD_HOST)
        why = getattr(error, "strerror", None) or error
        raise CannotListen(f"cannot listen on {host}:{port}: {why}; {way_out}") from None
    made.setblocking(False)
    return made


class Server(uvicorn.Server):
    """A uvicorn server whose signals and end are ours."""

    def __init__(
        self, application: Application, say: Callable[[str], None], *, drain: float
    ) -> None:
        config = uvicorn.Config(
            application,
            http=Connection,
            loop="asyncio",
            lifespan="off",
            ws="websockets-sansio",
            ws_max_size=_MOST_SOCKET_BYTES,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=max(1, round(drain)),
        )
        super().__init__(config)
        self._application = application
        self._say = say
        self._drain = drain
        self._stopping: asyncio.Event | None = None
        self._at_once = False

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals by ourselves; uvicorn would send them again when it is done."""
        loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        before = [(number, signal.signal(number, self._told(loop))) for number in _SIGNALS]
        log, unexpected = logging.getLogger("uvicorn"), _Unexpected(self._application, self._say)
        propagates, log.propagate = log.propagate, False
        log.addHandler(unexpected)
        try:
            with Watchdog(loop, self._say).watching():
                yield
        finally:
            log.removeHandler(unexpected)
            log.propagate = propagates
            for number, handler in before:
                signal.signal(number, handler)

    def _told(self, loop: asyncio.AbstractEventLoop) -> Any:
        def stop(number: int, frame: FrameType | None) -> None:
            for other in _SIGNALS:
                signal.signal(other, self._told_again)
            loop.call_soon_threadsafe(self._stop)
            why = held_up_by(frame)
            if why is not None:
                with suppress(RuntimeError):  # something is just being written
                    self._say(f"{why}, and is waited for; Ctrl-C again to end now")

        return stop

    def _told_again(self, number: int, frame: FrameType | None) -> None:
        self._at_once = True
        for other in _SIGNALS:
            signal.signal(other, signal.SIG_DFL)
        # What spins never gives way: this raises where it stands.
        if held_up_by(frame) is not None:
            raise KeyboardInterrupt

    def _stop(self) -> None:
        assert self._stopping is not None
        self._stopping.set()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, wait for what is in flight, say what remains."""
        for listening in self.servers:
            listening.close()
        for sock in sockets or ():
            sock.close()
        await self._finish()
        self._application.desk.feed.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)
        for connection in list(self.server_state.connections):
            transport: Any = getattr(connection, "transport", None)
            if transport is not None:
                transport.close()

    async def _finish(self) -> None:
        """Wait for requests and batches on their way, as long as allowed."""
        if self._at_once:
            return
        desk = self._application.desk
        loop = asyncio.get_running_loop()
        end = loop.time() + self._drain
        if desk.open or desk.in_flight:
            self._say(
                f"waiting up to {self._drain:g} s for what is in flight; Ctrl-C again to end now"
            )
        # Nothing tells when all of it is over.
        while (desk.open or desk.in_flight) and loop.time() < end and not self._at_once:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK)
        for line in (*desk.open.values(), *desk.in_flight):
            self._say(f"cut off: {line}")
