"""Encodings undone: what a text says, where that stands, and secrets in whatever encoding."""

from __future__ import annotations

import base64
import doctest
import json
from html.entities import codepoint2name
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

import emulator.encodings
from emulator.encodings import readings
from emulator.secrets import Masker

if TYPE_CHECKING:
    from collections.abc import Callable

SECRETS = (
    "sk-12345678",
    "a/b+c d",
    "100%-sure&safe",
    'p&ss "w/r\'d" é+',
    "back\\slash\\u002d",
    "%2d%2D&amp;\\n",
    "größe-\U0001f511-schlüssel",
    "two\nlines",
    "++  ++",
)
ROUNDS = 40


def percent(random: Random, text: str) -> str:
    """Percent-encode some characters, those that must be among them, in any case."""

    def one(character: str) -> str:
        if character != "%" and random.random() < 0.6:
            return character
        data = character.encode("utf-8", "surrogatepass")
        return "".join(random.choice((f"%{byte:02x}", f"%{byte:02X}")) for byte in data)

    return "".join(map(one, text))


def form(random: Random, text: str) -> str:
    """Encode as a form does: `+` for some spaces."""

    def one(character: str) -> str:
        if character == "+":
            return random.choice(("%2b", "%2B"))
        return "+" if character == " " and random.random() < 0.7 else percent(random, character)

    return "".join(map(one, text))


def escaped(random: Random, text: str) -> str:
    """Escape some characters as JSON may, those that must be among them."""

    def one(character: str) -> str:
        if character in '"\\/' and random.random() < 0.5:
            return f"\\{character}"
        if character not in '"\\\n' and random.random() < 0.6:
            return character
        data = character.encode("utf-16-be")
        units = [data[at : at + 2].hex() for at in range(0, len(data), 2)]
        return "".join(f"\\u{random.choice((unit, unit.upper()))}" for unit in units)

    return "".join(map(one, text))


def referred(random: Random, text: str) -> str:
    """Write some characters as references of HTML, those that must be among them."""

    def one(character: str) -> str:
        code = ord(character)
        if character != "&" and random.random() < 0.6:
            return character
        forms = [f"&#{code};", f"&#{code:05};", f"&#x{code:x};", f"&#X{code:X};"]
        return random.choice([*forms, f"&{codepoint2name.get(code, f'#{code}')};"])

    return "".join(map(one, text))


ENCODERS: tuple[Callable[[Random, str], str], ...] = (percent, form, escaped, referred)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("deep", range(1, 5))
def test_a_secret_is_found_in_whatever_encodings_lie_in_each_other(secret: str, deep: int):
    mask, random = Masker({"KEY": secret}), Random(f"{secret} {deep}")
    for _ in range(ROUNDS):
        encoders = random.choices(ENCODERS, k=deep)
        text = secret
        for encode in encoders:
            text = encode(random, text)
        names = [encode.__name__ for encode in encoders]
        assert mask(f"<{text}>") == "<[secret KEY]>", (names, text)
        assert mask.octets(f"<{text}>".encode() + b"\xff") == b"<[secret KEY]>\xff", (names, text)


@pytest.mark.parametrize("encode", ENCODERS)
def test_base64_is_found_under_another_encoding(encode: Callable[[Random, str], str]):
    secret = "s3cret~~~value>>>?"
    mask, random = Masker({"KEY": secret}), Random(7)
    for number in range(100):
        token = base64.b64encode(f"{'u' * (number % 5)}:{secret}".encode()).decode()
        masked = mask(encode(random, f"={token}"))
        assert "[secret KEY]" in masked
        assert token[8:-8] not in masked


@pytest.mark.parametrize("secret", ['"quoted"/1', "größe 100%"])
def test_base64_of_json_and_of_a_url_is_found(secret: str):
    for text in (json.dumps({"key": secret}), f"/?key={quote(secret, safe='')}"):
        token = base64.b64encode(text.encode()).decode()
        assert "[secret KEY]" in Masker({"KEY": secret})(token)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Basic dTpwYXNz", "Basic [secret KEY]"),
        ("?auth=bAsIc+dTpwYXNz&a", "?auth=bAsIc+[secret KEY]&a"),
        ("?auth=Basic%20dTpwYXN%7a", "?auth=Basic%20[secret KEY]"),
        ("?auth=Basic%20dTpwYXNzOg%3D%3D", "?auth=Basic%20[secret KEY]%3D%3D"),
        ("dTpwYXNz", "dTpwYXNz"),
    ],
)
def test_basic_authorization_is_masked_with_short_secrets_too(text: str, expected: str):
    assert Masker({"KEY": "pass"})(text) == expected


@pytest.mark.parametrize(
    "text",
    ["größe".encode().decode("latin-1"), "gr%F6%dfe", "gr%c3%b6%C3%9Fe", r"gr\xc3\xb6\xc3\x9fe"],
)
def test_other_character_sets_hide_nothing(text: str):
    assert Masker({"KEY": "größe"})(f"x={text}&") == "x=[secret KEY]&"


def test_latin_1_in_a_body_hides_nothing():
    assert Masker({"KEY": "größe"}).octets("x=größe&".encode("latin-1")) == b"x=[secret KEY]&"


@pytest.mark.parametrize(
    "text",
    [
        "100 %",
        "%2",
        "%zz%",
        r"C:\users\new",
        r"\u12",
        r"\U99999999",
        "\\",
        "a & b &c; &#; &#x;",
        "%25" * 500,
        "\\" * 501,
        "&amp;" * 500,
        "%\\&" * 200,
        "\udcff%ff\ud800",
        "sk%2d1234567",
    ],
)
def test_other_texts_are_left_as_they_are(text: str):
    mask = Masker({"KEY": "sk-12345678", "SPACED": "a b c d"})
    assert mask(text) == text


def test_what_stands_around_a_secret_stays_encoded():
    mask = Masker({"KEY": "sk-12345678", "OTHER": "größe"})
    text = "%41%c3%a9/sk%2D1234567%38%2f&amp;gr%C3%B6%c3%9Fe\\u002d%C3%A9"
    assert mask(text) == "%41%c3%a9/[secret KEY]%2f&amp;[secret OTHER]\\u002d%C3%A9"


def test_bytes_without_a_secret_are_the_same_object():
    data = bytes(range(256)) * 4
    assert Masker({"KEY": "sk-12345678"}).octets(data) is data


def test_a_text_with_nothing_encoded_has_one_reading():
    assert [reading.text for reading in readings("a+b 100 % C& x")] == ["a+b 100 % C& x"]


def test_readings_are_few_in_the_worst_text():
    assert (
        len(list(readings("%25255c&amp;#x25;\\u0025\\\\&amp;amp;%26" * 20))) <= 1 + 3 + 9 + 27 + 81
    )


def test_examples_hold():
    assert doctest.testmod(emulator.encodings).failed == 0
