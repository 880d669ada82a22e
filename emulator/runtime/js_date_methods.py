"""The methods of `Date`. A Worker's local time is UTC, its language American English.

Every method goes by the Date's time value, milliseconds since the epoch or NaN. Setters move a
`JsDate`; the proxy of a Date that the platform gave holds one of its own before they run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.js_dates import reachable, time_of, time_of_parts
from emulator.runtime.js_text import DAYS, MONTHS, display
from emulator.values import (
    UNDEFINED,
    Boxed,
    JsDate,
    JsException,
    from_milliseconds,
    iso_format,
    to_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from emulator.runtime.js_basics import Method

_DAY: Final = 86_400_000

# Date's getters by Python's; JavaScript counts months from 0 and week days from Sunday.
_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "FullYear": lambda moment: moment.year,
    "Month": lambda moment: moment.month - 1,
    "Date": lambda moment: moment.day,
    "Day": lambda moment: moment.isoweekday() % 7,
    "Hours": lambda moment: moment.hour,
    "Minutes": lambda moment: moment.minute,
    "Seconds": lambda moment: moment.second,
    "Milliseconds": lambda moment: moment.microsecond // 1000,
}
_ORDER: Final = ("FullYear", "Month", "Date", "Hours", "Minutes", "Seconds", "Milliseconds")
# How many parts each setter takes.
_SETTERS: Final = {
    "FullYear": 3,
    "Month": 2,
    "Date": 1,
    "Hours": 4,
    "Minutes": 3,
    "Seconds": 2,
    "Milliseconds": 1,
}


def _getter(part: Callable[[datetime], int]) -> Method:
    def get(this: Any, *_: Any) -> float:
        time = time_of(this)
        return part(from_milliseconds(time)) if time == time else math.nan

    return get


def _setter(name: str) -> Method:
    first = _ORDER.index(name)

    def put(this: Any, *args: Any) -> float:
        given = args[: _SETTERS[name]] or (UNDEFINED,)
        numbers = list(map(to_number, given))
        time = time_of(this)
        if name == "FullYear" and time != time:
            time = 0
        if time != time or not all(map(math.isfinite, numbers)):
            return _move(this, math.nan)
        moment = from_milliseconds(time)
        parts = [_PARTS[part](moment) for part in _ORDER]
        parts[first : first + len(numbers)] = map(int, numbers)
        return _move(this, time_of_parts(*parts))

    return put


def _move(this: Any, time: float) -> float:
    if not isinstance(this, JsDate):
        text = "a Date that is held by another value can be moved only by its own proxy"
        raise JsException("TypeError", text)
    this.moved = reachable(time)
    return this.moved


def _set_time(this: Any, time: Any = UNDEFINED, *_: Any) -> float:
    number = to_number(time)
    return _move(this, int(number) if math.isfinite(number) else math.nan)


def _set_year(this: Any, year: Any = UNDEFINED, *_: Any) -> float:
    number = to_number(year)
    is_short = math.isfinite(number) and 0 <= int(number) <= 99
    set_full: Method = _setter("FullYear")
    moved: float = set_full(this, int(number) + 1900 if is_short else number)
    return moved


# -- texts -----------------------------------------------------------------------------------------


def _shown(write: Callable[[datetime], str]) -> Method:
    def show(this: Any, *_: Any) -> str:
        time = time_of(this)
        return write(from_milliseconds(time)) if time == time else "Invalid Date"

    return show


def _day(moment: datetime) -> str:
    return f"{DAYS[moment.weekday()]} {MONTHS[moment.month - 1]} {moment.day:02d} {moment.year:04d}"


def _utc(moment: datetime) -> str:
    day = f"{DAYS[moment.weekday()]}, {moment.day:02d} {MONTHS[moment.month - 1]}"
    return f"{day} {moment.year:04d} {moment:%H:%M:%S} GMT"


def _american_day(moment: datetime) -> str:
    return f"{moment.month}/{moment.day}/{moment.year}"


def _american_time(moment: datetime) -> str:
    half = "AM" if moment.hour < 12 else "PM"
    return f"{moment.hour % 12 or 12}:{moment:%M:%S} {half}"


def _local(write: Callable[[datetime], str], name: str) -> Method:
    def show(this: Any, locales: Any = UNDEFINED, options: Any = UNDEFINED, *_: Any) -> str:
        refuse_locale(f"Date.prototype.{name}", locales, options)
        shown: str = _shown(write)(this)
        return shown

    return show


def refuse_locale(method: str, locales: Any, options: Any = UNDEFINED) -> None:
    """Refuse (AttributeError) a language or a form that only V8's data knows."""
    if locales in (UNDEFINED, "en-US", "en") and options is UNDEFINED:
        return
    from emulator.runtime.not_yet import not_yet

    text = f"{method} in another language or form than that of American English (js.Intl)"
    raise not_yet(text, imported=False)


def _iso(this: Any, *_: Any) -> str:
    if isinstance(this, Boxed):
        raise JsException("RangeError", "Invalid time value")
    return iso_format(this)


def _json(this: Any, *_: Any) -> str | None:
    time = time_of(this)
    return _iso(this) if time == time else None


def _offset(this: Any, *_: Any) -> float:
    time = time_of(this)
    return 0 if time == time else math.nan


def _year(this: Any, *_: Any) -> float:
    year: float = _getter(_PARTS["FullYear"])(this)
    return year - 1900


DATE: Final[dict[str, Method]] = {
    "getTime": lambda this, *_: time_of(this),
    "valueOf": lambda this, *_: time_of(this),
    "getTimezoneOffset": _offset,
    "getYear": _year,
    **{f"get{name}": _getter(part) for name, part in _PARTS.items()},
    **{f"getUTC{name}": _getter(part) for name, part in _PARTS.items()},
    "setTime": _set_time,
    "setYear": _set_year,
    **{f"set{name}": _setter(name) for name in _SETTERS},
    **{f"setUTC{name}": _setter(name) for name in _SETTERS},
    "toISOString": _iso,
    "toJSON": _json,
    "toString": lambda this, *_: display(this),
    "toUTCString": _shown(_utc),
    "toGMTString": _shown(_utc),
    "toDateString": _shown(_day),
    "toTimeString": _shown(
        lambda moment: f"{moment:%H:%M:%S} GMT+0000 (Coordinated Universal Time)"
    ),
    "toLocaleDateString": _local(_american_day, "toLocaleDateString"),
    "toLocaleTimeString": _local(_american_time, "toLocaleTimeString"),
    "toLocaleString": _local(
        lambda moment: f"{_american_day(moment)}, {_american_time(moment)}", "toLocaleString"
    ),
}
