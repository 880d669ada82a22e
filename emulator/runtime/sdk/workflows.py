"""What the `run` of a Workflow gets: its event, and `step` (workflows.md 12, python-api.md 1.8).

`step` stands before the platform's object of that name, whose `do`, `sleep`, `sleepUntil` and
`waitForEvent` the engine answers. The decorator `step.do` only registers; the step is asked for
when what it returns is called and awaited, and whatever its parameters name has run before.

What differs between the SDKs, the one from PyPI and the one frozen in the runtime:

    from PyPI (since 2026-04-21)                frozen
    a step is remembered as what `do` returned  by its name: of two with one name that run at the
                                                same time, the second fails with KeyError
    results: `python_to_rpc`, JsDict            `to_js` (tuples are lists, datetimes are refused),
                                                dict
    `wait_for_event` is a coroutine, JsDict     a promise, which begins at once, raw JsProxy
    a `run` of the class itself is wrapped      one of a mixin too

Both resolve dependencies by parameter names from 2026-02-25 on, and by `depends` before.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime import js
from emulator.runtime.ffi import to_js
from emulator.runtime.profile import flags, is_modern
from emulator.runtime.proxies import JsProxy, wrap
from emulator.runtime.pyproxy import jsnull, to_host, unwrap
from emulator.runtime.rpc_values import (
    from_canonical,
    python_from_rpc,
    python_to_rpc,
    to_canonical,
)
from emulator.runtime.sdk.workflow_errors import python_error
from emulator.runtime.to_py import to_py
from emulator.values import UNDEFINED, Function, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import CodeType

    # What `step.do` makes of a function: called without arguments, it runs the step.
    Step = Callable[[], Awaitable[Any]]
    # Finds what the parameters of a step's function stand for.
    Sources = Callable[[Callable[..., Any]], Sequence[Any]]

_IMPLICIT: Final = "python_workflows_implicit_dependencies"
_DEPENDS: Final = (
    "Since 2026-02-25 a step's parameters are named after other steps, and `depends` is gone, in "
    "production too.\nRename them, or set no_python_workflows_implicit_dependencies."
)
# In place of a step, where a parameter is `ctx`.
_CTX: Final = object()
_SAME_NAME: Final = (
    "The SDK frozen in the runtime, which a compatibility date before 2026-04-21 gives, knows a "
    "running step by its name only: let steps with one name run one after the other."
)


class StepBody(Function):
    """The body of a step as the engine gets it: takes and returns canonical values."""


class _WorkflowStepWrapper:
    """`step`: the SDK's names before the platform's object, which is `_js_step`."""

    do: Callable[..., Any]
    _js_step: Any

    def __new__(cls, js_step: Any) -> _WorkflowStepWrapper:
        return js_step if isinstance(js_step, cls) else object.__new__(cls)

    def __init__(self, js_step: Any) -> None:
        if js_step is self:
            return
        # Unit tests of a `run` give it an object of their own.
        self._js_step = wrap(js_step) if isinstance(js_step, HostObject) else js_step
        self._modern = is_modern()
        self._results: dict[Any, Any] = {}
        self._running: dict[Any, asyncio.Task[Any]] = {}
        self._steps: dict[str, Step] = {}
        self.do = self._do_or_tell if _IMPLICIT in flags() else self._do_legacy
        if not self._modern:
            self.wait_for_event = self._wait_for_event  # type: ignore[method-assign]

    @property
    def js_object(self) -> Any:
        """The platform's own `step`, for what the SDK has no words for: `rollback`."""
        return self._js_step

    # -- the decorator: named as in the SDK, for the texts of Python's own errors ------------------

    def _do_implicit(
        self, name: str | None = None, *, concurrent: bool = False, config: Any = None
    ) -> Callable[[Callable[..., Any]], Step]:
        sources = functools.partial(_by_parameter_names, steps=self._steps)
        return self._create_step_decorator(name, config, concurrent, sources)

    @functools.wraps(_do_implicit)
    def _do_or_tell(self, *args: Any, **kwargs: Any) -> Callable[[Callable[..., Any]], Step]:
        try:
            return self._do_implicit(*args, **kwargs)
        except TypeError as error:
            if "depends" in kwargs:
                error.add_note(_DEPENDS)
            raise

    def _do_legacy(
        self, name: str | None, depends: Any = None, concurrent: bool = False, config: Any = None
    ) -> Callable[[Callable[..., Any]], Step]:
        sources = functools.partial(_from_list, depends=depends, checked=self._modern)
        return self._create_step_decorator(name, config, concurrent, sources)

    def _create_step_decorator(
        self, name: str | None, config: Any, concurrent: bool, sources: Sources
    ) -> Callable[[Callable[..., Any]], Step]:
        def decorator(func: Callable[..., Any]) -> Step:
            step_name = func.__name__ if name is None else name

            async def wrapper() -> Any:
                arguments = await self._resolve(sources(func), concurrent)
                return await self._run(step_name, wrapper, config, func, arguments)

            wrapper._step_name = step_name  # type: ignore[attr-defined]
            self._steps[step_name] = wrapper
            return wrapper

        return decorator

    # -- running a step ----------------------------------------------------------------------------

    async def _resolve(self, sources: Sequence[Any], concurrent: bool) -> list[Any]:
        """The results of the steps that a step depends on, run if they have not been."""
        if concurrent:
            return list(await asyncio.gather(*map(self._result, sources)))
        return [await self._result(source) for source in sources]

    async def _result(self, step: Any) -> Any:
        if step is _CTX:
            return step
        key = self._key(step)
        if key in self._results:
            return self._results[key]
        running = self._running.get(key)
        return await (step() if running is None else running)

    def _key(self, step: Any) -> Any:
        return step if self._modern else step._step_name

    async def _run(
        self,
        name: str,
        step: Step,
        config: Any,
        func: Callable[..., Any],
        arguments: Sequence[Any],
    ) -> Any:
        key = self._key(step)
        task = asyncio.create_task(self._ask(name, config, func, arguments))
        self._running[key] = task
        try:
            result = self._results[key] = await task
        finally:
            if self._running.pop(key, None) is None and not self._modern:
                error = KeyError(key)
                error.add_note(_SAME_NAME)
                raise error
        return result

    async def _ask(
        self, name: str, config: Any, func: Callable[..., Any], arguments: Sequence[Any]
    ) -> Any:
        """Let the engine run the step, or tell what it has stored."""
        if isinstance(self._js_step, JsProxy):
            body = wrap(StepBody(self._body(name, func, arguments), "wrapper"))
        else:
            body = self._python_body(func, arguments)
        given = (body,) if config is None else (_plain(config), body)
        try:
            return self._from_js(await self._js_step.do(name, *given))
        except JsException as error:
            raised = python_error(error, modern=self._modern)
            if raised is error:
                raise
            raise raised from error

    def _body(
        self, name: str, func: Callable[..., Any], arguments: Sequence[Any]
    ) -> Callable[..., Any]:
        async def call(ctx: Any = UNDEFINED, *_: Any) -> Any:
            given = [self._from_js(wrap(ctx)) if one is _CTX else one for one in arguments]
            result = func(*given)
            if asyncio.iscoroutine(result):
                result = await result
            try:
                return to_canonical(result) if self._modern else to_host(unwrap(_plain(result)))
            except TypeError as error:
                error.add_note(f"emulator: it is what the body of the step {name!r} returned")
                raise

        return call

    def _python_body(
        self, func: Callable[..., Any], arguments: Sequence[Any]
    ) -> Callable[..., Any]:
        """The body for a `do` in Python, which may call it with a context or without."""

        async def call(ctx: Any = None) -> Any:
            given = [self._from_js(ctx) if one is _CTX else one for one in arguments]
            result = func(*given)
            if asyncio.iscoroutine(result):
                result = await result
            return python_to_rpc(result) if self._modern else _plain(result)

        return call

    def _from_js(self, value: Any) -> Any:
        if self._modern:
            return python_from_rpc(value)
        return None if value is jsnull else _from_js_frozen(value)

    # -- the other methods -------------------------------------------------------------------------

    def sleep(self, *args: Any, **kwargs: Any) -> Any:
        """Sleep for a duration: text such as "10 seconds", or a number of milliseconds."""
        return self._js_step.sleep(*args, **kwargs)

    def sleep_until(self, name: str, timestamp: Any) -> Any:
        """Sleep until a datetime (a naive one is in UTC), or milliseconds since 1970."""
        moment = timestamp if isinstance(timestamp, str) else python_to_rpc(timestamp)
        return self._js_step.sleepUntil(name, moment)

    async def wait_for_event(self, name: str, event_type: str, /, timeout: Any = "24 hours") -> Any:
        """Wait for an event; returns its `payload`, `timestamp` and `type`."""
        return python_from_rpc(await self._wait_for_event(name, event_type, timeout))

    def _wait_for_event(self, name: str, event_type: str, /, timeout: Any = "24 hours") -> Any:
        options = _plain({"type": event_type, "timeout": timeout})
        return self._js_step.waitForEvent(name, options)


_WorkflowStepWrapper.__module__ = "workers.entrypoints"


def _by_parameter_names(func: Callable[..., Any], steps: dict[str, Step]) -> list[Any]:
    """The steps whose names a function's parameters have (P5)."""
    sources: list[Any] = []
    for name in _parameter_names(func):
        if name in steps:
            sources.append(steps[name])
        elif name == "ctx":
            sources.append(_CTX)
        else:
            raise TypeError(f"Received unexpected parameter {name}")
    return sources


def _from_list(func: Callable[..., Any], depends: Any, *, checked: bool) -> list[Any]:
    """The steps of a `depends` list, one for each parameter (P6)."""
    names = _parameter_names(func)
    count = sum(name != "ctx" for name in names)
    if depends is None and count:
        raise TypeError(f"Step has {count} non-ctx parameter(s) but no 'depends' list provided")
    if depends is not None and len(depends) != count:
        raise TypeError(
            f"Step declares {count} non-ctx parameter(s) but 'depends' has {len(depends)} item(s)"
        )
    steps = iter(depends or ())
    sources = [(name, _CTX if name == "ctx" else next(steps)) for name in names]
    for name, step in sources:
        if checked and step is not _CTX and not hasattr(step, "_step_name"):
            raise TypeError(
                f"'depends' entry for parameter {name!r} is not a function decorated with step.do"
            )
    return [step for _, step in sources]


def _parameter_names(func: Callable[..., Any]) -> tuple[str, ...]:
    # Each run makes its functions anew, of the same code.
    if type(func) is FunctionType and not vars(func):
        return _names_in(func.__code__)
    return tuple(inspect.signature(func).parameters)


@functools.lru_cache(maxsize=1024)
def _names_in(code: CodeType) -> tuple[str, ...]:
    cells = tuple(CellType() for _ in code.co_freevars)
    return tuple(inspect.signature(FunctionType(code, {}, closure=cells)).parameters)


def _plain(value: Any) -> Any:
    """Return `to_js(value, dict_converter=Object.fromEntries)`; functions stay callable."""
    return to_js(value, dict_converter=js.Object.fromEntries)


def _from_js_frozen(value: Any) -> Any:
    """What `python_from_rpc` of the frozen SDK returns: dict, and null as it is."""
    if not isinstance(value, (JsProxy, JsException)):
        return value
    leaf = lambda item, convert, cache: from_canonical(unwrap(item))  # noqa: E731
    return to_py(unwrap(value), default_converter=leaf)


def wrap_workflow_event(event: Any) -> Any:
    """Return the event as `run` sees it, for the canonical one or a `JsProxy` of it.

    A fresh copy each time, so that what `run` does to it is gone at the next replay (B14).
    """
    proxy = wrap(event)
    return python_from_rpc(proxy) if is_modern() else _from_js_frozen(proxy)


def wrap_workflow_step(js_step: Any) -> Any:
    """Return `step` as `run` sees it, for the platform's object or a test's own of Python."""
    return _WorkflowStepWrapper(js_step)


def wrap_run(function: Callable[..., Any], *, frozen_only: bool = False) -> Callable[..., Any]:
    """Return the method `run` of a class, which gets what JavaScript has, with what Python has."""

    @functools.wraps(function)
    async def run(self: Any, event: Any = None, step: Any = None, /, *args: Any) -> Any:
        modern = is_modern()
        if modern and frozen_only:
            result = function(self, event, step, *args)
            return await result if inspect.isawaitable(result) else result
        if isinstance(event, JsProxy):
            event = wrap_workflow_event(event)
        if step is not None:
            step = wrap_workflow_step(step)
        result = function(self, event, step, *args)
        if asyncio.iscoroutine(result):
            result = await result
        return python_to_rpc(result) if modern and result is not None else result

    return run


async def run_workflow(instance: Any, event: dict[str, Any], step: HostObject) -> Any:
    """Call `run` of an entrypoint's instance; returns its output as a canonical value.

    Raises what `run` raises, and `TypeError` for an output that cannot be sent.
    """
    method = getattr(instance, "run", None)
    if not callable(method):
        raise JsException("TypeError", "Method run does not exist")
    result = method(wrap(event), wrap(step))
    if inspect.isawaitable(result):
        result = await result
    if result is None:
        return None
    return to_host(unwrap(result if is_modern() else _plain(result)))


async def call_step_function(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that was given to the platform's `step`, with canonical values.

    That is a step's body, or whatever user code gave to `_js_step` itself. Returns a canonical
    value and raises what the function raises; `step_error` makes the engine's error of it.
    """
    result = function(*args)
    if not inspect.isawaitable(result):
        return result
    result = await result
    return result if isinstance(function, StepBody) else to_host(unwrap(result))
