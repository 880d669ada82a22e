"""The files `_headers` and `_redirects`: the cases of wrangler's own tests, and what rules do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from assets_bench import ask, header, site

from emulator.assets.matching import Matcher, replaced, routes
from emulator.assets.rule_files import parse_headers, parse_redirects
from emulator.runtime.web.url_parser import parse

if TYPE_CHECKING:
    from pathlib import Path

NO_HTTPS = (
    "URLs should either be relative (e.g. begin with a forward-slash), or use HTTPS (e.g. begin "
    'with "https://").'
)
LOOP = (
    "Infinite loop detected in this rule and has been ignored. This will cause a redirect to strip "
    "`.html` or `/index` and end up triggering this rule again. Please fix or remove this rule to "
    "silence this warning."
)


def headers_of(text: str) -> tuple[list[Any], list[Any]]:
    rules, invalid = parse_headers(text)
    return [(rule.path, rule.headers, rule.removed) for rule in rules], [
        (one.number, one.message) for one in invalid
    ]


def redirects_of(text: str, mode: Any = "auto-trailing-slash") -> tuple[list[Any], list[Any]]:
    rules, invalid = parse_redirects(text, mode)
    return [tuple(rule) for rule in rules], [(one.number, one.message) for one in invalid]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("/a\n  Name: Value", [("/a", {"name": "Value"}, [])]),
        ("/a\n  !Name: Value", [("/a", {"!name": "Value"}, [])]),
        ("\n/a\n\nName   :   Value\n\n", [("/a", {"name": "Value"}, [])]),
        ("# c\n/a\n# c\nName: V", [("/a", {"name": "V"}, [])]),
        (
            "/a\n  A: 1\n  A: 2\n/b\n  B: http://x",
            [("/a", {"a": "1, 2"}, []), ("/b", {"b": "http://x"}, [])],
        ),
        ("/a\n  Name: V\n  ! Place", [("/a", {"name": "V"}, ["Place"])]),
        ("https://example.com\n  a: a", [("https://example.com/", {"a": "a"}, [])]),
        ("https://:sub.example.*/path\n  e:e", [("https://:sub.example.*/path", {"e": "e"}, [])]),
        ("/some page\n  a: b", [("/some%20page", {"a": "b"}, [])]),
        ("/://so;`me\n  a: b", [("/://so;%60me", {"a": "b"}, [])]),
        ("/nons:/&@%+~{}ense\n  a: b", [("/nons:/&@%+~%7B%7Dense", {"a": "b"}, [])]),
        ("//yeah.com/blog\n  a: b", [("//yeah.com/blog", {"a": "b"}, [])]),
        ("/blog/:splat\n  a: b", [("/blog/:splat", {"a": "b"}, [])]),
    ],
)
def test_rules_for_headers_are_read(text: str, rules: list[Any]) -> None:
    """parseHeaders.valid.test.ts."""
    assert headers_of(text) == (rules, [])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("c", (1, "Expected a path beginning with at least one forward-slash")),
        ("A: *", (1, "Path should come before header (a: *)")),
        (
            "/a\n x: y\n I'm invalid!",
            (3, "Expected a colon-separated header pair (e.g. name: value)"),
        ),
        ("/a\n x: y\n !x-type", (3, "Expected a colon-separated header pair (e.g. name: value)")),
        ("/a\n x: y\n ! Type: json", (3, "Header name cannot include spaces")),
        ("/a\n x: y\n :", (3, "No header name specified")),
        ("/a\n x: y\n test:", (3, "No header value specified")),
        ("/b\n/a\n x: y", (2, "No headers specified")),
        ("/a\n x: y\n/b", (None, "No headers specified")),
        (
            "/a\n x: y\n" + "a" * 2001,
            (None, "Ignoring line 3 as it exceeds the maximum allowed length of 2000."),
        ),
        ("http://nah.com/blog\n i: t\n/a\n x: y", (1, NO_HTTPS)),
        (
            "https://nah.com:8080\n i: t\n/a\n x: y",
            (1, "Specifying ports is not supported. Skipping absolute URL https://nah.com:8080."),
        ),
        (
            "/b/*/c/*\n i: t\n/a\n x: y",
            (
                1,
                "Only one wildcard is allowed per rule. Use a named placeholder (e.g. :project) "
                "instead. Skipping /b/*/c/*.",
            ),
        ),
        (
            "/b/*/:splat\n i: t\n/a\n x: y",
            (
                1,
                "Cannot combine a wildcard * with a :splat placeholder because wildcards are "
                "converted to :splat at runtime. Skipping /b/*/:splat.",
            ),
        ),
    ],
)
def test_lines_that_are_no_rule_for_headers_are_told(text: str, problem: Any) -> None:
    """parseHeaders.invalid.test.ts."""
    rules, invalid = headers_of(text)
    assert invalid == [problem]
    assert rules in ([], [("/a", {"x": "y"}, [])])


def test_there_are_a_hundred_rules_for_headers_and_one_more() -> None:
    """As wrangler counts them."""
    text = "\n".join(f"/a/{number}\nx-index: {number}" for number in range(150))
    rules, invalid = headers_of(text)
    assert len(rules) == 101
    most = "Maximum number of rules supported is 100. Skipping remaining 98 lines of file."
    assert invalid == [(None, most)]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("/a /b 301", [("/a", "/b", 301, 1)]),
        ("# c\n  /a /b\n\n/c /d 307", [("/a", "/b", 302, 2), ("/c", "/d", 307, 4)]),
        (
            "/a /b?q=s 302\n/c?this=rejected /d 301",
            [("/a", "/b?q=s", 302, 1), ("/c", "/d", 301, 2)],
        ),
        (
            "/e https://some.domain:1234/r?q=s#anchor",
            [("/e", "https://some.domain:1234/r?q=s#anchor", 302, 1)],
        ),
        ("/a /b##blah-1 302", [("/a", "/b##blah-1", 302, 1)]),
        ("/a /b # a comment", [("/a", "/b", 302, 1)]),
        ("/a /b#fragment # c", [("/a", "/b#fragment", 302, 1)]),
        ("/a /b 200", [("/a", "/b", 200, 1)]),
        ("/foo https://bar.com/index.html 302", [("/foo", "https://bar.com/index.html", 302, 1)]),
        ("/cat https://cat.com:12345 302", [("/cat", "https://cat.com:12345/", 302, 1)]),
        ("/some%20page /x%20y", [("/some%20page", "/x%20y", 302, 1)]),
        ("yeah.com https://nah.com", [("/yeah.com", "https://nah.com/", 302, 1)]),
        ("/nope /index.html", [("/nope", "/index.html", 302, 1)]),
    ],
)
def test_redirects_are_read(text: str, rules: list[Any]) -> None:
    """parseRedirects.valid.test.ts."""
    assert redirects_of(text) == (rules, [])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/c", "Expected exactly 2 or 3 whitespace-separated tokens. Got 1."),
        ("/d /e 302 !important", "Expected exactly 2 or 3 whitespace-separated tokens. Got 4."),
        ("/c /d 418", "Valid status codes are 200, 301, 302 (default), 303, 307, or 308. Got 418."),
        ("/c /d x", "Valid status codes are 200, 301, 302 (default), 303, 307, or 308. Got x."),
        ("/a /c", "Ignoring duplicate rule for path /a."),
        (
            "https://yeah.com /x",
            "Only relative URLs are allowed. Skipping absolute URL https://yeah.com.",
        ),
        ("/x http://nah.com", NO_HTTPS),
        (
            "/x https://example.com/b 200",
            "Proxy (200) redirects can only point to relative paths. Got https://example.com/b",
        ),
        ("/* /index.html 200", LOOP),
        ("/* /index 200", LOOP),
        ("/ /index.html", LOOP),
        ("/ /index", LOOP),
    ],
)
def test_lines_that_are_no_redirect_are_told(line: str, message: str) -> None:
    """parseRedirects.invalid.test.ts."""
    assert redirects_of(f"/a /b\n{line}") == ([("/a", "/b", 302, 1)], [(2, message)])


def test_an_index_may_be_led_to_where_html_is_left_alone() -> None:
    assert redirects_of("/ /index.html", "none") == ([("/", "/index.html", 302, 1)], [])
    assert redirects_of("/* /index.html", "none") == ([], [(1, LOOP)])


def test_a_refused_proxy_has_taken_its_path() -> None:
    """As wrangler counts duplicates."""
    rules, invalid = redirects_of("/a https://example.com/b 200\n/a /c")
    assert rules == []
    assert invalid[1] == (2, "Ignoring duplicate rule for path /a.")


def test_there_are_limits_to_redirects() -> None:
    static = "\n".join(f"/a/{number} /b" for number in range(2050))
    dynamic = "\n".join(f"/c/{number}/* /b/:splat" for number in range(150))
    rules, invalid = redirects_of(f"{static}\n{dynamic}")
    assert len(rules) == 2100
    assert [message for _, message in invalid] == [
        *["Maximum number of static rules supported is 2000. Skipping line."] * 50,
        "Maximum number of dynamic rules supported is 100. Skipping remaining 50 lines of file.",
    ]


# What matches.


def matched(rules: dict[str, str], url: str) -> list[str]:
    parts = parse(url)
    found = Matcher(rules.items()).matches(parts.host or "", parts.pathname)
    return [replaced(match.rule, match.values) for match in found]


SPLATS = {
    "/foo/test/*": "1/:splat",
    "/foo/*": "2/:splat",
    "/blog/:code/:name": "3/:name/:code",
    "/blog/*": "4/:splat",
    "https://:subdomain.pages.:tld/*": "5/:subdomain/:tld/:splat",
    "https://next.:subdomain.pages.:tld/*": "6/:subdomain/",
}


@pytest.mark.parametrize(
    ("rules", "url", "expected"),
    [
        ({"/test": "1", "/some%20page": "2"}, "https://example.com/test", ["1"]),
        ({"/test": "1", "/some%20page": "2"}, "https://example.com/some page", ["2"]),
        (
            {"/test": "1", "https://custom.domain/test": "3"},
            "http://custom.domain:123/test",
            ["1", "3"],
        ),
        ({"//fake.host/path": "5"}, "https://example.com//fake.host/path", ["5"]),
        (
            {"/$~.%20/!+-/[bo|%7Bo%7D]...()": "1"},
            "https://example.com/$~. \\!+-/[bo|{o}]...()",
            ["1"],
        ),
        (SPLATS, "https://example.com/foo/test/yes", ["1/yes", "2/test/yes"]),
        (SPLATS, "https://example.com/foo/test/", ["1/", "2/test/"]),
        (SPLATS, "https://example.com/foo/test", ["2/test"]),
        (SPLATS, "https://example.com/foo/", ["2/"]),
        (SPLATS, "https://example.com/foo", []),
        (SPLATS, "https://example.com/blog/123/tricycle", ["3/tricycle/123", "4/123/tricycle"]),
        (SPLATS, "https://my.pages.dev/magic", ["5/my/dev/magic"]),
        (SPLATS, "https://next.my.pages.dev/magic", ["6/my/"]),
        ({"/:a/:a": "x", "/:b/c": ":b"}, "https://example.com/1/c", ["1"]),
    ],
)
def test_rules_match(rules: dict[str, str], url: str, expected: list[str]) -> None:
    """rules-engine.test.ts; the last case is a rule that is no pattern."""
    assert matched(rules, url) == expected


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        (["/some/path"], "/some/path", True),
        (["/no/match", "/some/*"], "/some/path", True),
        (["/some/*"], "/path", False),
        ([], "/some/path", False),
        (["/"], "/foo", False),
        (["/:placeholder"], "/foo", False),
        (["/:placeholder"], "/:placeholder", True),
        (["/foo*"], "/foobar", True),
        (["/*.html"], "/foo/bar.html", True),
        (["/*.html"], "/foo", False),
        (["/login/*"], "/foo/login/foo", False),
        (["/*"], "/", True),
        (["/a.c"], "/abc", False),
    ],
)
def test_routes_match(rules: list[str], path: str, expected: bool) -> None:
    """generateStaticRoutingRuleMatcher."""
    assert routes(rules, path) is expected


# What rules do.

HEADERS = """
/
  X-Custom: Value
/bang/:placeheld
  X-Bang: Bang :placeheld
/art/*
  X-Art: Art :splat
  Set-Cookie: me
/art/nested/attack
  Set-Cookie: me too
/system/override
  ETag: very rogue
/system/underride
  ! ETAg
/art/nested/unset/attack*
  ! Set-Cookie
  Set-Cookie: hijack
/art/nested/unset/attack/totalunset
  ! Set-Cookie
/foo.html
  X-Foo: Foo
"""


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("/", "x-custom", "Value"),
        ("/bang/baz", "x-bang", "Bang baz"),
        ("/bang/baz/abba", "x-bang", None),
        ("/art/attack/by/Neil", "x-art", "Art attack/by/Neil"),
        ("/art/attack/by/Neil", "set-cookie", "me"),
        ("/art/nested/attack", "set-cookie", "me, me too"),
        ("/art/", "x-art", "Art"),
        ("/system/override", "etag", "very rogue"),
        ("/system/underride", "etag", None),
        ("/art/nested/unset/attack", "set-cookie", "hijack"),
        ("/art/nested/unset/attack/totalunset", "set-cookie", None),
        ("/foo.html", "x-foo", "Foo"),
        ("/foo.html", "location", "/foo"),
    ],
)
def test_headers_are_set_added_and_removed(
    tmp_path: Path, path: str, name: str, value: str | None
) -> None:
    """`attaches custom headers` of handler.test.ts: also to redirects and to what is not there."""
    files = {"_headers": HEADERS, "foo.html": "x", "system/override": "x", "system/underride": "x"}
    assert header(site(tmp_path, files).answer(ask(path)), name) == value


REDIRECTS = """
/foo /bar 301
/proxy /other 200
/proxy-explicit /other.html 200
/query /bar?a=b
/fragment /bar#c
/dynamic/:seg /:seg/new-dynamic/?with#params
/dynamic/:seg1/:seg2/:seg3 https://fakehost/:seg3/:seg1/:seg2/new-dynamic/?with#params
/splat/* /:splat/new-splat
/splat/foo/* /will-never-fire
/but/this/will/* /too
/but/this/* /will
/partialSplat* /new-partialSplat:splat
/partialPlaceholder:placeholder /new-partialPlaceholder:placeholder
/slashes/* /:splat
/see /other 303
"""


@pytest.mark.parametrize(
    ("path", "status", "location"),
    [
        ("/foo", 301, "/bar"),
        ("/foo?x=y", 301, "/bar?x=y"),
        ("/query?x=y", 302, "/bar?a=b"),
        ("/fragment?x=y", 302, "/bar?x=y#c"),
        ("/see", 303, "/other"),
        ("/proxy", 200, None),
        ("/dynamic/foo", 302, "/foo/new-dynamic/?with#params"),
        ("/dynamic/bar/baz/qux", 302, "https://fakehost/qux/bar/baz/new-dynamic/?with#params"),
        ("/dynamic/bar/baz/qux/too/many", 404, None),
        ("/splat/foo/bar/baz", 302, "/foo/bar/baz/new-splat"),
        ("/splat/", 302, "/new-splat"),
        ("/splat/foo/nope", 302, "/foo/nope/new-splat"),
        ("/but/this/match", 302, "/will"),
        ("/but/this/will/match", 302, "/too"),
        ("/partialSplatfoo/bar/baz", 302, "/new-partialSplatfoo/bar/baz"),
        ("/partialPlaceholderfoo", 302, "/new-partialPlaceholderfoo"),
        ("/partialPlaceholderfoo/", 404, None),
        ("/slashes//google.com", 302, "/google.com"),
    ],
)
def test_redirects_come_before_assets(
    tmp_path: Path, path: str, status: int, location: str | None
) -> None:
    """`evaluates custom redirects` and `should prevent external redirects` of handler.test.ts."""
    files = {"_redirects": REDIRECTS, "other.html": "other", "foo": "never"}
    answer = site(tmp_path, files).answer(ask(path))
    assert (answer.status, header(answer, "location")) == (status, location)


def test_a_path_is_served_from_another_place(tmp_path: Path) -> None:
    """Proxying, with each way of handling what is not there."""
    rules = {"_redirects": "/here /other 200\n/there /nothing 200"}
    pages = {**rules, "other.html": "other", "404.html": "nothing"}
    assets = site(tmp_path, pages, not_found_handling="404-page")
    answer = assets.answer(ask("/here"))
    assert (answer.status, answer.body, answer.file) == (200, b"other", "/other.html")
    answer = assets.answer(ask("/there"))
    assert (answer.status, answer.body) == (404, b"nothing")
    plain = site(tmp_path, pages)
    assert (plain.answer(ask("/there")).status, plain.answer(ask("/there")).body) == (404, b"")
    assert plain.has(ask("/there"))
    assert not plain.has(ask("/elsewhere"))


def test_of_two_static_rules_the_first_line_counts(tmp_path: Path) -> None:
    """`Static redirects evaluate in line order`; rules with a host cannot be written any more."""
    assets = site(tmp_path, {"_redirects": "/a /first\n/b /second\n/* /splat\n/c /never"})
    places = [header(assets.answer(ask(path)), "location") for path in ("/a", "/b", "/c")]
    assert places == ["/first", "/second", "/splat"]
    assert assets.problems == ()


def test_problems_are_told_with_their_lines(tmp_path: Path) -> None:
    assets = site(tmp_path, {"_redirects": "/a", "_headers": "x"})
    assert assets.problems == (
        "_headers:1: Expected a path beginning with at least one forward-slash",
        "_redirects:1: Expected exactly 2 or 3 whitespace-separated tokens. Got 1.",
    )
