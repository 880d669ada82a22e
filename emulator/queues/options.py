"""The option objects of Queues' methods, as JavaScript reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from emulator.location import caller
from emulator.queues.model import SECOND
from emulator.runtime.js_properties import lookup
from emulator.runtime.pyproxy import tell_unseen
from emulator.values import (
    UNDEFINED,
    JsException,
    JsMap,
    LiteralMap,
    describe_losses,
    js_int32,
    to_v8,
    type_of,
)

if TYPE_CHECKING:
    from emulator.invocation import Invocation
    from emulator.location import Location
    from emulator.queues.model import Duration
    from emulator.values import Loss

SEND: Final = ("contentType", "delaySeconds")
SEND_BATCH: Final = ("delaySeconds",)
MESSAGE: Final = ("body", "contentType", "delaySeconds")
RETRY: Final = ("delaySeconds",)

# Snake-case spellings, which production passes on and nobody reads (python-api.md 0.5).
MISSPELT: Final[Mapping[str, str]] = {
    "delay_seconds": "delaySeconds",
    "content_type": "contentType",
}


class NotAnObject(Exception):
    """JavaScript wants an object here; each method has its own text for it."""


def read(value: Any, known: tuple[str, ...], invocation: Invocation) -> Mapping[str, Any]:
    """The options in a value: undefined and null are none at all.

    A key that production does not read is a finding. Raises `NotAnObject` for a primitive value.
    """
    if value is UNDEFINED or value is None:
        return {}
    if isinstance(value, LiteralMap):
        value = dict(value.items())
    elif isinstance(value, JsMap):
        tell_unseen(value.keys(), "a Map")
        return {}
    if type(value) is dict or isinstance(value, Mapping):
        for key in value:
            if key not in known:
                _report(invocation, key, known)
        return value
    if type_of(value) not in ("object", "function"):
        raise NotAnObject
    return {name: _property(value, name) for name in known}


def delay_of(options: Mapping[str, Any]) -> Duration | None:
    """`delaySeconds`, None if it is left out (1.8); raises `JsException` outside int32."""
    value = options.get("delaySeconds", UNDEFINED)
    return None if value is UNDEFINED else js_int32(value) * SECOND


def report_null_delay(options: Mapping[str, Any], invocation: Invocation) -> None:
    """Make a finding of `delaySeconds=None`, which is hardly what was meant."""
    if options.get("delaySeconds", UNDEFINED) is None:
        invocation.find(
            "ignored_option",
            "delaySeconds=None is JavaScript's null, which counts as 0 and overrides the delay "
            "that is configured; leave the option out to use that",
            _where(invocation),
        )


def report_losses(found: Sequence[Loss], body: Any, invocation: Invocation) -> None:
    """Make a finding of a body that JSON does not hold as it is: production sends it all the same.

    `found` says what JSON changes in `body`.
    """
    try:
        to_v8(body)
    except JsException:
        keeps = ""
    else:
        keeps = ', or the body with contentType="v8", which keeps it as it is'
    text = f"JSON changes this body: {describe_losses(found)}{keeps}"
    invocation.find("lossy_body", text, _where(invocation))


def _report(invocation: Invocation, key: object, known: tuple[str, ...]) -> None:
    meant = MISSPELT.get(str(key))
    reads = meant if meant in known else " and ".join(known)
    text = f"the option {key} has no effect; production reads {reads}"
    invocation.find("ignored_option", text, _where(invocation))


def _where(invocation: Invocation) -> Location | None:
    # A test's line is not on the stack: its call runs in the simulation.
    return None if invocation.is_test else caller()


def _property(value: Any, name: str) -> Any:
    try:
        return lookup(value, name)
    except AttributeError:
        return UNDEFINED
