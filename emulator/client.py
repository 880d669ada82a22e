"""httpx on the way to a Worker: building requests, giving back responses, `emulator.client`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import httpx

from emulator.pump import Goal
from emulator.runtime.host import WebRequest, WebResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from emulator.ingress import Exchange
    from emulator.pump import Pump

# pytest leaves these frames out of a failing test's traceback.
__tracebackhide__ = True

BASE_URL = "http://localhost"
# A path that needs neither encoding nor joining, the common case of a test.
_PLAIN_PATH = re.compile(r"(/[A-Za-z0-9\-_~][A-Za-z0-9\-._~]*)*/?(\?[A-Za-z0-9\-._~/=&+]*)?\Z")
_HAS_PATH = re.compile(r"[^/?]*//[^/?]*/")
_BASE = httpx.URL(BASE_URL + "/")
_PLAIN_HEADERS = (("host", "localhost"),)


class Response(httpx.Response):
    """An httpx response that makes its request only if somebody looks at it."""

    web_request: WebRequest

    @property
    def request(self) -> httpx.Request:
        if self._request is None:
            sent = self.web_request
            content = sent.body if isinstance(sent.body, bytes) else None
            self._request = httpx.Request(
                sent.method, sent.url, headers=list(sent.headers), content=content
            )
        return self._request

    @request.setter
    def request(self, value: httpx.Request) -> None:
        self._request = value


async def web_request(
    url: str | httpx.URL,
    *,
    method: str = "GET",
    headers: Any = None,
    params: Any = None,
    json: Any = None,
    content: Any = None,
    data: Any = None,
) -> WebRequest:
    """Build a request as httpx would; a path is resolved against `http://localhost`."""
    parts = (headers, params, json, content, data)
    bare = parts.count(None) == len(parts)
    if bare and isinstance(url, str) and url[:1] == "/" and _PLAIN_PATH.match(url):
        return WebRequest(method.upper(), BASE_URL + url, _PLAIN_HEADERS, b"")
    message = httpx.Request(
        method,
        _BASE.join(url),
        headers=headers,
        params=params,
        json=json,
        content=content,
        data=data,
    )
    return await from_httpx(message)


async def from_httpx(message: httpx.Request) -> WebRequest:
    """Translate a request of httpx, reading its body."""
    is_async = isinstance(message.stream, httpx.AsyncByteStream)
    body = await message.aread() if is_async else message.read()
    headers = tuple((name.lower(), value) for name, value in message.headers.multi_items())
    return WebRequest(message.method, _as_received(message.url), headers, body)


def _as_received(url: httpx.URL) -> str:
    """A URL as it arrives: no fragment, and at least `/` for a path, which httpx leaves out."""
    text = str(url)
    if url.fragment or not _HAS_PATH.match(text):
        return str(url.copy_with(fragment=None, raw_path=url.raw_path))
    return text


def response(sent: WebRequest, answer: WebResponse) -> Response:
    """Translate a whole answer; its body is read."""
    assert isinstance(answer.body, bytes)
    result = Response(
        answer.status,
        headers=_encoded(answer.headers),
        content=answer.body,
        extensions=_reason(answer),
    )
    result.web_request = sent
    if "transfer-encoding" in result.headers:
        result.headers.pop("content-length", None)  # httpx's, from a body that is not empty
    return result


def _encoded(headers: tuple[tuple[str, str], ...]) -> list[tuple[bytes, bytes]]:
    # Values beyond ASCII leave workerd as UTF-8.
    return [(name.encode(), value.encode()) for name, value in headers]


def _reason(answer: WebResponse) -> dict[str, Any]:
    text = answer.status_text
    return {"reason_phrase": text.encode("ascii", "replace")} if text else {}


class WorkerTransport(httpx.AsyncBaseTransport):
    """Takes the requests of `emulator.client` to the Worker."""

    def __init__(self, pump: Pump, dispatch: Callable[[WebRequest], Exchange]) -> None:
        self._pump = pump
        self._dispatch = dispatch

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        exchange = self._dispatch(await from_httpx(request))
        name = f"client {request.method} {request.url}"
        await reach(self._pump, exchange, name, lambda: exchange.started)
        head = exchange.response
        return httpx.Response(
            head.status,
            headers=_encoded(head.headers),
            stream=_Body(self._pump, exchange, f"{name}: the next chunk"),
            extensions=_reason(head),
        )


async def reach(
    pump: Pump,
    exchange: Exchange,
    name: str,
    condition: Callable[[], bool],
    *,
    advance: bool = True,
) -> None:
    """Wait until something is true of an answer; a client that is cancelled disconnects."""
    try:
        if pump.inside:
            await exchange.wait(condition)
        else:
            await pump.reach(Goal(name, condition, advance=advance))
    except BaseException:
        exchange.abandon()
        raise


class _Body(httpx.AsyncByteStream):
    """The body of an answer, chunk by chunk as the Worker produces it."""

    def __init__(self, pump: Pump, exchange: Exchange, name: str) -> None:
        self._pump = pump
        self._exchange = exchange
        self._name = name

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        while True:
            if not exchange.readable:
                await reach(self._pump, exchange, self._name, lambda: exchange.readable)
            if exchange.chunks:
                yield exchange.read()
            elif exchange.error is not None:
                raise exchange.error
            else:
                return

    async def aclose(self) -> None:
        self._exchange.abandon()
