"""Masking: which forms of a secret are found, and what is left alone."""

from __future__ import annotations

import base64
import doctest
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import emulator.secrets
from emulator.secrets import Masker, credential

KEY = "sk-12345678"
ODD = 'p&ss "w/r\'d" é+'


def mask(text: str, **values: str) -> str:
    return Masker(values or {"API_KEY": KEY})(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("nothing to hide", "nothing to hide"),
        (KEY, "[secret API_KEY]"),
        (f"a{KEY}b{KEY}", "a[secret API_KEY]b[secret API_KEY]"),
        (
            f"GET https://x.example/?key={KEY}&a=1",
            "GET https://x.example/?key=[secret API_KEY]&a=1",
        ),
        (f"Error: bad key '{KEY}'\n  at 1", "Error: bad key '[secret API_KEY]'\n  at 1"),
        ("sk-1234567", "sk-1234567"),
    ],
)
def test_values_are_replaced_by_their_names(text: str, expected: str):
    assert mask(text) == expected


def test_a_value_is_found_as_the_name_of_a_header_which_is_in_lower_case():
    assert mask("{'hunter2-hunter2': 'x'}", TOKEN="Hunter2-HUNTER2") == "{'[secret TOKEN]': 'x'}"
    for short_or_no_name in ("Hunter2", "Hunter 2 Hunter"):
        text = f"got {short_or_no_name.lower()}"
        assert mask(text, TOKEN=short_or_no_name) == text


def test_without_secrets_text_is_left_alone():
    assert Masker()("key sk-12345678") == "key sk-12345678"


@pytest.mark.parametrize("value", ["", "a", "abc", "true", "False", "NULL", "none", "undefined"])
def test_short_values_and_words_are_no_secrets(value: str):
    text = f"x {value} y"
    assert mask(text, A=value) == text


@pytest.mark.parametrize(
    ("header", "value", "text", "expected"),
    [
        ("authorization", "Bearer tok-1234", "got Bearer tok-1234", "got [secret Authorization]"),
        ("Authorization", "Bearer tok-1234", "?t=tok-1234&a", "?t=[secret Authorization]&a"),
        ("authorization", "tok-1234", "a tok%2d1234 b", "a [secret Authorization] b"),
        ("cookie", 'sid="quoted-12"', "got quoted-12", "got [secret Cookie]"),
        ("cookie", 'sid="quoted-12"', 'got "quoted-12"', "got [secret Cookie]"),
        (
            *("authorization", 'Digest username="somebody-1", response="0123abcd"'),
            *("0123abcd of somebody-1", "[secret Authorization] of somebody-1"),
        ),
        ("authorization", "Bearer abc", "abc is as easy as 123", "abc is as easy as 123"),
        ("authorization", "Bearer abc", "it says Bearer abc", "it says [secret Authorization]"),
        (
            "cookie",
            "a=1; sid=12345678",
            "sid is 12345678, a is 1",
            "sid is [secret Cookie], a is 1",
        ),
        ("cookie", "a=1; sid=12345678", "a=1; sid=12345678", "[secret Cookie]"),
        (
            "set-cookie",
            "sid=12345678; Domain=mail.example",
            "https://mail.example/?sid=12345678",
            "https://mail.example/?sid=[secret Set-Cookie]",
        ),
        ("x-token", "Bearer tok-1234", "got Bearer tok-1234", "got Bearer tok-1234"),
    ],
)
def test_credentials_met_in_headers_are_secrets(header: str, value: str, text: str, expected: str):
    masker = Masker()
    masker.meet([("accept", "*/*"), (header, value)])
    assert masker(text) == expected
    masker.forget()
    assert masker(text) == text


def test_a_secret_keeps_its_own_name_where_a_header_carries_it():
    masker = Masker({"API_KEY": KEY})
    masker.meet([("authorization", f"Bearer {KEY}")])
    assert masker(f"key {KEY}") == "key [secret API_KEY]"


def test_only_the_latest_credentials_are_remembered():
    masker = Masker()
    for number in range(300):
        masker.meet([("authorization", f"Bearer token-{number:03}")])
    assert masker("token-299 token-100") == "[secret Authorization] [secret Authorization]"
    assert masker("token-099") == "token-099"


def test_values_of_four_characters_are_secrets():
    assert mask("x abcd y", A="abcd") == "x [secret A] y"


@pytest.mark.parametrize(
    "form",
    [
        ODD,
        quote(ODD),
        quote(ODD, safe=""),
        quote_plus(ODD),
        quote(ODD, safe="").replace("%2F", "%2f").replace("%C3%A9", "%c3%a9").replace("%2B", "%2b"),
        json.dumps(ODD)[1:-1],
        json.dumps(ODD, ensure_ascii=False)[1:-1],
        repr(ODD)[1:-1],
        "p&amp;ss &quot;w/r&#x27;d&quot; é+",
    ],
)
def test_encoded_forms_are_found(form: str):
    assert mask(f"<{form}>", PASSWORD=ODD) == "<[secret PASSWORD]>"


@given(st.binary(max_size=8), st.binary(max_size=8), st.sampled_from(["standard", "urlsafe"]))
def test_base64_is_found_at_any_place_in_a_longer_text(before: bytes, after: bytes, alphabet: str):
    encode = base64.b64encode if alphabet == "standard" else base64.urlsafe_b64encode
    secret = b"s3cret~~~value>>>?"
    masked = mask(encode(before + secret + after).decode(), TOKEN=secret.decode())
    assert "[secret TOKEN]" in masked
    assert encode(secret)[2:-4].decode() not in masked


def test_base64_of_short_values_is_left_alone():
    encoded = base64.b64encode(b"abcdefg").decode()
    assert mask(encoded, A="abcdefg") == encoded


def test_longer_secret_gives_the_name():
    values = {"SHORT": "secret", "LONG": "secret-and-more"}
    assert mask("secret secret-and-more", **values) == "[secret SHORT] [secret LONG]"


def test_overlapping_secrets_are_covered_together():
    assert mask("<abcdefgh>", A="abcdef", B="defgh") == "<[secret A][secret B]>"
    assert mask("<abcdefgh>", B="defgh", A="abcdef") == "<[secret A][secret B]>"


def test_first_of_two_names_of_a_value_is_used():
    assert mask("value", B="value", A="value") == "[secret B]"


def test_lines_of_a_key_are_masked_one_by_one():
    key = "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG9w0\nshort\n-----END KEY-----\n"
    assert mask(key, KEY=key) == "[secret KEY]"
    assert mask("line MIIBVgIBADANBgkqhkiG9w0 short", KEY=key) == "line [secret KEY] short"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Authorization: Bearer abc\nAccept: */*",
            "Authorization: [secret Authorization]\nAccept: */*",
        ),
        ("cookie: a=b; c=d", "cookie: [secret Cookie]"),
        ("SET-COOKIE:a=b; Path=/", "SET-COOKIE:[secret Set-Cookie]"),
        ("Proxy-Authorization: Basic x", "Proxy-Authorization: [secret Proxy-Authorization]"),
        (
            '{"authorization": "Bearer a", "b": 1}',
            '{"authorization": "[secret Authorization]", "b": 1}',
        ),
        (r'{"cookie":"a=\"b\"","b":1}', '{"cookie":"[secret Cookie]","b":1}'),
        (r'"{\"cookie\":\"a=\\\"b\\\"\",\"k\":1}"', r'"{\"cookie\":\"[secret Cookie]\",\"k\":1}"'),
        (
            "[('Set-Cookie', 'a=b'), ('x', 'y')]",
            "[('Set-Cookie', '[secret Set-Cookie]'), ('x', 'y')]",
        ),
        ("[(b'cookie', b'a=b')]", "[(b'cookie', b'[secret Cookie]')]"),
        ("cookie = request.cookies", "cookie = request.cookies"),
        ("x-cookie: a=b", "x-cookie: a=b"),
        ("no cookie", "no cookie"),
    ],
)
def test_credentials_in_what_looks_like_headers_are_masked(text: str, expected: str):
    assert mask(text) == expected


@given(st.text(st.sampled_from("cookieauthorization:=,\"'\\ -\nabc"), max_size=60))
def test_masking_twice_changes_nothing_more(text: str):
    once = mask(text)
    assert mask(once) == once


def test_header_values_are_masked_as_a_whole():
    masker = Masker({"API_KEY": KEY})
    assert masker.header("Authorization", "Bearer x") == "[secret Authorization]"
    assert masker.header("set-cookie", "a=b") == "[secret Set-Cookie]"
    assert masker.header("x-key", f"k {KEY}") == "k [secret API_KEY]"


def test_credential_knows_header_names_of_any_case_and_type():
    assert credential("COOKIE") == "[secret Cookie]"
    assert credential(b"proxy-authorization") == "[secret Proxy-Authorization]"
    assert credential("x") is None
    assert credential(7) is None


def test_octets_are_masked():
    masker = Masker({"API_KEY": KEY, "UMLAUT": "größe"})
    data = b"\x00" + KEY.encode() + b"\xff" + "größe".encode()
    assert masker.octets(data) == b"\x00[secret API_KEY]\xff[secret UMLAUT]"


@given(st.text(st.characters(exclude_characters="[secret S]"), min_size=4), st.text(), st.text())
def test_value_never_leaves(value: str, before: str, after: str):
    assume(value.lower() not in ("true", "false", "null", "none", "undefined"))
    assert value not in mask(f"{before}{value}{after}", S=value)


def test_examples_in_the_docstrings_hold():
    assert doctest.testmod(emulator.secrets).failed == 0


def test_several_secrets_may_have_one_name():
    """Two Workers each have an `API_KEY` of their own."""
    masker = Masker([("API_KEY", "sk-of-the-first"), ("API_KEY", "sk-of-the-second")])
    assert masker("sk-of-the-first sk-of-the-second") == "[secret API_KEY] [secret API_KEY]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"sent Bearer {KEY}", "sent Bearer [secret API_KEY]"),
        (f'{{"authorization": "Bearer {KEY}"}}', '{"authorization": "Bearer [secret API_KEY]"}'),
        (f"Authorization: Bearer {KEY}", "Authorization: Bearer [secret API_KEY]"),
        (f"Authorization: Odd {KEY}", "Authorization: [secret Authorization]"),
        (f"Authorization: Bearer {KEY} x", "Authorization: [secret Authorization]"),
        (f"Authorization: Bearer x-{KEY}", "Authorization: [secret Authorization]"),
    ],
)
def test_a_token_that_is_a_secret_is_written_by_its_name_where_it_is_echoed(
    text: str, expected: str
):
    masker = Masker({"API_KEY": KEY})
    masker.meet([("authorization", f"Bearer {KEY}")])
    assert masker(text) == expected
