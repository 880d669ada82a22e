"""One call of an entrypoint: an event of the Worker that is called, with all that an event has.

Theory of operation. The entrypoint's instance is made, its method or `fetch` runs, and the answer
leaves when it returns. The event then ends as others do, with its 30 s for background work, except
where the answer has handed out something that is still the event's to run: a body that streams, a
WebSocket, or a function. Then it goes on until the body is sent or the connection is over, or until
the caller has left.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.errors import WorkerLoadError
from emulator.event_record import Onset, Place
from emulator.foreign import is_foreign
from emulator.invocation import Invocation
from emulator.rpc.bodies import across
from emulator.rpc.carriage import carry
from emulator.rpc.entry import (
    call_handler,
    call_method,
    check_name,
    handler_of,
    method_of,
    request_for,
    response_of,
)
from emulator.rpc.errors import disconnected, outgoing
from emulator.runtime.context import ExecutionContext
from emulator.runtime.proxies import wrap
from emulator.runtime.rpc import raw_env
from emulator.runtime.web.boundary import request_from_web
from emulator.services.entrypoint import entrypoint_class
from emulator.services.handlers import about_call
from emulator.values import JsException
from emulator.websockets import handshake
from emulator.websockets.line import stay_for

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from emulator.isolate import Isolate
    from emulator.runtime.host import WebRequest, WebResponse


class _Failed(Exception):
    """User code raised; `reason` is what leaves the Worker."""

    def __init__(self, reason: JsException) -> None:
        super().__init__(reason)
        self.reason = reason


class ServiceEvent(Invocation):
    """A call of a method, or a request, from another Worker or the Worker itself."""

    def __init__(self, isolate: Isolate, entrypoint: str | None, method: str) -> None:
        about = about_call(isolate, entrypoint, method)
        super().__init__(isolate, about, subject=isolate.kernel.numbered(about), about=about)
        self.answer: Callable[[Any, JsException | None], None]
        self.caller: Invocation
        self.sender_flags = self.flags
        self.lost = False
        self.on_killed = self._cut_off
        self._entrypoint = entrypoint
        self._answered = False
        self._answering = False
        self._handed_out = False
        self._socket: Any = None  # the end of a WebSocket that it gave out
        self._bodies: list[asyncio.Task[None]] = []

    # -- what it is asked ------------------------------------------------------------------------

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run what it was made for."""
        self.start(self._serve(work))

    async def run_method(self, method: str, arguments: list[Any]) -> Any:
        """Call a method with arguments that crossed already; returns what crosses back."""
        self.watch(Onset.call(method), Place(self._entrypoint))
        cls = self._class()
        if cls is None:  # handlers of a module, which no class holds
            check_name(method)
            text = f'The RPC receiver does not implement the method "{method}".'
            raise JsException("TypeError", text)
        instance = self._instance(cls)
        function = method_of(instance, method)
        with self._user_code():
            result = await call_method(function, arguments)
        self._answering = True
        try:
            return carry(result, self)
        finally:
            self._answering = False

    async def run_fetch(self, request: WebRequest) -> WebResponse:
        """Let the entrypoint answer a request."""
        self.watch(Onset(request=request), Place(self._entrypoint))
        cls, script = self._class(), self.isolate.script
        if cls is None:
            handler = self.isolate.handler("fetch", self)
            arguments: tuple[Any, ...] = (wrap(request_from_web(request)),)
        else:
            handler = handler_of(self._instance(cls), "on_fetch" if script.legacy else "fetch")
            arguments = (request_for(request), None, None)
        with self._user_code():
            answer = await call_handler(handler, *arguments)
        response = handshake.check(request, response_of(answer))
        self._socket = response.socket
        if self.event_record is not None:
            self.event_record.status = response.status
        return replace(response, body=across(response.body, self))

    def _class(self) -> type[Any] | None:
        if self._entrypoint is None:
            return self.isolate.script.default
        try:
            return entrypoint_class(self.isolate, self._entrypoint, "")
        except WorkerLoadError as error:  # code that was loaded since lacks it
            raise JsException("Error", str(error)) from error

    def _instance(self, cls: type[Any]) -> Any:
        with self._user_code():
            return cls(wrap(ExecutionContext(self)), raw_env())

    @contextmanager
    def _user_code(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if is_foreign(error) or self.dead:
                raise
            self.note_exception(error)
            self.fails()
            raise _Failed(outgoing(error, self.isolate.worker.folder)) from None

    # -- its answer, and its end -----------------------------------------------------------------

    async def _serve(self, work: Coroutine[Any, Any, Any]) -> None:
        value, error = None, None
        try:
            value = await work
        except _Failed as failure:
            error = failure.reason
        except JsException as refusal:
            error = refusal
        if error is None:
            self.kernel.record("service_done", self.subject)
        else:
            last = error.message.strip().rpartition("\n")[2]
            self.kernel.record("service_error", self.subject, error=last)
        self._give(value, error)
        await self._stay()

    def _give(self, value: Any, error: JsException | None) -> None:
        if not self._answered:
            self._answered = True
            answer, self.answer = self.answer, _nobody  # which holds both ends
            answer(value, error)

    def _cut_off(self) -> None:
        """Its power is gone: nobody knows what it did."""
        self.lost = True
        self._give(None, disconnected())

    async def _stay(self) -> None:
        """Go on while something of it is the caller's to use."""
        if self._socket is not None:
            await stay_for(self._socket, self)
        if not (self._handed_out or self._bodies):
            return
        loop = self.kernel.loop
        left: asyncio.Future[None] = loop.create_future()
        self.caller.at_leave(lambda: None if loop.is_closed() else calls.resolve(left, None))
        if self._handed_out:
            await left
        while not left.done() and any(not body.done() for body in self._bodies):
            await asyncio.wait([left, *self._bodies], return_when=asyncio.FIRST_COMPLETED)
            self._bodies = [body for body in self._bodies if not body.done()]

    def sends(self, body: asyncio.Task[None]) -> None:
        """A body of its own is on its way."""
        self._bodies.append(body)

    @property
    def lasting(self) -> Invocation:
        """What functions belong to that it hands out: itself, which then stays for them."""
        if self._answering:
            self._handed_out = True
        return self

    def cut_links(self) -> None:
        """Let go of the emulator, which is closed."""
        super().cut_links()
        self.answer = _nobody
        self.__dict__.pop("caller", None)


def _nobody(_: Any, __: JsException | None) -> None:
    """Who is told the answer when the emulator is closed."""
