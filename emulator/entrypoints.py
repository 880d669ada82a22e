"""Finding a Worker's entrypoints and handlers, and calling them as workerd does.

Rules (python-api.md 2.1, 2.2, 1.2):

1. Entrypoints are the strict subclasses of the SDK's base classes among the main module's names
   (`__all__`, else those without a leading underscore), each under its own `__name__` and taken
   from the module by that name. `Default` is the default one; an alias does not change a name.
2. Handlers are plain functions of a class, its bases included, without a leading underscore.
3. Before 2025-08-14 handlers may be global: `on_fetch`, `on_queue` and so on. A class `Default`
   comes before them, and then its handler of requests is the method `on_fetch`; other events keep
   their names (workerd's python-entrypoint-helper.ts).
4. `fetch` is called with as many of `(request, None, None)` as it takes; `queue` and `scheduled`
   with all three, whatever they take. Global handlers get `env` and `ctx` in place of None.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from dataclasses import dataclass, field, replace
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from emulator import passed_none
from emulator.asset_config import AssetsOnly
from emulator.location import Location, is_users
from emulator.runtime.sdk.entrypoints import DurableObject, WorkerEntrypoint, WorkflowEntrypoint
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

_BASES = (WorkerEntrypoint, DurableObject, WorkflowEntrypoint)
_RELAXED = frozenset({"fetch", "test", "alarm"})
_LEGACY_FLAG = "python_no_global_handlers"
_GLOBAL_UNTIL = "2025-08-14"
_EVENTS = ("fetch", "queue", "scheduled", "tail", "email")
# The signature production calls, for the note on an arity error.
_SIGNATURES = {
    "queue": "queue(self, batch, env, ctx)",
    "scheduled": "scheduled(self, controller, env, ctx)",
    "tail": "tail(self, events, env, ctx)",
}
# Most arguments of a handler that is called with as many as it takes.
_MOST = 4
_RUN = "async def run(self, event, step): ..."


class Misfit(NamedTuple):
    """A handler that cannot take the arguments production calls it with."""

    event: str
    message: str
    location: Location | None


class NoEntrypoint(Exception):
    """The main module has nothing that an event could be sent to."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a main module exports."""

    default: type[Any] | None
    named: Mapping[str, type[Any]] = field(default_factory=dict)
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    file: str = ""
    # Whether the date is one of global handlers (rule 3).
    legacy: bool = False
    # How many arguments each relaxed handler takes, once it was asked.
    _arity: dict[str, int] = field(default_factory=dict)

    def handles(self, event: str) -> bool:
        """Whether the default entrypoint has a handler for `event`."""
        if self.default is None:
            return event in self.functions
        return is_handler(self.default, self._method(event))

    @property
    def handlers(self) -> list[str]:
        """The names of the default entrypoint's handlers."""
        return [event for event in _EVENTS if self.handles(event)]

    def bind(self, event: str, ctx: Any, env: Any) -> Callable[..., Any]:
        """Return the handler of `event`, on a fresh instance of the default entrypoint.

        It takes the event's own argument. Raises what the constructor raises, and `JsException`
        where there is no such handler, with the runtime's text.
        """
        if event not in self._arity and not self.handles(event):
            raise self._lacks(event)
        if self.default is None:
            return self._relaxed(event, self.functions[event], env, ctx)
        method = getattr(self.default(ctx, env), self._method(event))
        if event in _RELAXED:
            return self._relaxed(event, method, None, None)
        return lambda argument, *_: _call_strictly(event, method, argument)

    def of(self, default: type[Any]) -> Script:
        """The same module as an event sees it that is meant for another of its entrypoints."""
        return replace(self, default=default, functions={}, _arity={})

    def misfits(self) -> list[Misfit]:
        """The `queue`, `scheduled` and `tail` handlers that three arguments do not fit (rule 4)."""
        if self.default is None:
            return []
        found = (
            _misfit(event, getattr(self.default, event))
            for event in _SIGNATURES
            if is_handler(self.default, event)
        )
        return [misfit for misfit in found if misfit is not None]

    def explain(self, event: str, error: BaseException) -> None:
        """Add to an error what a newcomer needs to know about the arguments of `event`."""
        method = self._method(event)
        if self.default is not None and is_handler(self.default, method):
            passed_none.explain(error, getattr(self.default, method))

    def nones(self) -> Iterator[tuple[str, str, str, Location]]:
        """Yield where handlers ask for attributes of what production passes as None.

        That is the event, the parameter, its counterpart on `self`, and the line.
        """
        for event in _EVENTS if self.default is not None else ():
            if self.handles(event):
                handler = getattr(self.default, self._method(event))
                for name, own, location in passed_none.used(handler):
                    yield event, name, own, location

    def defined_at(self, event: str) -> Location | None:
        """The line on which the handler of `event` begins."""
        function = self.functions.get(event)
        if self.default is not None:
            function = getattr(self.default, self._method(event), None)
        # What the SDK, or a decorator of the user's, has put around it is not where it begins.
        function = inspect.unwrap(function) if callable(function) else None
        return _defined_at(function) if hasattr(function, "__code__") else None

    def _method(self, event: str) -> str:
        return "on_fetch" if self.legacy and event == "fetch" else event

    def _lacks(self, event: str) -> JsException:
        if self.default is None and self.functions:
            text = f'Python entrypoint "{self.file}" does not export a handler named "on_{event}"'
            return JsException("Error", text)
        if self._method(event) == event:
            # workerd, io/worker.c++ and api/global-scope.c++: of all these one ends without a dot.
            dot = "" if event == "scheduled" else "."
            error = JsException("Error", f"Handler does not export a {event}() function{dot}")
            if self.default is not None and is_handler(self.default, f"on_{event}"):
                error.add_note(f"With this compatibility date the method is named `{event}`.")
            return error
        error = JsException("TypeError", f"Method on_{event} does not exist")
        error.add_note(
            f"With a compatibility date before {_GLOBAL_UNTIL} the method of a class that handles "
            f"requests is `on_fetch`: name it so, or set the flag {_LEGACY_FLAG}."
        )
        return error

    def _relaxed(
        self, event: str, function: Callable[..., Any], *rest: object
    ) -> Callable[..., Any]:
        count = self._arity.get(event)
        if count is None:
            count = self._arity[event] = _positional(function)
        return lambda argument, *_: function(*(argument, *rest)[:count])


def discover(main: ModuleType | type[Any], flags: frozenset[str]) -> Script:
    """Read the entrypoints of a main module, or take a class as the default one.

    Raises `NoEntrypoint` where there is none.
    """
    legacy = _LEGACY_FLAG not in flags
    if main is AssetsOnly:
        return Script(None)
    if isinstance(main, type):
        if not issubclass(main, WorkerEntrypoint):
            raise NoEntrypoint(f"{main.__qualname__} is no subclass of workers.WorkerEntrypoint")
        # Other entrypoints, Workflows and objects stand beside it.
        module = sys.modules.get(main.__module__)
        beside = {} if module is None else _classes(module)
        return Script(main, {**beside, main.__name__: main}, legacy=legacy)
    classes = _classes(main)
    default = classes.get("Default")
    functions = _global_handlers(main) if legacy and default is None else {}
    if default is None and not functions and not _has_objects(classes):
        raise NoEntrypoint(_advise(main, classes, flags))
    return Script(default, classes, functions, f"{main.__name__}.py", legacy)


def _classes(main: ModuleType) -> dict[str, type[Any]]:
    names = getattr(main, "__all__", None)
    if names is None:
        names = [name for name in dir(main) if not name.startswith("_")]
    classes = {}
    for name in names:
        value = getattr(main, name, None)
        if _is_entrypoint(value):
            # The runtime makes its instances from the class that has this name now.
            actual = getattr(main, value.__name__, None)
            if _is_entrypoint(actual):
                classes[value.__name__] = actual
    return classes


def _is_entrypoint(value: Any) -> TypeGuard[type[Any]]:
    return isinstance(value, type) and issubclass(value, _BASES) and value not in _BASES


def _has_objects(classes: Mapping[str, type[Any]]) -> bool:
    """Whether there are classes that are reached without a default entrypoint."""
    return any(issubclass(cls, (DurableObject, WorkflowEntrypoint)) for cls in classes.values())


def _global_handlers(main: ModuleType) -> dict[str, Callable[..., Any]]:
    return {
        name[len("on_") :]: value
        for name, value in vars(main).items()
        if name.startswith("on_") and callable(value)
    }


def _advise(main: ModuleType, classes: Mapping[str, type[Any]], flags: frozenset[str]) -> str:
    text = (
        f"the module {main.__name__} has no registered event handlers (deploying fails with 10068)"
    )
    if classes:
        return (
            f"{text}: the default entrypoint must be a class whose own name is `Default`, and "
            f"there are only: {', '.join(classes)}. An alias such as `Default = Other` does not do"
        )
    if _LEGACY_FLAG in flags and _global_handlers(main):
        return (
            f"{text}: global handlers such as on_fetch are not called with this compatibility "
            "date; write `class Default(WorkerEntrypoint)`, or set the flag "
            f"disable_{_LEGACY_FLAG}"
        )
    return f"{text}: write `class Default(WorkerEntrypoint)` with the method `fetch`"


def is_handler(cls: type[Any], name: str) -> bool:
    """Whether `name` is a plain method of `cls` (rule 2)."""
    if name.startswith("_"):
        return False
    for base in cls.__mro__:
        if name in vars(base):
            return isinstance(vars(base)[name], FunctionType)
    return False


def awaited(result: Any) -> Awaitable[Any]:
    """Return what to await for a handler's result: many a handler is no coroutine."""
    return result if hasattr(result, "__await__") else _plain(result)


async def _plain(result: Any) -> Any:
    return result


def relaxed_call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with as many of the arguments as it takes; they are at most four."""
    return function(*arguments[: _positional(function)])


def _positional(function: Callable[..., Any]) -> int:
    """How many positional arguments a function takes, at most the four there are."""
    plain = getattr(function, "__func__", None)
    if isinstance(plain, FunctionType) and not vars(plain):
        code = plain.__code__
        return _MOST if code.co_flags & inspect.CO_VARARGS else max(code.co_argcount - 1, 0)
    count = 0
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            return _MOST
        count += parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    return count


async def _call_strictly(event: str, method: Callable[..., Any], argument: Any) -> Any:
    try:
        return await awaited(method(argument, None, None))
    except (TypeError, AttributeError) as error:
        passed_none.explain(error, method)
        wrong = isinstance(error, TypeError) and event in _SIGNATURES and not _takes_three(method)
        if wrong:
            error.add_note(
                f"Production calls `{event}` with three arguments, the last two None: write "
                f"`{_SIGNATURES[event]}` and use `self.env` and `self.ctx`."
            )
        raise


def _takes_three(method: Callable[..., Any]) -> bool:
    try:
        inspect.signature(method).bind(None, None, None)
    except TypeError:
        return False
    return True


def _misfit(event: str, function: Any) -> Misfit | None:
    """What is wrong with a method of a class that production calls with three arguments."""
    while not is_users(function.__code__) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__  # the SDK's own wrapper takes anything
    text = _refusal(function, 4)
    if text is None:
        return None
    return Misfit(
        event,
        f"production calls `{event}` with three arguments, the last two None, which raises "
        f"TypeError: {text}. Write `{_SIGNATURES[event]}`, and use `self.env` and `self.ctx`",
        _defined_at(function),
    )


def _takes(function: FunctionType, count: int) -> bool:
    """Whether a function takes so many positional arguments, whatever is said of it (`_bare`)."""
    code = function.__code__
    most = code.co_argcount
    least = most - len(function.__defaults__ or ())
    named = code.co_varnames[most : most + code.co_kwonlyargcount]
    if count < least or any(name not in (function.__kwdefaults__ or ()) for name in named):
        return False
    return count <= most or bool(code.co_flags & inspect.CO_VARARGS)


def misfit_of_run(cls: type[Any]) -> Misfit | None:
    """What is wrong with a Workflow's `run`, which production calls with two arguments."""
    function: Any = getattr(cls, "run", None)
    if not callable(function):
        text = f"the Workflow's class {cls.__name__} has no `run`; write `{_RUN}`"
        return Misfit("run", text, None)
    while not is_users(function.__code__) and hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    refusal = _refusal(function, 3)
    if refusal is None:
        return None
    return Misfit(
        "run",
        f"production calls `run` of {cls.__name__} with two arguments, which raises TypeError: "
        f"{refusal}. Write `{_RUN}`",
        _defined_at(function),
    )


def _refusal(function: Any, count: int) -> str | None:
    """The text with which a function refuses so many arguments; None if it takes them."""
    if _takes(function, count):
        return None
    try:
        _bare(function)(*[None] * count)
    except TypeError as error:
        return str(error)
    raise AssertionError("unreachable: the arguments do not fit")


def _bare(function: FunctionType) -> FunctionType:
    """A function without what says of it (`__wrapped__`, `__signature__`) what it may not be."""
    code, name = function.__code__, function.__name__
    bare = FunctionType(code, {}, name, function.__defaults__, function.__closure__)
    bare.__kwdefaults__, bare.__qualname__ = function.__kwdefaults__, function.__qualname__
    return bare


def _defined_at(function: Any) -> Location:
    """The line of a function's `def`; its code begins with the decorators."""
    code = function.__code__
    line = first = code.co_firstlineno
    while text := linecache.getline(code.co_filename, line):
        if text.lstrip().startswith(("def ", "async def ")):
            return Location(code.co_filename, line)
        line += 1
    return Location(code.co_filename, first)
