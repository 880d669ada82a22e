"""`ctx`, and the module-level `waitUntil`: work that goes on after the answer.

JavaScript's `waitUntil` holds no Python object: the proxy that a call makes of a coroutine or a
task is destroyed when the call returns, before anybody awaits it (workerd#4808; recording
py_waituntil_workerd2024). The runtime patches that of the `ctx` a class entrypoint is made with,
and only that one: in a global handler what is to go on must be a promise, or come from
`create_proxy`, whose proxies stay.
"""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Protocol

from emulator.runtime.host import Host, current
from emulator.runtime.promises import PyodideFuture
from emulator.runtime.pyproxy import PyProxy, unwrap
from emulator.values import UNDEFINED, Function, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping


class _Event(Host, Protocol):
    passes_through: bool

    @property
    def props(self) -> Mapping[str, Any]:
        """Those of the binding that a call came by."""

    @property
    def exports(self) -> HostObject | None:
        """What `ctx.exports` is; None where there is none."""

    def ignore(self, work: Awaitable[Any]) -> None:
        """Note work that was given to `waitUntil` in vain."""


class ExecutionContext(HostObject):
    """The `ctx` of an event (python-api.md 1.1); user code gets it as a raw `JsProxy`."""

    js_class = "ExecutionContext"
    js_members = frozenset({"waitUntil", "passThroughOnException", "props"})

    def __init__(self, host: _Event, *, patched: bool = True) -> None:
        self._host = host
        self._patched = patched
        self.props: dict[str, Any] = deepcopy(dict(host.props)) if host.props else {}

    def js_lookup(self, name: str) -> Any:
        """Return a member; `exports`, the Worker's own as bindings, came with a date."""
        if name == "exports" and (exports := self._host.exports) is not None:
            return exports
        return super().js_lookup(name)

    @property
    def waitUntil(self) -> Function:
        """Keep the invocation alive until a promise is settled; other values are accepted."""
        return Function(self._wait_until, "waitUntil", raw=True)

    def _wait_until(self, *arguments: Any) -> object:
        given: Any = arguments[0] if arguments else UNDEFINED
        if self._patched or not _is_borrowed(given):
            return wait_until(self._host, *arguments)
        self._host.ignore(given.obj)
        return UNDEFINED

    def passThroughOnException(self, *_: Any) -> object:
        """Let the origin answer if the handler raises."""
        self._host.passes_through = True
        return UNDEFINED


def _is_borrowed(value: Any) -> bool:
    """Whether this is a proxy, made for one call, of something in Python that can be awaited."""
    return (
        isinstance(value, PyProxy)
        and not value.kept
        and not isinstance(value.obj, PyodideFuture)
        and inspect.isawaitable(value.obj)
    )


def wait_until(host: Host, *arguments: Any) -> object:
    """Give work to the invocation `host`; raises the runtime's `TypeError` without an argument."""
    if not arguments:
        raise JsException(
            "TypeError",
            "Failed to execute 'waitUntil' on 'ExecutionContext': parameter 1 is not of type "
            "'Promise'.",
        )
    work = arguments[0].obj if isinstance(arguments[0], PyProxy) else arguments[0]
    if inspect.isawaitable(work):
        host.wait_until(work)
    return UNDEFINED


def wait_until_current(*arguments: Any) -> None:
    """`workers.waitUntil`: for the invocation that runs now."""
    wait_until(current(), *map(unwrap, arguments))
