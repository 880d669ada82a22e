"""Calls of a service: methods, requests, props, exports, and what is refused.

Texts are those of the runtime (workerd, `worker-rpc.c++`, `python-entrypoint-helper.ts`).
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest
from service_bench import (
    FROZEN,
    callee,
    caller,
    codes,
    entrypoint,
    kinds,
    module,
    told,
)
from workers import DurableObject, Request, Response, WorkerEntrypoint, fetch

from emulator import Emulator, WorkerLoadError
from emulator.values import JsException

pytestmark = pytest.mark.asyncio


async def ask(body: Any, *classes: type[Any], **config: Any) -> Any:
    """What a Worker sees that calls one with these classes."""
    async with Emulator([caller(body, **config), callee(*classes)]) as emulator:
        return (await emulator.fetch("/")).json()


class Default(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        text = await request.text()
        return Response(f"{request.method} {request.url} {text}", status=201)

    async def greet(self, name: str, *, loud: bool = False) -> Any:
        return {"text": f"hello {name}", "at": datetime(2026, 1, 2)}

    def count(self, items: list[int]) -> int:
        return len(items)

    def fail(self) -> None:
        raise ValueError("no such thing")

    def _secret(self) -> str:
        return "secret"


class Admin(WorkerEntrypoint):
    def who(self) -> Any:
        return [type(self).__name__, self.ctx.props.client]


class Room(DurableObject):
    def hello(self) -> str:
        return "from the room"


# -- methods and requests --------------------------------------------------------------------------


async def test_methods_and_requests_reach_the_other_worker() -> None:
    async def body(self: Any) -> Any:
        greeting = await self.env.BACK.greet("ada")
        response = await self.env.BACK.fetch("https://back/x?y=1", method="POST", body="hi")
        return [
            greeting.text,
            greeting["at"].isoformat(),
            await self.env.BACK.count([1, 2, 3]),
            response.status,
            await response.text(),
        ]

    assert await ask(body, Default) == [
        "hello ada",
        "2026-01-02T00:00:00",
        3,
        201,
        "POST https://back/x?y=1 hi",
    ]


async def test_a_request_is_passed_on_as_it_came() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        return await self.env.BACK.fetch(request)

    front = {
        "name": "front",
        "main": module(entrypoint(fetch=fetch)),
        "services": [{"binding": "BACK", "service": "back"}],
    }
    async with Emulator([front, callee(Default)]) as emulator:
        response = await emulator.fetch("/a", method="PUT", content=b"body")
        assert (response.status_code, response.text) == (201, "PUT http://localhost/a body")


async def test_a_service_asks_the_outside_world(respx_mock: Any) -> None:
    respx_mock.get("https://outside.example/").respond(200, text="outside")

    class Default(WorkerEntrypoint):
        async def ask(self) -> str:
            return await (await fetch("https://outside.example/")).text()

    async def body(self: Any) -> Any:
        return await self.env.BACK.ask()

    assert await ask(body, Default) == "outside"


async def test_a_request_to_a_worker_with_assets_meets_these_first(tmp_path: Any) -> None:
    """miniflare's `rpc-proxy.worker.ts`: `fetch` goes to the router, methods to the Worker."""
    (tmp_path / "a.txt").write_text("an asset")
    assets = {"directory": str(tmp_path)}

    async def body(self: Any) -> Any:
        return [
            await (await self.env.BACK.fetch("https://back/a.txt")).text(),
            await (await self.env.BACK.fetch("https://back/b")).text(),
            await self.env.BACK.count([1]),
            await (await self.env.FILES.fetch("https://files/a.txt")).text(),
            (await told(lambda: self.env.FILES.count([1])))[1],
        ]

    services = [
        {"binding": "BACK", "service": "back"},
        {"binding": "FILES", "service": "files"},
    ]
    config = [
        caller(body, services=services),
        {**callee(Default), "assets": assets},
        {"name": "files", "assets": assets},
    ]
    async with Emulator(config) as emulator:
        *answers, refused = (await emulator.fetch("/")).json()
        assert answers == ["an asset", "GET https://back/b ", 1, "an asset"]
        assert refused == 'The RPC receiver does not implement the method "count".'
        by = [event.subject for event in emulator.trace if event.kind == "assets"]
        assert by == ["assets BACK", "assets FILES"]


async def test_each_call_has_an_instance_of_its_own_and_shares_the_memory_of_its_worker() -> None:
    seen: list[int] = []
    made: list[int] = []

    class Default(WorkerEntrypoint):
        def __init__(self, ctx: Any, env: Any) -> None:
            super().__init__(ctx, env)
            made.append(1)

        def add(self) -> int:
            self.own = getattr(self, "own", 0) + 1
            seen.append(self.own)
            return len(seen)

    async def body(self: Any) -> Any:
        return [await self.env.BACK.add(), await self.env.BACK.add()]

    assert await ask(body, Default) == [1, 2]
    assert (seen, made) == ([1, 1], [1, 1])


async def test_a_worker_calls_a_named_entrypoint_of_its_own() -> None:
    class Math(WorkerEntrypoint):
        def square(self, number: int) -> int:
            return number * number

    async def fetch(self: Any, request: Any) -> Any:
        return Response.json(await self.env.MATH.square(7))

    config = {
        "name": "front",
        "main": module(entrypoint(fetch=fetch), Math),
        "services": [{"binding": "MATH", "service": "front", "entrypoint": "Math"}],
    }
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == 49
        assert await emulator.env.MATH.square(3) == 9


async def test_the_old_sdk_sends_dicts_as_maps() -> None:
    async def body(self: Any) -> Any:
        result = await self.env.BACK.same({"a": [1, None]})
        return [type(result).__name__, result["a"][0]]

    same = entrypoint(same=lambda self, value: value)
    config = [
        caller(body, compatibility_date=FROZEN),
        callee(same, compatibility_date=FROZEN),
    ]
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == ["dict", 1]


async def test_a_worker_of_global_handlers_answers_requests_only() -> None:
    async def on_fetch(request: Any, env: Any, ctx: Any) -> Any:
        return Response(f"{request.url} {env.NAME}")

    async def body(self: Any) -> Any:
        response = await self.env.BACK.fetch("https://back/")
        return [
            await response.text(),
            await told(lambda: self.env.BACK.greet()),
            await told(lambda: self.env.BACK.alarm()),
        ]

    back = {
        "name": "back",
        "main": module(on_fetch=on_fetch),
        "vars": {"NAME": "old"},
        "compatibility_date": "2025-08-01",
    }
    async with Emulator([caller(body), back]) as emulator:
        assert (await emulator.fetch("/")).json() == [
            "https://back/ old",
            ["TypeError", 'The RPC receiver does not implement the method "greet".'],
            ["TypeError", "'alarm' is a reserved method and cannot be called over RPC."],
        ]


# -- values ----------------------------------------------------------------------------------------


async def test_requests_responses_and_bytes_cross() -> None:
    class Default(WorkerEntrypoint):
        async def same(self, value: Any) -> Any:
            assert isinstance(value, (Request, Response, memoryview))
            return value

    async def body(self: Any) -> Any:
        request = await self.env.BACK.same(Request("https://x/", method="POST", body="q"))
        response = await self.env.BACK.same(Response("r", status=202))
        octets = await self.env.BACK.same(b"abc")
        return [
            request.method,
            await request.text(),
            response.status,
            await response.text(),
            bytes(octets).decode(),
        ]

    assert await ask(body, Default) == ["POST", "q", 202, "r", "abc"]


async def test_functions_cross_both_ways_and_run_where_they_were_made() -> None:
    class Default(WorkerEntrypoint):
        async def twice(self, function: Any) -> Any:
            return [await function(1), await function(2)]

        def counter(self) -> Any:
            total = 0

            def add(number: int) -> int:
                nonlocal total
                total += number
                return total

            return add

    async def body(self: Any) -> Any:
        seen: list[int] = []

        def note(number: int) -> int:
            seen.append(number)
            return number * 10

        results = await self.env.BACK.twice(note)
        add = await self.env.BACK.counter()
        return [list(results), seen, await add(2), await add(3)]

    assert await ask(body, Default) == [[10, 20], [1, 2], 2, 5]


async def test_a_function_lives_as_long_as_its_caller() -> None:
    kept: list[Any] = []

    class Default(WorkerEntrypoint):
        def give(self) -> Any:
            return lambda: "here"

    async def body(self: Any) -> Any:
        if not kept:
            kept.append(await self.env.BACK.give())
            await asyncio.sleep(3600)
        return await told(lambda: kept[0]())

    async with Emulator([caller(body), callee(Default)]) as emulator:
        assert (await emulator.fetch("/")).json() == "here"
        assert (await emulator.fetch("/")).json() == [
            "Error",
            "The execution context which hosts this callback is no longer running.",
        ]


async def test_a_body_streams_after_the_handler_returned() -> None:
    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            from js import TextEncoder, TransformStream

            pipe = TransformStream.new()
            writer = pipe.writable.getWriter()

            async def write() -> None:
                for part in ("a", "b", "c"):
                    await asyncio.sleep(1)
                    await writer.write(TextEncoder.new().encode(part))
                await writer.close()

            self.ctx.waitUntil(write())
            return Response(pipe.readable)

    async def body(self: Any) -> Any:
        response = await self.env.BACK.fetch("https://back/")
        return await response.text()

    assert await ask(body, Default) == "abc"


async def test_streams_cross_as_arguments_and_as_results() -> None:
    class Default(WorkerEntrypoint):
        async def shout(self, stream: Any) -> Any:
            from js import Response as JsResponse

            text = await JsResponse.new(stream).text()
            return JsResponse.new(text.upper()).body

    async def body(self: Any) -> Any:
        from js import Response as JsResponse

        louder = await self.env.BACK.shout(JsResponse.new("hello").body)
        return await JsResponse.new(louder).text()

    assert await ask(body, Default) == "HELLO"


async def test_a_body_that_nobody_reads_ends_with_its_caller() -> None:
    lines: list[str] = []

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            from js import TextEncoder, TransformStream

            pipe = TransformStream.new()
            writer = pipe.writable.getWriter()

            async def write() -> None:
                for _ in range(100):
                    await writer.write(TextEncoder.new().encode("x"))
                lines.append("all written")

            self.ctx.waitUntil(write())
            return Response(pipe.readable)

    async def body(self: Any) -> Any:
        return (await self.env.BACK.fetch("https://back/")).status

    async with Emulator([caller(body), callee(Default)]) as emulator:
        assert (await emulator.fetch("/")).json() == 200
        await emulator.settle()
        assert lines == []
        assert [task.state for task in emulator.background] == ["cancelled"]
        emulator.findings.expect("wait_until_cancelled")


async def test_a_websocket_is_passed_on_to_the_client() -> None:
    from js import WebSocketPair
    from pyodide.ffi import create_proxy

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            client, server = WebSocketPair.new().object_values()
            server.accept()
            listener = create_proxy(lambda event: server.send(f"echo: {event.data}"))
            server.addEventListener("message", listener)
            return Response(None, status=101, web_socket=client)

    async def fetch(self: Any, request: Any) -> Any:
        return await self.env.BACK.fetch(request)

    front = caller(None, main=module(entrypoint(fetch=fetch)))
    async with Emulator([front, callee(Default)]) as emulator:
        async with emulator.websocket("/chat") as socket:
            await socket.send("hello")
            assert await socket.receive() == "echo: hello"
            await emulator.advance("1 h")
            await socket.send("again")
            assert await socket.receive() == "echo: again"
        assert socket.closed.code == 1000
        assert codes(emulator) == []


async def test_what_cannot_cross_is_refused() -> None:
    class Thing:
        pass

    class Default(WorkerEntrypoint):
        def same(self, value: Any) -> Any:
            return value

        def thing(self) -> Any:
            return Thing()

        def pair(self) -> Any:
            return (1, 2)

    async def body(self: Any) -> Any:
        back = self.env.BACK
        return [
            (await told(lambda: back.same(Thing())))[0],
            (await told(lambda: back.same((1, 2))))[0],
            (await told(lambda: back.thing()))[0],
            (await told(lambda: back.pair()))[1].strip().splitlines()[-2],
        ]

    assert await ask(body, Default) == [
        "DataCloneError",
        "TypeError",
        "DataCloneError",
        "TypeError: <class 'tuple'> cannot be sent over RPC.",
    ]


# -- errors ----------------------------------------------------------------------------------------


async def test_errors_arrive_as_the_runtime_sends_them() -> None:
    async def body(self: Any) -> Any:
        name, message = await told(lambda: self.env.BACK.fail())
        return [
            name,
            message.strip().splitlines()[-1],
            await told(lambda: self.env.BACK._secret()),
            await told(lambda: self.env.BACK.nothing()),
            await told(lambda: self.env.BACK.alarm()),
        ]

    answers = await ask(body, Default)
    assert answers[:4] == [
        "PythonError",
        "ValueError: no such thing",
        ["TypeError", "Method _secret does not exist"],
        ["TypeError", "Method nothing does not exist"],
    ]
    assert answers[4] == [
        "TypeError",
        "'alarm' is a reserved method and cannot be called over RPC.",
    ]


async def test_before_its_date_an_error_loses_its_name() -> None:
    async def body(self: Any) -> Any:
        name, message = await told(lambda: self.env.BACK.fail())
        return [name, message.splitlines()[0]]

    config = [caller(body, compatibility_date=FROZEN), callee(Default)]
    async with Emulator(config) as emulator:
        answer = (await emulator.fetch("/")).json()
        assert answer == ["Error", "PythonError: Traceback (most recent call last):"]


async def test_an_error_of_a_request_is_the_callers() -> None:
    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            raise LookupError("not here")

    async def body(self: Any) -> Any:
        _, message = await told(lambda: self.env.BACK.fetch("https://back/"))
        return message.strip().splitlines()[-1]

    async with Emulator([caller(body), callee(Default)]) as emulator:
        assert (await emulator.fetch("/")).json() == "LookupError: not here"
        assert codes(emulator) == []
        assert kinds(emulator) == ["service_call", "service_error"]


async def test_a_worker_without_fetch_says_so() -> None:
    async def body(self: Any) -> Any:
        return await told(lambda: self.env.BACK.fetch("https://back/"))

    back = entrypoint(greet=lambda self: 1)
    assert await ask(body, back) == ["AbortError", "Method fetch does not exist"]


async def test_a_service_that_no_config_has_is_told_at_its_first_use() -> None:
    async def body(self: Any) -> Any:
        try:
            return self.env.BACK.greet("ada")
        except AttributeError as error:
            return [str(error), *error.__notes__]

    async with Emulator(caller(body)) as emulator:
        name, note = (await emulator.fetch("/")).json()
        assert name == "BACK"
        assert note == (
            "BACK is declared in services in the config; it is the Worker 'back', and there are "
            "only: front (Cloudflare, code 10143: Could not resolve service binding 'BACK'. "
            "Target script 'back' not found.): give its config too, in a list, or give a stand-in "
            "with bindings={'BACK': ...}"
        )
        assert codes(emulator) == ["missing_binding"]


@pytest.mark.parametrize(
    ("name", "hint"), [("Nobody", ""), ("Default", "; the default entrypoint needs no name")]
)
async def test_an_entrypoint_that_is_not_exported_is_refused_with_those_that_are(
    name: str, hint: str
) -> None:
    services = [{"binding": "BACK", "service": "back", "entrypoint": name}]
    with pytest.raises(WorkerLoadError) as caught:
        Emulator([caller(lambda self: 1, services=services), callee(Default, Admin, Room)])
    assert str(caught.value) == (
        f"the service binding BACK needs {name}, a WorkerEntrypoint that the Worker back exports; "
        f'it exports: Admin{hint} (workerd: "back" has no such named entrypoint.)'
    )


async def test_a_remote_service_is_emulated_all_the_same() -> None:
    services = [{"binding": "BACK", "service": "back", "remote": True}]
    config = [caller(lambda self: self.env.BACK.count([1]), services=services), callee(Default)]
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == 1
        assert [(f.code, f.message) for f in emulator.findings] == [
            (
                "ignored_option",
                'The "remote" field in "services[0]" has no effect: every service is emulated.',
            )
        ]


async def test_default_is_another_name_of_the_default_entrypoint() -> None:
    services = [{"binding": "BACK", "service": "back", "entrypoint": "default"}]
    assert await ask(lambda self: self.env.BACK.count([1]), Default, services=services) == 1


# -- props and exports -----------------------------------------------------------------------------


async def test_props_come_with_the_binding_and_are_a_copy() -> None:
    class Admin(WorkerEntrypoint):
        def who(self) -> Any:
            props = self.ctx.props
            seen = [props.client, list(props.permissions)]
            props.client = "someone else"
            return seen

    services = [
        {
            "binding": "ADMIN",
            "service": "back",
            "entrypoint": "Admin",
            "props": {"client": "front", "permissions": ["read", "write"]},
        }
    ]

    async def body(self: Any) -> Any:
        return [await self.env.ADMIN.who(), await self.env.ADMIN.who()]

    answer = await ask(body, Default, Admin, services=services)
    assert answer == [["front", ["read", "write"]]] * 2


async def test_a_request_from_outside_has_no_props() -> None:
    from js import Object

    async def body(self: Any) -> Any:
        return list(Object.keys(self.ctx.props))

    assert await ask(body, Default) == []


async def test_exports_are_bindings_to_the_worker_itself() -> None:
    class Greeter(WorkerEntrypoint):
        def greet(self, name: str) -> str:
            return f"hello {name} from {getattr(self.ctx.props, 'place', 'nowhere')}"

    async def fetch(self: Any, request: Any) -> Any:
        exports = self.ctx.exports
        named = exports.Greeter(props={"place": "lisbon"})
        return Response.json(
            [
                sorted(dir_of(exports)),
                await exports.Greeter.greet("ada"),
                await named.greet("ada"),
                await exports.default.own(),
                await exports.Room.getByName("x").hello(),
            ]
        )

    def dir_of(exports: Any) -> list[str]:
        from js import Object

        return list(Object.keys(exports))

    Default = entrypoint(fetch=fetch, own=lambda self: "own")
    config = {
        "name": "front",
        "main": module(Default, Greeter, Room),
        "durable_objects": {"bindings": [{"name": "ROOMS", "class_name": "Room"}]},
    }
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == [
            ["Greeter", "Room", "default"],
            "hello ada from nowhere",
            "hello ada from lisbon",
            "own",
            "from the room",
        ]
        assert [site.name for site in emulator.faults.sites if site.name.startswith("s")] == [
            "service.Greeter.greet",
            "service.Greeter.greet",
            "service.default.own",
        ]


async def test_exports_are_not_there_before_their_date() -> None:
    async def body(self: Any) -> Any:
        return [hasattr(self.ctx, "exports"), hasattr(self.ctx, "props")]

    assert await ask(body, Default, compatibility_date="2025-11-16") == [False, True]
    assert await ask(body, Default, compatibility_date="2025-11-17") == [True, True]


# -- tests as callers ------------------------------------------------------------------------------


async def test_a_test_calls_a_service_and_meets_no_fault() -> None:
    config = [caller(lambda self: 1), callee(Default)]
    async with Emulator(config, faults="service.BACK.*#*:fail") as emulator:
        assert await emulator.env.BACK.count([1, 2]) == 2
        response = await emulator.env.BACK.fetch("https://back/")
        assert response.status == 201
        assert list(emulator.faults.fired) == []
        assert (await emulator.fetch("/", worker="back")).status_code == 201


async def test_a_test_calls_functions_that_a_service_gave_it() -> None:
    class Default(WorkerEntrypoint):
        def counter(self) -> Any:
            total = 0

            def add(number: int) -> int:
                nonlocal total
                total += number
                return total

            return add

    async with Emulator([caller(lambda self: 1), callee(Default)]) as emulator:
        add = await emulator.env.BACK.counter()
        assert [await add(2), await add(3)] == [2, 5]


async def test_the_rpc_errors_of_a_test_are_the_workers() -> None:
    async with Emulator([caller(lambda self: 1), callee(Default)]) as emulator:
        with pytest.raises(JsException, match="Method nothing does not exist"):
            await emulator.env.BACK.nothing()
        with pytest.raises(JsException, match="ValueError: no such thing"):
            await emulator.env.BACK.fail()


# -- chains ----------------------------------------------------------------------------------------


async def test_a_stub_is_passed_on_to_another_worker() -> None:
    class Middle(WorkerEntrypoint):
        async def ask(self, service: Any) -> int:
            from pyodide.ffi import to_js

            return await service.count(to_js([1, 2]))  # what a method gets is raw

    async def body(self: Any) -> Any:
        return await self.env.MIDDLE.ask(self.env.BACK)

    services = [
        {"binding": "BACK", "service": "back"},
        {"binding": "MIDDLE", "service": "middle"},
    ]
    config = [
        caller(body, services=services),
        callee(Default),
        {"name": "middle", "main": Middle},
    ]
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == 2
        by = [event.data["by"] for event in emulator.trace if event.kind == "service_call"]
        assert by == ["request GET /", "service middle ask"]


async def test_objects_and_services_call_each_other() -> None:
    class Room(DurableObject):
        async def size(self) -> int:
            return await self.env.BACK.count([1, 2, 3])

    class Default(WorkerEntrypoint):
        def count(self, items: list[int]) -> int:
            return len(items)

        async def ask(self) -> int:
            return await self.env.ROOMS.getByName("x").size()

    async def fetch(self: Any, request: Any) -> Any:
        return Response.json(await self.env.BACK.ask())

    rooms = {"bindings": [{"name": "ROOMS", "class_name": "Room", "script_name": "front"}]}
    services = [{"binding": "BACK", "service": "back"}]
    front = {"name": "front", "main": module(entrypoint(fetch=fetch), Room), "services": services}
    front["durable_objects"] = rooms
    back = {**callee(Default), "durable_objects": rooms}
    async with Emulator([front, back]) as emulator:
        assert (await emulator.fetch("/")).json() == 3


async def test_a_worker_that_calls_itself_for_ever_is_stopped() -> None:
    """Documentation, "Service bindings": at most 32 Workers; the text is from public reports."""

    class Own(WorkerEntrypoint):
        async def dive(self, depth: int) -> int:
            reached.append(depth)
            return await self.env.OWN.dive(depth + 1)

    async def fetch(self: Any, request: Any) -> Any:
        return Response.json(await told(lambda: self.env.OWN.dive(2)))

    reached: list[int] = []
    services = [{"binding": "OWN", "service": "front", "entrypoint": "Own"}]
    config = {"name": "front", "main": module(entrypoint(fetch=fetch), Own), "services": services}
    async with Emulator(config) as emulator:
        _, message = (await emulator.fetch("/")).json()
        assert "Subrequest depth limit exceeded. This request recursed through Work" in message
        assert reached == list(range(2, 33))
