"""What user code has of a service: stubs on `env` and on `ctx.exports` (workerd, `api/http.h`)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from emulator.rpc.stub import Fetcher
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.invocation import Invocation
    from emulator.services.target import ServiceTarget

_BAD_OPTIONS = "Failed to execute 'LoopbackServiceStub': parameter 1 is not of type 'Options'."
_NOT_SENT = (
    'Could not serialize object of type "LoopbackServiceStub". This type does not support '
    "serialization."
)


class LoopbackServiceStub(Fetcher):
    """An entrypoint of the Worker's own, on `ctx.exports`; called, it takes `props`."""

    js_class = "LoopbackServiceStub"
    target: ServiceTarget

    def __call__(self, options: Any = UNDEFINED, *_: Any) -> Fetcher:
        """The same entrypoint with props of its own."""
        props = options.get("props", {}) if isinstance(options, dict) else None
        if props is UNDEFINED:
            props = {}
        if not isinstance(props, dict):
            raise JsException("TypeError", _BAD_OPTIONS)
        return Fetcher(self.target.with_props(copy.deepcopy(props)))

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
