"""Globals that only JavaScript code seems to need: what each gives is workerd's (1.20261117.1)."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import js
import pytest
from pyodide.ffi import create_proxy, to_js
from workers import Response, WorkerEntrypoint

from emulator import Emulator
from emulator.values import JsException

pytestmark = pytest.mark.asyncio
HELLO = b"hello hello hello"


def o(**members: Any) -> Any:
    return to_js(members, dict_converter=js.Object.fromEntries)


def told(call: Any) -> Any:
    try:
        return call()
    except JsException as error:
        return f"{error.name}: {error.message}"


async def inside(work: Any, **config: Any) -> Any:
    """Run a coroutine function in a Worker; returns what it does as JSON would have it."""
    found: list[Any] = []

    async def fetch(self: Any, request: Any) -> Any:
        found.append(await work())
        return Response("")

    cls = type("Default", (WorkerEntrypoint,), {"fetch": fetch})
    async with Emulator({"main": cls, **config}) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 200, response.text
        return found[0]


async def through(stream: Any, *chunks: Any) -> Any:
    """What comes out of a stream; its error instead, as text."""

    async def write() -> None:
        writer = stream.writable.getWriter()
        for chunk in chunks:
            await writer.write(chunk)
        await writer.close()

    writing = asyncio.ensure_future(write())
    reader, out = stream.readable.getReader(), []
    try:
        while not (read := await reader.read()).done:
            out.append(read.value if isinstance(read.value, str) else read.value.to_bytes())
    except JsException as error:
        return f"{error.name}: {error.message}"
    finally:
        await asyncio.wait([writing])
        writing.exception()
    return out


async def test_dom_exception() -> None:
    async def work() -> Any:
        error = js.DOMException.new("m", "AbortError")
        plain = js.DOMException.new()
        return [
            (error.name, error.message, error.code, str(error)),
            (plain.name, plain.message, plain.code),
            js.DOMException.new("m", "Whatever").code,
            (js.DOMException.ABORT_ERR, js.DOMException.DATA_CLONE_ERR),
            js.DOMException.URL_MISMATCH_ERR,
            told(lambda: js.DOMException("x")),
            list(js.AggregateError.new(to_js([1, 2]), "m").errors),
        ]

    assert await inside(work) == [
        ("AbortError", "m", 20, "AbortError: m"),
        ("Error", "", 0),
        0,
        (20, 25),
        21,
        "TypeError: Failed to construct 'DOMException': Please use the 'new' operator, this object "
        "constructor cannot be called as a function.",
        [1, 2],
    ]


async def test_navigator_and_performance() -> None:
    async def work() -> Any:
        before = js.performance.now()
        await asyncio.sleep(1.5)
        return [
            js.navigator.userAgent,
            (js.navigator.language, list(js.navigator.languages)),
            js.performance.timeOrigin,
            js.performance.now() - before,
            js.performance.now() == js.Date.now(),
            js.origin,
            js.Cloudflare.compatibilityFlags.web_socket_auto_reply_to_close,
        ]

    assert await inside(work) == [
        *("Cloudflare-Workers", ("en", ["en"]), 0, 1500, True, "null", True),
    ]


async def test_what_they_lack_says_so() -> None:
    with pytest.raises(AttributeError, match=r"does not provide `js.performance.mark` yet"):
        _ = js.performance.mark
    with pytest.raises(AttributeError, match=r"does not provide `js.navigator.sendBeacon` yet"):
        _ = js.navigator.sendBeacon


async def test_functions_of_old() -> None:
    assert [js.isFinite(value) for value in (1, "1", "x", float("inf"), None)] == [
        *(True, True, False, False, False),
    ]
    assert js.isFinite() is False
    assert js.escape("a b é ✓ +/@*_-.") == "a%20b%20%E9%20%u2713%20+/@*_-."
    assert js.unescape("%u2713%E9%20x%zz") == "✓é x%zz"
    assert (js.escape(), js.unescape()) == ("undefined", "undefined")
    refused = "EvalError: Code generation from strings disallowed for this context"
    assert told(lambda: js.Function.new("return 1")) == refused
    assert told(lambda: js.eval("1")) == refused


async def test_scheduler_waits_in_virtual_time() -> None:
    async def work() -> Any:
        before = js.Date.now()
        nothing = await js.scheduler.wait(5000)
        found = [nothing, js.Date.now() - before, told(js.scheduler.wait)]
        controller = js.AbortController.new()
        js.setTimeout(create_proxy(controller.abort), 100)
        before = js.Date.now()
        for signal in (controller.signal, js.AbortSignal.abort()):
            with pytest.raises(JsException, match="AbortError"):
                await js.scheduler.wait(5000, o(signal=signal))
        return [*found, js.Date.now() - before]

    missing = "TypeError: Failed to execute 'wait' on 'Scheduler': parameter 1 is not of type"
    assert await inside(work) == [None, 5000, f"{missing} 'number'.", 100]


async def test_report_error_is_logged_and_a_finding() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        js.reportError(js.Error.new("boom"))
        return Response(told(js.reportError))

    cls = type("Default", (WorkerEntrypoint,), {"fetch": fetch})
    async with Emulator({"main": cls}) as emulator:
        assert (await emulator.fetch("/")).text.endswith("parameter 1 is not of type 'Value'.")
        assert [finding.code for finding in emulator.findings] == ["handler_exception"]
        assert emulator.logs[0].text == "Uncaught Error: boom"


async def test_reflect() -> None:
    r, thing = js.Reflect, o(a=1, b=2)
    assert list(r.ownKeys(thing)) == ["a", "b"]
    assert list(r.ownKeys(to_js([1, 2]))) == ["0", "1", "length"]
    assert (r.has(thing, "a"), r.has(thing, "z")) == (True, False)
    assert (r.get(thing, "a"), r.get(thing, "z")) == (1, None)
    assert (r.set(thing, "c", 3), thing.c) == (True, 3)
    assert r.deleteProperty(thing, "c") is True
    assert not hasattr(thing, "c")
    assert r.construct(js.Map, to_js([[["a", 1]]])).get("a") == 1
    assert r.apply(js.Math.max, None, to_js([1, 3, 2])) == 3
    assert told(lambda: r.has(1, "a")) == "TypeError: Reflect.has called on non-object"
    assert told(lambda: r.construct(1, to_js([]))) == "TypeError: 1 is not a constructor"


async def test_weak_collections_go_by_identity() -> None:
    key, other = o(), o()
    weak = js.WeakMap.new(to_js([[key, 5]]))
    assert (weak.get(key), weak.has(key), weak.get(other)) == (5, True, None)
    assert (weak.delete(key), weak.has(key)) == (True, False)
    assert told(lambda: weak.set("x", 1)) == "TypeError: Invalid value used as weak map key"
    members = js.WeakSet.new()
    members.add(key)
    assert (members.has(key), members.has(other)) == (True, False)
    assert told(lambda: members.add(1)) == "TypeError: Invalid value used in weak set"
    assert js.WeakRef.new(key).deref() == key
    assert told(lambda: js.WeakRef.new("x")) == "TypeError: WeakRef: invalid target"
    js.FinalizationRegistry.new(create_proxy(print)).register(key, 1)


async def test_queuing_strategies() -> None:
    assert js.ByteLengthQueuingStrategy.new(o(highWaterMark=5)).highWaterMark == 5
    assert js.CountQueuingStrategy.new(o(highWaterMark=5)).size() == 1
    strategy = js.ByteLengthQueuingStrategy.new(o(highWaterMark=5))
    assert strategy.size(js.Uint8Array.new(3)) == 3
    assert "is not of type 'QueuingStrategyInit'" in told(js.CountQueuingStrategy.new)


@pytest.mark.parametrize("form", ["gzip", "deflate", "deflate-raw"])
async def test_compression(form: str) -> None:
    async def work() -> Any:
        packed = await through(js.CompressionStream.new(form), to_js(HELLO))
        data = b"".join(packed)
        return data, await through(js.DecompressionStream.new(form), to_js(data))

    data, text = await inside(work)
    bits = {"gzip": 31, "deflate": 15, "deflate-raw": -15}[form]
    assert zlib.decompress(data, bits) == HELLO
    assert b"".join(text) == HELLO
    if form != "gzip":
        assert data.hex().removeprefix("789c").startswith("cb48cdc9c957c8409000")


async def test_compression_of_a_body() -> None:
    async def work() -> Any:
        stream = js.Response.new("hello").body.pipeThrough(js.CompressionStream.new("gzip"))
        again = stream.pipeThrough(js.DecompressionStream.new("gzip"))
        return await js.Response.new(again).text()

    assert await inside(work) == "hello"


async def test_compression_refuses_as_workerd_does() -> None:
    async def work() -> Any:
        packed = zlib.compress(HELLO, wbits=31)

        async def unpack(*chunks: bytes) -> Any:
            return await through(js.DecompressionStream.new("gzip"), *map(to_js, chunks))

        return [
            told(lambda: js.CompressionStream.new("br")),
            await unpack(b"garbage"),
            (await unpack(packed[:-4])),
            await unpack(packed, b"x"),
            await through(js.CompressionStream.new("gzip"), 5),
        ]

    assert await inside(work) == [
        "TypeError: The compression format must be either 'deflate', 'deflate-raw' or 'gzip'.",
        "TypeError: Decompression failed.",
        "TypeError: Called close() on a decompression stream with incomplete data",
        "TypeError: Trailing bytes after end of compressed data",
        "TypeError: This TransformStream is being used as a byte stream, but received a value that "
        "is not a BufferSource.",
    ]


async def test_text_decoder_stream() -> None:
    async def work() -> Any:
        def decode(*chunks: Any, **options: Any) -> Any:
            return through(js.TextDecoderStream.new("utf-8", o(**options)), *map(to_js, chunks))

        stream = js.TextDecoderStream.new()
        return [
            "".join(await decode(b"\xe2\x9c", b"\x93a")),
            await decode(b"\xff", fatal=True),
            await decode(b"\xe2"),
            await decode(b"\xef\xbb\xbfa"),
            await decode(b"\xef\xbb\xbfa", ignoreBOM=True),
            (stream.encoding, stream.fatal, stream.ignoreBOM),
            told(lambda: js.TextDecoderStream.new("nope")),
            (await through(js.TextDecoderStream.new(), "str"))[:45],
        ]

    assert await inside(work) == [
        *("✓a", "TypeError: Failed to decode input.", ["�"], ["a"], ["\ufeffa"]),
        ("utf-8", False, False),
        'RangeError: "nope" is not a valid encoding.',
        "TypeError: This TransformStream is being used",
    ]


async def test_text_encoder_stream() -> None:
    async def work() -> Any:
        return [
            await through(js.TextEncoderStream.new(), "a", "\ud83d", "\ude00", "é", 5),
            await through(js.TextEncoderStream.new(), "\ud83d"),
            js.TextEncoderStream.new().encoding,
        ]

    assert await inside(work) == [
        [b"a", "😀".encode(), "é".encode(), b"5"],
        ["�".encode()],
        "utf-8",
    ]


async def test_fixed_length_stream() -> None:
    async def work() -> Any:
        found = [
            await through(js.FixedLengthStream.new(5), to_js(b"hello")),
            await through(js.FixedLengthStream.new(5), to_js(b"hi")),
            await through(js.FixedLengthStream.new(2), to_js(b"hello")),
            told(js.FixedLengthStream.new),
            told(lambda: js.FixedLengthStream.new(-1)),
        ]
        return [item if isinstance(item, list) else item.split(": ", 1)[1] for item in found]

    assert await inside(work) == [
        [b"hello"],
        "FixedLengthStream did not see all expected bytes before close().",
        "Attempt to write too many bytes through a FixedLengthStream.",
        "Failed to construct 'FixedLengthStream': constructor parameter 1 is not of type 'bigint'.",
        "The value cannot be converted because it is negative and this API expects a positive "
        "bigint.",
    ]


async def test_a_response_has_the_length_that_was_announced() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        stream = js.FixedLengthStream.new(5)
        writer = stream.writable.getWriter()

        async def write() -> None:
            await writer.write(to_js(b"hello"))
            await writer.close()

        self.ctx.waitUntil(write())
        return js.Response.new(stream.readable)

    cls = type("Default", (WorkerEntrypoint,), {"fetch": fetch})
    async with Emulator({"main": cls}) as emulator:
        response = await emulator.fetch("/")
        assert (response.text, response.headers["content-length"]) == ("hello", "5")
        assert "transfer-encoding" not in response.headers


async def test_event_targets() -> None:
    async def work() -> Any:
        seen: list[Any] = []
        target = js.EventTarget.new()
        keep = create_proxy(lambda event: seen.append((event.type, event.eventPhase)))
        stop = create_proxy(lambda event: event.preventDefault())
        once = create_proxy(lambda event: seen.append("once"))
        target.addEventListener("x", keep)
        target.addEventListener("x", keep)
        target.addEventListener("x", once, o(once=True))
        controller = js.AbortController.new()
        target.addEventListener("x", stop, o(signal=controller.signal))
        found = [
            target.dispatchEvent(js.Event.new("x", o(cancelable=True))),
            target.dispatchEvent(js.Event.new("x")),
        ]
        controller.abort()
        target.removeEventListener("x", keep)
        found.append(target.dispatchEvent(js.CustomEvent.new("x", o(detail=1, cancelable=True))))
        event = js.CustomEvent.new("y", o(detail=o(a=1)))
        return [
            *(found, seen, event.detail.a, event.isTrusted, event.timeStamp),
            told(lambda: target.addEventListener("x", 5)),
            told(lambda: target.dispatchEvent(o())),
            told(js.Event.new),
            js.ErrorEvent.new("e", o(message="m", error=1)).message,
            js.CloseEvent.new("close", o(code=1, reason="r")).reason,
            js.MessageEvent.new("m", o(data=5)).data,
        ]

    failed = "TypeError: Failed to execute"
    assert await inside(work) == [
        [False, True, True],
        [("x", 2), "once", ("x", 2)],
        *(1, False, 0),
        f"{failed} 'addEventListener' on 'EventTarget': parameter 2 is not of type 'function or "
        "HandlerObject'.",
        f"{failed} 'dispatchEvent' on 'EventTarget': parameter 1 is not of type 'Event'.",
        "TypeError: Failed to construct 'Event': constructor parameter 1 is not of type 'string'.",
        *("m", "r", 5),
    ]


@pytest.mark.parametrize(("date", "seen"), [("2026-09-15", [1, 2]), ("2026-09-14", [1])])
async def test_a_listener_that_raises_by_date(date: str, seen: list[int]) -> None:
    """`spec_compliant_dispatch_exceptions`."""
    called: list[int] = []

    async def fetch(self: Any, request: Any) -> Any:
        target = js.EventTarget.new()

        def fail(event: Any) -> None:
            called.append(1)
            raise ValueError("boom")

        target.addEventListener("x", create_proxy(fail))
        target.addEventListener("x", create_proxy(lambda event: called.append(2)))
        try:
            return Response(str(target.dispatchEvent(js.Event.new("x"))))
        except ValueError as error:
            return Response(str(error))

    cls = type("Default", (WorkerEntrypoint,), {"fetch": fetch})
    async with Emulator({"main": cls, "compatibility_date": date}) as emulator:
        assert (await emulator.fetch("/")).text == ("True" if seen == [1, 2] else "boom")
        assert called == seen
        assert len(list(emulator.findings)) == (1 if seen == [1, 2] else 0)
