"""Incoming requests: from a test's `fetch` or client to a Worker's handler and back.

An `Exchange` is one request. Its answer comes in two parts, the head and the body; the handler goes
on whatever becomes of the client, but nobody reads the body for a client that left. The fault site
is `request.<METHOD>.<path>`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from emulator.bindings.outbound import read_body
from emulator.entrypoints import awaited
from emulator.errors import WorkerCrashed, WorkerLoadError
from emulator.event_record import Onset
from emulator.faults.sites import site_name
from emulator.foreign import is_foreign
from emulator.invocation import Invocation
from emulator.location import describe_error, format_error, raised_at
from emulator.response_body import as_sent
from emulator.runtime.host import WebRequest, WebResponse
from emulator.runtime.proxies import wrap
from emulator.runtime.sdk.request import Request
from emulator.runtime.web.boundary import request_from_web, response_to_web
from emulator.runtime.web.text import utf8
from emulator.trace import http_body
from emulator.values import JsException
from emulator.websockets import handshake
from emulator.websockets.line import stay_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import TypeAlias

    from emulator.isolate import Worker
    from emulator.kernel import Kernel
    from emulator.pump import Pump
    from emulator.websockets.line import End

    # What answers before a Worker: with the response and the file it serves, or not at all.
    Before: TypeAlias = Callable[[str, WebRequest], "tuple[WebResponse, str] | None"]

_TEXT = (("content-type", "text/plain;charset=UTF-8"),)
# What workerd answers when a handler can never answer (recording wu_handler_returns_nonresponse).
HUNG = (
    "The Workers runtime canceled this request because it detected that your Worker's code had "
    "hung and would never generate a response. Refer to: "
    "https://developers.cloudflare.com/workers/observability/errors/"
)
# A client that streams holds the Worker back when it has this many chunks still to read.
_MOST_UNREAD = 16


class ReplyLost(httpx.RemoteProtocolError, ConnectionError):
    """The connection broke before the client had the whole answer."""


class Exchange:
    """One request on its way through a Worker.

    With `streaming` the client reads the body while it is made, and slows the Worker down.
    """

    head: WebResponse | None = None
    body_done = False
    abandoned = False
    error: BaseException | None = None
    body: asyncio.Task[None] | None = None
    wants_socket = False
    socket: End | None = None
    subject = ""
    _changed: asyncio.Future[None] | None = None

    def __init__(self, kernel: Kernel, request: WebRequest, *, streaming: bool = False) -> None:
        self.request = request
        self.streaming = streaming
        self.chunks: deque[bytes] = deque()
        self._kernel = kernel

    # -- the client's side -----------------------------------------------------------------------

    @property
    def pump(self) -> Pump:
        """What runs the simulation it is in."""
        return self._kernel.pump

    @property
    def answered(self) -> bool:
        """Whether head and body are there, or an error instead."""
        return self.error is not None or self.body_done

    @property
    def started(self) -> bool:
        """Whether the head is there, or an error instead."""
        return self.head is not None or self.error is not None

    @property
    def readable(self) -> bool:
        """Whether the next chunk, or the end of the body, is there."""
        return bool(self.chunks) or self.answered

    @property
    def response(self) -> WebResponse:
        """The answer so far; raises the error there is instead."""
        if self.error is not None:
            raise self.error
        assert self.head is not None
        head = self.head
        body = b"".join(self.chunks)
        return WebResponse(head.status, head.status_text, head.headers, body, self.request.url)

    def read(self) -> bytes:
        """Take the next chunk."""
        chunk = self.chunks.popleft()
        self._announce()
        return chunk

    async def wait(self, condition: Callable[[], bool]) -> None:
        """Wait inside the simulation until something becomes true of the answer."""
        while not condition():
            if self._changed is None:
                self._changed = self._kernel.loop.create_future()
            await self._changed

    def abandon(self) -> None:
        """The client disconnects."""
        self.abandoned = True
        if self.body is not None and not self.body.done() and not self._kernel.loop.is_closed():
            self._kernel.loop.kernel_soon(self.body.cancel)

    # -- the Worker's side -----------------------------------------------------------------------

    def begin(self, head: WebResponse) -> None:
        """Send the head."""
        self.head = head
        self._announce()

    async def write(self, chunk: bytes) -> None:
        """Send a part of the body."""
        self.chunks.append(chunk)
        self._announce()
        if self.streaming:
            await self.wait(lambda: len(self.chunks) < _MOST_UNREAD)

    def finish(self) -> None:
        """The body is complete."""
        self.body_done = True
        self._announce()

    def respond(self, response: WebResponse) -> None:
        """Send an answer whose body is complete."""
        assert isinstance(response.body, bytes)
        if response.body:
            self.chunks.append(response.body)
        self.begin(response)
        self.finish()

    def fail(self, error: BaseException) -> None:
        """End without the answer, or without the rest of it."""
        if not self.answered:
            self.error = error
            self._announce()

    def _announce(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done() and not self._kernel.loop.is_closed():
            changed.set_result(None)


class Ingress:
    """The front door of one emulator."""

    def __init__(self, kernel: Kernel, *, before: Before) -> None:
        self._kernel = kernel
        self._before = before
        # Those whose handler has not answered yet.
        self._open: dict[Exchange, Invocation] = {}

    def dispatch(self, worker: Worker, exchange: Exchange) -> None:
        """Start handling a request at this instant."""
        kernel, request = self._kernel, exchange.request
        path = urlsplit(request.url).path or "/"
        about = f"request {request.method} {path}"
        subject = kernel.numbered(about)
        exchange.subject = subject
        served = self._before(worker.name, request)
        if served is not None:
            self._serve_asset(worker, exchange, subject, *served)
            return
        faults = kernel.faults.meet(site_name("request", request.method, path))
        action = faults[0].action if faults else ""
        kernel.trace.masker.meet(request.headers)
        facts = {"worker": worker.name, "url": request.url}
        kernel.record("request", subject, **facts, **http_body(request.body))
        if action == "crash_before":
            worker.crash()
            exchange.fail(_crashed(subject, "before its handler ran"))
            return
        try:
            isolate = worker.isolate
        except WorkerLoadError as error:
            exchange.fail(error)
            return
        event = f"fetch {request.method} {path}"
        invocation = Invocation(isolate, event, subject=subject, about=about)
        invocation.in_request = True
        invocation.struck = bool(faults)
        invocation.on_killed = lambda: self._killed(exchange, subject)
        self._open[exchange] = invocation
        invocation.watch(Onset(request=request))
        invocation.start(self._serve(worker, invocation, exchange, action))

    def _serve_asset(
        self, worker: Worker, exchange: Exchange, subject: str, response: WebResponse, file: str
    ) -> None:
        """Answer without the Worker: no event of its begins, and no fault of its strikes."""
        self._kernel.record("request", subject, worker=worker.name, url=exchange.request.url)
        facts = {"asset": file} if file else {}
        self._kernel.record("response", subject, status=response.status, **facts)
        exchange.respond(response)

    def _killed(self, exchange: Exchange, subject: str) -> None:
        self._open.pop(exchange, None)
        exchange.fail(_crashed(subject, "while it was handled"))

    async def _serve(
        self, worker: Worker, invocation: Invocation, exchange: Exchange, action: str
    ) -> None:
        try:
            response = as_sent(exchange.request, await self._handle(invocation, exchange.request))
        except BaseException as error:
            if is_foreign(error):
                raise
            invocation.fails()
            response = as_sent(exchange.request, await self._failed(invocation, exchange, error))
        self._open.pop(exchange, None)
        self._kernel.trace.masker.meet(response.headers)
        if invocation.event_record is not None:
            invocation.event_record.status = response.status
        if exchange.abandoned:
            invocation.fails("canceled")
        if not action:
            carried = http_body(response.body)
            self._kernel.record("response", invocation.subject, status=response.status, **carried)
        if action == "lose_reply":
            exchange.streaming = False  # nobody reads
        else:
            exchange.begin(response)
        end: Any = response.socket
        if end is not None:
            await self._connect(worker, invocation, exchange, action, end)
            return
        if not isinstance(response.body, bytes):
            await self._send_body(invocation, exchange, response.body)
        elif response.body:
            exchange.chunks.append(response.body)
        if action == "crash_after":
            worker.crash()
        elif action == "lose_reply":
            exchange.fail(ReplyLost(f"{invocation.subject}: the answer was lost, by a fault"))
        else:
            exchange.finish()

    async def _handle(self, invocation: Invocation, request: WebRequest) -> WebResponse:
        isolate = invocation.isolate
        handler = isolate.handler("fetch", invocation)
        incoming = request_from_web(request)
        # A class gets the SDK's `Request`, a global handler JavaScript's.
        value = handler(wrap(incoming) if isolate.script.default is None else Request(incoming))
        value = await awaited(value)
        try:
            return handshake.check(request, response_to_web(value))
        except JsException as error:
            error.add_note(f"The handler returned {type(value).__name__}.")
            raise

    async def _connect(
        self, worker: Worker, invocation: Invocation, exchange: Exchange, action: str, end: End
    ) -> None:
        """Connect the client, and go on as long as the connection does that ends here."""
        if action == "crash_after":
            worker.crash()
            return
        if action == "lose_reply":
            exchange.fail(ReplyLost(f"{invocation.subject}: the answer was lost, by a fault"))
        if action or exchange.abandoned or not exchange.wants_socket:
            end.drop()
        else:
            exchange.socket = end
        exchange.finish()
        await stay_for(end, invocation)

    # -- bodies ----------------------------------------------------------------------------------

    async def _send_body(
        self, invocation: Invocation, exchange: Exchange, body: AsyncIterator[bytes]
    ) -> None:
        # A task of its own, so that a client that leaves ends the body and not the invocation.
        exchange.body = asyncio.ensure_future(_stream(exchange, body))
        await asyncio.wait([exchange.body])
        if exchange.body.cancelled():
            self._kernel.record("disconnect", invocation.subject)
            return
        error = exchange.body.exception()
        if error is not None:
            self._report(invocation, error)
            exchange.fail(ReplyLost(f"{invocation.subject}: the body broke off: {error!r}"))

    # -- failures --------------------------------------------------------------------------------

    async def _failed(
        self, invocation: Invocation, exchange: Exchange, error: BaseException
    ) -> WebResponse:
        """Answer as production does when the handler raises."""
        invocation.isolate.script.explain("fetch", error)
        text = self._report(invocation, error)
        if invocation.passes_through:
            origin = await self._from_origin(invocation, exchange.request)
            if origin is not None:
                return origin
            if self._kernel.profile == "miniflare":
                exchange.fail(ReplyLost(f"{invocation.subject}: ECONNRESET, there is no origin"))
        return WebResponse(500, "Internal Server Error", _TEXT, utf8(text))

    @staticmethod
    def _report(invocation: Invocation, error: BaseException) -> str:
        """Log an exception and make it a finding; returns it as production's error page has it."""
        text = _describe(invocation, error)
        invocation.threw(error, text)
        shown = describe_error(error).removeprefix("pyodide.ffi.JsException: ")
        where = raised_at(error) or invocation.isolate.script.defined_at("fetch")
        invocation.find("handler_exception", f"{invocation.about}: {shown}", where)
        return text

    @staticmethod
    async def _from_origin(invocation: Invocation, request: WebRequest) -> WebResponse | None:
        """The origin's answer, after `passThroughOnException`; None if there is no origin."""
        try:
            response = await invocation.fetch(request)
        except OSError:
            return None
        body = await read_body(response.body)
        return WebResponse(response.status, response.status_text, response.headers, body)

    def cancel_hung(self) -> bool:
        """Answer requests that can never be answered, as workerd does; whether there were any."""
        hung, self._open = self._open, {}
        for exchange, invocation in hung.items():
            page = WebResponse(500, "Internal Server Error", _TEXT, f"Error: {HUNG}".encode())
            exchange.respond(as_sent(exchange.request, page))
            invocation.freeze()
        return bool(hung)


async def _stream(exchange: Exchange, body: AsyncIterator[bytes]) -> None:
    try:
        if not exchange.abandoned:
            async for chunk in body:
                await exchange.write(chunk)
    finally:
        close = getattr(body, "aclose", None)
        if close is not None:
            await close()


def _describe(invocation: Invocation, error: BaseException) -> str:
    """An exception as production's error page and log show it."""
    if isinstance(error, JsException):
        return str(error)
    return f"Error: PythonError: {format_error(error, invocation.isolate.worker.folder)}"


def _crashed(subject: str, when: str) -> WorkerCrashed:
    return WorkerCrashed(f"the Worker's isolate lost power: {subject} was cut off {when}")
