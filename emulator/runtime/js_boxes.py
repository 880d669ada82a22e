"""What `new Number(5)`, `new String("a")` and `new Boolean(true)` make, and what it can do.

They are objects: not equal to what they hold, and true whatever that is. Methods of strings that
take regular expressions are not here; Python's own do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from emulator.runtime.js_text import display
from emulator.runtime.not_yet import not_yet
from emulator.values import (
    UNDEFINED,
    Boxed,
    Function,
    JsException,
    RegExp,
    format_number,
    to_number,
)

Method = Callable[..., Any]

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
# Where Number.prototype.toFixed gives up and writes the number as it is.
_LARGEST_FIXED: Final = 1e21


def _whole(value: Any, low: int, high: int, refusal: str) -> int:
    number = to_number(value)
    whole = 0 if number != number else int(max(min(number, 2**31), -(2**31)))
    if not low <= whole <= high:
        raise JsException("RangeError", refusal)
    return whole


def _to_fixed(this: Boxed, digits: Any = 0) -> str:
    refusal = "toFixed() digits argument must be between 0 and 100"
    count, number = _whole(digits, 0, 100, refusal), this.value
    if not abs(number) < _LARGEST_FIXED:
        return format_number(number)
    return _rounded(number, count)


def _rounded(number: float, digits: int) -> str:
    """Write a number with so many digits behind the point, the exact halves away from zero."""
    exact = Decimal(number).quantize(Decimal(1).scaleb(-digits), rounding="ROUND_HALF_UP")
    text = f"{exact:f}"
    return text.removeprefix("-") if number >= 0 else text


def _to_precision(this: Boxed, precision: Any = UNDEFINED) -> str:
    number = this.value
    if precision is UNDEFINED or not math.isfinite(number):
        return format_number(number)
    refusal = "toPrecision() argument must be between 1 and 100"
    count = _whole(precision, 1, 100, refusal)
    mantissa, _, power = f"{Decimal(number):.{count - 1}e}".partition("e")
    exponent = int(power)
    if exponent < -6 or exponent >= count:
        return f"{mantissa}e{exponent:+d}"
    return f"{Decimal(f'{mantissa}e{exponent}'):.{count - 1 - exponent}f}"


def _to_exponential(this: Boxed, digits: Any = UNDEFINED) -> str:
    number = this.value
    if not math.isfinite(number):
        return format_number(number)
    if digits is UNDEFINED:
        shown = f"{Decimal(repr(float(number))).normalize():e}"
    else:
        refusal = "toExponential() argument must be between 0 and 100"
        shown = f"{Decimal(number):.{_whole(digits, 0, 100, refusal)}e}"
    mantissa, _, power = shown.lower().partition("e")
    return f"{mantissa}e{int(power or 0):+d}"


def _in_radix(this: Boxed, radix: Any = 10) -> str:
    base = _whole(
        10 if radix is UNDEFINED else radix,
        *(2, 36),
        "toString() radix argument must be between 2 and 36",
    )
    number = this.value
    if base == 10 or not math.isfinite(number):
        return format_number(number)
    rest, fraction = int(abs(number)), abs(number) % 1
    digits = ""
    while rest:
        rest, digit = divmod(rest, base)
        digits = _DIGITS[digit] + digits
    shown = digits or "0"
    if fraction:
        shown += "." + _fraction(fraction, base)
    return f"-{shown}" if number < 0 else shown


def _fraction(value: float, base: int) -> str:
    digits = ""
    while value and len(digits) < 52:
        digit, value = divmod(value * base, 1)
        digits += _DIGITS[int(digit)]
    return digits


def _grouped(this: Boxed, *_: Any) -> str:
    """Write a number as American English does, which is a Worker's locale."""
    number = this.value
    if not math.isfinite(number):
        return {math.inf: "∞", -math.inf: "-∞"}.get(number, "NaN")
    return f"{number:,.3f}".rstrip("0").removesuffix(".")


# -- strings -------------------------------------------------------------------------------------


def _on_text(method: Method) -> Method:
    return lambda this, *args: method(this.value, *args)


def _clip(index: Any, length: int, default: int) -> int:
    if index is UNDEFINED:
        return default
    number = to_number(index)
    return 0 if number != number else int(max(min(number, length), -length - 1))


def _slice(text: str, start: Any = UNDEFINED, end: Any = UNDEFINED) -> str:
    bounds = [_clip(start, len(text), 0), _clip(end, len(text), len(text))]
    low, high = (max(one + len(text), 0) if one < 0 else one for one in bounds)
    return text[low:high]


def _substring(text: str, start: Any = UNDEFINED, end: Any = UNDEFINED) -> str:
    bounds = (_clip(start, len(text), 0), _clip(end, len(text), len(text)))
    low, high = sorted(max(one, 0) for one in bounds)
    return text[low:high]


def _at(text: str, index: Any = 0, *, wraps: bool = False) -> str | None:
    place = _clip(index, len(text), 0)
    place += len(text) if wraps and place < 0 else 0
    return text[place] if 0 <= place < len(text) else None


def _code_at(text: str, index: Any = 0) -> Any:
    found = _at(text, index)
    return math.nan if found is None else ord(found)


def _plain(value: Any) -> str:
    """A text to look for, or to put in its place; patterns and functions are not here."""
    is_pattern = isinstance(value, RegExp)
    if is_pattern or isinstance(value, Function) or callable(getattr(value, "obj", None)):
        what = "RegExp" if is_pattern else "function"
        raise not_yet(f"String.prototype.replace and split with a {what}", imported=False)
    return display(value)


def _no_pattern(method: str, value: Any) -> str:
    if isinstance(value, RegExp):
        text = f"First argument to String.prototype.{method} must not be a regular expression"
        raise JsException("TypeError", text)
    return display(value)


def _split(text: str, separator: Any = UNDEFINED, limit: Any = UNDEFINED) -> list[str]:
    if separator is UNDEFINED:
        parts = [text]
    else:
        glue = _plain(separator)
        parts = text.split(glue) if glue else list(text)
    return parts if limit is UNDEFINED else parts[: int(to_number(limit))]


def _pad(text: str, length: Any = 0, filler: Any = " ", *, at_start: bool) -> str:
    fill = display(filler)
    missing = int(to_number(length)) - len(text)
    if missing <= 0 or not fill:
        return text
    padding = (fill * (missing // len(fill) + 1))[:missing]
    return padding + text if at_start else text + padding


def _repeat(text: str, count: Any = 0) -> str:
    times = _whole(count, 0, 2**29, f"Invalid count value: {display(count)}")
    return text * times


_TEXT: Final[dict[str, Method]] = {
    "at": lambda text, index=0: (
        UNDEFINED if (found := _at(text, index, wraps=True)) is None else found
    ),
    "charAt": lambda text, index=0: _at(text, index) or "",
    "charCodeAt": _code_at,
    "codePointAt": lambda text, index=0: (
        UNDEFINED if (found := _at(text, index)) is None else ord(found)
    ),
    "concat": lambda text, *others: text + "".join(map(display, others)),
    "endsWith": lambda text, wanted="": text.endswith(_no_pattern("endsWith", wanted)),
    "includes": lambda text, wanted="", start=0: (
        _no_pattern("includes", wanted) in text[int(to_number(start)) :]
    ),
    "indexOf": lambda text, wanted="", start=0: text.find(display(wanted), int(to_number(start))),
    "lastIndexOf": lambda text, wanted="": text.rfind(display(wanted)),
    "padEnd": lambda text, length=0, filler=" ": _pad(text, length, filler, at_start=False),
    "padStart": lambda text, length=0, filler=" ": _pad(text, length, filler, at_start=True),
    "repeat": _repeat,
    "replace": lambda text, old="", new="": text.replace(_plain(old), _plain(new), 1),
    "replaceAll": lambda text, old="", new="": text.replace(_plain(old), _plain(new)),
    "slice": _slice,
    "split": _split,
    "startsWith": lambda text, wanted="": text.startswith(_no_pattern("startsWith", wanted)),
    "substring": _substring,
    "toLowerCase": str.lower,
    "toUpperCase": str.upper,
    "trim": str.strip,
    "trimEnd": str.rstrip,
    "trimStart": str.lstrip,
}


def _value(this: Boxed) -> Any:
    return this.value


def invalid_date(methods: dict[str, Method]) -> dict[str, Method]:
    """Return the methods of an invalid Date, by those of a valid one: its parts are NaN."""
    return {name: _NOT_A_DATE.get(name, lambda this, *_: math.nan) for name in methods}


def _no_time(*_: Any) -> Any:
    raise JsException("RangeError", "Invalid time value")


_NOT_A_DATE: Final[dict[str, Method]] = {
    "toISOString": _no_time,
    "toJSON": lambda this, *_: None,
    "toUTCString": display,
    "toDateString": display,
}

METHODS: Final[dict[str, dict[str, Method]]] = {
    "Number": {
        "toString": _in_radix,
        "valueOf": _value,
        "toFixed": _to_fixed,
        "toPrecision": _to_precision,
        "toExponential": _to_exponential,
        "toLocaleString": _grouped,
    },
    "String": {
        "toString": _value,
        "valueOf": _value,
        **{name: _on_text(method) for name, method in _TEXT.items()},
    },
    "Boolean": {"toString": display, "valueOf": _value},
}
