"""`new Number(5)` and its kin, and Dates made of texts.

What real Pyodide shows for the same code is in tests/conformance/pyodide.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import js
import pytest
from ffi_worker import worker
from pyodide.ffi import JsException, JsProxy, to_js

from emulator.runtime.js_dates import parse
from emulator.values import Boxed, from_v8, to_v8
from emulator.values.plain import plain


def error_of(action: Any) -> str:
    with pytest.raises(JsException) as caught:
        action()
    return f"{caught.value.name}: {caught.value.message}"


def at(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp() * 1000  # type: ignore[arg-type,misc]


def test_a_boxed_number_is_an_object() -> None:
    with worker(314):
        five = js.Number.new("5")
        assert isinstance(five, JsProxy)
        assert five.typeof == "object"
        assert five.constructor.name == "Number"
        assert five != js.Number.new(5)
        assert (five == 5) is False
        assert bool(js.Number.new(0)) is True
        assert five.valueOf() == 5
        assert js.Number(five) == 5
        assert js.JSON.stringify(to_js([five, js.String.new("a"), js.Boolean.new(0)])) == (
            '[5,"a",false]'
        )


@pytest.mark.parametrize(
    ("method", "arguments", "number", "shown"),
    [
        ("toFixed", (2,), 1.005, "1.00"),
        ("toFixed", (), 2.5, "3"),
        ("toFixed", (), -2.5, "-3"),
        ("toFixed", (), -0.1, "-0"),
        ("toFixed", (2,), 1e21, "1e+21"),
        ("toPrecision", (), 1.5, "1.5"),
        ("toPrecision", (3,), 1234.5678, "1.23e+3"),
        ("toPrecision", (6,), 1234.5678, "1234.57"),
        ("toPrecision", (1,), 0.00001, "0.00001"),
        ("toExponential", (), 12345, "1.2345e+4"),
        ("toExponential", (2,), 0.00012, "1.20e-4"),
        ("toString", (16,), -255, "-ff"),
        ("toString", (2,), 0.5, "0.1"),
        ("toString", (), 0.1, "0.1"),
        ("toLocaleString", (), 1234567.891, "1,234,567.891"),
        ("toLocaleString", (), 1000, "1,000"),
        ("toFixed", (), float("nan"), "NaN"),
        ("toExponential", (), float("inf"), "Infinity"),
    ],
)
def test_numbers_are_written_as_javascript_does(
    method: str, arguments: tuple[Any, ...], number: float, shown: str
) -> None:
    with worker():
        assert getattr(js.Number.new(number), method)(*arguments) == shown


def test_what_is_out_of_range_is_refused() -> None:
    with worker():
        one = js.Number.new(1)
        assert error_of(lambda: one.toFixed(101)) == (
            "RangeError: toFixed() digits argument must be between 0 and 100"
        )
        assert "toPrecision() argument" in error_of(lambda: one.toPrecision(0))
        assert "toString() radix" in error_of(lambda: one.toString(1))
        assert error_of(lambda: js.String.new("a").repeat(-1)) == (
            "RangeError: Invalid count value: -1"
        )
        assert error_of(lambda: js.Array.new(-1)) == "RangeError: Invalid array length"
        assert error_of(lambda: js.ArrayBuffer.new(-1)) == "RangeError: Invalid array buffer length"
        assert error_of(lambda: js.Uint8Array.new(10**10)) == (
            "RangeError: Array buffer allocation failed"
        )
        assert error_of(lambda: js.String.fromCodePoint(-1)) == "RangeError: Invalid code point -1"


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda text: text.slice(-2), "cd"),
        (lambda text: text.slice(1, -1), "bc"),
        (lambda text: text.substring(3, 1), "bc"),
        (lambda text: text.at(-1), "d"),
        (lambda text: text.at(9), None),
        (lambda text: text.charAt(9), ""),
        (lambda text: text.codePointAt(0), 97),
        (lambda text: text.indexOf("z"), -1),
        (lambda text: text.padEnd(7, "xy"), "abcdxyx"),
        (lambda text: text.padStart(2), "abcd"),
        (lambda text: text.replaceAll("b", "-"), "a-cd"),
        (lambda text: list(text.split("")), ["a", "b", "c", "d"]),
        (lambda text: list(text.split()), ["abcd"]),
        (list, ["a", "b", "c", "d"]),
        (len, 4),
        (lambda text: text.length, 4),
        (bool, True),
        (str, "abcd"),
    ],
)
def test_a_boxed_text_has_the_methods_of_texts(call: Any, found: Any) -> None:
    with worker():
        assert call(js.String.new("abcd")) == found


def test_what_is_no_constructor_says_so() -> None:
    with worker():
        assert error_of(lambda: js.BigInt.new(5)) == "TypeError: BigInt is not a constructor"
        assert error_of(lambda: js.Symbol.new()) == "TypeError: Symbol is not a constructor"
        assert error_of(lambda: js.parseInt.new("5")) == (
            "TypeError: function parseInt() { [native code] } is not a constructor"
        )


@pytest.mark.parametrize("box", [("Number", 1.5), ("String", "ä"), ("Boolean", True)])
def test_boxes_survive_a_structured_clone(box: tuple[str, Any]) -> None:
    clone = from_v8(to_v8([Boxed(*box), "next"]))
    assert (clone[0].kind, clone[0].value, clone[1]) == (*box, "next")
    assert plain(Boxed(*box)) == box[1]


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026", at(2026, 1, 1)),
        ("2026-02", at(2026, 2, 1)),
        ("2026-02-30", at(2026, 3, 2)),
        ("2026-01-02T03:04", at(2026, 1, 2, 3, 4)),
        ("2026-01-02T24:00:00", at(2026, 1, 3)),
        ("2026-01-02T03:04:05.678+02:30", at(2026, 1, 2, 0, 34, 5, 678_000)),
        ("2026-01-02 03:04", at(2026, 1, 2, 3, 4)),
        ("Thu Jan 01 2026 00:00:00 GMT+0200 (CEST)", at(2025, 12, 31, 22)),
        ("Fri, 02 Jan 2026 03:04:05 GMT", at(2026, 1, 2, 3, 4, 5)),
        ("Jan 2, 2026 10:30 PM", at(2026, 1, 2, 22, 30)),
        ("Jan 2, 2026 12:30 AM", at(2026, 1, 2, 0, 30)),
        ("2 January 2026 EST", at(2026, 1, 2, 5)),
        ("2026/1/2 3:04", at(2026, 1, 2, 3, 4)),
        ("1/2/26", at(2026, 1, 2)),
        ("Jan 1 2 2026", at(2002, 1, 1)),
        ("1/2/70", at(1970, 1, 2)),
        ("1/2/2026 10:00:00.5", at(2026, 1, 2, 10, 0, 0, 500_000)),
    ],
)
def test_dates_are_read_as_javascript_does(text: str, time: float) -> None:
    assert parse(text) == time


@pytest.mark.parametrize(
    "text",
    [
        *("", "garbage", "20260101", "2026-W01-1", "2026-13-01", "2026-01-32", "12:00"),
        *("2026-01-02T25:00", "2026-01-02T24:00:01", "Foo 1 2026", "Jan 2 2026 nonsense"),
        *("1/2/3/4", "Jan 2 2026 13:00 PM", "1/2/2026 25:00"),
    ],
)
def test_what_is_no_date_is_an_invalid_one(text: str) -> None:
    with worker():
        made = js.Date.new(text)
        assert js.isNaN(made)
        assert str(made.getTime()) == str(made.getFullYear()) == "nan"
        assert str(made) == made.toUTCString() == "Invalid Date"
        assert error_of(made.toISOString) == "RangeError: Invalid time value"
        assert js.JSON.stringify(made) == "null"
        assert str(js.Date.new(made).getTime()) == "nan"
        assert str(js.structuredClone(made).getTime()) == "nan"
        assert str(js.Date.parse(text)) == "nan"


def test_dates_of_numbers() -> None:
    with worker():
        assert js.Date.new(2026, 0, 1, 25).toISOString() == "2026-01-02T01:00:00.000Z"
        assert js.Date.new(99, 0).getFullYear() == 1999
        assert js.Date.UTC(2026, 12) == at(2027, 1, 1)
        assert str(js.Date.UTC(float("nan"))) == "nan"
        assert str(js.Date.new(8.64e15 + 1).getTime()) == "nan"
        assert js.Date.new(js.Date.new(5)).getTime() == 5
        assert js.Date.new(js.Number.new(5)).getTime() == 5
        assert js.Date.new(js.String.new("2026")).getTime() == at(2026, 1, 1)


def test_a_pattern_is_never_taken_for_its_text() -> None:
    with worker(314):
        text = js.String.new("a/b/c")
        assert text.replace(js.RegExp.new("b"), "x") == "a/x/c"
        assert text.replaceAll(js.RegExp.new("b", "g"), "x") == "a/x/c"
        assert list(text.split(js.RegExp.new("b"))) == ["a/", "/c"]
        assert text.replace("/b/", "x") == "axc"


def test_a_function_is_never_taken_for_its_text() -> None:
    with worker(314):
        assert js.String.new("abc").replace("b", lambda *told: f"<{told}>") == (
            "a<('b', 1, 'abc')>c"
        )


@pytest.mark.parametrize("method", ["includes", "startsWith", "endsWith"])
def test_where_no_pattern_may_be_it_is_refused(method: str) -> None:
    with worker(314):
        assert error_of(lambda: getattr(js.String.new("abc"), method)(js.RegExp.new("b"))) == (
            f"TypeError: First argument to String.prototype.{method} must not be a regular "
            "expression"
        )


def test_an_unknown_encoding_is_refused_at_once() -> None:
    with worker(314):
        assert error_of(lambda: js.TextDecoder.new("bogus")) == (
            'RangeError: The "bogus" encoding is not supported'
        )
        assert js.TextDecoder.new("utf-16le").decode(to_js(b"a\0")) == "a"
