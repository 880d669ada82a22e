"""The arguments of a service binding's `queue` and `scheduled`, as workerd reads them.

What is wrong with them is said in its texts (`api/http.c++`, `jsg/value.h`).
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from emulator.queues.model import Backlog, Batch, Delivery
from emulator.runtime.js_properties import lookup
from emulator.runtime.web import idl
from emulator.values import UNDEFINED, JsException, to_milliseconds, to_v8, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_ONE_BODY: Final = "Expected one of body or serializedBody for each message"
_MOST_ATTEMPTS: Final = 2**16 - 1
_MICROSECONDS: Final = 1000  # in a millisecond
_FURTHEST: Final = 2**63 / 1_000_000  # milliseconds from the epoch, either way


class Trigger(NamedTuple):
    """What `scheduled` is called with; None for now."""

    cron: str
    at: int | None


def trigger_of(arguments: Sequence[Any]) -> Trigger:
    """Read `scheduled({scheduledTime, cron})`; raises `JsException` with the runtime's text."""
    given = arguments[0] if arguments else UNDEFINED
    if given is UNDEFINED or given is None:
        return Trigger("", None)
    if type_of(given) not in ("object", "function"):
        raise idl.wrong_argument("scheduled", "Fetcher", 1, "ScheduledOptions")
    time, cron = _member(given, "scheduledTime"), _member(given, "cron")
    at = None if time is UNDEFINED else _date(time, "scheduledTime", "ScheduledOptions")
    return Trigger("" if cron is UNDEFINED else idl.string(cron), at)


def batch_of(arguments: Sequence[Any], now: int) -> Batch:
    """Read `queue(queueName, messages, metadata)`; raises `JsException` as the runtime does."""
    if len(arguments) < 2 or not isinstance(arguments[1], list):
        raise idl.wrong_argument("queue", "Fetcher", 2, "Array")
    messages = tuple(_delivery(index, item) for index, item in enumerate(arguments[1]))
    backlog = _backlog(arguments[2]) if len(arguments) > 2 else Backlog(0, 0, None)
    return Batch(0, idl.string(arguments[0]), messages, now, backlog)


def _delivery(index: int, item: Any) -> Delivery:
    if type_of(item) not in ("object", "function") or item is None:
        raise JsException(
            "TypeError",
            f"Incorrect type for array element {index}: the provided value is not of type "
            "'ServiceBindingQueueMessage'.",
        )
    timestamp = _date(_member(item, "timestamp"), "timestamp", "ServiceBindingQueueMessage")
    body, serialized = _member(item, "body"), _member(item, "serializedBody")
    if (body is UNDEFINED) is (serialized is UNDEFINED):
        raise JsException("TypeError", _ONE_BODY)
    data = to_v8(body) if serialized is UNDEFINED else _bytes(serialized)
    attempts = _attempts(_member(item, "attempts"))
    return Delivery(index, idl.string(_member(item, "id")), data, "v8", timestamp, attempts)


def _backlog(given: Any) -> Backlog:
    """The third argument, `MessageBatchMetadata`."""
    metrics = UNDEFINED if given in (UNDEFINED, None) else _member(given, "metrics")
    if metrics is UNDEFINED:
        return Backlog(0, 0, None)
    names = ("backlogCount", "backlogBytes", "oldestMessageTimestamp")
    count, size, oldest = (_member(metrics, name) for name in names)
    if oldest is not UNDEFINED:
        oldest = _date(oldest, "oldestMessageTimestamp", "MessageBatchMetrics")
    return Backlog(idl.integer(count), idl.integer(size), None if oldest is UNDEFINED else oldest)


def _member(value: Any, name: str) -> Any:
    try:
        return lookup(value, name)
    except AttributeError:
        return UNDEFINED


def _date(value: Any, field: str, owner: str) -> int:
    """A date, or milliseconds, in microseconds."""
    if isinstance(value, datetime):
        milliseconds: float = to_milliseconds(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        milliseconds = value
    else:
        raise idl.wrong_field(field, owner, "date")
    if not math.isfinite(milliseconds):
        text = "The value cannot be converted because it is not a valid Date."
        raise JsException("TypeError", text)
    if abs(milliseconds) >= _FURTHEST:
        bound = "after 2189" if milliseconds > 0 else "before 1687"
        raise JsException("TypeError", f"This API doesn't support dates {bound}.")
    return int(milliseconds) * _MICROSECONDS


def _attempts(value: Any) -> int:
    number = idl.number(value)
    if not math.isfinite(number):
        text = "The value cannot be converted because it is not an integer."
        raise JsException("TypeError", text)
    if number < 0:
        text = (
            "The value cannot be converted because it is negative and this API expects a positive "
            "number."
        )
        raise JsException("TypeError", text)
    if number > _MOST_ATTEMPTS:
        text = f"Value out of range. Must be less than or equal to {_MOST_ATTEMPTS}."
        raise JsException("TypeError", text)
    return int(number)


def _bytes(value: Any) -> bytes:
    data = idl.buffer(value)
    if data is None:
        owner, kind = "ServiceBindingQueueMessage", "ArrayBuffer or ArrayBufferView"
        raise idl.wrong_field("serializedBody", owner, kind)
    return data
