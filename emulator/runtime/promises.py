"""Promises as user code sees them: awaitables that have already begun."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

from emulator.location import Location, Place, calling, location
from emulator.runtime.host import running
from emulator.tasks import Answer, Over

_add_done_callback = asyncio.Future.add_done_callback
_await = asyncio.Future.__await__
# `calling`, what makes a call, and two functions at least of the wrapper that asks for it.
_ABOVE_A_CALL = 4


def start(work: Awaitable[Any]) -> asyncio.Future[Any]:
    """Begin `work` now, as JavaScript does, and return its future.

    A failure nobody waits for stays silent here; whoever tracks the call reports it.
    """
    if isinstance(work, Answer):
        return work  # as most work is: whoever lets it fail retrieves the failure too
    future = asyncio.ensure_future(work)
    if future.done():
        _mark_retrieved(future)
    else:
        future.add_done_callback(_mark_retrieved)
    return future


def _mark_retrieved(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


async def outcome(work: asyncio.Future[Any]) -> Any:
    """Wait for work that goes on where the waiter is cancelled, as a promise of JavaScript's does.

    Its time-out is then nobody's concern: what still runs is dropped when the invocation ends.
    """
    await _over(work)
    return work.result()


def _over(work: asyncio.Future[Any]) -> asyncio.Future[Any]:
    """A future of its own that is done when the work is."""
    over = Over(loop=work.get_loop())
    if work.done():
        over.set_result(None)
    else:
        work.add_done_callback(over.tell)
    return over


def track(call: Any) -> None:
    """Tell the running Worker of a call, if there is one and it listens."""
    listener = getattr(running(), "track", None)
    if listener is not None:
        listener(call)


def _track_promise(promise: PyodideFuture) -> None:
    listener = getattr(running(), "track_promise", None)
    if listener is not None:
        listener(promise)


class BindingCall(Coroutine[Any, Any, Any]):
    """The coroutine that a call of a binding returns (`binding_call`): the call is made already.

    It can be awaited once, or handed to `asyncio.create_task` and `gather`. `awaited` says whether
    anybody did, `created` where the call was written, `js_class` and `method` what was called.
    """

    __slots__ = (
        "__weakref__",
        "_convert",
        "_inner",
        "_made_at",
        "_started",
        "awaited",
        "js_class",
        "method",
    )
    __name__ = "await_and_convert"
    __qualname__ = "_BindingWrapper._conver_and_invoke.<locals>.await_and_convert"

    _made_at: Place
    js_class: str
    method: str
    awaited: bool
    _convert: Callable[[Any], Any]
    _started: asyncio.Future[Any]
    _inner: Coroutine[Any, Any, Any] | None

    @property
    def created(self) -> Location | None:
        """The user's line."""
        return location(self._made_at)

    @property
    def future(self) -> asyncio.Future[Any]:
        """The call's own future, with the canonical result; does not count as awaiting."""
        return self._started

    async def _await_and_convert(self) -> Any:
        await _over(self._started)
        return self._convert(self._started.result())

    def _coroutine(self) -> Coroutine[Any, Any, Any]:
        self.awaited = True
        if self._inner is None:
            self._inner = self._await_and_convert()
        return self._inner

    def send(self, value: Any) -> Any:
        return self._coroutine().send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine().throw(*error)

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        self.awaited = True
        if self._inner is None:
            self._inner = self._await_and_convert()
        return self._inner.__await__()

    def __repr__(self) -> str:
        place = f" called at {self.created.relative_to(None)}" if self.created else ""
        return f"<coroutine {self.js_class}.{self.method}{place}>"


def binding_call(
    work: Awaitable[Any], convert: Callable[[Any], Any], js_class: str, method: str
) -> BindingCall:
    """Begin `work` and return its call, without a constructor, which Python calls by way of C."""
    call = BindingCall()
    call._made_at = calling(_ABOVE_A_CALL)
    call.js_class = js_class
    call.method = method
    call.awaited = False
    call._convert = convert
    call._started = start(work)
    call._inner = None
    track(call)
    return call


class PyodideFuture(asyncio.Future[Any]):
    """A promise in user code: a future with `then`, `catch` and `finally_`."""

    awaited = False
    js_class = "Promise"
    method = ""
    _made_at: Place = None

    @property
    def created(self) -> Location | None:
        """The user's line that made it."""
        return location(self._made_at)

    def __await__(self) -> Generator[Any, Any, Any]:
        self.awaited = True
        return _await(self)

    __iter__ = __await__

    def add_done_callback(self, *args: Any, **kwargs: Any) -> None:
        self.awaited = True
        _add_done_callback(self, *args, **kwargs)

    def then(
        self,
        onfulfilled: Callable[[Any], Any] | None = None,
        onrejected: Callable[[BaseException], Any] | None = None,
    ) -> PyodideFuture:
        """Return a promise of what the callback returns for the result or the error."""

        async def chain() -> Any:
            try:
                result = await self
            except Exception as error:
                if onrejected is None:
                    raise
                result, callback = error, onrejected
            else:
                if onfulfilled is None:
                    return result
                callback = onfulfilled
            return await _resolve(callback(result))

        self.awaited = True
        return promise(chain(), method="then")

    def catch(self, onrejected: Callable[[BaseException], Any]) -> PyodideFuture:
        """Return a promise of the result, or of what the callback makes of the error."""
        return self.then(None, onrejected)

    def finally_(self, onfinally: Callable[[], Any]) -> PyodideFuture:
        """Return a promise of the same outcome, after the callback ran."""

        async def chain() -> Any:
            try:
                return await self
            finally:
                await _resolve(onfinally())

        self.awaited = True
        return promise(chain(), method="finally")

    def _js_unwrap(self) -> Any:
        from emulator.runtime.pyproxy import PyProxy

        return PyProxy(self)


PyodideFuture.__module__ = "pyodide.webloop"


async def _resolve(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def promise(
    work: Awaitable[Any],
    convert: Callable[[Any], Any] | None = None,
    method: str = "",
    js_class: str = "",
) -> PyodideFuture:
    """Begin `work` and return a promise of its result, passed through `convert`.

    With `js_class` it is that of a call of the platform's: see `track`.
    """
    started = start(work)
    result = PyodideFuture(loop=started.get_loop())
    result.method = method
    result._made_at = calling(_ABOVE_A_CALL if js_class else 1)

    def settle(done: asyncio.Future[Any]) -> None:
        if result.done():
            return
        if done.cancelled():
            result.cancel()
        elif (error := done.exception()) is not None:
            result.set_exception(error)
            result.exception()  # nobody need wait for it
        else:
            value = done.result()
            result.set_result(value if convert is None else convert(value))

    started.add_done_callback(settle)
    if js_class:
        result.js_class = js_class
        track(result)
    else:
        _track_promise(result)
    return result
