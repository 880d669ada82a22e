"""`js.TransformStream` and `js.WritableStream`: texts and results are workerd's (1.20261117)."""

import asyncio

import pytest

from emulator.runtime.web.response import Response
from emulator.runtime.web.streams import ReadableStream
from emulator.runtime.web.transform import (
    FixedLengthStream,
    IdentityTransformStream,
    TransformStream,
)
from emulator.runtime.web.writable import WritableStream
from emulator.values import UNDEFINED, BigInt, JsException


async def text_of(call):
    try:
        result = call()
        return await result if hasattr(result, "__await__") else result
    except JsException as error:
        return str(error)


def run(test):
    return asyncio.run(test())


@pytest.mark.parametrize("cls", [TransformStream, IdentityTransformStream])
def test_without_functions_chunks_pass_unchanged(cls):
    async def main():
        stream = cls.js_new()
        writer = stream.writable.getWriter()
        writer.write(b"x")
        writer.write(b"y")
        writer.close()
        assert await Response.js_new(stream.readable).text() == "xy"

    run(main)


def test_transform_changes_chunks_and_flush_adds_one():
    async def main():
        stream = TransformStream.js_new(
            {
                "transform": lambda chunk, controller: controller.enqueue(chunk.upper()),
                "flush": lambda controller: controller.enqueue("!"),
            }
        )
        readable = ReadableStream.from_(["a", "b"]).pipeThrough(stream)
        assert [chunk async for chunk in readable] == ["A", "B", "!"]

    run(main)


def test_transform_and_flush_may_be_asynchronous():
    async def main():
        async def transform(chunk, controller):
            await asyncio.sleep(0)
            controller.enqueue(chunk * 2)

        async def flush(controller):
            await asyncio.sleep(0)
            controller.enqueue("!")

        stream = TransformStream.js_new({"transform": transform, "flush": flush})
        readable = ReadableStream.from_("ab").pipeThrough(stream)
        assert [chunk async for chunk in readable] == ["aa", "bb", "!"]

    run(main)


def test_a_write_waits_for_a_reader():
    async def main():
        stream = TransformStream.js_new()
        write = asyncio.ensure_future(stream.writable.getWriter().write(b"x"))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not write.done()
        assert (await stream.readable.getReader().read())["value"] == b"x"
        assert await write is UNDEFINED

    run(main)


def test_ready_says_when_there_is_room():
    async def main():
        stream = TransformStream.js_new()
        writer = stream.writable.getWriter()
        assert (await writer.ready, writer.desiredSize) == (UNDEFINED, 1)
        writer.write(b"x")
        assert writer.desiredSize == 0
        ready = writer.ready
        await stream.readable.getReader().read()
        assert await ready is UNDEFINED

    run(main)


def test_a_transform_that_raises_breaks_both_sides():
    async def main():
        def transform(chunk, controller):
            raise JsException("RangeError", "t")

        stream = TransformStream.js_new({"transform": transform})
        write = stream.writable.getWriter().write("x")
        assert await text_of(stream.readable.getReader().read) == "RangeError: t"
        assert await text_of(lambda: write) == "RangeError: t"

    run(main)


def test_abort_of_the_writer_breaks_the_readable_side():
    async def main():
        stream = TransformStream.js_new()
        await stream.writable.getWriter().abort("z")
        assert await text_of(stream.readable.getReader().read) == "Error: z"

    run(main)


def test_cancel_of_the_readable_side_breaks_the_writer():
    async def main():
        stream = TransformStream.js_new()
        writer = stream.writable.getWriter()
        waiting = writer.write("w")
        await stream.readable.cancel("z")
        assert await text_of(lambda: waiting) == "Error: z"
        assert await text_of(lambda: writer.write("x")) == "Error: z"

    run(main)


def test_terminate_ends_the_readable_side():
    async def main():
        kept = []
        stream = TransformStream.js_new({"start": kept.append})
        kept[0].terminate()
        assert (await stream.readable.getReader().read())["done"] is True
        assert await text_of(lambda: kept[0].enqueue("x")) == (
            "TypeError: The readable side of this TransformStream is no longer readable."
        )
        assert await text_of(lambda: stream.writable.getWriter().write("x")) == (
            "TypeError: The transform stream has been terminated"
        )

    run(main)


def test_a_text_chunk_is_no_body():
    async def main():
        stream = TransformStream.js_new()
        writer = stream.writable.getWriter()
        writer.write("x")
        writer.close()
        return await text_of(Response.js_new(stream.readable).text)

    assert run(main) == "TypeError: This ReadableStream did not return bytes."


def test_a_writable_stream_has_one_writer():
    async def main():
        stream = WritableStream.js_new()
        writer = stream.getWriter()
        locked = "TypeError: This WritableStream is currently locked to a writer."
        for call in (stream.getWriter, stream.close, stream.abort):
            assert await text_of(call) == locked
        writer.releaseLock()
        released = "TypeError: This WritableStream writer has been released."
        for call in (lambda: writer.write("x"), writer.close, lambda: writer.closed):
            assert await text_of(call) == released
        assert await text_of(lambda: writer.desiredSize) == released

    run(main)


def test_a_closed_writer_takes_no_more():
    async def main():
        writer = WritableStream.js_new().getWriter()
        await writer.close()
        assert await writer.closed is UNDEFINED
        assert await text_of(lambda: writer.write("x")) == (
            "TypeError: This ReadableStream is closed."
        )
        assert await text_of(writer.close) == (
            "TypeError: Cannot close a writer that is already being closed"
        )

    run(main)


def test_writes_reach_an_asynchronous_sink_one_by_one():
    async def main():
        seen = []

        async def write(chunk):
            seen.append(f"begin {chunk}")
            await asyncio.sleep(0)
            seen.append(f"end {chunk}")

        writer = WritableStream.js_new({"write": write}).getWriter()
        await asyncio.gather(writer.write("a"), writer.write("b"), writer.close())
        assert seen == ["begin a", "end a", "begin b", "end b"]

    run(main)


# FixedLengthStream: as workerd 1.20260426.1 has it.


def fixed(length, *chunks):
    """What the reader gets, and the error of the last write."""

    async def main():
        stream = FixedLengthStream.js_new(length)
        assert stream.readable.length == length
        writer = stream.writable.getWriter()
        reading = asyncio.ensure_future(text_of(lambda: Response.js_new(stream.readable).text()))
        error = ""
        for chunk in chunks:
            error = await text_of(lambda chunk=chunk: writer.write(chunk))
        if error is UNDEFINED:
            await writer.close()
        return await reading, "" if error is UNDEFINED else error

    return asyncio.run(main())


def test_as_many_bytes_as_were_told_pass():
    assert fixed(3, b"a", b"bc") == ("abc", "")


def test_too_many_bytes_break_both_sides():
    error = "TypeError: Attempt to write too many bytes through a FixedLengthStream."
    assert fixed(2, b"a", b"bc") == (error, error)


def test_too_few_bytes_break_the_readable_side():
    error = "TypeError: FixedLengthStream did not see all expected bytes before close()."
    assert fixed(5, b"abc") == (error, "")


@pytest.mark.parametrize(
    ("chunk", "what"),
    [
        (
            "abc",
            "a string on its writable side. If you wish to write a string, you'll probably want to "
            "explicitly UTF-8-encode it with TextEncoder.",
        ),
        (5, "an object of non-ArrayBuffer/ArrayBufferView type on its writable side."),
    ],
)
def test_what_is_no_bytes_is_refused(chunk, what):
    start = "TypeError: This TransformStream is being used as a byte stream, but received "
    assert fixed(3, chunk)[1] == start + what


@pytest.mark.parametrize(
    ("length", "error"),
    [
        (
            UNDEFINED,
            "Failed to construct 'FixedLengthStream': constructor parameter 1 is not of type "
            "'bigint'.",
        ),
        (
            -1,
            "The value cannot be converted because it is negative and this API expects a positive "
            "bigint.",
        ),
        ("x", "The value cannot be converted because it is not an integer."),
        (2**53, "FixedLengthStream requires an integer expected length less than 2^53."),
    ],
)
def test_a_length_that_is_none_is_refused(length, error):
    with pytest.raises(JsException) as caught:
        FixedLengthStream.js_new(length)
    assert str(caught.value) == f"TypeError: {error}"


@pytest.mark.parametrize(("length", "expected"), [("3", 3), (1.5, 1), (None, 0), (BigInt(4), 4)])
def test_a_length_may_be_anything_that_is_a_number(length, expected):
    assert FixedLengthStream.js_new(length).readable.length == expected
