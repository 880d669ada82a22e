"""The test as a caller of bindings: its own scope, in which no fault strikes."""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, TypeVar, overload

from emulator.importer import Bundle
from emulator.invocation import Invocation
from emulator.isolate import Isolate
from emulator.pump import Goal
from emulator.runtime.rpc import (
    TestEnvWrapper,
    _BindingWrapper,
    _DurableObjectNamespaceWrapper,
    raw_env,
)
from emulator.scope import SCOPE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from emulator.isolate import Worker

_T = TypeVar("_T")
# What a test gets as a `TestBinding`: bindings, and the handles they return.
_HANDLES = (_BindingWrapper, _DurableObjectNamespaceWrapper)

_CONVERTING = frozenset({"enable_python_external_sdk", "python_workers_20250116"})
# pytest leaves these frames out of a failing test's traceback.
__tracebackhide__ = True


class TestInvocation(Invocation):
    """What the test's own calls on bindings belong to; it never ends."""

    __test__ = False  # pytest's, not a test class
    is_test = True

    def __init__(self, isolate: Isolate, *, converts: bool) -> None:
        super().__init__(isolate, "test")
        self.converts = converts

    @property
    def flags(self) -> frozenset[str]:
        return super().flags | _CONVERTING if self.converts else super().flags

    @property
    def waited_for(self) -> bool:
        return True

    def track(self, call: Any) -> None:
        """A test may leave a call unawaited; Python warns of it."""

    def write(self, level: str, text: str) -> None:
        """What a test prints is no Worker's output."""


class Caller:
    """Runs functions of the emulator for a test, as if a Worker called them.

    One that `converts` has bindings wrapped and values converted as the SDK of today does it,
    whatever the Worker's compatibility date.
    """

    def __init__(
        self, worker: Worker, isolate: Isolate | None = None, *, converts: bool = False
    ) -> None:
        self._worker = worker
        self._kernel = worker.kernel
        # Not the Worker's isolate: a test's call neither loads its code nor is lost with it.
        self._isolate = Isolate(worker, Bundle(None)) if isolate is None else isolate
        self._converts = converts

    def converting(self) -> Caller:
        """The same caller, with values converted."""
        return Caller(self._worker, self._isolate, converts=True)

    def context(self) -> Context:
        """A copy of the present context that belongs to the test."""
        context = copy_context()
        context.run(SCOPE.set, TestInvocation(self._isolate, converts=self._converts))
        return context

    def call(self, function: Callable[..., _T], *args: Any) -> _T:
        """Call a function in the test's scope."""
        return self.context().run(function, *args)

    def inside(self, function: Callable[[], _T]) -> _T:
        """Call a function in the test's scope, inside the simulation; time does not move."""
        return self._kernel.inside(lambda: self.call(function))  # type: ignore[no-any-return]

    def names(self) -> list[str]:
        """The names of the Worker's bindings."""
        return list(self._worker.env)

    @overload
    async def at_once(self, name: str, function: Callable[[], Awaitable[_T]]) -> _T: ...
    @overload
    async def at_once(self, name: str, function: Callable[[], _T]) -> _T: ...
    async def at_once(self, name: str, function: Callable[[], Any]) -> Any:
        """Call a function inside the simulation, and run all that is due at this instant.

        `function` may return an awaitable, which is awaited there.
        """
        kernel = self._kernel
        if kernel.pump.inside:
            result = self.call(function)
            return await result if hasattr(result, "__await__") else result
        outcome: asyncio.Future[Any] = kernel.loop.create_future()
        kernel.loop.call_soon(_start, function, outcome, context=self.context())
        await kernel.pump.reach(Goal(name, outcome.done))
        return outcome.result()


def _start(function: Callable[[], Any], outcome: asyncio.Future[Any]) -> None:
    try:
        result = function()
    except Exception as error:
        fail(outcome, error)
        return
    if hasattr(result, "__await__"):
        asyncio.ensure_future(result).add_done_callback(lambda done: _copy(done, outcome))
    else:
        outcome.set_result(result)


def fail(outcome: asyncio.Future[Any], error: BaseException) -> None:
    """Let a call fail whose caller may have left, or got another error first (a full disk)."""
    outcome.set_exception(error)
    outcome.exception()  # seen: else it would abort a later run when it is collected


def _copy(done: asyncio.Future[Any], outcome: asyncio.Future[Any]) -> None:
    if done.cancelled():
        outcome.cancel()
    elif (error := done.exception()) is not None:
        fail(outcome, error)
    else:
        outcome.set_result(done.result())


class TestEnv:
    """`emulator.env`: the bindings as the Worker sees them, called by the test.

    Text and JSON variables, and the test's own `bindings`, are what the Worker gets; the methods of
    the platform's bindings are coroutines that run inside the simulation.
    """

    __test__ = False

    def __init__(self, caller: Caller, given: Mapping[str, Any]) -> None:
        self._caller = caller.converting()
        self._given = given
        self._wrapped = TestEnvWrapper(raw_env())

    def __getattr__(self, name: str) -> Any:
        if name in self._given:
            return self._given[name]
        value = self._caller.call(getattr, self._wrapped, name)
        return TestBinding(self._caller, value) if isinstance(value, _HANDLES) else value

    def __dir__(self) -> list[str]:
        return self._caller.names()


class TestBinding:
    """A binding, or a method of one, whose calls belong to the test."""

    __test__ = False

    def __init__(self, caller: Caller, wrapped: Any) -> None:
        self._caller = caller
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        value = self._caller.call(getattr, self._wrapped, name)
        return TestBinding(self._caller, value) if callable(value) else value

    # What Python asks of an object's class, the binding's wrapper answers as it does in the Worker.

    def __len__(self) -> int:
        return self._caller.call(len, self._wrapped)

    def __bool__(self) -> bool:
        return self._caller.call(bool, self._wrapped)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._caller.call(lambda: [self._as_tests(item) for item in self._wrapped]))

    def __contains__(self, item: Any) -> bool:
        return self._caller.call(lambda: item in self._wrapped)

    def __getitem__(self, key: Any) -> Any:
        return self._as_tests(self._caller.call(lambda: self._wrapped[key]))

    def _js_unwrap(self) -> Any:
        """What the Worker would pass on, where a test gives this to another call (`batch`)."""
        return self._wrapped._js_unwrap()

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Make the call now; a promise is to be awaited, other results are there (`prepare`)."""
        result = self._caller.inside(lambda: self._wrapped(*args, **options))
        return self._outcome(result) if hasattr(result, "__await__") else self._as_tests(result)

    async def _outcome(self, call: Any) -> Any:
        return self._as_tests(await self._caller.at_once("a call on `emulator.env`", lambda: call))

    def _as_tests(self, value: Any) -> Any:
        """What a binding returned: a handle is the test's to use, like the binding itself."""
        if type(value) is list:
            return [self._as_tests(item) for item in value]
        return TestBinding(self._caller, value) if isinstance(value, _HANDLES) else value
