"""`ctx`, and the module-level `waitUntil`: work that goes on after the answer."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

from emulator.runtime.host import Host, current
from emulator.runtime.pyproxy import PyProxy, unwrap
from emulator.values import UNDEFINED, HostObject, JsException


class _Passing(Host, Protocol):
    passes_through: bool


class ExecutionContext(HostObject):
    """The `ctx` of an event (python-api.md 1.1); user code gets it as a raw `JsProxy`."""

    js_class = "ExecutionContext"
    js_members = frozenset({"waitUntil", "passThroughOnException", "props"})

    def __init__(self, host: _Passing) -> None:
        self._host = host
        self.props: dict[str, Any] = {}

    def waitUntil(self, *arguments: Any) -> object:
        """Keep the invocation alive until a promise is settled; other values are accepted."""
        return wait_until(self._host, *arguments)

    def passThroughOnException(self, *_: Any) -> object:
        """Let the origin answer if the handler raises."""
        self._host.passes_through = True
        return UNDEFINED


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
