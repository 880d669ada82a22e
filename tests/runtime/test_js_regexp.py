"""JavaScript's regular expressions: what is translated, and what is refused in words.

What real Pyodide shows for the same code is in tests/conformance/pyodide.
"""

from __future__ import annotations

import re

import js
import pytest
from ffi_worker import worker

from emulator.runtime.js_regexp import escaped, translate


@pytest.mark.parametrize(
    ("source", "flags", "why"),
    [
        ("(?:a*)*b", "", "can match nothing"),
        ("(?:|a)+", "", "can match nothing"),
        ("(a?)+?", "", "can match nothing"),
        ("(?:a|^)*", "", "can match nothing"),
        ("(?<=a+)b", "", "look-behind"),
        (r"(a)(?<=\1)b", "", "look-behind"),
        (r"(?:(a)|b\1)*", "", "may leave out"),
        (r"\p{Script=Greek}", "u", "Script=Greek"),
        (r"\p{Emoji}", "u", "Emoji"),
        ("[[a-z]--[b]]", "v", "flag `v`"),
        ("(?i:a)b", "", "modifiers"),
    ],
)
def test_what_python_would_understand_differently_is_refused(
    source: str, flags: str, why: str
) -> None:
    with worker(314):
        made = js.RegExp.new(source, flags)
        with pytest.raises(NotImplementedError, match=why) as caught:
            made.test("ab")
        assert "write it another way" in str(caught.value)
        assert hasattr(made, "test")


@pytest.mark.parametrize(
    "source", ["(?:(a)|b)*", "(?:(a)?b)+", "(a*)?", "(?!(a))b", "(?:(?:(a)|b)c){2}"]
)
def test_captures_that_python_keeps_are_refused_and_the_test_is_not(source: str) -> None:
    """ECMA-262, RepeatMatcher: an iteration forgets what the one before it captured."""
    with worker(314):
        made = js.RegExp.new(source)
        assert made.test("abcacbcb") is True
        with pytest.raises(NotImplementedError, match="capture"):
            made.exec("abcacbcb")


def test_what_looks_alike_means_javascripts() -> None:
    with worker(314):
        assert js.RegExp.new("^a$").test("a\n") is False
        assert re.search("^a$", "a\n")
        assert js.RegExp.new(r"^\d$").test("٣") is False
        assert js.RegExp.new("(?<=^|x)b").test("ab") is False
        assert js.RegExp.new("(?<!a|bc)d").test("bcd") is False


def test_a_pattern_is_translated_once() -> None:
    assert translate("a|b", "gi") is translate("a|b", "gi")
    assert translate(r"(a)?\1", "").pattern == r"(a)?(?:(?(1)\1|))"


def test_escape_makes_a_pattern_of_any_text() -> None:
    assert escaped("a.b") == r"\x61\.b"
    assert escaped("-x y\n\ufeff") == r"\x2dx\x20y\n\ufeff"
    with worker(314):
        for text in ("a.b*c", "(x)", "1+1=2", "é-ß/\\", "\u2028 \t"):
            made = js.RegExp.new(f"^{js.RegExp.escape(text)}$")
            assert made.test(text), text
