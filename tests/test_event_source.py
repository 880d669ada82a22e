"""`js.EventSource`: connections, what it dispatches, how it connects again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import js
import pytest
from js import EventSource, ReadableStream
from pyodide.ffi import create_proxy, to_js
from workers import Response, WorkerEntrypoint

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.asyncio
URL = "https://events.example/stream?room=1"
TYPE = {"content-type": "text/event-stream; charset=utf-8"}


def serving(handle: Callable[[Any], Any], **config: Any) -> dict[str, Any]:
    """A Worker whose `fetch` awaits `handle(env)` and answers its text."""

    async def fetch(self: Any, request: Any) -> Any:
        return Response(str(await handle(self.env)))

    return {"main": type("Default", (WorkerEntrypoint,), {"fetch": fetch}), **config}


class Seen:
    """What a source dispatches."""

    def __init__(self, source: Any, *kinds: str) -> None:
        self.events: list[str] = []
        self.source = source
        self._more = asyncio.Event()
        for kind in ("open", "message", "error", *kinds):
            source.addEventListener(kind, create_proxy(self._note))

    def _note(self, event: Any) -> None:
        told = {"message": "data", "error": "message"}.get(event.type, "")
        value = getattr(event, told or "data", "")
        self.events.append(f"{self.source.readyState} {event.type} {value}".rstrip())
        self._more.set()

    async def until(self, count: int) -> list[str]:
        while len(self.events) < count:
            self._more.clear()
            await self._more.wait()
        return self.events[:count]


def stream(*chunks: bytes) -> Any:
    """A stream whose chunks come a second apart."""

    async def pull(controller: Any) -> None:
        await asyncio.sleep(1)
        if left:
            controller.enqueue(to_js(left.pop(0)))
        else:
            controller.close()

    left = list(chunks)
    return ReadableStream.new(to_js({"pull": pull}, dict_converter=js.Object.fromEntries))


async def test_messages_arrive_and_the_request_says_what_it_wants(respx_mock: Any) -> None:
    body = (
        "retry: 5\n\nid: 1\ndata: first\n\nevent: tick\ndata: 12:00\n\ndata: two\ndata: lines\n\n"
    )
    route = respx_mock.get(URL).respond(text=body, headers=TYPE)

    async def handle(env: Any) -> list[str]:
        source = EventSource.new(URL)
        seen = Seen(source, "tick")
        assert (source.url, source.readyState, source.withCredentials) == (URL, 0, False)
        events = await seen.until(5)
        source.close()
        return events

    async with Emulator(serving(handle)) as emulator:
        found = (await emulator.fetch("/")).text
        assert found == str(
            [
                "1 open",
                "1 message first",
                "1 tick 12:00",
                "1 message two\nlines",
                "0 error Uncaught Error: The server disconnected.",
            ]
        )
        headers = route.calls[0].request.headers
        assert (headers["accept"], headers["cache-control"]) == ("text/event-stream", "no-cache")
        assert "last-event-id" not in headers


@pytest.mark.parametrize(
    ("retry", "seconds"),
    [("", 2), ("retry: 5\n\n", 1), ("retry: 3500\n\n", 3.5), ("retry: 60000\n\n", 10)],
)
async def test_it_connects_again_after_a_while_with_the_last_id(
    respx_mock: Any, retry: str, seconds: float
) -> None:
    times: list[float] = []

    async def handle(env: Any) -> list[str]:
        source = EventSource.new(URL)
        seen = Seen(source)
        events = await seen.until(5)
        source.close()
        return events

    async with Emulator(serving(handle)) as emulator:
        start = emulator.now

        def answer(request: httpx.Request) -> httpx.Response:
            times.append((emulator.now - start).total_seconds())
            last = request.headers.get("last-event-id", "none")
            return httpx.Response(200, text=f"{retry}id: 7\ndata: {last}\n\n", headers=TYPE)

        respx_mock.get(URL).mock(side_effect=answer)
        found = (await emulator.fetch("/")).text
        assert found == str(
            [
                *("1 open", "1 message none", "0 error Uncaught Error: The server disconnected."),
                *("1 open", "1 message 7"),
            ]
        )
        assert times == [0, seconds]
        assert {log.text for log in emulator.logs} == {"Uncaught Error: The server disconnected."}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(503), "AbortError: The response status code was 503."),
        (httpx.Response(200), "AbortError: No content type header was present in the response."),
        (
            httpx.Response(200, text="x", headers={"content-type": "text/plain"}),
            "AbortError: The content type 'text/plain' is invalid.",
        ),
        (httpx.ConnectError("no"), "Error: Network connection lost."),
    ],
)
async def test_what_is_no_stream_of_events_closes_it(
    respx_mock: Any, answer: Any, error: str
) -> None:
    route = respx_mock.get(URL).mock(side_effect=[answer, answer])

    async def handle(env: Any) -> list[str]:
        seen = Seen(EventSource.new(URL))
        await seen.until(1)
        await asyncio.sleep(60)
        return seen.events

    async with Emulator(serving(handle)) as emulator:
        assert (await emulator.fetch("/")).text == str([f"2 error Uncaught {error}"])
        assert route.call_count == 1


async def test_a_response_without_a_body_is_tried_again_once(respx_mock: Any) -> None:
    route = respx_mock.get(URL).respond(204, headers=TYPE)

    async def handle(env: Any) -> list[str]:
        seen = Seen(EventSource.new(URL))
        await asyncio.sleep(60)
        return seen.events

    async with Emulator(serving(handle)) as emulator:
        assert (await emulator.fetch("/")).text == str(
            [
                "0 error Uncaught Error: The server provided no content. Will try reconnecting.",
                "2 error Uncaught Error: The server provided no content.",
            ]
        )
        assert route.call_count == 2


async def test_a_stream_is_read_as_it_comes_and_once() -> None:
    async def handle(env: Any) -> list[Any]:
        source = EventSource.from_(stream(b"data: a\n", b"\ndata: b\n\n"))
        assert (source.url, source.readyState) == ("", 1)
        seen = Seen(source)
        began = js.Date.now()
        times = []
        for count in (1, 2, 3):
            await seen.until(count)
            times.append(js.Date.now() - began)
        return [seen.events, times, source.readyState]

    async with Emulator(serving(handle)) as emulator:
        assert (await emulator.fetch("/")).text == str(
            [
                ["1 message a", "1 message b", "2 error Uncaught Error: The server disconnected."],
                [2000, 2000, 3000],
                2,
            ]
        )


async def test_handlers_of_properties_and_the_fields_of_an_event() -> None:
    async def handle(env: Any) -> list[Any]:
        found: list[Any] = []
        source = EventSource.from_(stream(b"id: 4\ndata: a\n\nevent: own\ndata: b\n\n"))
        source.onmessage = create_proxy(
            lambda event: found.append([event.type, event.data, event.lastEventId, event.origin])
        )
        source.onown = create_proxy(lambda event: found.append(event.data))
        source.onerror = create_proxy(lambda event: found.append(event.error.message))
        await asyncio.sleep(5)
        return found

    async with Emulator(serving(handle)) as emulator:
        assert (await emulator.fetch("/")).text == str(
            [["message", "a", "4", ""], "b", "The server disconnected."]
        )


@pytest.mark.parametrize("at", ["listener", "outside", "wait"])
async def test_closed_it_dispatches_nothing_and_lets_go(respx_mock: Any, at: str) -> None:
    route = respx_mock.get(URL).respond(text="data: a\n\ndata: b\n\n", headers=TYPE)
    cancelled: list[Any] = []

    async def handle(env: Any) -> list[str]:
        if at == "outside":
            left = ReadableStream.new(
                to_js({"cancel": cancelled.append}, dict_converter=js.Object.fromEntries)
            )
            source = EventSource.from_(left)
        else:
            source = EventSource.new(URL)
        seen = Seen(source)
        if at == "listener":
            source.addEventListener("message", create_proxy(lambda event: source.close()))
        await asyncio.sleep(1)
        source.close()
        source.close()
        await asyncio.sleep(60)
        assert source.readyState == EventSource.CLOSED
        return seen.events

    async with Emulator(serving(handle)) as emulator:
        expected = {
            "listener": ["1 open", "1 message a"],
            "outside": [],
            "wait": [
                *("1 open", "1 message a", "1 message b"),
                "0 error Uncaught Error: The server disconnected.",
            ],
        }
        assert (await emulator.fetch("/")).text == str(expected[at])
        assert route.call_count == (0 if at == "outside" else 1)
        assert len(cancelled) == (1 if at == "outside" else 0)


@pytest.mark.parametrize(
    ("date", "events"),
    [
        ("2026-09-14", ["2 error Uncaught no"]),
        ("2026-09-15", ["1 message b", "2 error Uncaught Error: The server disconnected."]),
    ],
)
async def test_a_listener_that_raises_closes_it_by_date(date: str, events: list[str]) -> None:
    """`spec_compliant_dispatch_exceptions`: since then it is reported."""

    async def handle(env: Any) -> list[str]:
        def listener(event: Any) -> None:
            if event.data == "a":
                raise ValueError("no")

        source = EventSource.from_(stream(b"data: a\n\ndata: b\n\n"))
        source.onmessage = create_proxy(listener)
        seen = Seen(source)
        await asyncio.sleep(5)
        return [event for event in seen.events if event != "1 message a"]

    async with Emulator(serving(handle, compatibility_date=date)) as emulator:
        emulator.findings.expect("handler_exception")
        assert (await emulator.fetch("/")).text == str(events)


async def test_a_binding_as_its_fetcher() -> None:
    asked: list[str] = []

    async def handle(env: Any) -> list[str]:
        source = EventSource.new("https://any.example/x", fetcher=env.OTHER)
        events = await Seen(source).until(2)
        source.close()
        return events

    async def serve(self: Any, request: Any) -> Any:
        asked.append(f"{request.url} {request.headers['accept']}")
        return Response("data: from the binding\n\n", headers=TYPE)

    other = {"name": "other", "main": type("Default", (WorkerEntrypoint,), {"fetch": serve})}
    first = serving(handle, name="first", services=[{"binding": "OTHER", "service": "other"}])
    async with Emulator([first, other]) as emulator:
        assert (await emulator.fetch("/")).text == str(["1 open", "1 message from the binding"])
        assert asked == ["https://any.example/x text/event-stream"]


NO_TEXT = (
    "TypeError: Failed to construct 'EventSource': constructor parameter 1 is not of type 'string'."
)
NO_CREDENTIALS = (
    "NotSupportedError: The init.withCredentials option is not supported. It must be false or "
    "undefined."
)
NO_FETCHER = (
    "TypeError: Incorrect type for the 'fetcher' field on 'EventSourceInit': the provided value is "
    "not of type 'Fetcher'."
)
NO_STREAM = (
    "TypeError: Failed to execute 'from' on 'EventSource': parameter 1 is not of type "
    "'ReadableStream'."
)


def _locked() -> Any:
    made = ReadableStream.new()
    made.getReader()
    return EventSource.from_(made)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (
            lambda: EventSource.new("not a url"),
            "SyntaxError: Cannot open an EventSource to 'not a url'. The URL is invalid.",
        ),
        (
            lambda: EventSource.new(123),
            "SyntaxError: Cannot open an EventSource to '123'. The URL is invalid.",
        ),
        (EventSource.new, NO_TEXT),
        (
            lambda: EventSource.new(URL, withCredentials=True),
            NO_CREDENTIALS,
        ),
        (
            lambda: EventSource.new(URL, fetcher=5),
            NO_FETCHER,
        ),
        (
            lambda: EventSource.from_("x"),
            NO_STREAM,
        ),
        (_locked, "TypeError: This ReadableStream is locked."),
    ],
)
async def test_what_is_refused(make: Callable[[], Any], error: str) -> None:
    async def handle(env: Any) -> str:
        try:
            make()
        except Exception as raised:
            return f"{raised.name}: {raised.message}"  # type: ignore[attr-defined]
        return ""

    async with Emulator(serving(handle)) as emulator:
        assert (await emulator.fetch("/")).text == error


async def test_constants_and_chunks_that_are_no_bytes() -> None:
    async def handle(env: Any) -> list[Any]:
        source = EventSource.from_(stream(to_js("text")))
        seen = Seen(source)
        await asyncio.sleep(5)
        return [EventSource.CONNECTING, EventSource.OPEN, EventSource.CLOSED, seen.events]

    async with Emulator(serving(handle)) as emulator:
        assert (await emulator.fetch("/")).text == str(
            [0, 1, 2, ["2 error Uncaught TypeError: This ReadableStream did not return bytes."]]
        )


async def test_it_ends_with_its_event_and_its_requests_are_fault_sites(respx_mock: Any) -> None:
    route = respx_mock.get(URL).respond(text="data: a\n\n", headers=TYPE)

    async def handle(env: Any) -> list[str]:
        seen = Seen(EventSource.new(URL))
        await asyncio.sleep(1)
        EventSource.new(URL)
        return seen.events

    fault = "fetch.GET.events.example/stream#1:fail"
    async with Emulator(serving(handle), faults=fault) as emulator:
        expected = ["2 error Uncaught Error: Network connection lost."]
        assert (await emulator.fetch("/")).text == str(expected)
        await emulator.advance("1 h")
        assert route.call_count == 0
        assert emulator.findings.unexpected() == []
