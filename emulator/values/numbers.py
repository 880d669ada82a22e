"""JavaScript's arithmetic of single numbers: how they print, and how other values become one."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any

from emulator.values.dates import to_milliseconds
from emulator.values.types import SAFE, UNDEFINED, BigInt, Boxed, JsException

_INT32 = 2**31
_DECIMAL = re.compile(r"[+-]?(Infinity|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)")
_RADIX = {"0x": 16, "0o": 8, "0b": 2}


def format_number(number: float) -> str:
    """Return `String(number)`: `1.0` is `1`, `1e21` is `1e+21`, `1e-7` stays."""
    if isinstance(number, int) and -SAFE < number < SAFE:
        return str(int(number))
    number = float(number)
    if number != number:
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    digits, _, power = f"{float.__repr__(abs(number))}e0".partition("e")
    exponent = int(power.split("e")[0])
    whole, _, fraction = digits.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + exponent
    significant = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(significant)
    return sign + _place_point(significant.rstrip("0"), point)


def _place_point(digits: str, point: int) -> str:
    """ECMA-262 Number::toString: `0.digits` times ten to the power of `point`."""
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{rest}e{point - 1:+d}"


def plain_number(number: float) -> int | float:
    """Return the number as Python shows it: an int if integral and safe, else a float."""
    if isinstance(number, float):
        return int(number) if number.is_integer() and -SAFE < number < SAFE else number
    return number


def to_number(value: Any) -> float:
    """Return `Number(value)`; NaN for what is no number."""
    if value is None:
        return 0
    if isinstance(value, (bool, int, float)):
        return value + 0 if value else value * 1
    if isinstance(value, str):
        return _parse_number(value.strip())
    if isinstance(value, datetime):
        return to_milliseconds(value)
    if isinstance(value, Boxed):
        return to_number(value.value)
    if isinstance(value, BigInt):
        raise JsException("TypeError", "Cannot convert a BigInt value to a number")
    if isinstance(value, list) and len(value) < 2:
        return to_number(value[0]) if value and value[0] is not UNDEFINED else 0
    return math.nan


def _parse_number(text: str) -> float:
    if not text:
        return 0
    base = _RADIX.get(text[:2].lower())
    try:
        if base is not None:
            return float(int(text[2:], base)) if text[2:].isalnum() else math.nan
        return plain_number(float(text)) if _DECIMAL.fullmatch(text) else math.nan
    except ValueError:
        return math.nan


def js_int32(value: Any) -> int:
    """Return the int that an int32 setting such as `delaySeconds` takes from a value.

    `1.5` is 1, `"5"` 5, `True` 1; NaN, infinities, null and other text are 0. Raises `TypeError`
    (as `JsException`) outside the range of int32.
    """
    number = to_number(value)
    if number != number or math.isinf(number):
        return 0
    whole = int(number)
    if not -_INT32 <= whole < _INT32:
        raise JsException(
            "TypeError",
            "Value out of range. Must be between -2147483648 and 2147483647 (inclusive).",
        )
    return whole
