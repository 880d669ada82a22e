"""JavaScript's `Math`."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.js_basics import Method, functions
from emulator.runtime.pyproxy import iterate
from emulator.values import UNDEFINED, JsException, to_number

if TYPE_CHECKING:
    from collections.abc import Callable

_INFINITE: Final = (math.inf, -math.inf)


def _of_one(function: Callable[[float], float]) -> Method:
    """Return a function of one number: NaN outside its domain, infinite where it overflows."""

    def call(value: Any = UNDEFINED, *_: Any) -> float:
        number = to_number(value)
        try:
            return function(number)
        except ValueError:
            return math.nan
        except OverflowError:
            # Of the infinite ones, those that have no other value; and of what grows too large.
            return number if number in _INFINITE else math.copysign(math.inf, number)

    return call


def _whole(function: Callable[[float], int]) -> Method:
    # Numbers this large are whole, and infinite ones and NaN have no integer.
    return _of_one(lambda number: function(number) if abs(number) < 2**53 else number)


def _rounded(number: float) -> float:
    whole = math.floor(number)
    return whole + (number - whole >= 0.5)


def _logarithm(function: Callable[[float], float], pole: float = 0) -> Method:
    return _of_one(lambda number: -math.inf if number == pole else function(number))


def _atanh(number: float) -> float:
    return math.copysign(math.inf, number) if abs(number) == 1 else math.atanh(number)


def _exponential(function: Callable[[float], float]) -> Method:
    def exponential(number: float) -> float:
        try:
            return function(number)
        except OverflowError:
            return math.inf

    return _of_one(exponential)


def _bits(number: float) -> int:
    whole: int = struct.unpack("<Q", struct.pack("<d", number))[0]
    return whole


def _of_bits(bits: int) -> float:
    number: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return number


def _cube_root(number: float) -> float:
    """Return what V8 does, by the algorithm of fdlibm's `cbrt`; that of the C library differs."""
    if number == 0 or not math.isfinite(number):
        return number
    size = abs(number)
    if size < 2.0**-1022:
        guess = _of_bits((((_bits(size * 2.0**54) >> 32) // 3) + 696_219_795) << 32)
    else:
        guess = _of_bits((((_bits(size) >> 32) // 3) + 715_094_163) << 32)
    rest = guess * guess * (guess / size)
    guess *= (
        1.87595182427177009643 + rest * (-1.88497979543377169875 + rest * 1.621429720105354466140)
    ) + (rest * rest * rest) * (-0.758397934778766047437 + rest * 0.145996192886612446982)
    guess = _of_bits((_bits(guess) + 0x80000000) & 0xFFFFFFFFC0000000)
    rest = size / (guess * guess)
    rest = (rest - guess) / (guess + guess + rest)
    return math.copysign(guess + guess * rest, number)


def _power(base: Any = UNDEFINED, exponent: Any = UNDEFINED, *_: Any) -> float:
    number, power = to_number(base), to_number(exponent)
    if power != power or (abs(number) == 1 and math.isinf(power)):
        return math.nan
    infinite = math.copysign(math.inf, number if power % 2 == 1 else 1)
    if number == 0 and power < 0:
        return infinite
    try:
        return math.pow(number, power)
    except OverflowError:
        return infinite
    except ValueError:
        return math.nan


def _extreme(choose: Callable[..., float], empty: float) -> Method:
    def extreme(*values: Any) -> float:
        numbers = list(map(to_number, values))
        if any(number != number for number in numbers):
            return math.nan
        return choose(numbers, default=empty)

    return extreme


def single(number: float) -> float:
    """Return the nearest number of 32 bits."""
    held = memoryview(bytearray(4)).cast("f")
    held[0] = number
    return held[0]


def half(number: float) -> float:
    """Return the nearest number of 16 bits."""
    try:
        rounded: float = struct.unpack("<e", struct.pack("<e", float(number)))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return rounded


def unsigned(value: Any, bits: int = 32) -> int:
    """Return the unsigned integer of so many bits that a number means (`ToUint32`)."""
    number = to_number(value)
    return int(number) % (1 << bits) if math.isfinite(number) else 0


def _product(left: Any = UNDEFINED, right: Any = UNDEFINED, *_: Any) -> int:
    product = unsigned(left) * unsigned(right) % 2**32
    return product - 2**32 if product >= 2**31 else product


def _precise_sum(values: Any = UNDEFINED, *_: Any) -> float:
    numbers = list(iterate(values))
    if any(isinstance(item, bool) or not isinstance(item, (int, float)) for item in numbers):
        raise JsException("TypeError", "Math.sumPrecise: iterator value is not a number")
    if not all(map(math.isfinite, numbers)):
        return float(sum(number for number in numbers if not math.isfinite(number)))
    from fractions import Fraction

    total = sum(map(Fraction, numbers))
    try:
        return float(total)
    except OverflowError:
        return math.copysign(math.inf, total)


def _hypotenuse(*values: Any) -> float:
    return math.hypot(*map(to_number, values))


def _angle(y: Any = UNDEFINED, x: Any = UNDEFINED, *_: Any) -> float:
    return math.atan2(to_number(y), to_number(x))


def _random(*_: Any) -> float:
    from emulator.runtime.host import current

    return int.from_bytes(current().urandom(7), "big") % 2**53 / 2**53


def _sign(number: float) -> float:
    return number if number != number else (number > 0) - (number < 0)


MATH: Final[dict[str, Any]] = {
    "E": math.e,
    "LN10": math.log(10),
    "LN2": math.log(2),
    "LOG10E": 0.4342944819032518,
    "LOG2E": 1.4426950408889634,
    "PI": math.pi,
    "SQRT1_2": math.sqrt(0.5),
    "SQRT2": math.sqrt(2),
    **functions(
        abs=_of_one(abs),
        acos=_of_one(math.acos),
        acosh=_of_one(math.acosh),
        asin=_of_one(math.asin),
        asinh=_of_one(math.asinh),
        atan=_of_one(math.atan),
        atan2=_angle,
        atanh=_of_one(_atanh),
        cbrt=_of_one(_cube_root),
        ceil=_whole(math.ceil),
        clz32=lambda value=UNDEFINED, *_: 32 - unsigned(value).bit_length(),
        cos=_of_one(math.cos),
        cosh=_exponential(math.cosh),
        exp=_exponential(math.exp),
        expm1=_exponential(math.expm1),
        f16round=_of_one(half),
        floor=_whole(math.floor),
        fround=_of_one(single),
        hypot=_hypotenuse,
        imul=_product,
        log=_logarithm(math.log),
        log10=_logarithm(math.log10),
        log1p=_logarithm(math.log1p, -1),
        log2=_logarithm(math.log2),
        max=_extreme(max, -math.inf),
        min=_extreme(min, math.inf),
        pow=_power,
        random=_random,
        round=_of_one(lambda number: _rounded(number) if math.isfinite(number) else number),
        sign=_of_one(_sign),
        sin=_of_one(math.sin),
        sinh=_of_one(math.sinh),
        sqrt=_of_one(math.sqrt),
        sumPrecise=_precise_sum,
        tan=_of_one(math.tan),
        tanh=_of_one(math.tanh),
        trunc=_whole(math.trunc),
    ),
}
