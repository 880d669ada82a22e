"""What user code has of a service: stubs on `env` and on `ctx.exports` (workerd, `api/http.h`)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.rpc.stub import EXTRA_HANDLERS, HANDLERS, Fetcher
from emulator.runtime.host import current
from emulator.services.arguments import batch_of, trigger_of
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from emulator.invocation import Invocation
    from emulator.services.target import ServiceTarget

_BAD_OPTIONS = "Failed to execute 'LoopbackServiceStub': parameter 1 is not of type 'Options'."
_NOT_SENT = (
    'Could not serialize object of type "LoopbackServiceStub". This type does not support '
    "serialization."
)


class ServiceStub(Fetcher):
    """A service on `env`; with a flag, its handlers `queue` and `scheduled` can be called, too."""

    target: ServiceTarget

    def js_lookup(self, name: str) -> Any:
        """Return a member, a handler of events, or the method of that name."""
        if name in HANDLERS and EXTRA_HANDLERS in current().flags:
            return getattr(self, name)
        return super().js_lookup(name)

    def queue(self, *arguments: Any) -> asyncio.Future[Any]:
        """Hand a batch to the `queue` handler; wrong arguments are the promise's error."""
        caller = calls.caller_of()
        try:
            batch = batch_of(arguments, caller.kernel.now)
        except JsException as error:
            return calls.refuse(error)
        caller.effect(f"a batch for {self.target.describe()}")
        return self.target.queue(caller, batch)

    def scheduled(self, *arguments: Any) -> asyncio.Future[Any]:
        """Run the `scheduled` handler; wrong arguments are the promise's error."""
        caller = calls.caller_of()
        try:
            trigger = trigger_of(arguments)
        except JsException as error:
            return calls.refuse(error)
        caller.effect(f"a scheduled event for {self.target.describe()}")
        return self.target.scheduled(caller, trigger)


class LoopbackServiceStub(ServiceStub):
    """An entrypoint of the Worker's own, on `ctx.exports`; called, it takes `props`."""

    js_class = "LoopbackServiceStub"

    def __call__(self, options: Any = UNDEFINED, *_: Any) -> Fetcher:
        """The same entrypoint with props of its own."""
        props = options.get("props", {}) if isinstance(options, dict) else None
        if props is UNDEFINED:
            props = {}
        if not isinstance(props, dict):
            raise JsException("TypeError", _BAD_OPTIONS)
        return ServiceStub(self.target.with_props(copy.deepcopy(props)))

    def transferred(self, sender: Invocation) -> HostObject:
        """Refused: without props it is the Worker's own."""
        raise JsException("DataCloneError", _NOT_SENT)


class Exports(HostObject):
    """`ctx.exports`: what the Worker's main module exports, each as a binding."""

    js_class = "Object"

    def __init__(self, found: Mapping[str, HostObject]) -> None:
        self._found = found

    def js_lookup(self, name: str) -> Any:
        """Return an export; raises `AttributeError` if there is none."""
        try:
            return self._found[name]
        except KeyError:
            raise AttributeError(name) from None

    def js_keys(self) -> list[str]:
        """The names of the exports."""
        return list(self._found)
