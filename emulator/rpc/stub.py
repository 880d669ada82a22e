"""Stubs: what a caller holds of what is elsewhere.

A `Fetcher` has every name: each is a method of the other side, which alone knows whether it is
there. A call is made at once, and its arguments are copied then. Python sees a function where
JavaScript sees a property that may be awaited, or called on: property access and promise
pipelining have no form in Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from emulator.bindings import calls
from emulator.foreign import is_foreign
from emulator.rpc.bodies import across
from emulator.rpc.carriage import carry, carry_all
from emulator.rpc.errors import carried, disconnected, outgoing
from emulator.runtime.host import WebRequest
from emulator.runtime.pyproxy import await_given, to_host
from emulator.runtime.web.boundary import response_from_web
from emulator.runtime.web.fetch import make_request
from emulator.values import UNDEFINED, Function, HostObject, JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from emulator.invocation import Invocation
    from emulator.rpc.target import Target

# What every object of JavaScript's has, and no method of the other side's is called.
_OF_OBJECTS = frozenset({"constructor", "toString", "valueOf", "hasOwnProperty", "then"})
_DISPOSED = "RPC stub used after being disposed."
_NO_CONTEXT = "The execution context which hosts this callback is no longer running."

# With this flag, which is experimental and cannot be deployed, these handlers are methods of every
# stub; without it they are methods as any other (workerd, `Fetcher` in `api/http.h`).
EXTRA_HANDLERS: Final = "service_binding_extra_handlers"
HANDLERS: Final = ("queue", "scheduled")


class Fetcher(HostObject):
    """A stub for an entrypoint: `fetch`, and methods by any name."""

    js_class = "Fetcher"
    js_members = frozenset({"fetch"})

    def __init__(self, target: Target) -> None:
        self.target = target

    def js_lookup(self, name: str) -> Any:
        """Return a member, or the method of that name."""
        if name in self.js_members:
            return getattr(self, name)
        if name in _OF_OBJECTS:
            raise AttributeError(name)
        return Function(lambda *arguments: self._call(name, list(arguments)), name)

    def transferred(self, sender: Invocation) -> HostObject:
        """A stub of the other side's own for the same target."""
        return type(self)(self.target)

    def _call(self, name: str, arguments: list[Any]) -> asyncio.Future[Any]:
        caller = calls.caller_of()
        try:
            arguments = carry_all(arguments, caller)
        except JsException as error:
            return calls.refuse(error)
        if caller.minds_effects:
            caller.effect(f"{name}() of {self.target.describe()}")
        return self.target.call(caller, name, arguments)

    def fetch(self, resource: object = UNDEFINED, init: object = UNDEFINED) -> Awaitable[Any]:
        """Send a request to it; wrong arguments are the promise's error."""
        caller = calls.caller_of()
        try:
            request = make_request(resource, init)
            wire = WebRequest(
                method=request.method,
                url=request.url.partition("#")[0],
                headers=request.headers.pairs,
                body=across(request.take(), caller),
                redirect=request.redirect,
            )
        except JsException as error:
            return calls.refuse(error)
        if caller.minds_effects:
            caller.effect(f"a request to {self.target.describe()}")
        return self._answer(self.target.fetch(caller, wire))

    @staticmethod
    async def _answer(answer: Awaitable[Any]) -> Any:
        return response_from_web(await answer)


class RpcStub(HostObject):
    """A function that came from the other side: calling it runs it there."""

    js_class = "RpcStub"
    js_members = frozenset({"dup"})

    def __init__(self, owner: Invocation, function: Function) -> None:
        self._owner: Invocation | None = owner
        self._function = function
        self._asked: dict[asyncio.Future[Any], None] | None = None  # calls without an answer yet

    def dup(self) -> RpcStub:
        """Another stub for the same function, with a life of its own."""
        return RpcStub(self._live(), self._function)

    def transferred(self, sender: Invocation) -> HostObject:
        """A stub of the other side's own."""
        return self.dup()

    def dispose(self) -> None:
        """Give it up: every further use is an error."""
        self._owner = None

    def _live(self) -> Invocation:
        if self._owner is None:
            raise JsException("Error", _DISPOSED)
        return self._owner

    def __call__(self, *arguments: Any) -> asyncio.Future[Any]:
        caller = calls.caller_of()
        try:
            owner, sent = self._live(), carry_all(list(arguments), caller)
        except JsException as error:
            return calls.refuse(error)

        def perform(_: object) -> Any:
            if owner.gone or owner.dead:
                raise JsException("Error", _NO_CONTEXT)
            answer: asyncio.Future[Any] = owner.kernel.loop.create_future()
            self._expect(owner, answer)
            work = _run(owner, caller.flags, self._function, sent, answer)
            owner.kernel.loop.spawn(owner, work, "a function called over RPC").inner = True
            return answer

        return calls.call(caller, perform, site="", lost=_never)

    def _expect(self, owner: Invocation, answer: asyncio.Future[Any]) -> None:
        """Let a call fail whose function is cut off: nobody answers it then."""
        if self._asked is None:
            asked: dict[asyncio.Future[Any], None] = {}
            owner.at_leave(lambda: _break(asked))
            self._asked = asked
        self._asked[answer] = None
        answer.add_done_callback(self._asked.pop)


def _break(asked: dict[asyncio.Future[Any], None]) -> None:
    for answer in list(asked):
        if not answer.get_loop().is_closed():
            calls.reject(answer, disconnected())


async def _run(
    owner: Invocation,
    receiver: frozenset[str],
    function: Function,
    arguments: list[Any],
    answer: asyncio.Future[Any],
) -> None:
    try:
        result = carry(to_host(await await_given(function, *arguments)), owner)
    except BaseException as error:
        if is_foreign(error):
            raise
        # What a function of Python's raises leaves Pyodide, and what `carry` refuses does not.
        refused = isinstance(error, JsException) and error.name == "DataCloneError"
        seen = error if refused else outgoing(error, owner.isolate.worker.folder)
        calls.reject(answer, carried(cast("JsException", seen), owner.flags, receiver))
    else:
        calls.resolve(answer, result)


def _never() -> Exception:
    raise AssertionError("unreachable: the call has no fault site")
