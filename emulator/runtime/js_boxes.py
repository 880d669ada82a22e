"""What `new Number(5)`, `new String("a")` and `new Boolean(true)` make, and what it can do.

They are objects: not equal to what they hold, and true whatever that is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from emulator.runtime import js_strings
from emulator.runtime.js_date_methods import refuse_locale
from emulator.runtime.js_text import display
from emulator.values import (
    UNDEFINED,
    Boxed,
    JsException,
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


def _grouped(this: Boxed, locales: Any = UNDEFINED, options: Any = UNDEFINED, *_: Any) -> str:
    """Write a number as American English does, which is a Worker's locale."""
    refuse_locale("Number.prototype.toLocaleString", locales, options)
    number = this.value
    if not math.isfinite(number):
        return {math.inf: "∞", -math.inf: "-∞"}.get(number, "NaN")
    return f"{number:,.3f}".rstrip("0").removesuffix(".")


def _value(this: Boxed, *_: Any) -> Any:
    return this.value


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
        **js_strings.TEXT,
    },
    "Boolean": {"toString": lambda this, *_: display(this), "valueOf": _value},
}
