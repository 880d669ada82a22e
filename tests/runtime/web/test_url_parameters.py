"""`js.URLSearchParams`: results are workerd's (1.20261117)."""

import pytest

from emulator.runtime.web.formdata import FormData
from emulator.runtime.web.url_parameters import URLSearchParams
from emulator.values import UNDEFINED, JsException

ASCII = "".join(map(chr, range(32, 127)))


@pytest.mark.parametrize(
    ("init", "expected"),
    [
        ("?a=1&a=2&b=%zz+c", "a=1&a=2&b=%25zz+c"),
        ([["a", "b c"], ["d", "é*-._~!'()"]], "a=b+c&d=%C3%A9*-._%7E%21%27%28%29"),
        ({"x": 1, "y": True}, "x=1&y=true"),
        ("a&b=&=c&&", "a=&b=&=c"),
        (5, "5="),
        (None, "null="),
        (UNDEFINED, ""),
        (URLSearchParams([("a", "1")]), "a=1"),
        (FormData([("a", "1")]), "a=1"),
        (
            [["a", ASCII]],
            "a=+%21%22%23%24%25%26%27%28%29*%2B%2C-.%2F0123456789%3A%3B%3C%3D%3E%3F%40"
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ%5B%5C%5D%5E_%60abcdefghijklmnopqrstuvwxyz%7B%7C%7D%7E",
        ),
    ],
)
def test_parameters_are_read_and_written_as_in_the_runtime(init, expected):
    assert URLSearchParams.js_new(init).toString() == expected


def test_escapes_are_decoded():
    found = list(URLSearchParams.js_new("a=%C3%A9&b=%ff&c=%&d=a+b%2B&%20=1"))
    assert found == [["a", "é"], ["b", "�"], ["c", "%"], ["d", "a b+"], [" ", "1"]]


def test_parameters_can_be_changed():
    parameters = URLSearchParams.js_new("b=2&a=1&b=3&a=0")
    assert parameters.set("b", "9") is UNDEFINED
    parameters.append("c", 4)
    parameters.sort()
    assert str(parameters) == "a=1&a=0&b=9&c=4"
    assert (parameters.get("zz"), parameters.getAll("a"), parameters.size) == (None, ["1", "0"], 4)
    assert (parameters.has("c"), parameters.has("c", "5")) == (True, False)
    parameters.delete("a", "0")
    parameters.delete("c")
    assert str(parameters) == "a=1&b=9"


def test_a_pair_has_two_elements():
    with pytest.raises(JsException) as caught:
        URLSearchParams.js_new([["a"]])
    assert str(caught.value) == "TypeError: Invalid URL search params sequence."


def test_a_missing_argument_is_named():
    with pytest.raises(JsException) as caught:
        URLSearchParams.js_new().get()
    assert caught.value.message == (
        "Failed to execute 'get' on 'URLSearchParams': parameter 1 is not of type 'USVString'."
    )
