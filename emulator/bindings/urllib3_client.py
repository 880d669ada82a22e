"""urllib3 in Worker code, and what stands on it: requests, boto3 and others.

In Pyodide urllib3 sends each request with `fetch` (`urllib3/contrib/emscripten`), and so it does
here. What follows from that is kept: redirects are followed by `fetch` and leave no history, the
time-out for connecting is the one for an answer, and for each read, answers have no reason phrase,
and without stack switching there is no way to wait at all.
"""

from __future__ import annotations

import functools
import http.client
import io
from typing import TYPE_CHECKING, Any

from emulator.bindings.blocking import SyncBody, as_bytes, wait_at_most
from emulator.bindings.decoded import OF_ENCODING
from emulator.runtime.host import WebRequest, WebResponse
from emulator.runtime.profile import generation
from emulator.runtime.run_sync import can_run_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from emulator.invocation import Invocation


def teach(
    sending: Callable[[], Invocation | None], module: ModuleType
) -> Iterator[tuple[Any, str, Callable[[Any], Any]]]:
    """Yield what is to be replaced in `urllib3.connection`: owner, name, how."""
    kinds = [module.HTTPConnection]
    if isinstance(getattr(module, "HTTPSConnection", None), type):
        kinds.append(module.HTTPSConnection)
    yield kinds[0], "request", functools.partial(_request, sending)
    yield kinds[0], "getresponse", _getresponse
    for kind in kinds:
        yield kind, "connect", functools.partial(_connect, sending)


def _connect(sending: Callable[[], Invocation | None], usual: Any) -> Any:
    @functools.wraps(usual)
    def connect(self: Any) -> Any:
        if sending() is None:
            return usual(self)
        self.is_verified = True  # `fetch` sees to it
        return None

    return connect


def _request(sending: Callable[[], Invocation | None], usual: Any) -> Any:
    @functools.wraps(usual)
    def request(
        self: Any, method: str, url: str, body: Any = None, headers: Any = None, **options: Any
    ) -> Any:
        sender = sending()
        if sender is None:
            return usual(self, method, url, body, headers, **options)
        self.emulated = _send(
            sender, self, WebRequest(method, _absolute(self, url), _pairs(headers), as_bytes(body))
        )
        return None

    return request


def _getresponse(usual: Any) -> Any:
    @functools.wraps(usual)
    def getresponse(self: Any) -> Any:
        response, self.emulated = getattr(self, "emulated", None), None
        return usual(self) if response is None else response

    return getresponse


def _absolute(connection: Any, url: str) -> str:
    if not url.startswith("/"):
        return url
    scheme = "https" if connection.default_port == 443 else "http"
    is_usual = connection.port in (None, connection.default_port)
    port = "" if is_usual else f":{connection.port}"
    return f"{scheme}://{connection.host}{port}{url}"


def _pairs(headers: Any) -> tuple[tuple[str, str], ...]:
    pairs = headers.items() if headers is not None else ()
    return tuple((_text(name).lower(), _text(value)) for name, value in pairs)


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _send(sender: Invocation, connection: Any, request: WebRequest) -> Any:
    import urllib3

    if generation() == 26 or not can_run_sync():
        error = AttributeError("XMLHttpRequest")
        error.add_note(
            "urllib3 waits by stack switching, which is possible neither in a function that "
            "JavaScript called nor with a compatibility date before 2025-09-29: use `fetch`, or "
            "httpx's AsyncClient."
        )
        raise error
    seconds = connection.timeout if isinstance(connection.timeout, (int, float)) else None
    try:
        response: WebResponse = wait_at_most(sender.fetch(request), seconds)
    except TimeoutError as error:
        raise urllib3.exceptions.TimeoutError("Request timed out") from error
    except OSError as error:
        raise http.client.HTTPException(str(error)) from error
    return urllib3.HTTPResponse(
        io.BufferedReader(SyncBody(response.body, seconds)),
        headers=urllib3.HTTPHeaderDict(
            (name, value) for name, value in response.headers if name not in OF_ENCODING
        ),
        status=response.status,
        version=0,
        reason="",
        preload_content=False,
        decode_content=False,
        request_method=request.method,
        request_url=request.url,
        connection=connection,
    )
