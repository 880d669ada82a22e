"""JavaScript's `Number`, `BigInt` and `Symbol`, and the functions that read numbers."""

from __future__ import annotations

import functools
import math
import re
import sys
from typing import Any, Final

from emulator.runtime.js_basics import Constructor, function, functions, is_number
from emulator.runtime.js_text import display
from emulator.runtime.js_utf16 import SPACES
from emulator.runtime.js_views import place_of
from emulator.values import UNDEFINED, BigInt, Boxed, Function, JsException, Symbol, to_number

_FLOAT: Final = re.compile(
    r"[+-]?(Infinity|\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)", re.ASCII
)
_INTEGER: Final = re.compile(r"[+-]?\d+|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+", re.ASCII)
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def number(value: Any = 0, *_: Any) -> float:
    """Do `Number(value)`, which takes BigInts too."""
    if isinstance(value, BigInt):
        try:
            return float(value.value)
        except OverflowError:
            return math.copysign(math.inf, value.value)
    return to_number(value)


def parse_int(text: Any = UNDEFINED, radix: Any = UNDEFINED, *_: Any) -> float:
    """Do `parseInt`."""
    body = display(text).lstrip(SPACES)
    sign = -1 if body[:1] == "-" else 1
    body = body[body[:1] in ("+", "-") :].lower()
    told = to_number(radix) if radix is not UNDEFINED else 0
    base = int(told) % 2**32 if math.isfinite(told) else 0
    if base in (0, 16) and body[:2] == "0x":
        base, body = 16, body[2:]
    base = base or 10
    if not 2 <= base <= 36:
        return math.nan
    known = _DIGITS[:base]
    count = next((at for at, char in enumerate(body) if char not in known), len(body))
    if not count:
        return math.nan
    whole = int(body[:count], base)
    try:
        return sign * (whole if whole < 2**53 else float(whole))
    except OverflowError:
        return sign * math.inf


def parse_float(text: Any = UNDEFINED, *_: Any) -> float:
    """Do `parseFloat`."""
    found = _FLOAT.match(display(text).lstrip(SPACES))
    return float(found[0]) if found else math.nan


def _is_integer(value: Any = UNDEFINED, *_: Any) -> bool:
    return is_number(value) and math.isfinite(value) and value == int(value)


NUMBER: Final = Constructor(
    "Number",
    lambda value=0, *_: Boxed("Number", number(value)),
    call=number,
    statics={
        "MAX_SAFE_INTEGER": 2**53 - 1,
        "MIN_SAFE_INTEGER": -(2**53) + 1,
        "MAX_VALUE": sys.float_info.max,
        "MIN_VALUE": 5e-324,
        "EPSILON": sys.float_info.epsilon,
        "POSITIVE_INFINITY": math.inf,
        "NEGATIVE_INFINITY": -math.inf,
        "NaN": math.nan,
        **functions(
            isInteger=_is_integer,
            isSafeInteger=lambda value=UNDEFINED, *_: _is_integer(value) and abs(value) < 2**53,
            isFinite=lambda value=UNDEFINED, *_: is_number(value) and math.isfinite(value),
            isNaN=lambda value=UNDEFINED, *_: isinstance(value, float) and value != value,
            parseInt=parse_int,
            parseFloat=parse_float,
        ),
    },
)
FUNCTIONS: Final = functions(
    parseInt=parse_int,
    parseFloat=parse_float,
    isNaN=lambda value=UNDEFINED, *_: to_number(value) != to_number(value),
    isFinite=lambda value=UNDEFINED, *_: math.isfinite(to_number(value)),
)


# -- BigInt ----------------------------------------------------------------------------------------


def to_bigint(value: Any = UNDEFINED, *_: Any) -> BigInt:
    """Do `BigInt(value)`."""
    if isinstance(value, Boxed):
        value = value.value
    if isinstance(value, BigInt):
        return value
    if isinstance(value, str):
        text = value.strip(SPACES)
        if text and not _INTEGER.fullmatch(text):
            raise JsException("SyntaxError", f"Cannot convert {value} to a BigInt")
        base = {"0x": 16, "0o": 8, "0b": 2}.get(text[:2].lower(), 10)
        return BigInt(int(text or "0", base))
    if value is None or value is UNDEFINED:
        raise JsException("TypeError", f"Cannot convert {display(value)} to a BigInt")
    told = to_number(value)
    if isinstance(value, (bool, int, float)):
        if not math.isfinite(told) or told != int(told):
            text = (
                f"The number {display(value)} cannot be converted to a BigInt because it is not an "
                "integer"
            )
            raise JsException("RangeError", text)
        return BigInt(int(told))
    return to_bigint(display(value))


def _as_bits(*, signed: bool) -> Any:
    def convert(bits: Any = UNDEFINED, value: Any = UNDEFINED, *_: Any) -> BigInt:
        size = place_of(bits, "Invalid value: not (convertible to) a safe integer")
        if is_number(value):
            raise JsException("TypeError", f"Cannot convert {display(value)} to a BigInt")
        whole = to_bigint(value).value % (1 << size)
        is_negative = signed and size > 0 and whole >> (size - 1)
        return BigInt(whole - (1 << size) if is_negative else whole)

    return convert


def _no_bigint(*_: Any) -> Any:
    raise JsException("TypeError", "BigInt is not a constructor")


BIGINT: Final = Constructor(
    "BigInt",
    _no_bigint,
    call=to_bigint,
    statics=functions(asIntN=_as_bits(signed=True), asUintN=_as_bits(signed=False)),
)


# -- Symbol ----------------------------------------------------------------------------------------

_WELL_KNOWN: Final = (
    *("asyncIterator", "hasInstance", "isConcatSpreadable", "iterator", "match", "matchAll"),
    *("replace", "search", "species", "split", "toPrimitive", "toStringTag", "unscopables"),
    *("dispose", "asyncDispose"),
)


class _Registered(Symbol):
    """A symbol of `Symbol.for`."""


@functools.cache
def _registered(key: str) -> _Registered:
    return _Registered(key)


def _key_for(symbol: Any = UNDEFINED, *_: Any) -> Any:
    if not isinstance(symbol, Symbol):
        raise JsException("TypeError", f"{display(symbol)} is not a symbol")
    return symbol.description if isinstance(symbol, _Registered) else UNDEFINED


def _no_symbol(*_: Any) -> Any:
    raise JsException("TypeError", "Symbol is not a constructor")


SYMBOL: Final[Function] = Constructor(
    "Symbol",
    _no_symbol,
    call=lambda text="", *_: Symbol("" if text is UNDEFINED else display(text)),
    statics={
        "for": function("for", lambda key=UNDEFINED, *_: _registered(display(key))),
        "keyFor": function("keyFor", _key_for),
        **{name: Symbol(f"Symbol.{name}") for name in _WELL_KNOWN},
    },
)
