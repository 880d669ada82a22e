"""The base classes of a Worker's entrypoints (python-api.md 1.1)."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn, TypeVar

from emulator.runtime.profile import is_modern
from emulator.runtime.rpc import _BindingWrapper, _EnvWrapper
from emulator.runtime.sdk.request import Request
from emulator.runtime.sdk.workflows import wrap_run

_F = TypeVar("_F", bound=Callable[..., Any])


class _Entrypoint:
    """What the three base classes have in common: `self.ctx` and `self.env`."""

    ctx: Any
    env: Any

    def __init__(self, ctx: Any, env: Any) -> None:
        self.ctx = ctx
        self.env = _EnvWrapper(env)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            _wrap_init(cls)


def _wrap_init(cls: type[Any]) -> None:
    """Let a class's own `__init__` see the wrapped `env`, whether it calls the base's or not."""
    original = cls.__init__

    @functools.wraps(original)
    def wrapped(self: Any, *args: Any, **options: Any) -> None:
        if args and issubclass(cls, DurableObject):
            args = (_object_context(args[0]), *args[1:])
        if len(args) > 1:
            args = (args[0], _EnvWrapper(args[1]), *args[2:])
        original(self, *args, **options)

    cls.__init__ = wrapped


class WorkerEntrypoint(_Entrypoint):
    """Base of a Worker's entrypoint; a new instance is made for each event."""

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).get("queue")
        if isinstance(own, FunctionType):
            cls.queue = _wrap_queue(own)  # type: ignore[attr-defined]
        elif own is None:
            _wrap_inherited_queue(cls)


def _wrap_inherited_queue(cls: type[Any]) -> None:
    """A mixin beside the base class may bring the handler, which then is wrapped too."""
    for base in cls.__mro__[1:]:
        found = vars(base).get("queue")
        if found is not None:
            if isinstance(found, FunctionType) and not issubclass(base, WorkerEntrypoint):
                cls.queue = _wrap_queue(found)
            return


def _wrap_queue(handler: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(handler)
    async def queue(self: Any, batch: Any, *args: Any, **options: Any) -> Any:
        argument = _BindingWrapper(batch) if is_modern() else batch
        result = handler(self, argument, *args, **options)
        return await result if inspect.isawaitable(result) else result

    return queue


class DurableObject(_Entrypoint):
    """Base of a Durable Object; one instance is all there is of an object in memory."""

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(_object_context(ctx), env)


class DurableObjectAbort(BaseException):
    """Ends the code that called `ctx.abort`."""


class DurableObjectContext:
    """`ctx` of a Durable Object: the platform's, with a wrapped `storage`."""

    _ctx: Any

    def __new__(cls, ctx: Any) -> DurableObjectContext:
        return ctx if isinstance(ctx, cls) else object.__new__(cls)

    def __init__(self, ctx: Any) -> None:
        if ctx is not self:
            self._ctx = ctx

    def __getattr__(self, name: str) -> Any:
        if name == "_ctx":
            raise AttributeError(name)
        result = getattr(self._ctx, name)
        if name == "storage":
            result = _BindingWrapper(result)
        self.__dict__[name] = result
        return result

    def abort(self, reason: str | None = None) -> NoReturn:
        """Reset the object, when the code that calls has ended by `DurableObjectAbort`."""
        ctx = self._ctx
        abort = ctx.abort if reason is None else functools.partial(ctx.abort, reason)
        asyncio.get_running_loop().call_soon(abort)
        raise DurableObjectAbort(reason or "Durable Object abort requested")


def _object_context(ctx: Any) -> Any:
    return DurableObjectContext(ctx) if is_modern() else ctx


class WorkflowEntrypoint(_Entrypoint):
    """Base of a Workflow; a new instance is made for each execution of `run(event, step)`."""

    def __init__(self, ctx: Any, env: Any) -> None:
        super().__init__(ctx, env)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).get("run")
        if isinstance(own, FunctionType):
            cls.run = wrap_run(own)  # type: ignore[attr-defined]
        elif own is None:
            _wrap_inherited_run(cls)


def _wrap_inherited_run(cls: type[Any]) -> None:
    """The frozen SDK wraps what a mixin brings too; that from PyPI leaves it raw values."""
    for base in cls.__mro__[1:]:
        found = vars(base).get("run")
        if found is not None:
            if isinstance(found, FunctionType) and not issubclass(base, WorkflowEntrypoint):
                cls.run = wrap_run(found, frozen_only=True)
            return


for _class in (
    DurableObject,
    DurableObjectAbort,
    DurableObjectContext,
    WorkerEntrypoint,
    WorkflowEntrypoint,
):
    _class.__module__ = "workers.entrypoints"

del _class


def handler(func: _F) -> _F:
    """Let a global handler (`on_fetch`) get the SDK's `Request` and a wrapped `env`."""

    @functools.wraps(func)
    def wrapper(*args: Any, **options: Any) -> Any:
        if args and _is_request(args[0]):
            args = (Request(args[0]), *args[1:])
        if len(args) > 1:
            args = (args[0], _EnvWrapper(args[1]), *args[2:])
        return func(*args, **options)

    return wrapper  # type: ignore[return-value]


handler.__module__ = "workers.entrypoints"


def _is_request(value: Any) -> bool:
    constructor = getattr(value, "constructor", None)
    return getattr(constructor, "name", None) == "Request"


__all__ = [
    "DurableObject",
    "DurableObjectAbort",
    "DurableObjectContext",
    "WorkerEntrypoint",
    "WorkflowEntrypoint",
    "handler",
]
