"""`pyodide.http`: fetching without the SDK, on which the SDK's `Response` is built."""

from __future__ import annotations

import asyncio
import json
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from emulator.runtime.proxies import to_memoryview
from emulator.runtime.pyproxy import unwrap
from emulator.runtime.sdk.js_values import behind, plain, wrap
from emulator.runtime.web.abort import AbortController, AbortSignal
from emulator.values import ArrayBuffer, JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.runtime.web.headers import Headers
    from emulator.runtime.web.response import Response

P = ParamSpec("P")
T = TypeVar("T")

# The class has methods called `bytes` and `memoryview`.
Bytes = bytes
MemoryView = memoryview


class HttpStatusError(OSError):
    """A response says 4xx or 5xx."""

    def __init__(self, status: int, status_text: str, url: str) -> None:
        self.status = status
        self.status_text = status_text
        self.url = url
        kind = "Invalid error code not between 400 and 599"
        if 400 <= status < 600:
            kind = "Client Error" if status < 500 else "Server Error"
        super().__init__(f"{status} {kind}: {status_text} for url: {url}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.status, self.status_text, self.url), self.__dict__)


class BodyUsedError(OSError):
    """The body was read already."""

    def __init__(self, *args: object) -> None:
        super().__init__("Response body is already used")


class AbortError(OSError):
    """A request was aborted, or failed in any other way."""

    def __init__(self, reason: Any) -> None:
        super().__init__(getattr(reason, "message", str(reason)))


def _errors_as_abort(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Pass an error of JavaScript's on as `AbortError`, as Pyodide does."""

    @wraps(method)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except JsException as error:
            response = args[0]
            signal = response.abort_signal if isinstance(response, FetchResponse) else None
            raise AbortError(error if signal is None else signal.reason) from None

    return wrapper


class FetchResponse:
    """The response that `pyfetch` returns."""

    _url: str = ""
    _web: Response
    _proxy: Any = None
    abort_controller: Any = None
    abort_signal: Any = None

    def __init__(
        self,
        url: str,
        js_response: Any,
        abort_controller: Any = None,
        abort_signal: Any = None,
    ) -> None:
        """Stand for a `js.Response`."""
        self._url = url
        self._web = unwrap(js_response)
        self.abort_controller = abort_controller
        self.abort_signal = abort_signal

    @property
    def js_response(self) -> Any:
        """Return the `js.Response`."""
        if self._proxy is None:
            self._proxy = wrap(self._web)
        return self._proxy

    @property
    def body_used(self) -> bool:
        """Tell whether the body was read."""
        return self._web.bodyUsed

    @property
    def headers(self) -> Any:
        """Return the headers as a dict."""
        return headers_as_dict(self._web.headers)

    @property
    def ok(self) -> bool:
        """Tell whether the status is 200 to 299."""
        return self._web.ok

    @property
    def redirected(self) -> bool:
        """Tell whether the request was redirected."""
        return self._web.redirected

    @property
    def status(self) -> int:
        """Return the status code."""
        return self._web.status

    @property
    def status_text(self) -> str:
        """Return the reason phrase."""
        return self._web.statusText

    @property
    def type(self) -> str:
        """Return the type, "default" but for `Response.error()`."""
        return self._web.type

    @property
    def url(self) -> str:
        """Return the final URL, "" for a response that was not fetched."""
        return self._web.url

    def raise_for_status(self) -> None:
        """Raise `HttpStatusError` for 4xx and 5xx."""
        if 400 <= self.status < 600:
            raise HttpStatusError(self.status, self.status_text, self.url)

    def clone(self) -> FetchResponse:
        """Return the same response with a body of its own, as `pyodide.http.FetchResponse`."""
        if self._web.bodyUsed:
            raise BodyUsedError
        copy = self._web.clone()
        return FetchResponse(self._url, wrap(copy), self.abort_controller, self.abort_signal)

    @_errors_as_abort
    async def buffer(self) -> Any:
        """Return the body as a `js.ArrayBuffer`."""
        self._raise_if_failed()
        return wrap(await self._web.arrayBuffer())

    @_errors_as_abort
    async def text(self) -> str:
        """Return the body read as UTF-8."""
        self._raise_if_failed()
        return await self._web.text()

    async def string(self) -> str:
        """Return the body read as UTF-8; an old name of `text`."""
        return await self.text()

    async def json(self, **kwargs: Any) -> Any:
        """Return the body parsed by `json.loads(text, **kwargs)`."""
        return json.loads(await self.text(), **kwargs)

    @_errors_as_abort
    async def memoryview(self) -> MemoryView:
        """Return the body as a memoryview."""
        self._raise_if_failed()
        return to_memoryview(ArrayBuffer(await self._web.bytes()))

    @_errors_as_abort
    async def bytes(self) -> Bytes:
        """Return the body."""
        self._raise_if_failed()
        return await self._web.bytes()

    def abort(self, reason: Any = None) -> None:
        """Abort the request."""
        if self.abort_controller is None:
            raise ValueError("abort_controller is not set")
        error = None if reason is None else JsException("AbortError", reason)
        self.abort_controller.abort(error)

    async def unpack_archive(self, **kwargs: Any) -> NoReturn:
        """Refuse: there is no file system to unpack to."""
        raise NotImplementedError(
            "workers-emulator does not provide FetchResponse.unpack_archive; read `bytes()` and "
            "unpack them with `tarfile` or `zipfile`"
        )

    def _raise_if_failed(self) -> None:
        signal = self.abort_signal
        if signal is not None and signal.aborted:
            raise AbortError(signal.reason)
        if self._web.bodyUsed:
            raise BodyUsedError


def headers_as_dict(headers: Headers) -> dict[str, str]:
    """Return headers as a plain dict; of several cookies the last one stays."""
    return dict(headers.sorted())


async def pyfetch(
    request: Any, /, *, signal: Any = None, fetcher: Any = None, **kwargs: Any
) -> FetchResponse:
    """Fetch a URL (or `js.Request`); `kwargs` are JavaScript's options.

    Raises `AbortError`, an `OSError`, when the request fails.
    """
    controller = AbortController()
    given = behind(signal) if signal else None
    joined = AbortSignal.any([given, controller.signal]) if given else controller.signal
    init = {**plain(kwargs), "signal": joined}
    try:
        answer = await call_fetcher(fetcher, request, init)
    except asyncio.CancelledError as error:
        reasons = "\n".join(map(str, error.args))
        controller.abort(*([JsException("AbortError", reasons)] if reasons else []))
        raise
    except JsException as error:
        raise AbortError(error) from error.__cause__
    url = request if isinstance(request, str) else behind(request).url
    return FetchResponse(url, wrap(answer), wrap(controller), wrap(joined))


async def call_fetcher(fetcher: Any, request: Any, init: dict[str, Any]) -> Response:
    """Call `js.fetch`, or another function like it, and return its `js.Response`."""
    if fetcher is None:
        from emulator.runtime.web.fetch import fetch

        return await fetch(behind(request), init)
    answer: Response = unwrap(await fetcher(request, wrap(init)))
    return answer


for _class in (AbortError, BodyUsedError, FetchResponse, HttpStatusError):
    _class.__module__ = "pyodide.http"
pyfetch.__module__ = "pyodide.http"

del _class


__all__ = ["AbortError", "BodyUsedError", "FetchResponse", "HttpStatusError", "pyfetch"]
