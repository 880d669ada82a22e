"""`URLPattern`: what matches is what matches in workerd (1.20261117.1)."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.runtime.web.url_pattern import URLPattern
from emulator.values import UNDEFINED, JsException

_PARTS = ("protocol", "hostname", "port", "pathname", "search", "hash")
_REFUSED = "TypeError: Failed to construct URLPattern"


def path_groups(pattern: Any, url: str, *base: str) -> Any:
    """The groups of the path; False if the URL does not match."""
    found = URLPattern.js_new(pattern, *base).exec(url, *base)
    if found is None:
        return False
    groups = found["pathname"]["groups"]
    return {name: value for name, value in groups.items() if value is not UNDEFINED}


def patterns(pattern: Any) -> dict[str, str]:
    made = URLPattern.js_new(pattern)
    return {name: made.js_lookup(name) for name in _PARTS}


@pytest.mark.parametrize(
    ("pattern", "url", "groups"),
    [
        ("/books/:id", "https://x.com/books/123", {"id": "123"}),
        ("/books/:id", "https://x.com/books/123/", False),
        ("/a/*", "https://x/a/b/c", {"0": "b/c"}),
        ("/a{/:b}?", "https://h/a", {}),
        ("/a{/:b}?", "https://h/a/c", {"b": "c"}),
        ("/:a+", "https://h/x/y", {"a": "x/y"}),
        ("/:a*", "https://h/", False),
        ("/:a-:b", "https://h/x-y", {"a": "x", "b": "y"}),
        ("/(a|b)", "https://h/b", {"0": "b"}),
        ("/:n(\\d+)", "https://h/5", {"n": "5"}),
        ("/:n(\\d+)", "https://h/x", False),
        ("/é", "https://h/%C3%A9", {}),
        ("/a b", "https://h/a%20b", {}),
        ("/:id.json", "https://h/5.json", {"id": "5"}),
        ("/:x?", "https://h/", False),
        ("/A", "https://h/a", False),
        ("/\\:x", "https://h/:x", {}),
        ("/**", "https://h/a/b", {"0": "a/b"}),
    ],
)
def test_paths(pattern: str, url: str, groups: Any) -> None:
    assert path_groups({"pathname": pattern}, url) == groups


@pytest.mark.parametrize(
    ("pattern", "url", "part", "groups"),
    [
        ({"hostname": "{*.}?example.com"}, "https://www.example.com/p", "hostname", {"0": "www"}),
        ({"hostname": ":sub.example.com"}, "https://api.example.com/", "hostname", {"sub": "api"}),
        ("https://*.example.com/:p", "https://a.example.com/q", "hostname", {"0": "a"}),
        ({"search": "q=:v"}, "https://h/?q=5", "search", {"v": "5"}),
        ({"hash": ":h"}, "https://h/#frag", "hash", {"h": "frag"}),
        ({"port": "8080"}, "http://h:8080/", "port", {}),
        ({"port": ""}, "https://h:443/", "port", {}),
        ("http{s}?://h/x", "https://h/x", "protocol", {}),
    ],
)
def test_other_components(pattern: Any, url: str, part: str, groups: Any) -> None:
    found = URLPattern.js_new(pattern).exec(url)
    assert found is not None
    assert found[part]["groups"] == groups


def test_a_relative_pattern_has_its_base() -> None:
    assert path_groups("/a/:x(\\d+)", "https://h/a/5", "https://h") == {"x": "5"}
    assert path_groups("/a/:x(\\d+)", "https://h/a/b", "https://h") is False
    made = URLPattern.js_new({"pathname": "a", "baseURL": "https://h/b/c"})
    assert made.js_lookup("pathname") == "/b/a"


def test_what_a_pattern_shows() -> None:
    assert patterns("https://:s.example.com:8080/a/:b/*?q=*#h") == {
        "protocol": "https",
        "hostname": ":s.example.com",
        "port": "8080",
        "pathname": "/a/:b/*?q=*",
        "search": "",
        "hash": "h",
    }
    assert patterns("https://h/a") == {
        "protocol": "https",
        "hostname": "h",
        "port": "",
        "pathname": "/a",
        "search": "*",
        "hash": "*",
    }
    made = URLPattern.js_new({"pathname": "/:x(\\d+)"})
    assert (made.js_lookup("pathname"), made.hasRegExpGroups) == ("/:x(\\d+)", True)


def test_what_is_matched() -> None:
    path = URLPattern.js_new({"pathname": "/a"})
    assert path.test({"pathname": "/a"})
    assert path.test("/a", "https://h")
    assert path.test("/a")
    assert not path.test()
    assert path.exec("nope") is None
    assert URLPattern.js_new().test("https://x/y")
    assert URLPattern.js_new({"pathname": "/A"}, {"ignoreCase": True}).test("https://h/a")
    found = URLPattern.js_new({"pathname": "/b/:id"}).exec("https://u:p@h.com:8/b/1?x#y")
    assert found == {
        "inputs": ["https://u:p@h.com:8/b/1?x#y"],
        **{
            name: {"input": value, "groups": {"id" if name == "pathname" else "0": group}}
            for name, value, group in (
                *(("protocol", "https", "https"), ("username", "u", "u"), ("password", "p", "p")),
                *(("hostname", "h.com", "h.com"), ("port", "8", "8"), ("pathname", "/b/1", "1")),
                *(("search", "x", "x"), ("hash", "y", "y")),
            )
        },
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("/a",),
        ({"pathname": "/("},),
        ({"pathname": "/:"},),
        ({"pathname": "/{a"},),
        ({"pathname": "/:a/:a"},),
        ({"pathname": "/(?:a)"},),
        ({"pathname": "/(?<n>a)"},),
        ({"pathname": "/x"}, "https://h"),
    ],
)
def test_what_is_no_pattern(arguments: Any) -> None:
    with pytest.raises(JsException) as caught:
        URLPattern.js_new(*arguments)
    assert str(caught.value) == _REFUSED
