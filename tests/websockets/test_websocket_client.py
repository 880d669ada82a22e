"""`emulator.websocket`, and sockets that a Worker accepts (texts: workerd 1.20261117.1)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from js import Array, Blob, Object, WebSocket, WebSocketPair
from pyodide.ffi import create_proxy, to_js
from workers import Response, WorkerEntrypoint

from emulator import Emulator, Stuck, WebSocketClosed, WebSocketRefused, WorkerCrashed

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.asyncio
MANUAL = "2026-04-06"  # the last date without automatic answers to a Close


def serving(serve: Callable[..., Any], **config: Any) -> dict[str, Any]:
    """A Worker that gives the client one end, and the other to `serve(server)`."""

    async def fetch(self: Any, request: Any) -> Any:
        client, server = WebSocketPair.new().object_values()
        value = serve(server)
        if hasattr(value, "__await__"):
            await value
        return Response(None, status=101, web_socket=client, headers=self.headers)

    return answering(fetch, **config)


def answering(fetch: Callable[..., Any], **config: Any) -> dict[str, Any]:
    cls = type("Default", (WorkerEntrypoint,), {"fetch": fetch, "headers": None})
    return {"main": cls, **config}


def listening(server: Any, **listeners: Any) -> None:
    server.accept()
    for kind, listener in listeners.items():
        server.addEventListener(kind, create_proxy(listener))


def told(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return getattr(error, "name", type(error).__name__), getattr(error, "message", str(error))


def logged(emulator: Emulator) -> list[str]:
    return [log.text for log in emulator.logs]


async def test_messages_go_both_ways_and_take_no_time() -> None:
    def serve(server: Any) -> None:
        listening(server, message=lambda e: server.send(f"{e.type} {e.data}"))

    async with Emulator(serving(serve)) as emulator:
        before = emulator.now
        ws = await emulator.websocket("ws://app.example/chat", params={"room": "1"})
        assert ws.url == "http://app.example/chat?room=1"
        await ws.send("a")
        await ws.send("b")
        assert list(ws.messages) == ["message a", "message b"]
        assert [await ws.receive(), await ws.receive()] == ["message a", "message b"]
        assert emulator.now == before
        await ws.send_json({"x": 1})
        assert await ws.receive() == 'message {"x": 1}'
        await ws.close()
        assert (ws.closed.code, ws.closed.clean) == (1000, True)


async def test_receive_moves_the_clock_to_the_next_message() -> None:
    def serve(server: Any) -> None:
        async def later(event: Any) -> None:
            await asyncio.sleep(90)
            server.send("late")

        listening(server, message=later)

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        before = emulator.now
        await ws.send("x")
        assert list(ws.messages) == []
        assert await ws.receive() == "late"
        assert emulator.now - before == timedelta(seconds=90)


async def test_a_connection_outlives_background_limits_of_the_request() -> None:
    """The invocation goes on as long as the connection does (workerd, `couple`)."""

    def serve(server: Any) -> None:
        listening(server, message=lambda e: server.send(e.data))

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        await emulator.advance("3 days")
        await ws.send("still there")
        assert await ws.receive() == "still there"
        assert list(emulator.findings) == []


async def test_settle_does_not_wait_for_open_connections() -> None:
    async with Emulator(serving(listening)) as emulator, emulator.websocket("/") as ws:
        before = emulator.now
        await emulator.settle()
        assert (emulator.now, ws.closed) == (before, None)


async def test_nothing_to_receive_is_stuck() -> None:
    async with Emulator(serving(listening)) as emulator, emulator.websocket("/") as ws:
        with pytest.raises(Stuck, match="receive"):
            await ws.receive()


async def test_an_answer_that_is_no_connection_is_refused_with_it() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        return Response("Expected upgrade", status=426)

    async with Emulator(answering(fetch)) as emulator:
        with pytest.raises(WebSocketRefused, match="answered 426: Expected upgrade") as caught:
            await emulator.websocket("/chat")
        assert caught.value.response.status_code == 426


async def test_a_socket_nobody_asked_for_is_the_platforms_error() -> None:
    async with Emulator(serving(listening)) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert response.text == (
            "TypeError: Worker tried to return WebSocket in a response to a request which did not "
            'contain the header "Upgrade: websocket".'
        )


async def test_fetch_may_ask_and_leaves_at_once() -> None:
    def serve(server: Any) -> None:
        listening(server, close=lambda e: print(e.code, e.reason, e.wasClean))

    async with Emulator(serving(serve)) as emulator:
        response = await emulator.fetch("/", headers={"Upgrade": "websocket"})
        assert response.status_code == 101
        broken = "1006 WebSocket disconnected without sending Close frame. False"
        assert logged(emulator) == [broken]


async def test_headers_and_subprotocols_reach_the_worker() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        client, server = WebSocketPair.new()
        server.accept()
        asked = request.headers.get("sec-websocket-protocol")
        server.send(f"{request.method} {request.headers['upgrade']} {request.headers['x-a']}")
        chosen = {"sec-websocket-protocol": asked.split(", ")[1]}
        return Response(None, status=101, web_socket=client, headers=chosen)

    async with (
        Emulator(answering(fetch)) as emulator,
        emulator.websocket("/", headers={"x-a": "1"}, subprotocols=["v1", "v2"]) as ws,
    ):
        assert await ws.receive() == "GET websocket 1"
        assert ws.subprotocol == "v2"


@pytest.mark.parametrize(("date", "kind"), [("2026-03-17", "Blob"), ("2026-03-16", "ArrayBuffer")])
async def test_binary_messages_by_date(date: str, kind: str) -> None:
    """`websocket_standard_binary_type`."""

    def serve(server: Any) -> None:
        def on_message(event: Any) -> None:
            print(event.data.constructor.name)
            server.binaryType = "nonsense"
            server.binaryType = "arraybuffer"
            server.send(event.data if date == "2026-03-16" else to_js(b"\x01"))

        listening(server, message=on_message)

    config = serving(serve, compatibility_date=date)
    async with Emulator(config) as emulator, emulator.websocket("/") as ws:
        await ws.send(b"\x01")
        assert logged(emulator) == [kind]
        assert await ws.receive() == b"\x01"
        await ws.send(b"\x02")
        assert logged(emulator)[1] == "ArrayBuffer"


async def test_what_is_no_text_and_no_buffer_is_sent_as_its_text() -> None:
    def serve(server: Any) -> None:
        server.accept()
        for value in (b"raw", 5, Object.new(), Blob.new(Array.of("x"))):
            server.send(value)

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        assert list(ws.messages) == ["b'raw'", "5", "[object Object]", "[object Blob]"]


async def test_a_client_that_closes_is_answered_since_2026_04_07() -> None:
    """`web_socket_auto_reply_to_close`: the socket is closed when its event comes."""

    def serve(server: Any) -> None:
        def on_close(event: Any) -> None:
            print(event.code, event.reason, event.wasClean, server.readyState)
            server.close(1000)

        listening(server, close=on_close)

    async with Emulator(serving(serve)) as emulator:
        async with emulator.websocket("/") as ws:
            await ws.close(4001, "bye")
            assert (ws.closed.code, ws.closed.reason) == (4001, "bye")
        assert logged(emulator) == ["4001 bye True 3"]
    async with Emulator(serving(serve, compatibility_date=MANUAL)) as emulator:
        async with emulator.websocket("/") as ws:
            await ws.close(4001, "bye")
            assert ws.closed.code == 1000
        assert logged(emulator) == ["4001 bye True 2"]


async def test_a_half_open_socket_is_not_answered() -> None:
    def serve(server: Any) -> None:
        server.accept(allowHalfOpen=True)
        server.onclose = lambda event: server.send("one more")

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        await ws.close()
        assert (ws.closed, list(ws.messages)) == (None, ["one more"])


async def test_a_worker_that_closes_is_answered_by_the_client() -> None:
    def serve(server: Any) -> None:
        def on_message(event: Any) -> None:
            server.close(4002, "out")
            print(server.readyState, told(lambda: server.send("x")))

        listening(server, message=on_message, close=lambda e: print(e.code, server.readyState))

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        await ws.send("x")
        assert (ws.closed.code, ws.closed.reason, ws.closed.clean) == (4002, "out", True)
        refused = "('TypeError', \"Can't call WebSocket send() after close().\")"
        assert logged(emulator) == [f"2 {refused}", "4002 3"]
        with pytest.raises(WebSocketClosed, match="closed with 4002: out") as caught:
            await ws.receive()
        assert caught.value.code == 4002
        with pytest.raises(WebSocketClosed):
            await ws.send("y")
        assert [message async for message in ws] == []


async def test_what_came_before_the_end_can_be_received() -> None:
    def serve(server: Any) -> None:
        server.accept()
        server.send("a")
        server.send("b")
        server.close()

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        assert (await ws.wait_closed()).code == 1005
        assert [message async for message in ws] == ["a", "b"]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        *((code, None) for code in (1000, 1001, 1011, 2999, 3000, 4999)),
        *(
            (code, ("InvalidAccessError", f"Invalid WebSocket close code: {code}."))
            for code in (999, 1004, 1005, 1006, 1015, 5000)
        ),
    ],
)
async def test_close_codes(code: int, error: Any) -> None:
    found: list[Any] = []

    def serve(server: Any) -> None:
        server.accept()
        found.append(told(lambda: server.close(code)))

    async with Emulator(serving(serve)) as emulator:
        await emulator.websocket("/")
    assert found == [error]


async def test_close_reasons() -> None:
    found: list[Any] = []

    def serve(server: Any) -> None:
        server.accept()
        found.append(told(lambda: server.close(1000, "é" * 62)))
        found.append(told(lambda: server.close(None, "why")))

    long = "WebSocket close reason must not be longer than 123 bytes when UTF-8 encoded."
    alone = "If you specify a WebSocket close reason, you must also specify a code."
    async with Emulator(serving(serve)) as emulator:
        await emulator.websocket("/")
    assert found == [("SyntaxError", long), ("InvalidAccessError", alone)]
    found.clear()
    async with Emulator(serving(serve, compatibility_date="2026-03-02")) as emulator:
        await emulator.websocket("/")
    assert found == [None, None]  # the second close is ignored


async def test_misuse_has_the_runtimes_texts() -> None:
    found: list[Any] = []

    async def fetch(self: Any, request: Any) -> Any:
        first, _ = WebSocketPair.new()
        found.append(told(lambda: first.send("x")))
        found.append(told(first.close))
        found.append((first.readyState, first.url, first.protocol, first.OPEN, WebSocket.CLOSED))
        first.accept()
        first.accept()
        found.append(told(lambda: Response(None, status=101, web_socket=first).status))
        return Response(None, status=101, web_socket=first)

    early = (
        "You must call one of accept() or state.acceptWebSocket() on this WebSocket before sending "
        "messages."
    )
    async with Emulator(answering(fetch)) as emulator:
        response = await emulator.fetch("/", headers={"upgrade": "websocket"})
        assert found[0] == found[1] == ("TypeError", early)
        assert found[2][0] == 1
        assert found[2][2:] == ("", 1, 3)
        assert found[3] == 101
        wrong = "Can't return WebSocket in a Response after calling accept()."
        assert response.text == f"TypeError: {wrong}"


async def test_a_message_that_is_too_large_is_an_error_for_the_worker() -> None:
    """workerd, `api/tests/websocket-client-error-test.js`."""

    def serve(server: Any) -> None:
        listening(server, error=lambda e: print(e.message, server.readyState))

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        await ws.send("x" * 34_603_008)
        assert ws.closed.code == 1009
        assert logged(emulator) == [
            "Uncaught Error: WebSocket protocol error; protocolError.statusCode = 1009; "
            "protocolError.description = Message is too large: 34603008 > 33554432 3"
        ]
        assert list(emulator.findings) == []


async def test_a_function_without_create_proxy_breaks_the_connection() -> None:
    def serve(server: Any) -> None:
        server.accept()
        server.addEventListener("message", lambda event: server.send("never"))
        server.onerror = lambda event: print(event.message)

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        await ws.send("x")
        assert (ws.closed.code, ws.closed.clean) == (1006, False)
        finding = emulator.findings.expect("handler_exception")
        assert "borrowed proxy" in str(finding or logged(emulator))
        assert logged(emulator)[-1].startswith("Uncaught Error: This borrowed proxy was")


async def test_a_listener_that_raises_breaks_the_connection() -> None:
    def serve(server: Any) -> None:
        def fail(event: Any) -> None:
            raise ValueError(event.data)

        listening(server, message=fail, error=lambda e: print(e.error.name, e.message))

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        await ws.send("boom")
        assert ws.closed.code == 1006
        assert [finding.code for finding in emulator.findings] == ["handler_exception"]
        assert "ValueError: boom" in emulator.findings[0].message
        assert logged(emulator)[-1] == ("PythonError Uncaught PythonError: ValueError: boom")


async def test_an_asynchronous_listener_that_raises_is_only_reported() -> None:
    def serve(server: Any) -> None:
        async def fail(event: Any) -> None:
            raise ValueError(event.data)

        listening(server, message=fail)

    async with Emulator(serving(serve)) as emulator, emulator.websocket("/") as ws:
        await ws.send("boom")
        assert ws.closed is None
        assert [finding.code for finding in emulator.findings] == ["handler_exception"]


async def test_a_crash_breaks_the_connection_and_runs_no_line() -> None:
    def serve(server: Any) -> None:
        listening(server, close=lambda e: print("never"), message=lambda e: print(e.data))

    async with Emulator(serving(serve)) as emulator:
        ws = await emulator.websocket("/")
        await emulator.crash()
        assert (ws.closed.code, ws.closed.clean) == (1006, False)
        assert logged(emulator) == []


async def test_a_client_that_loses_its_network() -> None:
    def serve(server: Any) -> None:
        listening(server, close=lambda e: print(e.code, e.wasClean))

    async with Emulator(serving(serve)) as emulator:
        ws = await emulator.websocket("/")
        await ws.disconnect()
        assert ws.closed.code == 1006
        assert logged(emulator) == ["1006 False"]
        with pytest.raises(WebSocketClosed):
            await ws.send("x")


@pytest.mark.parametrize("action", ["disconnect", "crash_before"])
async def test_faults_strike_a_message_on_its_way(action: str) -> None:
    def serve(server: Any) -> None:
        listening(server, message=lambda e: server.send(e.data), close=lambda e: print(e.code))

    async with Emulator(serving(serve)) as emulator:
        emulator.faults.add(f"websocket.worker.message#2:{action}")
        ws = await emulator.websocket("/")
        await ws.send("a")
        await ws.send("b")
        assert (list(ws.messages), ws.closed.code) == (["a"], 1006)
        assert logged(emulator) == (["1006"] if action == "disconnect" else [])
        assert [str(fault) for fault in emulator.faults.fired] == [
            f"websocket.worker.message#2:{action}"
        ]


async def test_a_request_whose_answer_is_lost_leaves_no_connection() -> None:
    from emulator import ReplyLost

    def serve(server: Any) -> None:
        listening(server, close=lambda e: print(e.code))

    async with Emulator(serving(serve)) as emulator:
        emulator.faults.add("request.GET./#1:lose_reply", "request.GET./#2:crash_after")
        with pytest.raises(ReplyLost):
            await emulator.websocket("/")
        assert logged(emulator) == ["1006"]
        with pytest.raises(WorkerCrashed):
            await emulator.websocket("/")


async def test_the_trace_has_the_messages_as_payloads() -> None:
    def serve(server: Any) -> None:
        listening(server, message=lambda e: server.send(e.data))

    async with Emulator(serving(serve)) as emulator:
        async with emulator.websocket("/chat") as ws:
            await ws.send("a")
        events = [event for event in emulator.trace if event.subject == "request GET /chat"]
        assert [event.kind for event in events] == [
            *("request", "response", "socket_in", "socket_out", "socket_closed", "socket_closed"),
        ]
        assert events[2].data["message"].value == "a"
        assert [event.data.get("by") for event in events[4:]] == ["client", "Worker"]


async def test_both_ends_in_one_worker() -> None:
    """A pair that no client gets connects the Worker with itself."""

    async def fetch(self: Any, request: Any) -> Any:
        first, second = WebSocketPair.new()
        came: asyncio.Queue[str] = asyncio.Queue()
        first.accept()
        second.accept()
        second.onmessage = lambda event: came.put_nowait(event.data)
        first.send("a")
        first.send("b")
        return Response(await came.get() + await came.get())

    async with Emulator(answering(fetch)) as emulator:
        assert (await emulator.fetch("/")).text == "ab"
        assert list(emulator.findings) == []


async def test_a_connection_goes_on_behind_a_service_binding() -> None:
    async def forward(self: Any, request: Any) -> Any:
        return await self.env.BACK.fetch(request)

    def serve(server: Any) -> None:
        listening(
            server, message=lambda e: server.send(e.data), close=lambda e: print("closed", e.code)
        )

    front = answering(forward, name="front", services=[{"binding": "BACK", "service": "back"}])
    async with Emulator([front, serving(serve, name="back")]) as emulator:
        async with emulator.websocket("/") as ws:
            await emulator.advance("1 hour")
            await ws.send("through")
            assert await ws.receive() == "through"
        assert logged(emulator) == ["closed 1000"]
        emulator.faults.add("websocket.back.message#2:disconnect")
        other = await emulator.websocket("/")
        await other.send("x")
        assert other.closed.code == 1006
        assert list(emulator.findings) == []


async def test_a_test_stands_in_for_a_server_outside() -> None:
    seen: list[Any] = []

    async def feed(ws: Any) -> None:
        seen.append(await ws.receive())
        await ws.send("42")
        seen.append(await ws.wait_closed())

    async def fetch(self: Any, request: Any) -> Any:
        socket = WebSocket.new("wss://feed.example/x?key=1")
        heard: asyncio.Queue[Any] = asyncio.Queue()
        socket.onopen = lambda event: socket.send("subscribe")
        socket.onmessage = lambda event: heard.put_nowait(event.data)
        price = await heard.get()
        socket.close(1000, "enough")
        return Response(f"{price} {socket.readyState}")

    async with Emulator(answering(fetch)) as emulator:
        emulator.mock_websocket("wss://feed.example/x", feed)
        assert (await emulator.fetch("/")).text == "42 2"
        assert [seen[0], seen[1].reason] == ["subscribe", "enough"]
        assert list(emulator.findings) == []


async def test_an_assertion_of_a_server_reaches_the_test() -> None:
    async def feed(ws: Any) -> None:
        assert await ws.receive() == "other"

    async def fetch(self: Any, request: Any) -> Any:
        socket = WebSocket.new("wss://feed.example/x")
        socket.onopen = lambda event: socket.send("this")
        await asyncio.sleep(1)
        return Response("")

    async with Emulator(answering(fetch)) as emulator:
        emulator.mock_websocket("wss://feed.example/x", feed)
        with pytest.raises(AssertionError):
            await emulator.fetch("/")


async def test_a_socket_to_the_outside_is_an_outbound_request() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        socket = WebSocket.new("wss://feed.example/x")
        heard: asyncio.Queue[Any] = asyncio.Queue()
        socket.onerror = lambda event: heard.put_nowait(event.message)
        socket.onclose = lambda event: heard.put_nowait((event.code, event.reason))
        first = socket.readyState, told(lambda: socket.accept())
        return Response(f"{first} {await heard.get()} {await heard.get()} {socket.readyState}")

    async with Emulator(answering(fetch)) as emulator:
        text = (await emulator.fetch("/")).text
        assert text.startswith("(0, ('TypeError', \"Websockets obtained from the 'new WebSocket()'")
        assert "GET https://feed.example/x asks for a WebSocket to the outside" in text
        assert text.endswith("(1006, 'Failed to establish websocket connection') 3")
        assert [finding.code for finding in emulator.findings] == ["outbound_unmocked"]


@pytest.mark.parametrize(
    ("url", "protocols", "text"),
    [
        ("nope", None, "The url is invalid."),
        ("http://a/", None, "The url scheme must be ws or wss."),
        ("ws://a/#f", None, "The url fragment must be empty."),
        ("ws://a/", ["x", "x"], "The protocols header cannot have repeating values."),
        ("ws://a/", ["a b"], "One of the protocol header tokens is invalid."),
        ("ws://a/", "", "The protocol header token is invalid."),
    ],
)
async def test_constructor_of_websocket_refuses(url: str, protocols: Any, text: str) -> None:
    found: list[Any] = []

    async def fetch(self: Any, request: Any) -> Any:
        more = () if protocols is None else (to_js(protocols),)
        found.append(told(lambda: WebSocket.new(url, *more)))
        return Response("")

    async with Emulator(answering(fetch)) as emulator:
        await emulator.fetch("/")
    assert found == [("SyntaxError", f"WebSocket Constructor: {text}")]
