"""Reading bodies, once: texts and results are workerd's (1.20261117)."""

import asyncio

import pytest

from emulator.runtime.web.response import Response
from emulator.runtime.web.streams import ReadableStream
from emulator.values import ArrayBuffer, JsException

USED = (
    "Body has already been used. It can only be used once. "
    "Use tee() first if you need to read it twice."
)


def outcome(action):
    """Run `await action()` and return its result, or the error's text."""

    async def main():
        try:
            result = action()
            return await result if hasattr(result, "__await__") else result
        except JsException as error:
            return str(error)

    return asyncio.run(main())


async def used():
    response = Response.js_new("x")
    await response.text()
    return response


def locked():
    response = Response.js_new("x")
    response.body.getReader()
    return response


async def use_and(action):
    return await action(await used())


@pytest.mark.parametrize("method", ["text", "json", "bytes", "arrayBuffer", "blob", "formData"])
def test_a_second_read_is_a_type_error(method):
    assert outcome(lambda: use_and(lambda r: getattr(r, method)())) == f"TypeError: {USED}"


def test_the_body_counts_as_used_before_the_first_await():
    response = Response.js_new("x")
    response.text()
    assert response.bodyUsed is True


def test_a_locked_body_cannot_be_read():
    assert outcome(lambda: locked().text()) == (
        "TypeError: This ReadableStream is currently locked to a reader."
    )


def test_a_used_or_locked_body_cannot_be_cloned():
    # The comma is the runtime's.
    text = "TypeError: This ReadableStream is currently locked to a reader,"

    async def clone_used():
        return (await used()).clone()

    assert outcome(clone_used) == text
    assert outcome(lambda: locked().clone()) == text


def test_a_used_or_locked_stream_is_no_body():
    async def of_used():
        return Response.js_new((await used()).body)

    assert outcome(of_used) == (
        "TypeError: This ReadableStream is disturbed (has already been read from), "
        "and cannot be used as a body."
    )
    assert outcome(lambda: Response.js_new(locked().body)) == (
        "TypeError: This ReadableStream is locked to a reader, and cannot be used as a body."
    )


def test_two_responses_on_one_stream_share_its_fate():
    async def main():
        first = Response.js_new("x")
        second = Response.js_new(first.body)
        return await second.text(), first.bodyUsed

    assert asyncio.run(main()) == ("x", True)


def test_a_clone_is_read_by_itself():
    async def main():
        first = Response.js_new("x", {"status": 404, "headers": {"a": "b"}})
        second = first.clone()
        return await first.text(), await second.text(), second.status, second.headers.get("a")

    assert asyncio.run(main()) == ("x", "x", 404, "b")


def test_a_clone_of_a_stream_is_read_by_itself():
    async def main():
        first = Response.js_new(ReadableStream.from_(["ignored", b"x"][1:]))
        second = first.clone()
        return await asyncio.gather(first.text(), second.text())

    assert asyncio.run(main()) == ["x", "x"]


def test_reading_through_a_reader_uses_the_body():
    async def main():
        response = Response.js_new("xyz")
        reader = response.body.getReader()
        first, second = await reader.read(), await reader.read()
        return first, second["done"], response.bodyUsed

    assert asyncio.run(main()) == ({"value": b"xyz", "done": False}, True, True)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "{x",
            "SyntaxError: Expected property name or '}' in JSON at position 1 (line 1 column 2)",
        ),
        ("", "SyntaxError: Unexpected end of JSON input"),
    ],
)
def test_json_errors_are_those_of_javascript(text, error):
    assert outcome(lambda: Response.js_new(text).json()) == error


def test_text_is_utf8_without_its_mark_and_bad_bytes_are_replaced():
    assert outcome(lambda: Response.js_new(b"\xef\xbb\xbfA\xff").text()) == "A�"


def test_every_form_of_the_body():
    async def main():
        def response():
            return Response.js_new("ab", {"headers": {"content-type": "Q/z; A=B"}})

        blob = await response().blob()
        return (
            await response().bytes(),
            await response().arrayBuffer(),
            (blob.type, blob.data),
        )

    assert asyncio.run(main()) == (b"ab", ArrayBuffer(b"ab"), ("q/z;a=B", b"ab"))


def test_a_stream_that_has_all_its_bytes_leaves_as_bytes():
    """So that it is as long for whoever gets it: R2 takes no stream of unknown length."""

    async def main():
        stream = ReadableStream.of_bytes(b"abc")
        response = Response.js_new(stream)
        assert response.take() == b"abc"
        assert (stream.disturbed, stream.locked, response.bodyUsed) == (True, True, True)
        begun = ReadableStream.of_bytes(b"abc")
        reader = begun.getReader()
        await reader.read()
        reader.releaseLock()
        assert begun.take_whole() is None
        other = Response.js_new(ReadableStream.from_([b"a", b"b"]))
        assert b"".join([chunk async for chunk in other.take()]) == b"ab"

    asyncio.run(main())
