"""Namespaces, ids, stubs and calls of Durable Objects.

Texts and names were seen in runs of miniflare 4.20260730 with the same calls in JavaScript, those
of the Python side in Pyodide 0.28.2 with the SDK's own code.
"""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest
from object_bench import (
    PROFILES,
    inside,
    kept,
    kinds,
    object_class,
    stub,
    told,
    worker,
)
from workers import DurableObject, Response, WorkerEntrypoint

from emulator import Emulator, WorkerLoadError

pytestmark = pytest.mark.asyncio

BAD_TYPE = "Failed to execute '{}' on '{}': parameter 1 is not of type '{}'."


async def ask(body: Any, cls: type[Any] | None = None, **config: Any) -> Any:
    """What a Worker's fetch handler sees: `body(env)`."""

    async def fetch(self: Any, request: Any) -> Any:
        value = body(self.env)
        return await value if hasattr(value, "__await__") else value

    profile = config.pop("profile", "production")
    async with Emulator(worker(cls, fetch=fetch, **config), profile=profile) as emulator:
        return (await emulator.fetch("/")).json()


# -- namespaces and ids ----------------------------------------------------------------------------


async def test_ids_as_code_sees_them() -> None:
    def body(env: Any) -> Any:
        id = env.OBJ.idFromName("a")
        again = env.OBJ.idFromString(id.toString())
        unique = env.OBJ.newUniqueId()
        return [
            len(str(id)),
            str(id) == id.toString(),
            id.name,
            again.name,
            id.equals(again),
            id.equals(env.OBJ.idFromName("b")),
            unique.name,
            unique.equals(env.OBJ.newUniqueId()),
            env.OBJ.idFromString(str(unique).upper()).equals(unique),
        ]

    found = await ask(body)
    assert found == [64, True, "a", None, True, False, None, False, True]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda ns: ns.idFromName(), BAD_TYPE.format("idFromName", "{}", "string")),
        (lambda ns: ns.getByName(), BAD_TYPE.format("getByName", "{}", "string")),
        (lambda ns: ns.idFromString(), BAD_TYPE.format("idFromString", "{}", "string")),
        (lambda ns: ns.idFromString("x"), "Invalid Durable Object ID: must be 64 hex digits"),
        (
            lambda ns: ns.idFromString("0" * 64),
            "Durable Object ID is not valid for this namespace.",
        ),
        (lambda ns: ns.get("x"), BAD_TYPE.format("get", "{}", "DurableObjectId")),
        (lambda ns: ns.get(), BAD_TYPE.format("get", "{}", "DurableObjectId")),
    ],
)
async def test_a_namespace_refuses_what_is_no_id(call: Any, text: str) -> None:
    found = await ask(lambda env: told(lambda: call(env.OBJ)))
    assert found == ["TypeError", text.format("DurableObjectNamespace")]


async def test_an_id_is_compared_with_ids_only() -> None:
    found = await ask(lambda env: told(lambda: env.OBJ.idFromName("a").equals("a")))
    assert found == ["TypeError", BAD_TYPE.format("equals", "DurableObjectId", "DurableObjectId")]


async def test_names_are_texts() -> None:
    def body(env: Any) -> Any:
        return [env.OBJ.idFromName(5).name, env.OBJ.idFromName("").name, env.OBJ.getByName(5).name]

    assert await ask(body) == ["5", "", "5"]


async def test_a_location_hint_is_accepted_and_a_routing_mode_checked() -> None:
    async def body(env: Any) -> Any:
        one = env.OBJ.getByName("a", locationHint="weur")
        two = env.OBJ.get(env.OBJ.idFromName("a"), {"locationHint": "nowhere"})
        three = await told(lambda: env.OBJ.getByName("a", routingMode="zzz"))
        return [await one.go(), await two.go(), three]

    found = await ask(body, inside(lambda self: 1))
    assert found == [1, 1, ["RangeError", "unknown routingMode: zzz"]]


async def test_jurisdictions_are_parts_of_their_own_in_production() -> None:
    async def body(env: Any) -> Any:
        part = env.OBJ.jurisdiction("eu")
        id = part.idFromName("a")
        outside = env.OBJ.idFromName("a")
        return [
            id.jurisdiction,
            id.equals(outside),
            part.newUniqueId().jurisdiction,
            env.OBJ.newUniqueId(jurisdiction="eu").jurisdiction,
            env.OBJ.idFromString(str(id)).jurisdiction,
            await told(lambda: part.get(outside)),
            await told(lambda: part.idFromString(str(outside))),
            await env.OBJ.get(id).go(),
        ]

    assert await ask(body, inside(lambda self: 1)) == [
        *("eu", False, "eu", "eu", "eu"),
        [
            "TypeError",
            "get called on jurisdictional subnamespace with an ID from a different jurisdiction",
        ],
        ["TypeError", "Durable Object ID is not valid for this namespace."],
        1,
    ]


async def test_jurisdictions_are_refused_by_the_local_runtime() -> None:
    def body(env: Any) -> Any:
        return told(lambda: env.OBJ.jurisdiction("eu"))

    text = "Jurisdiction restrictions are not implemented in workerd."
    assert await ask(body, profile="miniflare") == ["Error", text]


# -- calls -----------------------------------------------------------------------------------------


async def test_there_is_one_object_for_an_id_whoever_calls_it() -> None:
    def init(self: Any, ctx: Any, env: Any) -> None:
        super(cls, self).__init__(ctx, env)
        self.calls = 0

    async def go(self: Any) -> list[Any]:
        self.calls += 1
        return [self.ctx.id.name, self.calls]

    cls = object_class(__init__=init, go=go)

    async def fetch(self: Any, request: Any) -> Any:
        ns = self.env.OBJ
        by_id = ns.get(ns.idFromString(str(ns.idFromName("a"))))
        return [await ns.getByName("a").go(), await by_id.go(), await ns.getByName("b").go()]

    async with Emulator(worker(cls, fetch=fetch)) as emulator:
        assert (await emulator.fetch("/")).json() == [["a", 1], ["a", 2], ["b", 1]]
        await emulator.evict()
        assert (await emulator.fetch("/")).json() == [["a", 1], ["a", 2], ["b", 1]]
        assert await stub(emulator, "a").go() == ["a", 3]


async def test_a_stub_knows_its_id_and_name() -> None:
    def body(env: Any) -> Any:
        one, two = env.OBJ.getByName("a"), env.OBJ.get(env.OBJ.newUniqueId())
        # The SDK's wrapper of an id has no text of its own.
        same = one.id.toString() == str(env.OBJ.idFromName("a"))
        return [one.name, same, two.name, len(two.id.toString())]

    assert await ask(body) == ["a", True, None, 64]


async def test_arguments_and_results_are_copies() -> None:
    taken: list[Any] = []

    def go(self: Any, value: Any) -> Any:
        taken.append(value)
        value["list"].append("theirs")
        return value

    async def body(env: Any) -> Any:
        mine = {"list": [1, 2.5, None, True], "text": "ä"}
        theirs = await env.OBJ.getByName("a").go(mine)
        return [mine, theirs, theirs is taken[0]]

    assert await ask(body, object_class(go=go)) == [
        {"list": [1, 2.5, None, True], "text": "ä"},
        {"list": [1, 2.5, None, True, "theirs"], "text": "ä"},
        False,
    ]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("nope", ["TypeError", "Method nope does not exist"]),
        ("value", ["TypeError", "Method value does not exist"]),
        ("_private", ["TypeError", "Method _private does not exist"]),
        (
            "alarm",
            ["TypeError", "'alarm' is a reserved method and cannot be called over RPC."],
        ),
        (
            "webSocketMessage",
            ["TypeError", "'webSocketMessage' is a reserved method and cannot be called over RPC."],
        ),
    ],
)
async def test_what_cannot_be_called(name: str, found: list[str]) -> None:
    cls = object_class(
        value=5, _private=lambda self: 1, alarm=lambda self: 1, webSocketMessage=lambda self: 1
    )
    assert await ask(lambda env: told(getattr(env.OBJ.getByName("a"), name)), cls) == found


async def test_an_error_arrives_as_the_platform_s() -> None:
    def go(self: Any) -> None:
        raise LookupError("no such room")

    async def body(env: Any) -> Any:
        try:
            await env.OBJ.getByName("a").go()
        except LookupError:
            return "as it was raised"
        except Exception as error:
            lines = error.message.splitlines()  # type: ignore[attr-defined]
            return [error.name, error.type, error.remote, lines[0], lines[-1]]  # type: ignore[attr-defined]

    assert await ask(body, object_class(go=go)) == [
        *("PythonError", "LookupError", True),
        *("Traceback (most recent call last):", "LookupError: no such room"),
    ]


async def test_before_2026_04_21_the_name_is_part_of_the_text() -> None:
    def go(self: Any) -> None:
        raise LookupError("no such room")

    async def body(env: Any) -> Any:
        try:
            await env.OBJ.getByName("a").go()
        except Exception as error:
            return [error.name, error.message.splitlines()[0], hasattr(error, "type")]  # type: ignore[attr-defined]

    found = await ask(body, object_class(go=go), compatibility_date="2026-04-20")
    assert found == ["Error", "PythonError: Traceback (most recent call last):", False]


async def test_an_error_that_is_caught_leaves_nothing_behind() -> None:
    """O-40: ten concurrent calls that raise, and a body that nobody reads."""

    async def boom(self: Any, number: int) -> None:
        await asyncio.sleep(number % 3)
        raise ValueError(str(number))

    async def fetch_(self: Any, request: Any) -> Any:
        return Response("nobody reads this")

    async def fetch(self: Any, request: Any) -> Any:
        one = self.env.OBJ.getByName("a")
        await one.fetch("http://x/")
        calls = (one.boom(number) for number in range(10))
        results = await asyncio.gather(*calls, return_exceptions=True)
        return [str(result)[-3:-1] for result in results]

    cls = object_class(boom=boom, fetch=fetch_)
    async with Emulator(worker(cls, fetch=fetch)) as emulator:
        assert (await emulator.fetch("/")).json() == [f" {number}" for number in range(10)]
        assert list(emulator.findings) == []
        assert [log for log in emulator.logs if log.level == "error"] == []
        assert emulator.trace[-1].kind == "response"


# -- requests --------------------------------------------------------------------------------------


async def test_a_request_reaches_the_object_and_its_answer_comes_back() -> None:
    async def handle(self: Any, request: Any) -> Any:
        body = await request.text()
        headers = {"x-sent": request.headers["x-mine"]}
        return Response(f"{request.method} {request.url} {body}", status=201, headers=headers)

    async def body(env: Any) -> Any:
        answer = await env.OBJ.getByName("a").fetch(
            "http://room/hello?a=1", method="POST", body="text", headers={"x-mine": "1"}
        )
        return [answer.status, answer.headers["x-sent"], await answer.text()]

    assert await ask(body, object_class(fetch=handle)) == [
        *(201, "1", "POST http://room/hello?a=1 text"),
    ]


async def test_a_request_that_fails_is_an_error_and_no_answer() -> None:
    """`pyodide.http` makes of every error of JavaScript's an `AbortError`, an `OSError`."""

    async def handle(self: Any, request: Any) -> Any:
        raise ValueError("broken")

    async def body(env: Any) -> Any:
        return await told(lambda: env.OBJ.getByName("a").fetch("http://room/"))

    name, text = await ask(body, object_class(fetch=handle))
    assert (name, text.splitlines()[-1]) == ("AbortError", "ValueError: broken")


async def test_a_handler_of_requests_may_be_missing_and_an_address_wrong() -> None:
    async def body(env: Any) -> Any:
        one = env.OBJ.getByName("a")
        found = [
            await told(lambda: one.fetch("http://room/")),
            await told(lambda: one.fetch("/room")),
        ]
        return found

    assert await ask(body) == [
        ["AbortError", "Method fetch does not exist"],
        ["TypeError", "Invalid URL: /room"],
    ]


# -- the constructor -------------------------------------------------------------------------------


async def test_a_constructor_that_fails_fails_the_call_and_is_tried_again() -> None:
    tries: list[int] = []

    def init(self: Any, ctx: Any, env: Any) -> None:
        super(cls, self).__init__(ctx, env)
        tries.append(1)
        if len(tries) < 3:
            raise ValueError(f"try {len(tries)}")

    cls = object_class(__init__=init, go=lambda self: "works")

    async def body(env: Any) -> Any:
        one = env.OBJ.getByName("a")
        return [await told(one.go), await told(one.go), await told(one.go), await one.go()]

    first, second, *rest = await ask(body, cls)
    assert [first[0], first[1].splitlines()[-1]] == ["PythonError", "ValueError: try 1"]
    assert [second[0], second[1].splitlines()[-1]] == ["PythonError", "ValueError: try 2"]
    assert rest == ["works", "works"]
    assert len(tries) == 3


async def test_what_a_constructor_wrote_before_it_failed_stays() -> None:
    """S-09: a crash loop in the constructor writes once more each time, unless it looks first."""

    def init(self: Any, ctx: Any, env: Any) -> None:
        super(cls, self).__init__(ctx, env)

        async def load() -> None:
            if await ctx.storage.get("schedule") is None:
                await ctx.storage.put("schedule", "daily")
                raise RuntimeError("crashed after the write")

        ctx.blockConcurrencyWhile(load)

    cls = object_class(__init__=init, go=lambda self: "works")
    async with Emulator(worker(cls)) as emulator:
        # The failing section takes its own turn's write with it; a write before it stays.
        assert (await told(stub(emulator).go))[0] == "PythonError"
        assert kept(emulator) == {}

    def init2(self: Any, ctx: Any, env: Any) -> None:
        super(cls2, self).__init__(ctx, env)
        ctx.storage.put("schedule", "daily")
        if len(starts) < 1:
            starts.append(1)
            raise RuntimeError("crashed after the write")

    starts: list[int] = []
    cls2 = object_class(__init__=init2, go=lambda self: "works")
    async with Emulator(worker(cls2)) as emulator:
        assert (await told(stub(emulator).go))[0] == "PythonError"
        assert kept(emulator) == {"schedule": "daily"}
        assert await stub(emulator).go() == "works"


# -- ends ------------------------------------------------------------------------------------------


async def test_abort_resets_the_object_and_takes_back_its_turn() -> None:
    cleaned: list[str] = []

    async def go(self: Any) -> None:
        await self.ctx.storage.put("kept", 1)
        await asyncio.sleep(1)
        await self.ctx.storage.put("dropped", 1)
        try:
            self.ctx.abort("tired")
        except Exception:
            cleaned.append("not reached")
        finally:
            cleaned.append("finally")

    async def ok(self: Any) -> str:
        return "clean"

    async with Emulator(worker(object_class(go=go, ok=ok))) as emulator:
        one = stub(emulator)
        assert await told(one.go) == ["Error", "tired"]
        assert await told(one.ok) == ["Error", "tired"]
        assert await stub(emulator).ok() == "clean"
        assert kept(emulator) == {"kept": 1}
        assert cleaned == ["finally"]
        assert kinds(emulator, "reset", "object_started") == [
            *("object_started", "reset", "object_started"),
        ]


async def test_abort_without_a_reason_has_the_runtime_s_text() -> None:
    async def go(self: Any) -> None:
        self.ctx.abort()

    async with Emulator(worker(inside(go))) as emulator:
        assert await told(stub(emulator).go) == [
            "Error",
            "Application called abort() to reset Durable Object.",
        ]


async def test_after_an_abort_the_next_call_finds_no_stale_task() -> None:
    """S-19."""

    async def go(self: Any) -> None:
        self.ctx.abort("again")

    async def look(self: Any) -> list[str]:
        current = asyncio.current_task()
        assert current is not None
        return [str(task is current) for task in asyncio.all_tasks()]

    async with Emulator(worker(object_class(go=go, look=look))) as emulator:
        for _ in range(3):
            assert (await told(stub(emulator).go))[1] == "again"
            assert (await stub(emulator).look()).count("True") == 1
        assert list(emulator.findings) == []


async def test_what_the_config_names_must_be_there() -> None:
    module = ModuleType("entry")
    module.Default = type("Default", (WorkerEntrypoint,), {})  # type: ignore[attr-defined]
    module.Other = type("Other", (DurableObject,), {})  # type: ignore[attr-defined]
    bindings = {"bindings": [{"name": "OBJ", "class_name": "Obj"}]}
    with pytest.raises(WorkerLoadError) as raised:
        Emulator({"main": module, "durable_objects": bindings})
    assert str(raised.value) == (
        "the binding OBJ needs Obj, a DurableObject that the Worker worker exports; it exports: "
        "Other (wrangler: Your Worker depends on the following Durable Objects, which are not "
        "exported in your entrypoint file: Obj.)"
    )


async def test_a_worker_may_bind_to_the_objects_of_another() -> None:
    module = ModuleType("entry")

    async def handle(self: Any, request: Any) -> Any:
        return Response.json(await self.env.THEIRS.getByName("a").go())

    module.Default = type("Default", (WorkerEntrypoint,), {"fetch": handle})  # type: ignore[attr-defined]
    theirs = [{"name": "THEIRS", "class_name": "Obj", "script_name": "owner"}]
    config = [
        {"name": "front", "main": module, "durable_objects": {"bindings": theirs}},
        worker(inside(lambda self: self.ctx.id.name), name="owner"),
    ]
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == "a"
        assert sorted(emulator.durable_objects) == ["OBJ", "THEIRS"]
        ids = [
            [one.id for one in emulator.durable_objects[name].objects] for name in ("OBJ", "THEIRS")
        ]
        assert ids[0] == ids[1]
        # Traces call them by the binding of their own Worker.
        assert [e.subject for e in emulator.trace if e.kind == "object_call"] == ["object OBJ a"]


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_stub_can_be_passed_on_and_a_namespace_cannot(profile: Any) -> None:
    async def use(self: Any, other: Any) -> Any:
        return await other.go()

    async def body(env: Any) -> Any:
        one, two = env.OBJ.getByName("a"), env.OBJ.getByName("b")
        return [
            await one.use(two),
            await told(lambda: one.use(env.OBJ.idFromName("b"))),
        ]

    cls = object_class(use=use, go=lambda self: self.ctx.id.name)
    assert await ask(body, cls, profile=profile) == [
        "b",
        [
            "DataCloneError",
            'Could not serialize object of type "DurableObjectId". This type does not support '
            "serialization.",
        ],
    ]
