"""`urllib.request` in Worker code.

Production has sockets for it in the runtime that a `compatibility_date` from 2026-09-08 gives, and
then each hop of a redirect is a request of its own. Older runtimes have none: the socket is refused
there, as everywhere in the simulation.
"""

from __future__ import annotations

import functools
import http.client
import io
from typing import TYPE_CHECKING, Any
from urllib.error import URLError

from emulator.bindings.blocking import SyncBody, as_bytes, wait_at_most
from emulator.bindings.decoded import OF_TRANSFER
from emulator.runtime.host import WebRequest
from emulator.runtime.profile import generation
from emulator.runtime.run_sync import can_run_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from emulator.invocation import Invocation


def teach(
    sending: Callable[[], Invocation | None], module: ModuleType
) -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Yield what is to be replaced in `urllib.request`: owner, name, how."""
    yield module.AbstractHTTPHandler, "do_open", functools.partial(_do_open, sending)


def _do_open(sending: Callable[[], Invocation | None], usual: Any) -> Any:
    @functools.wraps(usual)
    def do_open(self: Any, http_class: Any, req: Any, **options: Any) -> Any:
        sender = sending()
        if sender is None or generation() < 314 or not can_run_sync():
            return usual(self, http_class, req, **options)
        return _open(sender, req)

    return do_open


def _open(sender: Invocation, req: Any) -> http.client.HTTPResponse:
    headers = {**req.headers, **req.unredirected_hdrs}
    pairs = tuple((name.lower(), str(value)) for name, value in headers.items())
    request = WebRequest(
        req.get_method(), req.full_url.partition("#")[0], pairs, as_bytes(req.data), "manual"
    )
    seconds = req.timeout if isinstance(req.timeout, (int, float)) else None
    try:
        answer = wait_at_most(sender.fetch(request), seconds)
    except TimeoutError as error:
        raise URLError(TimeoutError("timed out")) from error
    except OSError as error:
        raise URLError(error) from error
    head = f"HTTP/1.1 {answer.status} {answer.status_text}\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in answer.headers if name not in OF_TRANSFER
    )
    socket: Any = _Socket(f"{head}connection: close\r\n\r\n".encode("latin-1"), answer, seconds)
    response = http.client.HTTPResponse(socket, method=req.get_method())
    response.begin()
    response.url = req.full_url
    response.msg = response.reason  # type: ignore[assignment]  # what `urlopen` has there
    return response


class _Socket:
    """As much of a socket as `http.client.HTTPResponse` asks for."""

    def __init__(self, head: bytes, answer: Any, seconds: float | None) -> None:
        self._file = io.BufferedReader(_Joined(head, SyncBody(answer.body, seconds)))

    def makefile(self, *_: Any, **__: Any) -> io.BufferedIOBase:
        """Return the answer as a file."""
        return self._file


class _Joined(io.RawIOBase):
    """A file that begins with some bytes and goes on with another."""

    def __init__(self, head: bytes, rest: SyncBody) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return self._rest.readinto(buffer)
        count = min(len(buffer), len(self._head))
        buffer[:count] = self._head[:count]
        self._head = self._head[count:]
        return count
