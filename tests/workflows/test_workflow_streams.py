"""A step that returns a ReadableStream (O5)."""

from __future__ import annotations

from typing import Any

import pytest
from js import ReadableStream, Uint8Array
from workflow_bench import PROFILES, worker

from emulator import Emulator

pytestmark = pytest.mark.asyncio

KIB = 1024


def stream_of(*chunks: int) -> Any:
    """A stream of chunks of so many bytes."""
    left = list(chunks)

    def pull(controller: Any) -> None:
        if left:
            controller.enqueue(Uint8Array.new(left.pop(0)))
        else:
            controller.close()

    from js import Object
    from pyodide.ffi import create_proxy, to_js

    source = to_js({"pull": create_proxy(pull)}, dict_converter=Object.fromEntries)
    return ReadableStream.new(source)


async def outcome(profile: Any, *chunks: int) -> tuple[Any, int]:
    """The instance, and how often the body ran; the output is what each of two readers got."""
    calls: list[int] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        raw = step._js_step

        async def body(ctx: Any) -> Any:
            calls.append(1)
            return stream_of(*chunks)

        from js import Response
        from pyodide.ffi import create_proxy

        stream = await raw.do("s", create_proxy(body))
        read = await Response.new(stream).arrayBuffer()
        await step.sleep("n", "1 second")
        return read.byteLength

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance("500 ms")
        await instance.evict()
        await emulator.settle()
        return instance, len(calls)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_stream_is_stored_and_read_afresh(profile: Any) -> None:
    instance, calls = await outcome(profile, 3, 4)
    assert (instance.status, instance.output, calls) == ("complete", 7, 1)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_stream_may_be_larger_than_a_value(profile: Any) -> None:
    instance, calls = await outcome(profile, *([64 * KIB] * 32))
    assert (instance.status, instance.output, calls) == ("complete", 2048 * KIB, 1)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_chunk_may_not_be_larger_than_sixteen_megabytes(profile: Any) -> None:
    instance, calls = await outcome(profile, 16 * KIB * KIB + 1)
    assert (instance.status, calls) == ("errored", 1)
    assert instance.error.name == "WorkflowFatalError"
    assert instance.error.message == (
        'The execution of the Workflow instance was terminated, as the step "s" returned an '
        "invalid ReadableStream output. Step returned a ReadableStream chunk larger than the "
        "maximum allowed size of 16777216 bytes. Return smaller chunks from step.do()."
    )
