"""The JavaScript class `EventSource`: messages of a server, over a response that goes on.

Theory of operation (workerd, `api/eventsource.c++`). A source connects when it is made, by `fetch`
or by the binding that `fetcher` names. A response that is no `text/event-stream` with a status of
success, and a request that fails, close it. When the server ends the response, the source has an
`error` and connects again after the time that the server chose with `retry`, 1 to 10 s, else 2 s;
the last id goes with the request. What a listener raises closes it. `EventSource.from` reads a
stream, once, and is open before anybody can listen. As anything else that waits, a source is over
when its event is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final

from emulator.runtime.host import current
from emulator.runtime.promises import start
from emulator.runtime.web import idl
from emulator.runtime.web.blob import mime_of_header
from emulator.runtime.web.event_stream import EventStream
from emulator.runtime.web.events import ErrorEvent, Event, EventTarget, MessageEvent
from emulator.runtime.web.fetch import fetch
from emulator.runtime.web.streams import NOT_BYTES, ReadableStream
from emulator.runtime.web.url import URL
from emulator.runtime.web.url_parser import InvalidUrl, parse
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.runtime.web.response import Response
    from emulator.runtime.web.streams import Reader

_CONSTANTS: Final = frozenset({"CONNECTING", "OPEN", "CLOSED"})
_OUTSIDE: Final = "An EventSource can only be created within the context of a worker request."
_CREDENTIALS: Final = (
    "The init.withCredentials option is not supported. It must be false or undefined."
)
_TYPE: Final = "text/event-stream"
_LOST: Final = "Network connection lost."
# Milliseconds.
_DEFAULT_WAIT: Final = 2_000
_SHORTEST_WAIT: Final = 1_000
_LONGEST_WAIT: Final = 10_000


class EventSource(EventTarget):
    """A connection to a server that sends events."""

    js_class = "EventSource"
    js_members = EventTarget.js_members | {
        *("url", "withCredentials", "readyState", "onopen", "onmessage", "onerror", "close"),
        *_CONSTANTS,
    }
    js_statics: ClassVar[frozenset[str]] = _CONSTANTS | {"from"}
    CONNECTING, OPEN, CLOSED = range(3)
    withCredentials = False

    def __init__(self, url: str = "", fetcher: Any = None) -> None:
        self.url = url
        self.readyState = self.CONNECTING
        self.onopen = self.onmessage = self.onerror = None
        self._fetch: Callable[..., Any] = fetch if fetcher is None else fetcher.js_lookup("fetch")
        self._last_id = ""
        self._wait = _DEFAULT_WAIT
        self._had_no_body = False
        self._work: asyncio.Future[Any] | None = None

    @classmethod
    def js_new(cls, url: object = UNDEFINED, init: object = UNDEFINED) -> EventSource:
        """Do `new EventSource(url, {fetcher})`: connect by and by."""
        if url is UNDEFINED:
            raise idl.wrong_construction(cls.js_class, 1, "string")
        text, options = idl.string(url), idl.options(init)
        fetcher = options.get("fetcher")
        if "fetcher" in options and not _fetches(fetcher):
            raise idl.wrong_field("fetcher", "EventSourceInit", "Fetcher")
        _check_context()
        if options.get("withCredentials"):
            raise JsException("NotSupportedError", _CREDENTIALS)
        try:
            href = parse(text).href()
        except InvalidUrl:
            refusal = f"Cannot open an EventSource to '{text}'. The URL is invalid."
            raise JsException("SyntaxError", refusal) from None
        source = cls(href, fetcher)
        source._work = start(source._connect())
        return source

    @classmethod
    def from_(cls, stream: object = UNDEFINED) -> EventSource:
        """Do `EventSource.from(stream)`: read a stream of bytes, and never connect again."""
        if not isinstance(stream, ReadableStream):
            raise idl.wrong_argument("from", cls.js_class, 1, "ReadableStream")
        _check_context()
        if stream.locked:
            raise JsException("TypeError", "This ReadableStream is locked.")
        if stream.disturbed:
            raise JsException("TypeError", "This ReadableStream has already been read from.")
        source = cls()
        source._open()
        source._work = start(source._read_once(stream.getReader()))
        return source

    def close(self) -> object:
        """Let go of the server; nothing is dispatched any more."""
        self.readyState = self.CLOSED
        work = self._work
        if work is not None and work is not asyncio.current_task():
            work.cancel()
        return UNDEFINED

    # -- inside ----------------------------------------------------------------------------------

    @property
    def _is_closed(self) -> bool:
        return self.readyState == self.CLOSED

    async def _connect(self) -> None:
        """Connect, and again whenever the server has ended the response."""
        while not self._is_closed:
            try:
                response = await self._fetch(self.url, {"headers": self._headers()})
            except JsException as error:
                self._fail(error)
                return
            if not self._take(response):
                return
            stream = response.body
            if stream is None:
                if not self._without_body():
                    return
            elif not await self._read(stream.getReader(), reconnects=True):
                return
            self.readyState = self.CONNECTING
            await asyncio.sleep(self._wait / 1_000)

    def _headers(self) -> dict[str, str]:
        headers = {"accept": _TYPE, "cache-control": "no-cache"}
        return {**headers, "last-event-id": self._last_id} if self._last_id else headers

    def _take(self, response: Response) -> bool:
        """Whether a response is a stream of events; else the source is closed."""
        kind = response.headers.get("content-type")
        if not response.ok:
            refusal = f"The response status code was {response.status}."
        elif kind is None:
            refusal = "No content type header was present in the response."
        elif mime_of_header(kind).partition(";")[0] != _TYPE:
            refusal = f"The content type '{kind}' is invalid."
        else:
            if response.redirected and response.url:
                self.url = response.url
            return True
        self._fail(JsException("AbortError", refusal))
        return False

    def _without_body(self) -> bool:
        """Whether to connect again; a second time without a body closes the source."""
        if self._had_no_body:
            self._fail(JsException("Error", "The server provided no content."))
            return False
        self._had_no_body = True
        text = "The server provided no content. Will try reconnecting."
        self._fail(JsException("Error", text), reconnects=True)
        return not self._is_closed

    async def _read_once(self, reader: Reader) -> None:
        await self._pump(reader, reconnects=False)

    async def _read(self, reader: Reader, *, reconnects: bool) -> bool:
        self._open()
        return await self._pump(reader, reconnects=reconnects)

    async def _pump(self, reader: Reader, *, reconnects: bool) -> bool:
        """Dispatch what comes; whether to connect again when the server has ended."""
        stream = EventStream(self._last_id)
        try:
            while not self._is_closed:
                read = await reader.read()
                if read["done"]:
                    break
                self._dispatch(stream, _octets(read["value"]))
        except JsException as error:
            if error.message != _LOST:
                self._fail(error)
                return False
        finally:
            if self._is_closed:
                await _cancel(reader)
        self._fail(JsException("Error", "The server disconnected."), reconnects=reconnects)
        return reconnects and not self._is_closed

    def _dispatch(self, stream: EventStream, chunk: bytes) -> None:
        origin = URL.js_new(self.url).origin if self.url else ""
        messages = stream.feed(chunk)
        self._last_id = stream.last_id
        if stream.retry is not None:
            self._wait = max(min(stream.retry, _LONGEST_WAIT), _SHORTEST_WAIT)
        for message in messages:
            if self._is_closed:
                return
            event = MessageEvent(message.kind, data=message.data)
            event.lastEventId, event.origin = message.last_id, origin
            try:
                self.dispatch(event)
            except Exception as error:
                self._fail(error)

    def _open(self) -> None:
        self.readyState = self.OPEN
        self._tell(Event("open"))

    def _fail(self, error: BaseException, *, reconnects: bool = False) -> None:
        """Tell of an error, after which the source is closed unless it connects again."""
        if self._is_closed:
            return
        self.readyState = self.CONNECTING if reconnects else self.CLOSED
        self._tell(ErrorEvent("error", error=error))
        current().log("error", f"Uncaught {error}")

    def _tell(self, event: Event) -> None:
        try:
            self.dispatch(event)
        except Exception as error:
            current().report(error)


# A keyword of Python's.
setattr(EventSource, "from", EventSource.from_)


def _check_context() -> None:
    if getattr(current(), "event", "") == "import":
        raise JsException("NotSupportedError", _OUTSIDE)


def _fetches(value: object) -> bool:
    return isinstance(value, HostObject) and "fetch" in value.js_members


def _octets(chunk: object) -> bytes:
    data = idl.buffer(chunk)
    if data is None:
        raise JsException("TypeError", NOT_BYTES)
    return data


async def _cancel(reader: Reader) -> None:
    try:
        await reader.cancel()
    except JsException:
        pass  # it broke before
