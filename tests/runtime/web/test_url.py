"""`js.URL` and the parser behind it; `urls.json` is what workerd (1.20261117) makes of URLs."""

import json
from pathlib import Path

import pytest

from emulator.runtime.web.url import URL
from emulator.values import UNDEFINED, JsException

CASES = json.loads(Path(__file__).with_name("urls.json").read_text())


@pytest.mark.parametrize(("arguments", "expected"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_urls_parse_as_in_the_runtime(arguments, expected):
    url = URL.parse(*arguments)
    if expected is None:
        assert url is None
        assert URL.canParse(*arguments) is False
    else:
        found = [url.href, url.origin, url.host, url.pathname, url.search, url.hash]
        assert found == expected


def test_every_part_can_be_read():
    url = URL.js_new("https://us%20er:p@EX.com:8443/a%20b/../c d?q=1&r=%C3%A9 x#h h")
    assert {name: getattr(url, name) for name in sorted(URL.js_members - {"searchParams"})} | {
        "toJSON": url.toJSON(),
        "toString": url.toString(),
    } == {
        "href": "https://us%20er:p@ex.com:8443/c%20d?q=1&r=%C3%A9%20x#h%20h",
        "toJSON": "https://us%20er:p@ex.com:8443/c%20d?q=1&r=%C3%A9%20x#h%20h",
        "toString": "https://us%20er:p@ex.com:8443/c%20d?q=1&r=%C3%A9%20x#h%20h",
        "origin": "https://ex.com:8443",
        "protocol": "https:",
        "username": "us%20er",
        "password": "p",
        "host": "ex.com:8443",
        "hostname": "ex.com",
        "port": "8443",
        "pathname": "/c%20d",
        "search": "?q=1&r=%C3%A9%20x",
        "hash": "#h%20h",
    }


START = "http://u:p@h:8/p?q#f"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("href", "https://z", "https://z/"),
        ("protocol", "ftp", "ftp://u:p@h:8/p?q#f"),
        ("protocol", "foo", START),
        ("username", "é", "http://%C3%A9:p@h:8/p?q#f"),
        ("password", "", "http://u@h:8/p?q#f"),
        ("host", "x", "http://u:p@x:8/p?q#f"),
        ("host", "x:80", "http://u:p@x/p?q#f"),
        ("host", "a b", START),
        ("hostname", "y:9", START),
        ("hostname", "", START),
        ("port", "", "http://u:p@h/p?q#f"),
        ("port", "80", "http://u:p@h/p?q#f"),
        ("port", "12x", "http://u:p@h:12/p?q#f"),
        ("port", "99999", START),
        ("pathname", "../z", "http://u:p@h:8/z?q#f"),
        ("pathname", "", "http://u:p@h:8/?q#f"),
        ("pathname", "a?b#c", "http://u:p@h:8/a%3Fb%23c?q#f"),
        ("search", "", "http://u:p@h:8/p#f"),
        ("search", "?", "http://u:p@h:8/p?#f"),
        ("search", "a#b", "http://u:p@h:8/p?a%23b#f"),
        ("hash", "x y", "http://u:p@h:8/p?q#x%20y"),
        ("hash", "#", "http://u:p@h:8/p?q#"),
        ("hash", "", "http://u:p@h:8/p?q"),
    ],
)
def test_parts_can_be_set_and_wrong_ones_are_ignored(name, value, expected):
    url = URL.js_new(START)
    setattr(url, name, value)
    assert url.href == expected


def test_setting_an_invalid_href_is_an_error():
    with pytest.raises(JsException, match="the provided value is not of type 'valid URL string'"):
        URL.js_new(START).href = "x"


def test_origin_cannot_be_set():
    with pytest.raises(AttributeError):
        URL.js_new(START).origin = "x"  # type: ignore[misc]


@pytest.mark.parametrize("arguments", [("nope",), ("x", "nope"), (UNDEFINED,)])
def test_an_invalid_url_cannot_be_constructed(arguments):
    with pytest.raises(JsException) as caught:
        URL.js_new(*arguments)
    assert str(caught.value) == "TypeError: Invalid URL string."


def test_changing_the_parameters_changes_the_url():
    url = URL.js_new("http://a/?x=1&y=2")
    url.searchParams.append("z", "a b")
    url.searchParams.delete("x")
    assert url.href == "http://a/?y=2&z=a+b"
    url.searchParams.delete("y")
    url.searchParams.delete("z")
    assert url.href == "http://a/"


def test_changing_the_url_changes_the_parameters():
    url = URL.js_new("http://a/?x=1")
    parameters = url.searchParams
    url.search = "?q=2"
    assert parameters.get("q") == "2"
    assert parameters is url.searchParams
