"""What a tail Worker does not get to see (workerd, `api/util-test.c++`, `api/trace.c++`)."""

from __future__ import annotations

import pytest

from emulator.tails.redaction import is_secret, redact_url

HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        (f"https://domain/{HEX}/x", "https://domain/REDACTED/x"),
        (f"https://domain/{HEX[:16]}-{HEX[16:]}/x", "https://domain/REDACTED/x"),
        ("https://domain/01234567890123456azAZ/x", "https://domain/REDACTED/x"),
        ("https://domain/path?number=4222222222222", "https://domain/path?number=REDACTED"),
        ("https://domain/?number=4000000000000000006", "https://domain/?number=REDACTED"),
        ("https://domain/?number=4111-1111-1111-1111", "https://domain/?number=REDACTED"),
        ("https://domain/?number=4111+1111+1111+1111", "https://domain/?number=REDACTED"),
    ],
)
def test_what_looks_like_a_key_is_kept_back(url: str, seen: str) -> None:
    assert redact_url(url) == seen


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://domain/path?a=1&b=2",
        f"https://domain/{HEX[:31]}/x",
        "https://domain/0123456789_ABCDEF_0123456789_ABCDE/x",
        f"https://domain/{HEX}g/x",
        "https://domain/0123456789012345azAZ/x",  # too short
        "https://domain/012345678901234567zAZ/x",  # one lower-case letter
        "https://domain/012345678901234567azZ/x",
        "https://domain/IThinkIShallNeverSee0/x",
        "https://domain/?number=4111111111111112",  # no card
        "https://domain/?short=79927398713&long=40000000000000000002",
    ],
)
def test_other_urls_are_as_they_are(url: str) -> None:
    assert redact_url(url) == url


@pytest.mark.parametrize("name", ["cookie", "set-cookie", "authorization", "x-api-key", "x-jwt"])
def test_headers_that_sound_secret_are_kept_back(name: str) -> None:
    assert is_secret(name)
    assert not is_secret("content-type")
    assert not is_secret("x-cookie-banner")
