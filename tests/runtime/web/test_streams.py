"""`js.ReadableStream`: texts and results are workerd's (1.20261117)."""

import asyncio

import pytest

from emulator.runtime.web.response import Response
from emulator.runtime.web.sources import IteratorSource
from emulator.runtime.web.streams import ReadableStream, Reader
from emulator.runtime.web.writable import WritableStream
from emulator.values import UNDEFINED, JsException

LOCKED = "TypeError: This ReadableStream is currently locked to a reader."
END = {"value": UNDEFINED, "done": True}


def item(value):
    return {"value": value, "done": False}


def stream_of(*chunks, **callbacks):
    def start(controller):
        for chunk in chunks:
            controller.enqueue(chunk)
        controller.close()

    return ReadableStream.js_new({"start": start, **callbacks})


def controller_of(options=None):
    kept = []
    stream = ReadableStream.js_new({"start": kept.append, **(options or {})})
    return stream, kept[0]


async def text_of(awaitable_or_call):
    try:
        result = awaitable_or_call()
        return await result if hasattr(result, "__await__") else result
    except JsException as error:
        return str(error)


def run(test):
    return asyncio.run(test())


def test_chunks_come_in_order_and_then_the_end():
    async def main():
        stream = stream_of("a", b"b")
        reader = stream.getReader()
        assert stream.locked
        assert [await reader.read() for _ in range(3)] == [item("a"), item(b"b"), END]
        assert await reader.closed is UNDEFINED

    run(main)


def test_a_stream_has_one_reader():
    async def main():
        stream = ReadableStream()
        reader = stream.getReader()
        for action in (stream.getReader, stream.cancel, lambda: Reader.js_new(stream)):
            assert await text_of(action) == LOCKED
        # The comma is the runtime's.
        assert await text_of(stream.tee) == f"{LOCKED[:-1]},"
        reader.releaseLock()
        assert not stream.locked
        stream.getReader()

    run(main)


def test_a_released_reader_reads_no_more():
    async def main():
        stream = ReadableStream()
        reader = stream.getReader()
        pending = reader.read()
        reader.releaseLock()
        error = "TypeError: This ReadableStream reader has been released."
        assert await text_of(lambda: pending) == error
        for action in (reader.read, reader.cancel, lambda: reader.closed):
            assert await text_of(action) == error

    run(main)


def test_a_waiting_read_gets_what_comes_later():
    async def main():
        stream, controller = controller_of()
        reading = [stream_read := stream.getReader(), stream_read.read(), stream_read.read()][1:]
        controller.enqueue("a")
        controller.close()
        assert await asyncio.gather(*reading) == [item("a"), END]

    run(main)


def test_pull_is_called_on_demand_until_the_stream_is_closed():
    async def main():
        count = 0

        def pull(controller):
            nonlocal count
            count += 1
            controller.close() if count > 3 else controller.enqueue(str(count).encode())

        assert await Response.js_new(ReadableStream.js_new({"pull": pull})).text() == "123"
        assert count == 4

    run(main)


def test_pull_may_be_asynchronous():
    async def main():
        count = 0

        async def pull(controller):
            nonlocal count
            await asyncio.sleep(0)
            count += 1
            controller.close() if count > 2 else controller.enqueue(str(count).encode())

        assert await Response.js_new(ReadableStream.js_new({"pull": pull})).text() == "12"

    run(main)


def test_start_may_be_asynchronous_and_holds_pull_back():
    async def main():
        order = []

        async def start(controller):
            await asyncio.sleep(0)
            order.append("started")

        def pull(controller):
            order.append("pulled")
            controller.close()

        stream = ReadableStream.js_new({"start": start, "pull": pull})
        assert await stream.getReader().read() == END
        assert order == ["started", "pulled"]

    run(main)


@pytest.mark.parametrize("place", ["start", "pull"])
def test_a_source_that_raises_breaks_the_stream(place):
    """A Python exception in a callback comes back as the same exception (python-api.md §3)."""

    async def main():
        def fail(controller):
            raise ValueError("p")

        stream = ReadableStream.js_new({place: fail})
        with pytest.raises(ValueError, match="p"):
            await Response.js_new(stream).text()

    run(main)


def test_an_asynchronous_pull_that_raises_breaks_the_stream():
    async def main():
        async def pull(controller):
            raise ValueError("p")

        with pytest.raises(ValueError, match="p"):
            await ReadableStream.js_new({"pull": pull}).getReader().read()

    run(main)


def test_error_breaks_reads_and_the_closed_promise():
    async def main():
        stream, controller = controller_of()
        reader = stream.getReader()
        closed, reading = reader.closed, reader.read()
        controller.error(JsException("Error", "bad"))
        for awaitable in (closed, reading, reader.read(), reader.closed):
            assert await text_of(lambda found=awaitable: found) == "Error: bad"
        assert controller.desiredSize is None

    run(main)


def test_a_text_as_reason_becomes_an_error():
    async def main():
        stream, controller = controller_of()
        controller.error("strerr")
        assert await text_of(stream.getReader().read) == "Error: strerr"

    run(main)


def test_a_controller_refuses_more_after_the_end():
    async def main():
        for end in ("close", "error"):
            _, controller = controller_of()
            getattr(controller, end)()
            assert await text_of(lambda c=controller: c.enqueue("x")) == (
                "TypeError: Unable to enqueue"
            )
            assert await text_of(controller.close) == "TypeError: This ReadableStream is closed."
        _, controller = controller_of()
        controller.enqueue("a")
        controller.close()
        assert await text_of(lambda: controller.enqueue("b")) == "TypeError: Unable to enqueue"

    run(main)


def test_desired_size_counts_down():
    _, controller = controller_of()
    assert controller.desiredSize == 1
    controller.enqueue("a")
    assert controller.desiredSize == 0
    _, controller = controller_of()
    controller.close()
    assert controller.desiredSize == 0


def test_cancel_tells_the_source_and_ends_the_stream():
    async def main():
        reasons = []
        stream = ReadableStream.js_new({"cancel": reasons.append})
        assert await stream.cancel("why") is UNDEFINED
        assert await stream.getReader().read() == END
        assert reasons == ["why"]

    run(main)


def test_a_byte_stream_takes_bytes_only():
    async def main():
        stream, controller = controller_of({"type": "bytes"})
        controller.enqueue(b"x")
        assert await stream.getReader().read() == item(b"x")
        assert await text_of(lambda: controller.enqueue("x")) == (
            "TypeError: Failed to execute 'enqueue' on 'ReadableByteStreamController': "
            "parameter 1 is not of type 'BufferSource'."
        )
        assert await text_of(lambda: ReadableStream.js_new({"type": "zz"})) == (
            'TypeError: "zz" is not a valid type of ReadableStream.'
        )

    run(main)


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        ("zz", "TypeError: mode must be undefined or 'byob' in call to getReader()."),
        ("byob", "TypeError: This ReadableStream does not support BYOB reads."),
    ],
)
def test_other_reader_modes_are_refused(mode, error):
    assert run(lambda: text_of(lambda: ReadableStream().getReader({"mode": mode}))) == error


def test_tee_gives_two_streams_of_the_same_chunks():
    async def main():
        stream = stream_of("a", "b")
        left, right = stream.tee()
        assert stream.locked
        assert [chunk async for chunk in left] == ["a", "b"]
        assert [chunk async for chunk in right] == ["a", "b"]

    run(main)


def test_branches_of_tee_can_be_read_at_once_and_fail_together():
    async def main():
        stream, controller = controller_of()
        left, right = (branch.getReader() for branch in stream.tee())
        reads = asyncio.gather(left.read(), right.read())
        await asyncio.sleep(0)
        controller.enqueue("a")
        assert await reads == [item("a"), item("a")]
        controller.error(JsException("Error", "bad"))
        assert await text_of(left.read) == await text_of(right.read) == "Error: bad"

    run(main)


def test_the_stream_is_cancelled_when_both_branches_are():
    async def main():
        reasons = []
        left, right = ReadableStream.js_new({"cancel": reasons.append}).tee()
        await left.cancel("a")
        assert reasons == []
        await right.cancel("b")
        assert reasons == ["b"]

    run(main)


def test_leaving_the_iteration_early_cancels_and_unlocks():
    async def main():
        reasons = []
        stream = ReadableStream.js_new(
            {"pull": lambda controller: controller.enqueue("a"), "cancel": reasons.append}
        )
        chunks = stream.values()
        assert await anext(chunks) == "a"
        await chunks.aclose()
        assert (len(reasons), stream.locked) == (1, False)

    run(main)


def test_from_takes_anything_iterable():
    async def main():
        assert [chunk async for chunk in ReadableStream.from_(["a", "b"])] == ["a", "b"]
        assert [chunk async for chunk in ReadableStream.from_("ab")] == ["a", "b"]
        assert await text_of(lambda: ReadableStream.from_(5)) == (
            "TypeError: Failed to execute 'from' on 'ReadableStream': "
            "parameter 1 is not of type 'AsyncGenerator'."
        )

    run(main)


def test_pipe_to_writes_everything_and_closes():
    async def main():
        seen = []
        sink = {"write": seen.append, "close": lambda: seen.append("closed")}
        assert await stream_of("a", "b").pipeTo(WritableStream.js_new(sink)) is UNDEFINED
        assert seen == ["a", "b", "closed"]

    run(main)


def test_pipe_to_passes_errors_on_to_both_sides():
    async def main():
        stream, controller = controller_of()
        controller.error(JsException("RangeError", "e"))
        aborted = []
        target = WritableStream.js_new({"abort": aborted.append})
        assert await text_of(lambda: stream.pipeTo(target)) == "RangeError: e"
        assert [str(error) for error in aborted] == ["RangeError: e"]

        def refuse(chunk):
            raise JsException("Error", "full")

        cancelled = []
        stream = stream_of("a", "b", cancel=cancelled.append)
        target = WritableStream.js_new({"write": refuse})
        assert await text_of(lambda: stream.pipeTo(target)) == "Error: full"

    run(main)


def test_pipe_to_needs_both_ends_free():
    async def main():
        locked = ReadableStream()
        locked.getReader()
        target = WritableStream.js_new()
        assert await text_of(lambda: locked.pipeTo(target)) == LOCKED
        target.getWriter()
        assert await text_of(lambda: ReadableStream().pipeTo(target)) == (
            "TypeError: This WritableStream is currently locked to a writer"
        )

    run(main)


def test_a_python_iterator_is_closed_when_its_stream_is_cancelled():
    async def main():
        closed = []

        async def chunks():
            try:
                yield b"a"
                yield b"b"
            finally:
                closed.append(True)

        stream = ReadableStream(IteratorSource(chunks()))
        reader = stream.getReader()
        assert await reader.read() == item(b"a")
        await reader.cancel()
        assert closed == [True]

    run(main)


def test_a_stream_of_bytes_knows_its_length_and_so_do_its_branches():
    async def main():
        stream = ReadableStream.of_bytes(b"abc")
        assert stream.length == 3
        assert [branch.length for branch in stream.tee()] == [3, 3]
        assert ReadableStream.from_(["abc"]).length is None

    asyncio.run(main())
