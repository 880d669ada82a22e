"""What JSON changes in a value, and how that is put into words."""

from __future__ import annotations

import doctest
import math
from collections import UserDict
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import emulator.values.json_losses
from emulator.runtime.pyproxy import PyProxy
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    Function,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    LiteralMap,
    ProxiedList,
    RegExp,
    Symbol,
    TypedArray,
    describe_losses,
    encode_body,
    from_json,
    losses,
    to_json,
)

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
NUMBERED = 'an object {"0": ...}'


class Url(HostObject):
    js_class = "URL"
    js_members = frozenset({"toJSON"})

    def toJSON(self) -> str:
        return "https://a.example/"


class Message(HostObject):
    js_class = "QueueMessage"
    js_members = frozenset({"id"})
    id = "m"

    def js_keys(self) -> tuple[str]:
        return ("id",)


class Headers(HostObject):
    js_class = "Headers"


CHANGED: list[tuple[Any, str, str]] = [
    (MOMENT, "datetime", "a string"),
    (b"\x00", "bytes", NUMBERED),
    (TypedArray("Float32Array", ArrayBuffer(4)), "Float32Array", NUMBERED),
    (TypedArray("DataView", ArrayBuffer(4)), "DataView", "{}"),
    (ArrayBuffer(4), "ArrayBuffer", "{}"),
    ({1}, "set", "{}"),
    (frozenset({1}), "set", "{}"),
    (JsSet([[1]]), "set", "{}"),
    (JsMap([("a", 1)]), "Map", "{}"),
    (RegExp("x"), "RegExp", "{}"),
    (JsException("TypeError", "x"), "exception", "{}"),
    (math.nan, "float nan", "null"),
    (-math.inf, "float -inf", "null"),
    (Headers(), "Headers", "{}"),
    (Message(), "QueueMessage", "an object of its own properties"),
    (Url(), "URL", "what its toJSON() returns"),
    (ProxiedList([1], hidden=True), "Array", "{}"),
    (PyProxy(Decimal("1.5")), "Decimal", "{}"),
    (PyProxy((1, 2)), "tuple", "a list"),
    (PyProxy(range(2)), "range", "a list"),
]


@pytest.mark.parametrize(
    ("value", "kind", "arrives"), CHANGED, ids=lambda value: type(value).__name__
)
def test_what_json_changes_is_listed_wherever_it_is(value: Any, kind: str, arrives: str) -> None:
    expected = [("$", kind, arrives)]
    assert losses(value) == expected
    assert losses({"a": [1, {"b": value}]}) == [("$.a[1].b", kind, arrives)]
    # It says what is written.
    written = from_json(to_json(value))
    assert {
        "a string": isinstance(written, str),
        NUMBERED: isinstance(written, dict) and "0" in written,
        "{}": written == {},
        "null": written is None,
        "a list": isinstance(written, list) and bool(written),
        "an object of its own properties": written == {"id": "m"},
        "what its toJSON() returns": written == "https://a.example/",
    }[arrives]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (UNDEFINED, "undefined"),
        (Symbol("s"), "symbol"),
        (Function(print), "function"),
        (PyProxy(Decimal), "type"),
    ],
)
def test_what_json_leaves_out_is_null_in_a_list(value: Any, kind: str) -> None:
    assert losses({"a": value, "b": [0, value]}) == [
        ("$.a", kind, "nothing"),
        ("$.b[1]", kind, "null"),
    ]
    assert from_json(to_json({"a": value, "b": [0, value]})) == {"b": [0, None]}


HELD: list[Any] = [
    None,
    "",
    0,
    True,
    1.0,
    -0.0,
    1e300,
    [],
    {},
    {"10": 1, "9": [1.5, "\ud800"]},
    ProxiedList([1]),
    LiteralMap([("a", 1)]),
    PyProxy([1]),
    PyProxy({}),
    PyProxy(UserDict()),
    PyProxy(MappingProxyType({"a": [1]})),
]


@pytest.mark.parametrize("value", HELD, ids=lambda value: type(value).__name__)
def test_what_json_has_a_form_for_is_not_listed(value: Any) -> None:
    assert losses(value) == []
    assert losses([value, {"a": value}]) == []


def test_python_objects_that_json_shows_are_looked_into() -> None:
    value = PyProxy(MappingProxyType({"a": (1, 2), "b": None, "c": Decimal(1)}))
    assert losses([value]) == [
        ("$[0].a", "tuple", "a list"),
        ("$[0].b", "undefined", "nothing"),
        ("$[0].c", "Decimal", "{}"),
    ]


def test_what_json_cannot_be_made_of_is_an_error_and_no_loss() -> None:
    with pytest.raises(JsException, match="destroyed when an iterator was exhausted"):
        losses([PyProxy((1, Decimal(1)))])


def test_what_to_json_makes_of_an_object_is_its_own_affair() -> None:
    calls: list[Any] = []
    value = {"toJSON": Function(lambda key: calls.append(key) or "x"), "at": MOMENT}
    assert losses({"a": value}) == []
    assert calls == []


def test_the_maps_of_to_js_are_looked_into() -> None:
    assert losses(LiteralMap([("at", MOMENT)])) == [("$.at", "datetime", "a string")]


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 2, 2**53 - 2)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)
ODD = st.sampled_from([math.nan, b"x", {1}, MOMENT])


@given(PLAIN)
def test_nothing_is_lost_of_what_survives(value: Any) -> None:
    assert losses(value) == []


@given(st.lists(ODD | PLAIN) | st.dictionaries(st.text(), st.lists(ODD | PLAIN)))
def test_something_is_listed_if_and_only_if_something_changes(value: Any) -> None:
    # NaN is not equal to itself, and is null afterwards.
    assert (from_json(to_json(value)) == value) == (losses(value) == [])


def told(value: Any, content_type: str = "json") -> list[Any]:
    """What `encode_body` tells of a value, once at most."""
    calls: list[Any] = []
    encode_body(value, content_type, on_losses=calls.append)
    assert len(calls) <= 1
    return calls


def test_only_json_bodies_lose_anything() -> None:
    assert told({"at": MOMENT}) == [[("$.at", "datetime", "a string")]]
    assert told({"at": MOMENT}, "v8") == []
    assert told(b"x", "bytes") == []
    assert told("\ud800") == []
    assert told({"9": 1.0}) == []


def test_data_with_a_form_in_json_is_not_even_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(value: Any) -> list[Any]:
        raise AssertionError(value)

    monkeypatch.setattr("emulator.values.bodies.losses", look)
    assert told({"to": "a@example.com", "n": [1, None, True, 1.5, {"a": "é"}]}) == []
    with pytest.raises(AssertionError):
        told({"at": MOMENT})


def test_what_is_told_does_not_change_what_is_written() -> None:
    for value, *_ in CHANGED:
        told_of: list[Any] = []
        assert encode_body(value, on_losses=told_of.append) == encode_body(value)


def test_big_integers_in_a_typed_array_are_refused_as_bigints_are() -> None:
    with pytest.raises(JsException, match="Do not know how to serialize a BigInt") as info:
        to_json({"n": TypedArray("BigInt64Array", ArrayBuffer(8))})
    assert info.value.path == "$.n.0"
    assert to_json(TypedArray("BigUint64Array", ArrayBuffer(0))) == "{}"


def test_the_first_few_are_named_with_what_to_send_instead() -> None:
    found = losses({"a": MOMENT, "b": [MOMENT, b"x"], "c": {1}, "d": math.nan})
    assert describe_losses(found) == (
        "$.a (datetime) arrives as a string, $.b[0] (datetime) arrives as a string, $.b[1] (bytes) "
        'arrives as an object {"0": ...} and more; send isoformat(), base64 text instead'
    )
    assert describe_losses(found[4:]) == "$.d (float nan) arrives as null; send None instead"
    assert describe_losses(losses(PyProxy(Decimal(1)))) == (
        "$ (Decimal) arrives as {}; send a str, dict or list made of it instead"
    )


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(emulator.values.json_losses).failed == 0
