"""`statusText`: the given one, else the runtime's phrase (workerd's http.c++)."""

from __future__ import annotations

import pytest

from emulator.runtime.web.response import Response
from emulator.runtime.web.status_text import default_status_text


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (200, "OK"),
        (404, "Not Found"),
        (413, "Payload Too Large"),
        (422, "Unprocessable Entity"),
        (299, "Successful"),
        (306, "Redirection"),
        (499, "Client Error"),
        (599, "Server Error"),
        (0, ""),
    ],
)
def test_each_status_has_the_runtimes_phrase_on_every_python(status: int, text: str) -> None:
    assert default_status_text(status) == text


def test_a_given_text_stays_also_an_empty_one_and_in_copies() -> None:
    given = Response.js_new("x", {"status": 404, "statusText": "Gone fishing"})
    assert given.statusText == given.clone().statusText == "Gone fishing"
    assert Response.js_new("x", {"statusText": ""}).statusText == ""
    assert Response.js_new("y", given).statusText == "Gone fishing"


def test_a_text_of_the_runtimes_follows_the_status() -> None:
    """The SDK's own test: `repr(Response.json(...))` says OK."""
    assert Response.js_new("x", {"status": 201}).clone().statusText == "Created"
    assert Response.error().statusText == ""
