"""Arguments of storage operations: keys, entries and the options of `list`, as the runtime takes
them (workerd, `api/actor-state.h`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from emulator.objects import texts
from emulator.objects.stored import Range
from emulator.runtime.js_text import display
from emulator.values import UNDEFINED, JsException, to_milliseconds, to_number


def keys_of(method: str, given: Any) -> str | list[str]:
    """One key, or several; raises the runtime's `TypeError`."""
    if isinstance(given, str):
        return given
    if isinstance(given, list):
        return [display(item) for item in given]
    if given is UNDEFINED:
        raise texts.wrong_type(method, "string or Array")
    return display(given)


def entries_of(first: Any, second: Any, third: Any) -> tuple[Mapping[str, Any], bool]:
    """What a `put` stores, and whether it gave several; raises the runtime's `TypeError`s."""
    if first is UNDEFINED:
        raise texts.wrong_type("put", "string or object")
    if first is None or isinstance(first, (str, bool, int, float, list)):
        if second is UNDEFINED:
            raise JsException("TypeError", texts.UNDEFINED_VALUE)
        return {display(first): second}, False
    # Objects that are no plain ones have no properties of their own.
    entries = first if isinstance(first, Mapping) else {}
    if third is not UNDEFINED or not (second is UNDEFINED or isinstance(second, Mapping)):
        raise JsException("TypeError", texts.BAD_PUT_OPTIONS)
    return entries, True


def range_of(given: Any, method: str = "list", of: str = "DurableObjectStorage") -> Range:
    """The options of `list`; raises the runtime's `TypeError`s."""
    if given is UNDEFINED or given is None:
        return Range()
    if not isinstance(given, Mapping):
        raise texts.wrong_type(method, "ListOptions", of)
    start, after = _text(given, "start"), _text(given, "startAfter")
    if start is not None and after is not None:
        raise JsException("TypeError", texts.START_TWICE)
    return Range(
        start,
        after,
        _text(given, "end"),
        _text(given, "prefix"),
        _truth(given.get("reverse", UNDEFINED)),
        _limit(given.get("limit", UNDEFINED)),
    )


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name, UNDEFINED)
    if value is UNDEFINED:
        return None
    return display(value)


def _truth(value: Any) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return False
    return not (value is UNDEFINED or value is None or value is False or value in (0, ""))


def _limit(value: Any) -> int | None:
    if value is UNDEFINED:
        return None
    number = to_number(value)
    if math.isnan(number):
        number = 0.0
    if not -(2**31) <= number < 2**31:
        raise JsException("TypeError", texts.NO_INT32)
    limit = int(number)
    if limit <= 0:
        raise JsException("TypeError", texts.BAD_LIMIT)
    return limit


def alarm_of(given: Any) -> float:
    """The time of an alarm in milliseconds; raises the runtime's `TypeError`s."""
    if isinstance(given, datetime):
        given = to_milliseconds(given)
    if not isinstance(given, (int, float)) or isinstance(given, bool):
        raise texts.wrong_type("setAlarm", "date")
    if not math.isfinite(given):
        raise JsException("TypeError", texts.BAD_DATE)
    if given <= 0:
        raise JsException("TypeError", texts.BAD_ALARM)
    return float(given)
