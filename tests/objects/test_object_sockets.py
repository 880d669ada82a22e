"""WebSockets that a Durable Object holds while it sleeps.

Rules and texts: workerd 1.20261117.1, run with a JavaScript object; what Python makes of a list of
tags and of an attachment was seen in production by others (python-api.md 1.9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from js import Object, WebSocketPair, WebSocketRequestResponsePair
from object_bench import object_class, worker
from pyodide.ffi import create_proxy, to_js
from workers import Response, WorkerEntrypoint

from emulator import Emulator, WebSocketClosed
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.asyncio


def told(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except JsException as error:
        return [error.name, error.message]


def room(**members: Any) -> dict[str, Any]:
    """A Worker whose requests all go to one object, which accepts what asks for a WebSocket."""

    async def fetch(self: Any, request: Any) -> Any:
        client, server = WebSocketPair.new().object_values()
        tag = request.url.rpartition("/")[2]
        self.ctx.acceptWebSocket(server, to_js([tag, "all"]))
        server.serializeAttachment(tag)
        server.send(f"welcome {tag}")
        return Response(None, status=101, web_socket=client)

    config = worker(object_class(**{"fetch": fetch, **members}))

    async def to_object(self: Any, request: Any) -> Any:
        return await self.env.OBJ.getByName("x").fetch(request)

    config["main"].Default = type("Default", (WorkerEntrypoint,), {"fetch": to_object})
    return config


async def echo(self: Any, ws: Any, message: Any) -> None:
    self.count = getattr(self, "count", 0) + 1
    ws.send(f"{self.count} {ws.deserializeAttachment()} {message}")


def logged(emulator: Emulator) -> list[str]:
    return [log.text for log in emulator.logs]


def objects(emulator: Emulator) -> Any:
    return emulator.durable_objects["OBJ"]


async def test_a_message_wakes_an_object_and_only_what_is_kept_is_there() -> None:
    async with (
        Emulator(room(webSocketMessage=echo)) as emulator,
        emulator.websocket("/ada") as ada,
        emulator.websocket("/grace") as grace,
    ):
        await ada.send("a")
        await ada.send("b")
        await objects(emulator).evict("x")
        assert not objects(emulator).objects
        found = [(one.tags, one.attachment) for one in objects(emulator).sockets("x")]
        assert found == [(("ada", "all"), "ada"), (("grace", "all"), "grace")]
        await grace.send("c")
        assert list(ada.messages) == ["welcome ada", "1 ada a", "2 ada b"]
        assert list(grace.messages) == ["welcome grace", "1 grace c"]
        assert [one.name for one in objects(emulator).objects] == ["x"]
        calls = [event.data["by"] for event in emulator.trace if event.kind == "object_call"]
        assert calls[-1] == "request GET /grace"


async def test_get_web_sockets_in_both_orders_and_by_tag() -> None:
    async def names(self: Any, *tag: Any) -> Any:
        found = self.ctx.getWebSockets(*tag)
        return [[ws.deserializeAttachment(), list(self.ctx.getTags(ws))] for ws in found]

    async def same(self: Any) -> Any:
        first, second = self.ctx.getWebSockets(), self.ctx.getWebSockets()
        first[0].mark = 1
        return [first[0] == second[0], second[0].mark, first[0] == first[1]]

    async with Emulator(room(names=names, same=same)) as emulator:
        for name in ("a", "b", "c"):
            await emulator.websocket(f"/{name}")
        stub = objects(emulator).get("x")
        assert [name for name, _ in await stub.names()] == ["c", "b", "a"]
        assert await stub.names("all") == [[name, [name, "all"]] for name in ("a", "b", "c")]
        assert await stub.names("b") == [["b", ["b", "all"]]]
        assert await stub.names("B") == await stub.names("") == []
        assert await stub.same() == [True, 1, False]


async def test_a_client_that_closes_is_not_answered_by_itself() -> None:
    """The automatic answer of 2026-04-07 is for sockets that were accepted with `accept`."""

    async def close(self: Any, ws: Any, code: int, reason: str, clean: bool) -> None:
        print(code, reason, clean, ws.readyState)
        ws.send("late")
        if reason == "answer me":
            ws.close(code, "answered")

    async with Emulator(room(webSocketClose=close)) as emulator:
        ws = await emulator.websocket("/a")
        await ws.close(4001, "bye")
        assert (ws.closed, list(ws.messages)) == (None, ["welcome a", "late"])
        other = await emulator.websocket("/b")
        await other.close(4001, "answer me")
        assert (other.closed.code, other.closed.reason) == (4001, "answered")
        assert logged(emulator) == ["4001 bye True 2", "4001 answer me True 2"]


async def test_a_message_that_is_too_large_is_an_error_of_the_socket() -> None:
    """workerd, `legacy-hibernation-manager.c++`: what is no disconnect is `webSocketError`."""

    async def error(self: Any, ws: Any, error: Any) -> None:
        print(type(error).__name__, error.name, error.message, ws.readyState)
        print(len(self.ctx.getWebSockets()), list(self.ctx.getTags(ws)), ws.deserializeAttachment())
        ws.send("too late")

    async def message(self: Any, ws: Any, message: Any) -> None:
        print(message if isinstance(message, str) else message.byteLength)

    most = 33_554_432
    async with Emulator(room(webSocketError=error, webSocketMessage=message)) as emulator:
        ws = await emulator.websocket("/a")
        await emulator.durable_objects["OBJ"].evict("x")
        await ws.send(b"x" * most)
        await ws.send("x" * (most + 1))
        await emulator.settle()
        assert logged(emulator) == [
            str(most),
            "JsException Error WebSocket protocol error; protocolError.statusCode = 1009; "
            "protocolError.description = Message is too large: 33554433 > 33554432 3",
            "0 ['a', 'all'] a",
        ]
        assert (ws.closed.code, ws.closed.clean) == (1009, True)
        assert ws.closed.reason == "Message is too large: 33554433 > 33554432"
        assert list(ws.messages) == ["welcome a"]
        with pytest.raises(WebSocketClosed):
            await ws.send("more")


async def test_a_broken_protocol_without_a_handler_is_a_finding() -> None:
    async with Emulator(room()) as emulator:
        ws = await emulator.websocket("/a")
        await ws.send("\u20ac" * 11_184_811)  # three bytes each
        assert ws.closed.code == 1009
        assert [finding.code for finding in emulator.findings] == ["missing_handler"]
        assert "webSocketError" in emulator.findings[0].message


async def test_a_socket_has_left_the_list_when_its_close_is_handled() -> None:
    async def close(self: Any, ws: Any) -> None:
        print(len(self.ctx.getWebSockets()), list(self.ctx.getTags(ws)))

    async with Emulator(room(webSocketClose=close)) as emulator:
        ws = await emulator.websocket("/a")
        await ws.close()
        assert logged(emulator) == ["0 ['a', 'all']"]


async def test_an_object_that_closes_hears_the_answer() -> None:
    async def message(self: Any, ws: Any) -> None:
        ws.close(4002, "out")
        print(told(lambda: ws.send("x")))

    async def close(self: Any, *given: Any) -> None:
        print(*given[1:], given[0].readyState)

    members = {"webSocketMessage": message, "webSocketClose": close}
    async with Emulator(room(**members)) as emulator, emulator.websocket("/a") as ws:
        await ws.send("x")
        assert (ws.closed.code, ws.closed.reason) == (4002, "out")
        refused = "['TypeError', \"Can't call WebSocket send() after close().\"]"
        assert logged(emulator) == [refused, "4002 out True 3"]


async def test_a_client_that_loses_its_network_is_heard_as_1006() -> None:
    async def close(self: Any, *given: Any) -> None:
        print(*given[1:])

    async with Emulator(room(webSocketClose=close)) as emulator:
        ws = await emulator.websocket("/a")
        await objects(emulator).evict("x")
        await ws.disconnect()
        broken = "1006 WebSocket disconnected without sending Close frame. False"
        assert logged(emulator) == [broken]


async def test_binary_messages_are_array_buffers_whatever_the_date() -> None:
    async def message(self: Any, ws: Any, data: Any) -> None:
        print(data.constructor.name, data.to_bytes())

    async with (
        Emulator(room(webSocketMessage=message)) as emulator,
        emulator.websocket("/a") as ws,
    ):
        await ws.send(b"\x01\x02")
        assert logged(emulator) == ["ArrayBuffer b'\\x01\\x02'"]


async def test_events_do_not_wait_for_the_end_of_another() -> None:
    """Each is an event of its own; only `blockConcurrencyWhile` keeps others out."""

    async def message(self: Any, ws: Any, text: str) -> None:
        import asyncio

        async def work() -> None:
            print("begin", text)
            await asyncio.sleep(1)
            print("end", text)

        await (self.ctx.blockConcurrencyWhile(work) if text > "b" else work())

    async with (
        Emulator(room(webSocketMessage=message)) as emulator,
        emulator.websocket("/a") as ws,
    ):
        for text in ("a", "b", "c", "d"):
            await ws.send(text)
            if text == "b":
                await emulator.settle()
        await emulator.settle()
        assert logged(emulator) == [
            *("begin a", "begin b", "end a", "end b"),
            *("begin c", "end c", "begin d", "end d"),
        ]


async def test_what_an_event_writes_is_durable_before_its_message_leaves() -> None:
    async def message(self: Any, ws: Any, text: str) -> None:
        ws.send("stored")
        await self.ctx.storage.put("text", text)

    async with Emulator(room(webSocketMessage=message)) as emulator:
        emulator.faults.add("storage.OBJ.put#1:crash_before")
        ws = await emulator.websocket("/a")
        await ws.send("x")
        assert (list(ws.messages), ws.closed.code) == (["welcome a"], 1006)
        assert dict(objects(emulator).storage("x")) == {}


@pytest.mark.parametrize("end", ["crash", "abort", "reload", "restart", "all crash"])
async def test_what_ends_the_object_ends_its_connections(end: str) -> None:
    async def close(self: Any) -> None:
        print("never")

    async def stop(self: Any) -> None:
        self.ctx.abort("why")

    async def count(self: Any) -> int:
        return len(self.ctx.getWebSockets())

    async with Emulator(room(webSocketClose=close, stop=stop, count=count)) as emulator:
        ws = await emulator.websocket("/a")
        if end == "crash":
            await objects(emulator).crash("x")
        elif end == "abort":
            with pytest.raises(JsException):
                await objects(emulator).get("x").stop()
        elif end == "all crash":
            await objects(emulator).evict("x")  # sleeping ones too
            await emulator.crash()
        else:
            await getattr(emulator, end)()
        assert (ws.closed.code, ws.closed.clean) == (1006, False)
        assert await objects(emulator).get("x").count() == 0
        assert logged(emulator) == []


@pytest.mark.parametrize("date", ["2026-03-01", "2026-10-01"])
async def test_an_abort_in_an_event_is_no_finding_as_in_a_call(date: str) -> None:
    async def message(self: Any, ws: Any, text: str) -> None:
        if text == "fail":
            raise ValueError("not on purpose")
        self.ctx.abort("on purpose")

    async def close(self: Any, ws: Any, code: int, reason: str, clean: bool) -> None:
        self.ctx.abort("on purpose")

    cls = {"webSocketMessage": message, "webSocketClose": close}
    async with Emulator({**room(**cls), "compatibility_date": date}) as emulator:
        ws = await emulator.websocket("/a")
        await ws.send("reset")
        assert ws.closed.code == 1006
        ws = await emulator.websocket("/a")
        await ws.close()
        await emulator.settle()
        kinds = [event.kind for event in emulator.trace]
        assert kinds.count("reset") == 2
        assert list(emulator.findings) == []
        assert logged(emulator) == []
        ws = await emulator.websocket("/a")
        await ws.send("fail")
        assert [one.code for one in emulator.findings] == ["handler_exception"]


async def test_evicting_everything_leaves_connections_open() -> None:
    async with (
        Emulator(room(webSocketMessage=echo)) as emulator,
        emulator.websocket("/a") as ws,
    ):
        await emulator.evict()
        await ws.send("x")
        assert ws.messages[-1] == "1 a x"


async def test_an_accepted_socket_keeps_no_object_from_leaving() -> None:
    """One accepted with `accept` is the memory's: an eviction breaks it."""

    async def fetch(self: Any, request: Any) -> Any:
        client, server = WebSocketPair.new()
        server.accept()
        server.onmessage = create_proxy(lambda event: server.send(event.data))
        return Response(None, status=101, web_socket=client)

    async with Emulator(room(fetch=fetch)) as emulator, emulator.websocket("/a") as ws:
        await ws.send("x")
        assert await ws.receive() == "x"
        await objects(emulator).evict("x")
        assert ws.closed.code == 1006


async def test_a_message_that_is_answered_without_the_object() -> None:
    async def begin(self: Any) -> None:
        pair = WebSocketRequestResponsePair.new("ping", "pong")
        self.ctx.setWebSocketAutoResponse(pair)

    async def look(self: Any) -> Any:
        pair = self.ctx.getWebSocketAutoResponse()
        (ws,) = self.ctx.getWebSockets()
        return [pair.request, pair.response, self.ctx.getWebSocketAutoResponseTimestamp(ws)]

    async def stop(self: Any) -> Any:
        self.ctx.setWebSocketAutoResponse()
        return told(lambda: self.ctx.setWebSocketAutoResponse(1))

    members = {"begin": begin, "look": look, "stop": stop, "webSocketMessage": echo}
    async with Emulator(room(**members)) as emulator, emulator.websocket("/a") as ws:
        stub = objects(emulator).get("x")
        await stub.begin()
        before = await stub.look()
        assert [before[0], before[1]] == ["ping", "pong"]
        assert not before[2]
        await objects(emulator).evict("x")
        await emulator.advance(60)
        await ws.send("ping")
        assert ws.messages[-1] == "pong"
        assert not objects(emulator).objects
        await ws.send(b"ping")
        await ws.send("Ping")
        assert ws.messages[-1] == "2 a Ping"
        assert (await stub.look())[2].timestamp() == emulator.now.timestamp()
        assert await stub.stop() == [
            "TypeError",
            "Failed to execute 'setWebSocketAutoResponse' on 'DurableObjectState': parameter 1 is "
            "not of type 'WebSocketRequestResponsePair'.",
        ]
        await ws.send("ping")
        assert ws.messages[-1] == "3 a ping"


async def test_a_handler_that_raises_is_seen_by_nobody_but_the_log() -> None:
    async def message(self: Any, ws: Any, text: str) -> None:
        if text == "bad":
            raise ValueError(text)
        ws.send(text)

    async with (
        Emulator(room(webSocketMessage=message)) as emulator,
        emulator.websocket("/a") as ws,
    ):
        await ws.send("bad")
        await ws.send("good")
        assert (ws.closed, ws.messages[-1]) == (None, "good")
        (finding,) = emulator.findings
        assert finding.code == "handler_exception"
        assert finding.message == "object OBJ x: ValueError: bad"
        assert "ValueError: bad" in logged(emulator)[-1]


async def test_a_handler_that_is_missing_is_a_finding() -> None:
    async with Emulator(room()) as emulator, emulator.websocket("/a") as ws:
        await ws.send("lost")
        await ws.send("lost")
        (finding,) = emulator.findings
        assert (finding.code, ws.closed) == ("missing_handler", None)
        assert "Obj has no method webSocketMessage" in finding.message


async def test_global_handlers_have_other_names() -> None:
    """Before 2025-08-14 the methods are `on_…` (python-api.md 2.2)."""

    async def fetch(self: Any, request: Any) -> Any:
        client, server = WebSocketPair.new()
        self.ctx.acceptWebSocket(server)
        return Response(None, status=101, web_socket=client)

    config = room(on_fetch=fetch, on_webSocketMessage=lambda self, ws, text: ws.send(text))
    default = config["main"].Default
    default.on_fetch = default.fetch
    config["compatibility_date"] = "2025-08-13"
    async with Emulator(config) as emulator, emulator.websocket("/a") as ws:
        await ws.send("x")
        assert list(ws.messages) == ["x"]


async def test_misuse_has_the_runtimes_texts() -> None:
    async def go(self: Any) -> Any:
        ctx, found = self.ctx, []
        first, second = WebSocketPair.new()
        found.append(told(lambda: ctx.acceptWebSocket(first, ["python list"])))
        found.append(told(lambda: ctx.acceptWebSocket(Object.new())))
        found.append(told(lambda: ctx.acceptWebSocket(first, to_js([str(n) for n in range(11)]))))
        found.append(told(lambda: ctx.acceptWebSocket(first, to_js(["x" * 257]))))
        found.append(told(lambda: ctx.getTags(first)))
        ctx.acceptWebSocket(first, to_js(["a", "a", 5]))
        found.append(list(ctx.getTags(first)))
        found.append(told(lambda: ctx.acceptWebSocket(first)))
        found.append(told(first.accept))
        second.accept()
        found.append(told(lambda: ctx.getTags(second)))
        third, fourth = WebSocketPair.new()
        third.accept()
        found.append(told(lambda: ctx.acceptWebSocket(fourth)))
        return found

    failed = "Failed to execute 'acceptWebSocket' on 'DurableObjectState': parameter"
    async with Emulator(room(go=go)) as emulator:
        assert await objects(emulator).get("x").go() == [
            ["TypeError", f"{failed} 2 is not of type 'Array'."],
            ["TypeError", f"{failed} 1 is not of type 'WebSocket'."],
            ["Error", "a Hibernatable WebSocket cannot have more than 10 tags"],
            ["Error", f'"{"x" * 257}" is longer than the max tag length (256 characters).'],
            [
                "Error",
                "you must call 'acceptWebSocket()' before attempting to access the tags of a "
                "WebSocket.",
            ],
            ["a", "5"],
            [
                "Error",
                "Cannot call `acceptWebSocket()` if the WebSocket was already accepted via "
                "`accept()`",
            ],
            ["TypeError", "Can't accept() WebSocket after enabling hibernation."],
            ["Error", "only hibernatable websockets can have tags."],
            [
                "Error",
                "Cannot call `acceptWebSocket()` on this WebSocket because its pair has already "
                "been accepted or used in a Response.",
            ],
        ]


async def test_attachments_are_copies_of_limited_size() -> None:
    async def go(self: Any) -> Any:
        ws = WebSocketPair.new().object_values()[0]
        found: list[Any] = [not ws.deserializeAttachment()]
        found.append(told(lambda: ws.serializeAttachment("x" * 16_379)))
        found.append(told(lambda: ws.serializeAttachment("x" * 20_000)))
        found.append(told(lambda: ws.serializeAttachment({"a": 1}))[0])
        found.append(told(ws.serializeAttachment))
        value = to_js({"a": [1]}, dict_converter=Object.fromEntries)
        ws.serializeAttachment(value)
        value.a.append(2)
        found.append(ws.deserializeAttachment().to_py())
        return found

    async with Emulator(room(go=go)) as emulator:
        assert await objects(emulator).get("x").go() == [
            True,
            None,
            [
                "Error",
                "A WebSocket 'attachment' cannot be larger than 16384 bytes.'attachment' was 20006 "
                "bytes.",
            ],
            "DataCloneError",
            [
                "TypeError",
                "Failed to execute 'serializeAttachment' on 'WebSocket': parameter 1 is not of "
                "type 'Value'.",
            ],
            {"a": [1]},
        ]


async def test_event_time_out_is_kept() -> None:
    async def go(self: Any) -> Any:
        found = [self.ctx.getHibernatableWebSocketEventTimeout() in (None, 0)]
        self.ctx.setHibernatableWebSocketEventTimeout(1000)
        found.append(self.ctx.getHibernatableWebSocketEventTimeout())
        over = 604_800_001
        found.append(told(lambda: self.ctx.setHibernatableWebSocketEventTimeout(over)))
        return found

    async with Emulator(room(go=go)) as emulator:
        found = await objects(emulator).get("x").go()
        assert found[1:] == [1000, ["Error", "Event timeout should not exceed 604800000 ms."]]


async def test_a_sweep_finds_state_that_only_memory_had() -> None:
    """`evict` before a message counts as *platform*, so a sweep tries it unasked."""
    from emulator import sweep

    async def scenario(emulator: Emulator) -> None:
        async with emulator.websocket("/a") as ws:
            await ws.send("x")
            await ws.send("y")
            assert ws.messages[-1] == "2 a y"

    report = await sweep(scenario, room(webSocketMessage=echo))
    plans = [[str(fault) for fault in failure.plan] for failure in report.failures]
    assert plans == [["websocket.OBJ.message#2:evict"]]


@pytest.mark.parametrize(
    ("action", "messages"),
    [
        ("disconnect", ["welcome a"]),
        ("crash_before", ["welcome a"]),
        ("crash_after", ["welcome a", "1 a x"]),
    ],
)
async def test_faults_strike_a_message(action: str, messages: list[str]) -> None:
    async def close(self: Any, ws: Any, code: int) -> None:
        print(code)

    config = room(webSocketMessage=echo, webSocketClose=close)
    async with Emulator(config) as emulator:
        emulator.faults.add(f"websocket.OBJ.message#1:{action}")
        ws = await emulator.websocket("/a")
        await ws.send("x")
        assert (list(ws.messages), ws.closed.code) == (messages, 1006)
        assert logged(emulator) == (["1006"] if action == "disconnect" else [])
