"""`workers.wsgi`: synchronous Python web applications as Workers (python-api.md 1.11).

The application runs in the handler's own task. It reads the body with `run_sync`, chunk by chunk as
it asks for it, and its answer is pulled by whoever reads the response. Rules and texts are those of
the SDK 1.9.5.
"""

from __future__ import annotations

import io
import logging
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from emulator.runtime.run_sync import run_sync
from emulator.runtime.sdk.asgi_request import headers_of, js_request
from emulator.runtime.sdk.entrypoints import WorkerEntrypoint
from emulator.runtime.sdk.gateway import BaseOptions
from emulator.runtime.sdk.js_values import wrap
from emulator.runtime.web.headers import Headers
from emulator.runtime.web.response import Response
from emulator.runtime.web.streams import ReadableStream
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from emulator.runtime.web.streams import Reader

    App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

logger = logging.getLogger("wsgi")

_NULL_BODY = frozenset({101, 103, 204, 205, 304})
_SENT_AS_THEY_ARE = ("CONTENT_TYPE", "CONTENT_LENGTH")


@dataclass(frozen=True, kw_only=True)
class Options(BaseOptions):
    """Options of the WSGI bridge."""


class _Input(io.RawIOBase):
    """The request's body as a file that waits for its chunks."""

    def __init__(self, stream: ReadableStream) -> None:
        self._reader: Reader = stream.getReader()
        self._chunk = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._chunk and not self._ended:
            read: Any = run_sync(self._reader.read())
            self._ended = read["done"]
            self._chunk = b"" if self._ended else bytes(read["value"])
        count = min(len(buffer), len(self._chunk))
        buffer[:count] = self._chunk[:count]
        self._chunk = self._chunk[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            if self._ended:
                self._reader.releaseLock()
            else:
                _drop(self._reader)
        super().close()


def _drop(reader: Reader) -> None:
    try:
        run_sync(reader.cancel())
    except Exception:
        pass  # nobody is left to be told


class _Answer:
    """What an application answers: `start_response`, and the parts of the body."""

    def __init__(self) -> None:
        self.status: str | None = None
        self.headers: list[tuple[str, str]] = []
        self.written: list[bytes] = []

    def start_response(self, status: str, headers: Any, exc_info: Any = None) -> Any:
        """Take the head; a second call needs an error, which is raised: the head is fixed."""
        if self.status is not None:
            if exc_info is None:
                raise AssertionError("start_response() called more than once")
            raise exc_info[1].with_traceback(exc_info[2])
        self.status, self.headers = status, headers
        return self.write

    def write(self, chunk: bytes) -> None:
        """Take a part of the body, the old way."""
        if chunk:
            self.written.append(chunk)


class _Source:
    """What a response's stream pulls from; `close` is called once, whatever ends it."""

    def __init__(self, chunks: Iterator[bytes], close: Callable[[], None]) -> None:
        self._chunks = chunks
        self._close: Callable[[], None] | None = close

    async def pull(self, stream: ReadableStream) -> None:
        """Push the application's next part; a task of its own, so that it may wait."""
        try:
            chunk = next(self._chunks, None)
        except Exception as error:
            logger.exception("Exception while streaming WSGI response body")
            self.close()
            stream.fail(JsException("Error", str(error)))
            return
        if chunk is None:
            stream.finish()
            self.close()
        else:
            stream.push(bytes(chunk))

    async def cancel(self, reason: object) -> None:
        """Nobody reads on."""
        self.close()

    def close(self) -> None:
        """Close the application's iterable."""
        close, self._close = self._close, None
        if close is not None:
            close()


def build_environ(req: Any, env: Any, body: Any) -> dict[str, Any]:
    """Return the environ of a request; `body` is bytes or a file."""
    url = urlsplit(req.url)
    if not url.scheme:
        raise ValueError(f"Request URL is not absolute: {req.url!r}")
    whole = isinstance(body, (bytes, bytearray))
    method = req.method
    environ: dict[str, Any] = {
        "REQUEST_METHOD": str(getattr(method, "value", method)),
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(url.path or "/").encode().decode("latin-1"),
        "QUERY_STRING": url.query,
        "SERVER_NAME": url.hostname,
        "SERVER_PORT": str(url.port or {"https": 443}.get(url.scheme, 80)),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": url.scheme,
        "wsgi.input": io.BytesIO(body) if whole else body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "workers.env": env,
    }
    for name, value in headers_of(req):
        _add_header(environ, name.upper().replace("-", "_"), value)
    if whole and body and "CONTENT_LENGTH" not in environ:
        environ["CONTENT_LENGTH"] = str(len(body))
    return environ


def _add_header(environ: dict[str, Any], name: str, value: str) -> None:
    if name in _SENT_AS_THEY_ARE:
        environ[name] = value
        return
    name = f"HTTP_{name}"
    environ[name] = f"{environ[name]},{value}" if name in environ else value


async def fetch(
    app: App, req: Any, env: Any, ctx: Any = None, *, options: Options | None = None
) -> Any:
    """Answer a request by an application; returns a `js.Response`."""
    logger.debug("WSGI request: %s %s", req.method, req.url)
    stream = js_request(req).body
    body: Any = io.BytesIO() if stream is None else io.BufferedReader(_Input(stream))
    try:
        return _process(app, build_environ(req, env, body), options or Options())
    except Exception:
        logger.exception("WSGI request failed")
        raise


def _process(app: App, environ: dict[str, Any], options: Options) -> Any:
    answer = _Answer()
    result = app(environ, answer.start_response)
    parts = iter(result)

    def close() -> None:
        end = getattr(result, "close", None)
        if end is not None:
            end()
        try:
            environ["wsgi.input"].close()
        except Exception:
            logger.exception("Failed to close wsgi.input")

    try:
        # An application may call `start_response` as late as before its first part.
        first = next((part for part in parts if part), None)
    except Exception:
        close()
        raise
    if answer.status is None:
        close()
        raise RuntimeError("The WSGI application did not call start_response()")
    source = _Source(_body(answer, first, parts), close)
    return wrap(_response(answer, source, options.response_init()))


def _body(answer: _Answer, first: bytes | None, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield from answer.written
    if first is not None:
        yield first
    yield from (part for part in rest if part)


def _response(answer: _Answer, source: _Source, init: dict[str, Any]) -> Response:
    assert answer.status is not None
    code, _, reason = answer.status.partition(" ")
    headers = Headers()
    for name, value in answer.headers:
        headers.append(name, value)
    init = {"status": int(code), "headers": headers, **init}
    if reason:
        init["statusText"] = reason
    if int(code) not in _NULL_BODY:
        return Response.js_new(ReadableStream(source), init)
    source.close()
    return Response.js_new(None, init)


def entrypoint(app: App, *, options: Options | None = None) -> type[WorkerEntrypoint]:
    """Return an entrypoint `Default` whose requests an application answers."""

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            return await fetch(app, request, self.env, options=options)

    return Default


for _one in (Options, build_environ, fetch, entrypoint):
    _one.__module__ = "workers.wsgi"


del _one

__all__ = ["Options", "build_environ", "entrypoint", "fetch"]
