"""Timers and promises of the `js` module, on the loop that runs."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.host import current, forbid_in_global_scope
from emulator.runtime.js_basics import Constructor
from emulator.runtime.js_text import display
from emulator.runtime.promises import PyodideFuture, promise
from emulator.runtime.proxies import wrap
from emulator.runtime.pyproxy import EXHAUSTED, PyProxy, call_value, iterate, unwrap
from emulator.values import UNDEFINED, Function, JsException, to_number, type_of

if TYPE_CHECKING:
    from collections.abc import Callable


class _Timer:
    """A pending timer; `number` is what user code holds."""

    def __init__(self, function: Any, delay: float, args: tuple[Any, ...], repeat: bool) -> None:
        self._function = function
        self._delay = delay
        self._args = args
        self._repeat = repeat
        self._loop = asyncio.get_running_loop()
        self._handle = self._loop.call_later(delay, self._fire)
        timers = _timers(self._loop)
        self.number = timers[0] = timers.get(0, 0) + 1
        timers[self.number] = self

    def _fire(self) -> None:
        if self._repeat:
            self._handle = self._loop.call_later(self._delay, self._fire)
        else:
            _timers(self._loop).pop(self.number, None)
        _call_back(self._function, *self._args)

    def cancel(self) -> None:
        self._handle.cancel()
        _timers(self._loop).pop(self.number, None)


def _call_back(function: Any, *args: Any) -> None:
    """Call what JavaScript kept; nobody waits for it, so that its error is only logged.

    A Python function that was passed as it is may not be kept: it needs `create_proxy`.
    """
    try:
        result = call_value(function, *args)
    except Exception as error:
        current().log("error", f"Uncaught {error or type(error).__name__}")
        return
    if isinstance(result, PyProxy) and inspect.iscoroutine(result.obj):
        promise(result.obj)


def _timers(loop: asyncio.AbstractEventLoop) -> dict[int, Any]:
    """The loop's pending timers by number; 0 is the last number given."""
    timers: dict[int, Any] | None = getattr(loop, "_js_timers", None)
    if timers is None:
        timers = {}
        loop._js_timers = timers  # type: ignore[attr-defined]
    return timers


def _set_timer(repeat: bool) -> Callable[..., int]:
    def set_timer(function: Any = UNDEFINED, delay: Any = 0, *args: Any) -> int:
        forbid_in_global_scope()
        milliseconds = 0 if delay is UNDEFINED else to_number(delay)
        seconds = max(milliseconds, 0) / 1000 if milliseconds == milliseconds else 0
        number: int = _Timer(function, seconds, args, repeat).number
        return number

    return set_timer


def _clear_timer(number: Any = UNDEFINED) -> Any:
    timer = _timers(asyncio.get_running_loop()).get(number) if isinstance(number, int) else None
    if isinstance(timer, _Timer):
        timer.cancel()
    return UNDEFINED


def _queue_microtask(function: Any) -> Any:
    asyncio.get_running_loop().call_soon(_call_back, function)
    return UNDEFINED


def _awaitable(value: Any) -> Any:
    """The awaitable behind a JavaScript value, or None."""
    if isinstance(value, PyProxy) and inspect.isawaitable(value.live()):
        return value.obj
    return None


async def settle(value: Any) -> Any:
    """Wait for a JavaScript value if it is a promise; returns the JavaScript result."""
    work = _awaitable(value)
    return value if work is None else unwrap(await work)


def _resolved(value: Any = UNDEFINED) -> PyodideFuture:
    work = _awaitable(value)
    if isinstance(work, PyodideFuture):
        return work
    return promise(settle(value), wrap)


def _reject(reason: Any = UNDEFINED) -> PyodideFuture:
    async def fail() -> Any:
        raise _as_exception(reason)

    return promise(fail())


def _as_exception(reason: Any) -> BaseException:
    if isinstance(reason, BaseException):
        return reason
    held = reason.obj if isinstance(reason, PyProxy) else reason
    return held if isinstance(held, BaseException) else JsException(display(reason))


def _elements(values: Any) -> list[Any]:
    """What a method of `Promise` iterates over.

    A promise in a list of Python's is a proxy, which lives only until the list is exhausted.
    """
    items = list(iterate(values))
    if isinstance(values, PyProxy):
        for item in items:
            if isinstance(item, PyProxy):
                item.destroyed = EXHAUSTED
    return items


def _all(values: Any) -> PyodideFuture:
    items = [_started(value) for value in _elements(values)]

    async def gather() -> Any:
        return [unwrap(value) for value in await asyncio.gather(*items)]

    return promise(gather(), wrap)


def _started_or_failed(value: Any) -> Any:
    try:
        return _started(value)
    except JsException as error:
        return _reject(error)


def _all_settled(values: Any) -> PyodideFuture:
    items = [_started_or_failed(value) for value in _elements(values)]

    async def gather() -> Any:
        results = await asyncio.gather(*items, return_exceptions=True)
        return [
            {"status": "rejected", "reason": unwrap(result)}
            if isinstance(result, BaseException)
            else {"status": "fulfilled", "value": unwrap(result)}
            for result in results
        ]

    return promise(gather(), wrap)


def _race(values: Any) -> PyodideFuture:
    items = [_started(value) for value in _elements(values)]

    async def first() -> Any:
        await asyncio.wait(items, return_when=asyncio.FIRST_COMPLETED)
        return unwrap(next(item for item in items if item.done()).result())

    return promise(first(), wrap)


def _any(values: Any) -> PyodideFuture:
    items = [_started(value) for value in _elements(values)]

    async def first() -> Any:
        for item in asyncio.as_completed(items):
            try:
                return unwrap(await item)
            except Exception:
                continue
        raise JsException("AggregateError", "All promises were rejected")

    return promise(first(), wrap)


def _started(value: Any) -> PyodideFuture:
    """The promise of a value, which another promise waits for."""
    started = _resolved(value)
    started.awaited = True
    return started


def _construct(executor: Any = UNDEFINED) -> PyodideFuture:
    if type_of(executor) != "function":
        raise JsException("TypeError", f"Promise resolver {display(executor)} is not a function")
    result = PyodideFuture(loop=asyncio.get_running_loop())

    def resolve(value: Any = UNDEFINED) -> Any:
        work = _awaitable(value)
        if result.done():
            return UNDEFINED
        if work is None:
            result.set_result(wrap(value))
        else:
            asyncio.ensure_future(work).add_done_callback(_copy_to(result))
        return UNDEFINED

    def reject(reason: Any = UNDEFINED) -> Any:
        if not result.done():
            result.set_exception(_as_exception(reason))
        return UNDEFINED

    try:
        call_value(executor, Function(resolve, "resolve", raw=True), Function(reject, raw=True))
    except Exception as error:
        reject(error)
    return result


def _with_resolvers(*_: Any) -> dict[str, Any]:
    functions: list[Any] = []

    def keep(*given: Any) -> Any:
        functions.extend(given)
        return UNDEFINED

    made = _construct(Function(keep, raw=True))
    return {"promise": unwrap(made), "resolve": functions[0], "reject": functions[1]}


def _try(function: Any = UNDEFINED, *args: Any) -> PyodideFuture:
    try:
        return _resolved(call_value(function, *args))
    except Exception as error:
        return _reject(error)


def _copy_to(target: PyodideFuture) -> Callable[[asyncio.Future[Any]], None]:
    def copy(source: asyncio.Future[Any]) -> None:
        if target.done() or source.cancelled():
            return
        error = source.exception()
        if error is None:
            target.set_result(source.result())
        else:
            target.set_exception(error)

    return copy


def _static(name: str, function: Callable[..., Any]) -> Function:
    return Function(function, name, raw=True)


TIMERS: Final[dict[str, Any]] = {
    "setTimeout": _static("setTimeout", _set_timer(False)),
    "setInterval": _static("setInterval", _set_timer(True)),
    "clearTimeout": _static("clearTimeout", _clear_timer),
    "clearInterval": _static("clearInterval", _clear_timer),
    "queueMicrotask": _static("queueMicrotask", _queue_microtask),
    "Promise": Constructor(
        "Promise",
        _construct,
        statics={
            "resolve": _static("resolve", _resolved),
            "reject": _static("reject", _reject),
            "all": _static("all", _all),
            "allSettled": _static("allSettled", _all_settled),
            "race": _static("race", _race),
            "any": _static("any", _any),
            "withResolvers": _static("withResolvers", _with_resolvers),
            "try": _static("try", _try),
        },
    ),
}
