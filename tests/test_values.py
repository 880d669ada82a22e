"""Canonical values: JSON, structured clone, queue bodies, numbers."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    Function,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    LiteralMap,
    ProxiedDict,
    ProxiedList,
    RegExp,
    Symbol,
    TypedArray,
    body_size,
    class_of,
    decode_body,
    encode_body,
    format_number,
    from_json,
    from_v8,
    js_int32,
    to_json,
    to_milliseconds,
    to_v8,
    type_of,
)


class Queue(HostObject):
    js_class = "WorkerQueue"


def test_undefined_is_falsy_and_one_of_a_kind() -> None:
    assert not UNDEFINED
    assert UNDEFINED is not None
    assert repr(UNDEFINED) == "undefined"


def test_exception_prints_name_and_message() -> None:
    error = JsException("TypeError", "no")
    assert (str(error), error.name, error.message) == ("TypeError: no", "TypeError", "no")


def test_exception_with_one_argument_is_a_plain_message() -> None:
    assert str(JsException("no")) == "no"
    assert JsException("no").name == "Error"


# What V8 prints for String(number).
NUMBERS = [
    (1.0, "1"),
    (-0.0, "0"),
    (1.5, "1.5"),
    (0.1 + 0.2, "0.30000000000000004"),
    (1e20, "100000000000000000000"),
    (123456789012345680000.0, "123456789012345680000"),
    (1e21, "1e+21"),
    (0.000001, "0.000001"),
    (1.5e-5, "0.000015"),
    (1e-7, "1e-7"),
    (-1.5e-10, "-1.5e-10"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (12345.678e10, "123456780000000"),
    (math.nan, "NaN"),
    (-math.inf, "-Infinity"),
]


@pytest.mark.parametrize(("number", "text"), NUMBERS)
def test_numbers_print_as_in_javascript(number: float, text: str) -> None:
    assert format_number(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_printed_numbers_read_back_as_the_same_number(number: float) -> None:
    assert float(format_number(number)) == number


STRINGIFIED: list[tuple[Any, str]] = [
    ({"a": 1, "b": [True, None, "x"]}, '{"a":1,"b":[true,null,"x"]}'),
    ({"f": 1.0, "n": math.nan, "i": -math.inf}, '{"f":1,"n":null,"i":null}'),
    ({"u": UNDEFINED, "k": 1}, '{"k":1}'),
    ([UNDEFINED, Symbol("s"), Function(print)], "[null,null,null]"),
    ({"f": Function(print)}, "{}"),
    (datetime(2026, 1, 1, tzinfo=UTC), '"2026-01-01T00:00:00.000Z"'),
    (datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), '"2026-01-01T00:00:00.000Z"'),
    ({"m": JsMap([(1, 2)]), "s": {1}, "o": JsSet([1])}, '{"m":{},"s":{},"o":{}}'),
    (LiteralMap([("a", 1)]), '{"a":1}'),
    (b"ab", '{"0":97,"1":98}'),
    (TypedArray("Float64Array", ArrayBuffer(8)), '{"0":0}'),
    (ArrayBuffer(b"ab"), "{}"),
    ({"b": 1, "10": 2, "9": 3, "01": 4}, '{"9":3,"10":2,"b":1,"01":4}'),
    ("é\u2028\x07\x7f", '"é\u2028\\u0007\x7f"'),
    ("\ud800", '"\\ud800"'),
    (JsException("TypeError", "x"), "{}"),
    (RegExp("x"), "{}"),
    (Queue(), "{}"),
    (ProxiedDict(a=1), '{"a":1}'),
    (ProxiedList([1]), "[1]"),
    (ProxiedList([1], hidden=True), "{}"),
    ({"toJSON": Function(lambda key: "me"), "k": 1}, '"me"'),
    (None, "null"),
    ("", '""'),
]


@pytest.mark.parametrize(("value", "text"), STRINGIFIED)
def test_stringify_writes_what_javascript_writes(value: Any, text: str) -> None:
    assert to_json(value) == text


def test_bigint_cannot_be_stringified_and_the_note_says_where() -> None:
    with pytest.raises(
        JsException, match=r"^TypeError: Do not know how to serialize a BigInt"
    ) as e:
        to_json({"rows": [{"obj": BigInt(1)}]})
    assert e.value.path == "$.rows[0].obj"
    assert e.value.__notes__ == ["emulator: the value at $.rows[0].obj is the cause"]


def test_cycle_error_is_v8s() -> None:
    """Rule 1.6 of queues.md."""
    value: dict[str, Any] = {}
    value["a"] = value
    with pytest.raises(JsException) as caught:
        to_json(value)
    assert str(caught.value) == (
        "TypeError: Converting circular structure to JSON\n"
        "    --> starting at object with constructor 'Object'\n"
        "    --- property 'a' closes the circle"
    )


def test_long_cycle_error_leaves_out_the_middle() -> None:
    value: dict[str, Any] = {}
    value["x"] = {"b": {"c": {"d": [0, value]}}}
    with pytest.raises(JsException) as caught:
        to_json([value])
    assert caught.value.message.splitlines()[1:] == [
        "    --> starting at object with constructor 'Object'",
        "    |     property 'x' -> object with constructor 'Object'",
        "    |     property 'b' -> object with constructor 'Object'",
        "    |     ...",
        "    |     property 'd' -> object with constructor 'Array'",
        "    --- index 1 closes the circle",
    ]


def test_a_value_may_appear_twice_in_json() -> None:
    shared = {"a": 1}
    assert to_json([shared, shared, datetime(1970, 1, 1, tzinfo=UTC)]).startswith(
        '[{"a":1},{"a":1},'
    )


def test_a_function_alone_has_no_json() -> None:
    with pytest.raises(JsException, match="type function cannot be serialized to JSON"):
        to_json(Function(print))


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 2, 2**53 - 2)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(PLAIN)
def test_plain_values_survive_json(value: Any) -> None:
    assert from_json(to_json(value)) == value
    assert json.loads(to_json(value), parse_int=float) == value


@given(PLAIN)
def test_plain_values_survive_structured_clone(value: Any) -> None:
    assert from_v8(to_v8(value)) == value


# V8's texts.
NOT_JSON = [
    ("{bad", "Expected property name or '}' in JSON at position 1 (line 1 column 2)"),
    ("", "Unexpected end of JSON input"),
    ('{"a":1} x', "Unexpected non-whitespace character after JSON at position 8 (line 1 column 9)"),
    ("nope", "Unexpected token 'o', \"nope\" is not valid JSON"),
    ('{"a":}', 'Unexpected token \'}\', "{"a":}" is not valid JSON'),
    ("[1,]", "Unexpected token ']', \"[1,]\" is not valid JSON"),
    ('{"a":1', "Expected ',' or '}' after property value in JSON at position 6 (line 1 column 7)"),
    ("{'a':1}", "Expected property name or '}' in JSON at position 1 (line 1 column 2)"),
    ('{"a":1,}', "Expected double-quoted property name in JSON at position 7 (line 1 column 8)"),
    ('"abc', "Unterminated string in JSON at position 4 (line 1 column 5)"),
    ("undefined", '"undefined" is not valid JSON'),
    ('{\n"a":tru}', 'Unexpected token \'}\', "{\n"a":tru}" is not valid JSON'),
    ('"\\x"', "Bad escaped character in JSON at position 2 (line 1 column 3)"),
    ('"a\\u12"', "Bad Unicode escape in JSON at position 6 (line 1 column 7)"),
    ('"a\nb"', "Bad control character in string literal in JSON at position 2 (line 1 column 3)"),
    ("1.", "Unterminated fractional number in JSON at position 2 (line 1 column 3)"),
    ("1e", "Exponent part is missing a number in JSON at position 2 (line 1 column 3)"),
    ("-x", "No number after minus sign in JSON at position 1 (line 1 column 2)"),
    ("01", "Unexpected number in JSON at position 1 (line 1 column 2)"),
    ("[1\n2]", "Expected ',' or ']' after array element in JSON at position 3 (line 2 column 1)"),
    ("{,}", "Expected property name or '}' in JSON at position 1 (line 1 column 2)"),
    ('{"a":"[","b":NaN}', 'Unexpected token \'N\', "{"a":"[","b":NaN}" is not valid JSON'),
    ("[" * 30 + "x", "Unexpected token 'x', ...\"[[[[[[[[[[x\" is not valid JSON"),
]


@pytest.mark.parametrize(("text", "message"), NOT_JSON)
def test_parse_errors_read_as_v8s(text: str, message: str) -> None:
    with pytest.raises(JsException) as caught:
        from_json(text)
    assert caught.value.name == "SyntaxError"
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9007199254740993", 9007199254740992.0),
        ("123456789012345678901234567890", 1.2345678901234568e29),
        ('"1234567890123456"', "1234567890123456"),
        ("1e400", math.inf),
        ('"\\ud800"', "\ud800"),
        (' {"a" : [ ] } ', {"a": []}),
    ],
)
def test_parse_reads_what_javascript_reads(text: str, value: Any) -> None:
    assert from_json(text) == value
    assert type(from_json(text)) is type(value)


CLONED: list[Any] = [
    None,
    UNDEFINED,
    True,
    0,
    -1,
    2**30,
    2**40,
    1.5,
    "",
    "é",
    "☃ x",
    {"a": 1, "2": [b"x"]},
    [1, [UNDEFINED]],
    b"abc",
    datetime(2026, 1, 1, 1, 2, 3, 4000, UTC),
    JsMap([({"k": 1}, "v"), (1, BigInt(1))]),
    {1, "x", BigInt(3)},
    JsSet([[1], [1]]),
    BigInt(-(2**70)),
    BigInt(0),
    RegExp("a+", "gi"),
    ArrayBuffer(b"ab"),
    TypedArray("Float64Array", ArrayBuffer(16), 8, 8),
    TypedArray("DataView", ArrayBuffer(b"ab")),
]


@pytest.mark.parametrize("value", CLONED)
def test_structured_clone_keeps_the_type(value: Any) -> None:
    """Rule 2.6 of queues.md: v8 bodies."""
    assert from_v8(to_v8(value)) == value
    assert type(from_v8(to_v8(value))) is type(value)


def test_structured_clone_keeps_an_errors_class_and_message() -> None:
    error = from_v8(to_v8(JsException("TypeError", "te")))
    assert (error.name, error.message) == ("TypeError", "te")


def test_structured_clone_keeps_identity_and_cycles() -> None:
    shared: dict[str, Any] = {"list": []}
    shared["list"].append(shared)
    first, second = from_v8(to_v8([shared, shared]))
    assert first is second
    assert first["list"][0] is first


def test_structured_clone_of_equal_sets_gives_equal_bytes() -> None:
    assert to_v8({"b", "a", 3, 1}) == to_v8({1, 3, "a", "b"})


def test_structured_clone_bytes_are_v8s() -> None:
    """Bytes that `v8.deserialize` of Node reads."""
    assert to_v8({"a": 1, "s": "☃"}).hex() == "ff0f6f220161490222017300630203267b02"


def test_size_of_a_v8_string_counts_header_and_length() -> None:
    """Recording queue_size_errors_cd2025: 128000 characters are 128006 bytes."""
    assert body_size("x" * 128000, "v8") == 128006


NOT_CLONED: list[tuple[Any, str]] = [
    (Function(print, source="() => 1"), "() => 1 could not be cloned."),
    (Symbol("x"), "Symbol(x) could not be cloned."),
    (LiteralMap(), "[object Map] could not be cloned."),
    (ProxiedDict(), "[object Object] could not be cloned."),
    (
        Queue(),
        'Could not serialize object of type "WorkerQueue". '
        "This type does not support serialization.",
    ),
]


@pytest.mark.parametrize(("value", "message"), NOT_CLONED)
def test_what_cannot_be_cloned_says_so_and_where(value: Any, message: str) -> None:
    with pytest.raises(JsException) as caught:
        to_v8({"a": [value]})
    assert (caught.value.name, caught.value.message) == ("DataCloneError", message)
    assert caught.value.path == "$.a[0]"


def test_foreign_bytes_are_no_structured_clone() -> None:
    with pytest.raises(ValueError, match="not a structured clone of format 15"):
        from_v8(b"\x80\x04")


WRONG_BODIES: list[tuple[Any, Any, str]] = [
    (UNDEFINED, "json", "Message body cannot be undefined"),
    (UNDEFINED, "v8", "Message body cannot be undefined"),
    ("x", "bogus", "Unsupported queue message content type: bogus"),
    ("x", "TEXT", "Unsupported queue message content type: TEXT"),
    ("x", "", "Unsupported queue message content type: "),
    ("x", None, "Unsupported queue message content type: null"),
    (
        5,
        "text",
        'Content Type "text" requires a value of type string, but received: number',
    ),
    (
        None,
        "text",
        'Content Type "text" requires a value of type string, but received: object',
    ),
    (
        "abc",
        "bytes",
        'Content Type "bytes" requires a value of type ArrayBufferView, but received: string',
    ),
    (
        ArrayBuffer(b"ab"),
        "bytes",
        'Content Type "bytes" requires a value of type ArrayBufferView, but received: object',
    ),
    ({"b": BigInt(1)}, "json", "Do not know how to serialize a BigInt"),
]


@pytest.mark.parametrize(("value", "content_type", "message"), WRONG_BODIES)
def test_wrong_bodies_raise_the_platforms_text(value: Any, content_type: Any, message: str) -> None:
    """Rule 1.6 of queues.md."""
    with pytest.raises(JsException) as caught:
        encode_body(value, content_type)
    assert (caught.value.name, caught.value.message) == ("TypeError", message)


BODIES: list[tuple[Any, str, bytes, Any]] = [
    ("hi ☃", "text", "hi ☃".encode(), "hi ☃"),
    ("", "text", b"", ""),
    (b"ab", "bytes", b"ab", b"ab"),
    (TypedArray("Uint16Array", ArrayBuffer(b"abcd"), 2, 2), "bytes", b"cd", b"cd"),
    (None, "json", b"null", None),
    (math.nan, "json", b"null", None),
    ({"a": [1, {"b": 2}]}, "json", b'{"a":[1,{"b":2}]}', {"a": [1, {"b": 2}]}),
    (datetime(1970, 1, 1, tzinfo=UTC), "json", b'"1970-01-01T00:00:00.000Z"', None),
]


@pytest.mark.parametrize(("value", "content_type", "data", "received"), BODIES)
def test_bodies_are_stored_and_received(
    value: Any, content_type: str, data: bytes, received: Any
) -> None:
    """Rules 1.7 and 2.6 of queues.md, recording queue_content_types."""
    assert encode_body(value, content_type) == data
    assert body_size(value, content_type) == len(data)
    expected = "1970-01-01T00:00:00.000Z" if isinstance(value, datetime) else received
    assert decode_body(data, content_type) == expected


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1.5, 1),
        (-1.5, -1),
        (math.nan, 0),
        (math.inf, 0),
        ("x", 0),
        ("5", 5),
        (" 0x10 ", 16),
        ("", 0),
        (None, 0),
        (True, 1),
        ({}, 0),
        ([7], 7),
        (UNDEFINED, 0),
        (2**31 - 1, 2**31 - 1),
    ],
)
def test_delay_is_read_as_int32(value: Any, number: int) -> None:
    """Rule 1.8 of queues.md."""
    assert js_int32(value) == number


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 1e12, "1e12"])
def test_delay_outside_int32_is_an_error(value: Any) -> None:
    with pytest.raises(JsException) as caught:
        js_int32(value)
    assert str(caught.value) == (
        "TypeError: Value out of range. Must be between -2147483648 and 2147483647 (inclusive)."
    )


def test_dates_cut_microseconds_towards_zero() -> None:
    assert to_milliseconds(datetime(1970, 1, 1, 0, 0, 0, 1999, UTC)) == 1
    assert to_milliseconds(datetime(1969, 12, 31, 23, 59, 59, 998001, UTC)) == -1
    assert to_milliseconds(datetime(1970, 1, 1)) == 0


@pytest.mark.parametrize(
    ("value", "kind", "name"),
    [
        (None, "object", ""),
        (UNDEFINED, "undefined", ""),
        (True, "boolean", "Boolean"),
        (1, "number", "Number"),
        ("", "string", "String"),
        (BigInt(1), "bigint", "BigInt"),
        ({}, "object", "Object"),
        (b"", "object", "Uint8Array"),
        (Symbol(), "symbol", "Symbol"),
        (Function(print), "function", "Function"),
        (JsMap(), "object", "Map"),
        (Queue(), "object", "WorkerQueue"),
    ],
)
def test_type_and_class_of_a_value(value: Any, kind: str, name: str) -> None:
    assert (type_of(value), class_of(value)) == (kind, name)


def test_map_keys_are_the_same_as_in_javascript() -> None:
    found = JsMap([(1, "a"), (1.0, "b"), (True, "c"), ("1", "d"), (math.nan, "e"), (math.nan, "f")])
    assert [*found.values()] == ["b", "c", "d", "f"]
    one: dict[str, Any] = {}
    assert JsMap([(one, 1)]).has({}) is False


def test_typed_array_writes_into_the_shared_buffer() -> None:
    buffer = ArrayBuffer(4)
    TypedArray("Uint16Array", buffer, 2).view()[0] = 1
    assert bytes(buffer) == b"\0\0\1\0"
