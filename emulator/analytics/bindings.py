"""What user code has of a dataset: `writeDataPoint`, which returns at once and promises nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.analytics.point import values_of
from emulator.bindings import calls
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from emulator.analytics.service import Analytics

# A day's figure of the documentation ("Limits"), for one invocation.
MOST_POINTS: Final = 250
_TOO_MANY: Final = "Too many API requests by single worker invocation."


class AnalyticsEngine(HostObject):
    """A binding to a dataset."""

    js_class = "AnalyticsEngine"
    js_members = frozenset({"writeDataPoint"})

    def __init__(self, binding: str, dataset: str, service: Analytics) -> None:
        self._binding = binding
        self._dataset = dataset
        self._service = service

    def disconnect(self) -> None:
        """Let go of the emulator: code whose power was cut may hold this for ever."""
        del self._service

    def writeDataPoint(self, event: Any = UNDEFINED, *_: Any) -> object:
        """Write a point; what is wrong with it is raised at once."""
        invocation = calls.caller_of()
        strict = self._service.profile == "production"
        if strict and not invocation.is_test and self._service.written(invocation) > MOST_POINTS:
            raise JsException("Error", _TOO_MANY)
        values = values_of(event, strict=strict)
        invocation.effect(f"a data point in {self._binding}")
        self._service.write(self._dataset, self._binding, invocation, values)
        return UNDEFINED
