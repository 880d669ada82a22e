"""`js.Headers`: texts and results are workerd's (1.20261117)."""

import pytest

from emulator.runtime.web.headers import Headers
from emulator.values import UNDEFINED, JsException, LiteralMap, ProxiedDict


def error_of(action):
    with pytest.raises(JsException) as caught:
        action()
    return caught.value.name, caught.value.message


def pairs(headers):
    return [tuple(pair) for pair in headers]


def test_iteration_is_sorted_lower_case_and_joined():
    headers = Headers.js_new([["B", "1"], ["a", "2"], ["b", "3"]])
    assert pairs(headers) == [("a", "2"), ("b", "1, 3")]
    assert list(headers.keys()) == ["a", "b"]
    assert list(headers.values()) == ["2", "1, 3"]
    assert list(headers.entries()) == [["a", "2"], ["b", "1, 3"]]


def test_cookies_are_never_joined_in_iteration():
    headers = Headers.js_new()
    headers.append("Set-Cookie", "a=1")
    headers.append("set-cookie", "b=2, c")
    assert pairs(headers) == [("set-cookie", "a=1"), ("set-cookie", "b=2, c")]
    assert headers.get("set-cookie") == "a=1, b=2, c"
    assert headers.getSetCookie() == headers.getAll("Set-Cookie") == ["a=1", "b=2, c"]


@pytest.mark.parametrize(
    "init",
    [
        {"A": "b"},
        [["A", "b"]],
        LiteralMap([("A", "b")]),
        Headers((("a", "b"),)),
    ],
)
def test_every_kind_of_init_is_read(init):
    assert pairs(Headers.js_new(init)) == [("a", "b")]


def test_values_become_text_as_in_javascript():
    headers = Headers.js_new(
        {"a": True, "b": 1, "c": None, "d": UNDEFINED, "e": 1.0, "f": [1, 2], "g": "  x \t"}
    )
    assert [value for _, value in headers] == ["true", "1", "null", "undefined", "1", "1,2", "x"]


@pytest.mark.parametrize("init", [5, "x", None])
def test_what_is_no_object_is_refused(init):
    assert error_of(lambda: Headers.js_new(init)) == (
        "TypeError",
        "Failed to construct 'Headers': constructor parameter 1 is not of type "
        "'Headers or Sequence or object'.",
    )


@pytest.mark.parametrize("init", [["ab"], [5], ProxiedDict(a="b")])
def test_an_entry_that_is_no_pair_is_refused(init):
    """A Python dict that nobody converted is a sequence of its keys (python-api.md §3)."""
    assert error_of(lambda: Headers.js_new(init)) == (
        "TypeError",
        "Incorrect type: the provided value is not of type 'Sequence'.",
    )


@pytest.mark.parametrize("init", [[["a"]], [["a", "b", "c"]]])
def test_a_pair_has_two_elements(init):
    assert error_of(lambda: Headers.js_new(init))[1] == (
        "To initialize a Headers object from a sequence, each inner sequence must have exactly "
        "two elements."
    )


@pytest.mark.parametrize("name", ["a b", "a\n", "a:", "(", "\x7f", "{"])
def test_invalid_names_are_refused(name):
    for action in (
        lambda: Headers.js_new({name: "c"}),
        lambda: Headers().get(name),
        lambda: Headers().set(name, "x"),
    ):
        assert error_of(action) == ("TypeError", "Invalid header name.")


def test_the_runtime_takes_an_empty_name_and_letters_above_ascii():
    assert pairs(Headers.js_new({"": "c", "é": "d"})) == [("", "c"), ("é", "d")]


@pytest.mark.parametrize("value", ["c\nd", "c\rd", "c\0d"])
def test_invalid_values_are_refused(value):
    for action in (
        lambda: Headers.js_new({"a": value}),
        lambda: Headers().append("a", value),
        lambda: Headers().set("a", value),
    ):
        assert error_of(action) == ("TypeError", "Invalid header value.")


def test_line_breaks_around_a_value_are_cut_off():
    assert Headers.js_new({"a": "\nx\r\n"}).get("a") == "x"


def test_a_missing_header_is_null():
    headers = Headers()
    assert headers.get("zz") is None
    assert headers.has("zz") is False


def test_set_replaces_and_delete_removes():
    headers = Headers.js_new([["a", "1"], ["a", "2"], ["b", "3"]])
    assert headers.set("A", "9") is UNDEFINED
    assert headers.delete("B") is UNDEFINED
    assert pairs(headers) == [("a", "9")]


def test_immutable_headers_cannot_be_changed():
    headers = Headers((("a", "b"),), immutable=True)
    for action in (
        lambda: headers.set("a", "c"),
        lambda: headers.append("a", "c"),
        lambda: headers.delete("a"),
    ):
        assert error_of(action) == ("TypeError", "Can't modify immutable headers.")


def test_get_all_is_for_cookies_only():
    assert error_of(lambda: Headers().getAll("x")) == (
        "TypeError",
        'getAll() can only be used with the header name "Set-Cookie".',
    )


@pytest.mark.parametrize(
    ("action", "method", "position"),
    [
        (lambda: Headers().get(), "get", 1),
        (lambda: Headers().set("a"), "set", 2),
        (lambda: Headers().append(), "append", 1),
        (lambda: Headers().delete(), "delete", 1),
        (lambda: Headers().has(), "has", 1),
    ],
)
def test_missing_arguments_are_named(action, method, position):
    assert error_of(action)[1] == (
        f"Failed to execute '{method}' on 'Headers': parameter {position} is not of type 'string'."
    )


def test_for_each_gets_value_then_name():
    seen = []
    headers = Headers.js_new({"b": "1", "a": "2"})
    headers.forEach(lambda value, name, owner: seen.append((name, value, owner is headers)))
    assert seen == [("a", "2", True), ("b", "1", True)]
