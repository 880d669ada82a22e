"""The built-in classes and functions of JavaScript: Object, Array, JSON, Date, Math and so on."""

from __future__ import annotations

import math
import re
import sys
import urllib.parse
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.js_console import CONSOLE
from emulator.runtime.js_crypto import CRYPTO
from emulator.runtime.js_dates import DATE
from emulator.runtime.js_properties import lookup, set_property
from emulator.runtime.js_prototypes import Constructor, same, truthy
from emulator.runtime.js_text import display, own_names
from emulator.runtime.pyproxy import PyProxy, call_value, iterate, unwrap
from emulator.values import (
    UNDEFINED,
    BigInt,
    Boxed,
    Function,
    JsException,
    JsMap,
    JsSet,
    RegExp,
    Symbol,
    TypedArray,
    class_of,
    from_json,
    from_v8,
    plain_number,
    stringify,
    to_number,
    to_v8,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def _fn(name: str, function: Callable[..., Any]) -> Function:
    return Function(function, name, raw=True)


def _functions(**functions: Callable[..., Any]) -> dict[str, Any]:
    return {name.rstrip("_"): _fn(name.rstrip("_"), f) for name, f in functions.items()}


def _from_entries(pairs: Any = UNDEFINED) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for pair in iterate(pairs):
        if isinstance(pair, PyProxy) and isinstance(pair.obj, (list, tuple)):
            key, value = (*map(unwrap, pair.obj), UNDEFINED, UNDEFINED)[:2]
        elif isinstance(pair, list):
            key, value = (*pair, UNDEFINED, UNDEFINED)[:2]
        else:
            raise JsException("TypeError", f"Iterator value {display(pair)} is not an entry object")
        record[display(key)] = value
    return record


def _new_object(value: Any = UNDEFINED) -> Any:
    if isinstance(value, (bool, int, float, str)):
        return Boxed(class_of(value), value)
    return {} if value is None or value is UNDEFINED else value


def _assign(target: Any, *sources: Any) -> Any:
    for source in sources:
        for name in own_names(source):
            set_property(target, name, lookup_element(source, name))
    return target


def lookup_element(value: Any, name: str) -> Any:
    """Return a property, elements of arrays and text included; undefined if there is none."""
    if isinstance(value, (list, str, bytes, TypedArray)) and name.isdigit():
        if int(name) >= len(value):
            return UNDEFINED
        found: Any = value.view()[int(name)] if isinstance(value, TypedArray) else value[int(name)]
        return BigInt(found) if class_of(value).startswith("Big") else found
    try:
        return lookup(value, name)
    except AttributeError:
        return UNDEFINED


OBJECT: Final = Constructor(
    "Object",
    _new_object,
    call=_new_object,
    statics=_functions(
        fromEntries=_from_entries,
        keys=lambda value: list(own_names(value)),
        values=lambda value: [lookup_element(value, name) for name in own_names(value)],
        entries=lambda value: [[name, lookup_element(value, name)] for name in own_names(value)],
        assign=_assign,
        freeze=lambda value: value,
        create=lambda prototype, *rest: {},
        hasOwn=lambda value, name: display(name) in own_names(value),
        is_=lambda left, right: same(left, right) or (left != left and right != right),
        getOwnPropertyNames=lambda value: list(own_names(value)),
    ),
)


def _new_array(*items: Any) -> list[Any]:
    if len(items) == 1 and isinstance(items[0], (int, float)) and not isinstance(items[0], bool):
        if not 0 <= items[0] < 2**32 or items[0] != int(items[0]):
            raise JsException("RangeError", "Invalid array length")
        return [UNDEFINED] * int(items[0])
    return list(items)


def _array_from(source: Any, function: Any = UNDEFINED, *rest: Any) -> list[Any]:
    if isinstance(source, dict):
        count = int(to_number(source.get("length", 0)))
        items = [lookup_element(source, str(index)) for index in range(count)]
    else:
        items = list(iterate(source))
    if function is UNDEFINED:
        return items
    return [call_value(function, item, index) for index, item in enumerate(items)]


def _new_map(pairs: Any = UNDEFINED) -> JsMap:
    result = JsMap()
    for pair in () if pairs is UNDEFINED or pairs is None else iterate(pairs):
        entry = list(iterate(pair)) if not isinstance(pair, str) else []
        if len(entry) < 1:
            raise JsException("TypeError", f"Iterator value {display(pair)} is not an entry object")
        result.set(entry[0], entry[1] if len(entry) > 1 else UNDEFINED)
    return result


def _new_set(values: Any = UNDEFINED) -> JsSet:
    return JsSet(() if values is UNDEFINED or values is None else iterate(values))


def _stringify(value: Any = UNDEFINED, replacer: Any = UNDEFINED, space: Any = UNDEFINED) -> Any:
    indent = ""
    if isinstance(space, (int, float)):
        indent = " " * min(int(space), 10)
    elif isinstance(space, str):
        indent = space[:10]
    if isinstance(replacer, list) and isinstance(value, dict):
        value = {name: value[name] for name in map(display, replacer) if name in value}
    elif isinstance(replacer, (Function, PyProxy)):
        value = _replaced(replacer, "", value)
    return stringify(value, indent)


def _replaced(replacer: Any, key: str, value: Any) -> Any:
    value = call_value(replacer, key, value)
    if isinstance(value, dict):
        return {name: _replaced(replacer, name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(replacer, str(index), item) for index, item in enumerate(value)]
    return value


def _number(value: Any = 0) -> Any:
    held = value.value if isinstance(value, BigInt) else value
    return to_number(held)


def _parse_int(text: Any = UNDEFINED, radix: Any = 10) -> Any:
    base = 10 if radix is UNDEFINED else int(radix)
    body = display(text).strip().lower()
    sign = -1 if body[:1] == "-" else 1
    body = body.lstrip("+-")
    if body[:2] == "0x" and (base == 16 or radix is UNDEFINED or radix == 10):
        base, body = 16, body[2:]
    digits = ""
    for char in body:
        if not char.isascii() or not char.isalnum() or int(char, 36) >= base:
            break
        digits += char
    return sign * int(digits, base) if digits else math.nan


def _parse_float(text: Any = UNDEFINED) -> Any:
    found = re.match(
        r"\s*[+-]?(Infinity|\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?)", display(text), re.I
    )
    return float(found[0]) if found else math.nan


def _to_bigint(value: Any) -> BigInt:
    if isinstance(value, BigInt):
        return value
    number = to_number(value)
    if number != number or number != int(number):
        kind = "SyntaxError" if isinstance(value, str) else "RangeError"
        raise JsException(kind, f"Cannot convert {display(value)} to a BigInt")
    return BigInt(int(value) if isinstance(value, str) else int(number))


def _no_symbol(*_: Any) -> Any:
    raise JsException("TypeError", "Symbol is not a constructor")


def utf16_text(codes: Iterable[int]) -> str:
    """Return the text of units of UTF-16; half of a pair stays what it is."""
    units = b"".join(code.to_bytes(2, "little") for code in codes)
    return units.decode("utf-16-le", "surrogatepass")


def _code_point(value: Any) -> str:
    number = to_number(value)
    if not 0 <= number <= sys.maxunicode or number != int(number):
        raise JsException("RangeError", f"Invalid code point {display(value)}")
    return chr(int(number))


def _quote(safe: str) -> Callable[..., str]:
    return lambda text=UNDEFINED, *rest: urllib.parse.quote(display(text), safe=safe)


_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")


def _unquote(text: Any = UNDEFINED, *rest: Any) -> str:
    if _ESCAPE.search(display(text)):
        raise JsException("URIError", "URI malformed")
    try:
        return urllib.parse.unquote(display(text), errors="strict")
    except UnicodeDecodeError:
        raise JsException("URIError", "URI malformed") from None


def _structured_clone(value: Any = UNDEFINED, *rest: Any) -> Any:
    return from_v8(to_v8(value))


def _error_class(name: str) -> Constructor:
    def construct(message: Any = UNDEFINED, options: Any = UNDEFINED, *rest: Any) -> JsException:
        error = JsException(name, "" if message is UNDEFINED else display(message))
        if isinstance(options, dict) and "cause" in options:
            error.cause = options["cause"]
        return error

    return Constructor(name, construct, call=construct)


def _rounded(value: Any) -> Any:
    number = to_number(value)
    return number if number != number else plain_number(float(math.floor(number + 0.5)))


def _random() -> float:
    from emulator.runtime.host import current

    return int.from_bytes(current().urandom(7), "big") % 2**53 / 2**53


MATH: Final[dict[str, Any]] = {
    "PI": math.pi,
    "E": math.e,
    **_functions(
        floor=lambda value: math.floor(to_number(value)),
        ceil=lambda value: math.ceil(to_number(value)),
        round=_rounded,
        trunc=lambda value: math.trunc(to_number(value)),
        abs=lambda value: abs(to_number(value)),
        sign=lambda value: (to_number(value) > 0) - (to_number(value) < 0),
        sqrt=lambda value: math.sqrt(to_number(value)) if to_number(value) >= 0 else math.nan,
        pow=lambda base, power: math.pow(to_number(base), to_number(power)),
        log=lambda value: math.log(to_number(value)) if to_number(value) > 0 else -math.inf,
        min=lambda *values: min(map(to_number, values), default=math.inf),
        max=lambda *values: max(map(to_number, values), default=-math.inf),
        random=_random,
    ),
}


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
    "Object": OBJECT,
    "Array": Constructor(
        "Array",
        _new_array,
        call=_new_array,
        statics=_functions(
            from_=_array_from,
            of=lambda *items: list(items),
            isArray=lambda value=UNDEFINED, *rest: isinstance(value, list),
        ),
    ),
    "Map": Constructor("Map", _new_map),
    "Set": Constructor("Set", _new_set),
    "JSON": _functions(
        parse=lambda text=UNDEFINED, *rest: from_json(display(text)), stringify=_stringify
    ),
    "Date": DATE,
    "RegExp": Constructor(
        "RegExp",
        lambda source="(?:)", flags="", *rest: RegExp(display(source), display(flags)),
    ),
    "Math": MATH,
    "Number": Constructor(
        "Number",
        lambda value=0, *rest: Boxed("Number", _number(value)),
        call=_number,
        statics={
            "MAX_SAFE_INTEGER": 2**53 - 1,
            "MIN_SAFE_INTEGER": -(2**53) + 1,
            "MAX_VALUE": sys.float_info.max,
            "MIN_VALUE": 5e-324,
            "EPSILON": sys.float_info.epsilon,
            "POSITIVE_INFINITY": math.inf,
            "NEGATIVE_INFINITY": -math.inf,
            "NaN": math.nan,
            **_functions(
                isInteger=lambda v: isinstance(v, (int, float)) and float(v).is_integer(),
                isSafeInteger=lambda v: (
                    isinstance(v, (int, float)) and float(v).is_integer() and abs(v) < 2**53
                ),
                isFinite=lambda v: isinstance(v, (int, float)) and math.isfinite(v),
                isNaN=lambda v: isinstance(v, float) and v != v,
                parseInt=_parse_int,
                parseFloat=_parse_float,
            ),
        },
    ),
    "String": Constructor(
        "String",
        lambda value="", *rest: Boxed("String", display(value)),
        call=lambda value="": display(value),
        statics=_functions(
            fromCharCode=lambda *codes: utf16_text(int(to_number(code)) % 65_536 for code in codes),
            fromCodePoint=lambda *points: "".join(map(_code_point, points)),
        ),
    ),
    "Boolean": Constructor(
        "Boolean",
        lambda value=UNDEFINED, *rest: Boxed("Boolean", truthy(value)),
        call=lambda value=UNDEFINED: truthy(value),
    ),
    "BigInt": Function(_to_bigint, "BigInt", raw=True),
    "Symbol": Constructor(
        "Symbol",
        _no_symbol,
        call=lambda text="": Symbol(display(text)),
        statics={
            name: Symbol(f"Symbol.{name}") for name in ("iterator", "asyncIterator", "dispose")
        },
    ),
    "NaN": math.nan,
    "Infinity": math.inf,
    "console": CONSOLE,
    "crypto": CRYPTO,
    **{name: _error_class(name) for name in _ERRORS},
    **_functions(
        parseInt=_parse_int,
        parseFloat=_parse_float,
        isNaN=lambda value=UNDEFINED: to_number(value) != to_number(value),
        isFinite=lambda value=UNDEFINED: math.isfinite(to_number(value)),
        encodeURIComponent=_quote("-_.!~*'()"),
        encodeURI=_quote("-_.!~*'();/?:@&=+$,#"),
        decodeURIComponent=_unquote,
        decodeURI=_unquote,
        structuredClone=_structured_clone,
    ),
}
