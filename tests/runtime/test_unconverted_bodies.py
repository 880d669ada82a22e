"""Python data that nobody converted, as a body: its text is sent, and a finding says so.

What production does is read in workerd (`jsg/iterator.h`, `AsyncGeneratorIgnoringStrings`), and the
texts are those of real Pyodide (tests/conformance/pyodide).
"""

from __future__ import annotations

import array
import inspect
from typing import TYPE_CHECKING, Any

import js
import pytest
from pyodide.ffi import JsException, to_js
from workers import WorkerEntrypoint

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.asyncio
# A date of each generation of Pyodide.
DATES = ("2025-09-01", "2026-01-01", "2026-05-01", "2026-09-08")
TEXT = "text/plain;charset=UTF-8"


async def answered(make: Callable[[], Any], date: str) -> tuple[str, str | None, list[str]]:
    """Text and type of a response that a Worker makes, and what was found."""

    async def fetch(self: Any, request: Any) -> Any:
        value = make()
        return await value if inspect.iscoroutine(value) else value

    names = {"fetch": fetch}
    config = {
        "main": type("Default", (WorkerEntrypoint,), names),
        "compatibility_date": date,
        "compatibility_flags": ["python_workers", "python_no_global_handlers"],
    }
    async with Emulator(config) as emulator:
        response = await emulator.fetch("/")
        assert all("test_unconverted_bodies.py:" in str(f.location) for f in emulator.findings)
        assert {f.code for f in emulator.findings} <= {"lossy_body", "ignored_option"}
        kind = response.headers.get("content-type")
        return response.text, kind, [f.message for f in emulator.findings]


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize(
    ("body", "text", "hint"),
    [
        (b"abc", "b'abc'", "Python bytes that is not converted"),
        (bytearray(b"abc"), "bytearray(b'abc')", "give to_js(the bytearray)"),
        (array.array("b", [1, 2]), "array('b', [1, 2])", "Python array"),
        ([1, 2], "[1, 2]", "give json.dumps(…)"),
        ((b"a",), "(b'a',)", "Python tuple"),
        ({"a": 1}, "{'a': 1}", "Python dict"),
        ({1}, "{1}", "Python set"),
        (b"x" * 100, "b'" + "x" * 100 + "'", "the text b'" + "x" * 38 + "…: JavaScript"),
    ],
)
async def test_a_response_has_the_text_of_python_data(
    body: Any, text: str, hint: str, date: str
) -> None:
    found = await answered(lambda: js.Response.new(body), date)
    assert found[:2] == (text, TEXT)
    (message,) = found[2]
    assert message.startswith("the body becomes the text ")
    assert hint in message


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc")])
async def test_what_is_converted_is_sent_as_bytes(data: Any, date: str) -> None:
    assert await answered(lambda: js.Response.new(to_js(data)), date) == ("abc", None, [])


class Spoken:
    """An object whose text is meant."""

    def __str__(self) -> str:
        return "spoken"


async def test_an_object_with_a_text_of_its_own_is_no_finding() -> None:
    assert await answered(lambda: js.Response.new(Spoken()), DATES[-1]) == ("spoken", TEXT, [])
    assert await answered(lambda: js.Response.new("abc"), DATES[-1]) == ("abc", TEXT, [])


@pytest.mark.parametrize("date", DATES)
async def test_a_request_a_blob_and_a_form_have_it_too(date: str) -> None:
    async def make(kind: str) -> Any:
        if kind == "request":
            request = js.Request.new("http://a/", method="POST", body=b"abc")
            return js.Response.new(await request.text())
        if kind == "form":
            form = js.FormData.new()
            form.append("file", b"abc")
            return js.Response.new(form.get("file"))
        blobs = {"part": lambda: [b"abc"], "whole": lambda: b"abc"}
        return js.Response.new(await js.Blob.new(blobs[kind]()).text())

    for kind, text, what in (
        ("request", "b'abc'", "the body becomes the text b'abc'"),
        ("form", "b'abc'", "the field 'file' of a FormData becomes the text b'abc'"),
        ("part", "b'abc'", "a part of a Blob becomes the text b'abc'"),
        ("whole", "979899", "the content of a Blob becomes the text 979899"),
    ):
        found, _, messages = await answered(lambda kind=kind: make(kind), date)  # type: ignore[misc]
        assert found == text
        assert [message.startswith(what) for message in messages] == [True]


@pytest.mark.parametrize("date", DATES)
async def test_where_a_buffer_is_wanted_the_error_says_how(date: str) -> None:
    async def make() -> Any:
        notes = []
        for call in (
            lambda: js.TextDecoder.new().decode(b"abc"),
            lambda: js.crypto.subtle.digest("SHA-256", bytearray(b"abc")),
        ):
            with pytest.raises(JsException) as caught:
                await call()
            notes += caught.value.__notes__
        return js.Response.new("\n".join(notes))

    text, _, messages = await answered(make, date)
    assert "Python's bytes is no buffer in JavaScript: give to_js(the bytes)." in text
    assert "Python's bytearray is no buffer in JavaScript: give to_js(the bytearray)." in text
    assert messages == []


async def chunks() -> Any:
    yield to_js(b"ab")
    yield to_js(b"c")


@pytest.mark.parametrize(
    ("date", "array_text", "generator_text"),
    [("2026-02-18", "97,98", "<async_generator object chunks"), ("2026-02-19", "abc", "abc")],
)
async def test_iterables_are_bodies_since_2026_02_19(
    date: str, array_text: str, generator_text: str
) -> None:
    """compatibility-date.capnp, `fetch_iterable_type_support`."""
    items = [b"a", b"b"] if array_text == "97,98" else [b"a", b"bc"]
    made = await answered(lambda: js.Response.new(to_js(items)), date)
    assert made[0] == array_text
    text, _, _ = await answered(lambda: js.Response.new(chunks()), date)
    assert text.startswith(generator_text)


async def test_a_map_with_options_is_told() -> None:
    def as_map() -> Any:
        return js.Response.new("x", js.Map.new(to_js([["status", 404]])))

    _, _, messages = await answered(as_map, "2026-09-08")
    (message,) = messages
    assert message.startswith("JavaScript does not see what is in a Map ('status'): an entry of")


async def test_what_to_js_makes_of_a_dict_has_no_options_in_pyodide_0_26() -> None:
    def as_dict() -> Any:
        return js.Response.new("x", to_js({"status": 404, "statusText": "no"}))

    _, _, messages = await answered(as_dict, "2025-09-01")
    (message,) = messages
    assert message.startswith(
        "JavaScript does not see what is in a Map ('status', 'statusText'): before 2025-09-29"
    )
    for date in DATES[1:]:
        assert (await answered(as_dict, date))[2] == []


@pytest.mark.parametrize("date", DATES[1:])
async def test_json_of_a_list_in_a_list_is_an_error(date: str) -> None:
    def make() -> Any:
        with pytest.raises(JsException, match="destroyed when an iterator was exhausted"):
            js.JSON.stringify([[1]])
        assert js.JSON.stringify({"a": [1]}) == '{"a":[1]}'
        assert js.JSON.stringify(to_js([[1]])) == "[[1]]"
        return js.Response.new("done")

    assert (await answered(make, date))[0] == "done"
