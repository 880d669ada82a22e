"""The built-in classes and functions of JavaScript: Object, Array, JSON, Date, Math and so on."""

from __future__ import annotations

import math
import re
import sys
import urllib.parse
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime import (
    js_arrays,
    js_collections,
    js_json,
    js_math,
    js_numbers,
    js_objects,
    js_patterns,
)
from emulator.runtime.js_basics import Constructor, Properties, functions, truthy
from emulator.runtime.js_console import CONSOLE
from emulator.runtime.js_crypto import CRYPTO
from emulator.runtime.js_dates import DATE
from emulator.runtime.js_text import display
from emulator.runtime.not_yet import not_yet
from emulator.values import (
    UNDEFINED,
    Boxed,
    JsException,
    from_v8,
    to_number,
    to_v8,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def utf16_text(codes: Iterable[int]) -> str:
    """Return the text of units of UTF-16; half of a pair stays what it is."""
    units = b"".join(code.to_bytes(2, "little") for code in codes)
    return units.decode("utf-16-le", "surrogatepass")


def _code_point(value: Any) -> str:
    number = to_number(value)
    if not 0 <= number <= sys.maxunicode or number != int(number):
        raise JsException("RangeError", f"Invalid code point {display(value)}")
    return chr(int(number))


def _raw_text(parts: Any = UNDEFINED, *values: Any) -> str:
    pieces = js_arrays.items_of(js_objects.element(parts, "raw"))
    between = [*map(display, values), *[""] * len(pieces)]
    told = [display(piece) + between[at] for at, piece in enumerate(pieces[:-1])]
    return "".join([*told, *map(display, pieces[-1:])])


_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")
_ESCAPES: Final = re.compile("(?:%[0-9a-fA-F]{2})+")
# What `encodeURI` leaves as it is, and `decodeURI` escaped, besides letters and digits.
_RESERVED: Final = ";/?:@&=+$,#"
_MARKS: Final = "-_.!~*'()"


def _quote(safe: str) -> Callable[..., str]:
    def quote(text: Any = UNDEFINED, *_: Any) -> str:
        try:
            return urllib.parse.quote(display(text), safe=safe)
        except UnicodeEncodeError:
            raise JsException("URIError", "URI malformed") from None

    return quote


def _unquote(kept: str) -> Callable[..., str]:
    def decode(found: re.Match[str]) -> str:
        data = bytes.fromhex(found[0].replace("%", ""))
        at, out = 0, []
        for char in data.decode():
            size = len(char.encode())
            out.append(found[0][3 * at : 3 * (at + size)] if char in kept else char)
            at += size
        return "".join(out)

    def unquote(text: Any = UNDEFINED, *_: Any) -> str:
        try:
            if not _ESCAPE.search(display(text)):
                return _ESCAPES.sub(decode, display(text))
        except UnicodeDecodeError:
            pass
        raise JsException("URIError", "URI malformed")

    return unquote


def _structured_clone(value: Any = UNDEFINED, options: Any = UNDEFINED, *_: Any) -> Any:
    if isinstance(options, dict) and options.get("transfer"):
        raise not_yet("structuredClone with `transfer`", imported=False)
    if isinstance(value, Properties):
        value = list(value)
    return from_v8(to_v8(value))


def _is_error(value: Any = UNDEFINED, *_: Any) -> bool:
    return isinstance(value, JsException)


def _capture_stack(target: Any = UNDEFINED, *_: Any) -> Any:
    if isinstance(target, dict):
        target["stack"] = "Error"
    return UNDEFINED


def _error_class(name: str) -> Constructor:
    def construct(message: Any = UNDEFINED, options: Any = UNDEFINED, *_: Any) -> JsException:
        error = JsException(name, "" if message is UNDEFINED else display(message))
        if isinstance(options, dict) and "cause" in options:
            error.cause = options["cause"]
        return error

    made = functions(isError=_is_error, captureStackTrace=_capture_stack)
    statics = {**made, "stackTraceLimit": 10} if name == "Error" else {}
    return Constructor(name, construct, call=construct, statics=statics)


_ERRORS: Final = (
    "Error",
    "TypeError",
    "RangeError",
    "SyntaxError",
    "ReferenceError",
    "EvalError",
    "URIError",
)


BUILTINS: Final[dict[str, Any]] = {
    "Object": js_objects.CLASS,
    "Array": js_arrays.CLASS,
    "Map": js_collections.MAP_CLASS,
    "Set": js_collections.SET_CLASS,
    "JSON": js_json.JSON,
    "Date": DATE,
    "RegExp": js_patterns.CLASS,
    "Math": js_math.MATH,
    "Number": js_numbers.NUMBER,
    "String": Constructor(
        "String",
        lambda value="", *_: Boxed("String", display(value)),
        call=lambda value="", *_: display(value),
        statics=functions(
            fromCharCode=lambda *codes: utf16_text(js_math.unsigned(code, 16) for code in codes),
            fromCodePoint=lambda *points: "".join(map(_code_point, points)),
            raw=_raw_text,
        ),
    ),
    "Boolean": Constructor(
        "Boolean",
        lambda value=UNDEFINED, *_: Boxed("Boolean", truthy(value)),
        call=lambda value=UNDEFINED, *_: truthy(value),
    ),
    "BigInt": js_numbers.BIGINT,
    "Symbol": js_numbers.SYMBOL,
    "NaN": math.nan,
    "Infinity": math.inf,
    "console": CONSOLE,
    "crypto": CRYPTO,
    **{name: _error_class(name) for name in _ERRORS},
    **js_numbers.FUNCTIONS,
    **functions(
        encodeURIComponent=_quote(_MARKS),
        encodeURI=_quote(_MARKS + _RESERVED),
        decodeURIComponent=_unquote(""),
        decodeURI=_unquote(_RESERVED),
        structuredClone=_structured_clone,
    ),
}
