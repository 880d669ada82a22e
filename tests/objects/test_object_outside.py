"""Objects and the rest of the platform: outbound requests, queues, Workflows, bodies, functions."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import httpx
import pytest
import respx
from object_bench import FROZEN, codes, inside, kept, kinds, object_class, stub, told, worker
from pyodide.ffi import to_js
from workers import Response, fetch

from emulator import Emulator
from emulator.kernel import Kernel

pytestmark = pytest.mark.asyncio

LOST = ["Error", "Network connection lost."]


# -- effects of an object --------------------------------------------------------------------------


async def calls_out(self: Any) -> str:
    await self.ctx.storage.put("asked", True)
    answer = await fetch("https://out.example/thing", method="POST")
    await self.ctx.storage.put("answered", answer.status)
    return "done"


@pytest.mark.parametrize(
    ("action", "answer", "values", "count"),
    [
        ("", "done", {"asked": True, "answered": 200}, 1),
        ("crash_before", LOST, {"asked": True}, 0),
        ("crash_after", LOST, {"asked": True}, 1),
        ("status(503)", "done", {"asked": True, "answered": 503}, 0),
    ],
)
async def test_a_request_of_an_object(action: str, answer: Any, values: Any, count: int) -> None:
    plan = f"fetch.POST.out.example/thing#1:{action}" if action else ()
    with respx.mock(assert_all_called=False) as outside:
        route = outside.post("https://out.example/thing").respond(200)
        async with Emulator(worker(inside(calls_out)), faults=plan) as emulator:
            assert await told(stub(emulator).go) == answer
            assert kept(emulator) == values
            assert route.call_count == count
            # A crash there is one of the object.
            assert kinds(emulator, "crash") == (["crash"] if answer == LOST else [])


async def test_a_request_leaves_when_what_was_written_is_durable() -> None:
    seen: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(kept(emulator))
        return httpx.Response(200)

    async def go(self: Any) -> None:
        call = asyncio.ensure_future(fetch("https://out.example/thing"))
        await asyncio.sleep(0)
        await self.ctx.storage.put("after", 1)
        await call

    with respx.mock() as outside:
        outside.get("https://out.example/thing").mock(side_effect=answer)
        async with Emulator(worker(inside(go))) as emulator:
            await stub(emulator).go()
    assert seen == [{"after": 1}]


async def test_a_message_of_an_object_and_one_of_its_worker() -> None:
    async def go(self: Any) -> None:
        await self.env.JOBS.send("from the object")

    queues = {"producers": [{"binding": "JOBS", "queue": "jobs"}]}
    plan = "send.jobs#1:crash_after"
    async with Emulator(worker(inside(go), queues=queues), faults=plan) as emulator:
        assert await told(stub(emulator).go) == LOST
        assert [message.body for message in emulator.queues["jobs"].backlog] == ["from the object"]
        assert [e.subject for e in emulator.trace if e.kind == "crash"] == ["object OBJ x"]
        assert [e.data["by"] for e in emulator.trace if e.kind == "send"] == ["object OBJ x"]


async def test_a_call_in_a_workflow_s_run_is_an_effect() -> None:
    from workers import WorkflowEntrypoint

    async def run(self: Any, event: Any, step: Any) -> Any:
        return await self.env.OBJ.getByName("x").go()

    config = worker(inside(lambda self: 1))
    config["main"].Flow = type("Flow", (WorkflowEntrypoint,), {"run": run})
    flow = {"binding": "FLOW", "name": "flow", "class_name": "Flow"}
    async with Emulator({**config, "workflows": [flow]}) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == 1
        assert codes(emulator) == ["effect_outside_step"]
        (finding,) = emulator.findings
        assert finding.message.startswith("go() of the object x of OBJ outside a step: it happens")


# -- bodies ----------------------------------------------------------------------------------------


async def test_a_body_streams_from_the_object_to_the_client() -> None:
    from js import ReadableStream

    async def chunks() -> Any:
        for number in range(3):
            await asyncio.sleep(1)
            yield to_js(f"{number};".encode())

    async def handle(self: Any, request: Any) -> Any:
        return Response(ReadableStream.from_(chunks()))

    async def front(self: Any, request: Any) -> Any:
        return await self.env.OBJ.getByName("x").fetch(request)

    config = worker(object_class(fetch=handle))
    config["main"].Default.fetch = front
    async with Emulator(config) as emulator:
        async with emulator.client.stream("GET", "/") as answer:
            found = [chunk async for chunk in answer.aiter_bytes()]
        assert b"".join(found) == b"0;1;2;"
        assert len(found) == 3


async def test_a_body_breaks_off_when_the_object_loses_its_power() -> None:
    from js import ReadableStream

    async def chunks() -> Any:
        yield to_js(b"first")
        await asyncio.sleep(100)
        yield to_js(b"never")

    async def handle(self: Any, request: Any) -> Any:
        return Response(ReadableStream.from_(chunks()))

    async def read(self: Any, request: Any) -> Any:
        answer = await self.env.OBJ.getByName("x").fetch("http://x/")
        return await told(answer.text)

    async with Emulator(worker(object_class(fetch=handle), fetch=read)) as emulator:
        call = asyncio.ensure_future(emulator.fetch("/"))
        await emulator.advance(1)
        await emulator.durable_objects["OBJ"].crash("x")
        name, text = (await call).json()
        assert "Network connection lost." in f"{name}: {text}"


# -- functions -------------------------------------------------------------------------------------


async def test_a_function_that_an_object_got_runs_where_it_came_from() -> None:
    async def visit(self: Any, callback: Any) -> list[Any]:
        return [await callback(1), await callback(2), await told(lambda: callback("x"))]

    async def fetch_(self: Any, request: Any) -> Any:
        seen: list[Any] = []

        async def callback(value: Any) -> Any:
            seen.append(value)
            return value + 1

        return [await self.env.OBJ.getByName("x").visit(callback), seen]

    async with Emulator(worker(object_class(visit=visit), fetch=fetch_)) as emulator:
        found, seen = (await emulator.fetch("/")).json()
        assert found[:2] == [2, 3]
        assert found[2][0] == "PythonError"
        assert seen == [1, 2, "x"]


async def test_a_function_of_an_object_is_an_event_of_its_own_and_dies_with_it() -> None:
    async def counter(self: Any) -> Any:
        async def add() -> int:
            count = (await self.ctx.storage.get("count") or 0) + 1
            await self.ctx.storage.put("count", count)
            return count

        return add

    async def fetch_(self: Any, request: Any) -> Any:
        add = await self.env.OBJ.getByName("x").counter()
        found = [await add(), await add()]
        await self.env.OBJ.getByName("x").leave()
        return [*found, await told(add)]

    cls = object_class(counter=counter, leave=lambda self: None)
    plan = "object.OBJ.leave#1:evict"
    async with Emulator(worker(cls, fetch=fetch_), faults=plan) as emulator:
        first, second, error = (await emulator.fetch("/")).json()
        assert (first, second) == (1, 2)
        assert error == [
            "Error",
            "The execution context which hosts this callback is no longer running.",
        ]
        assert kept(emulator) == {"count": 2}


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("date", [FROZEN, "2026-10-01"])
async def test_an_evicted_object_is_collected(date: str) -> None:
    seen: list[weakref.ref[Any]] = []

    async def go(self: Any) -> None:
        seen.append(weakref.ref(self))
        await self.ctx.storage.put("a", 1)

    async with Emulator(worker(inside(go), compatibility_date=date)) as emulator:
        for number in range(20):
            await stub(emulator, f"{number}").go()
        await emulator.evict()
        gc.collect()
        assert [one() for one in seen] == [None] * 20


async def busy(self: Any) -> str:
    storage = self.ctx.storage
    storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a)")
    await storage.put("a", 1)
    await storage.setAlarm(1)

    async def closure(txn: Any) -> None:
        await txn.put("b", 1)
        await asyncio.sleep(1)

    await storage.transaction(closure)
    self.left = asyncio.create_task(asyncio.sleep(1000))
    return await self.env.OBJ.getByName("y").quick(asyncio.sleep)


async def quick(self: Any, function: Any) -> str:
    await self.ctx.storage.get("a")
    return "done"


async def scenario(*plan: Any) -> list[Any]:
    """The sites that are met under a plan."""

    async def fetch_(self: Any, request: Any) -> Any:
        one = self.env.OBJ.getByName("x")
        return [await told(one.busy), await told(lambda: one.quick(1))]

    cls = object_class(busy=busy, quick=quick, alarm=lambda self: None)
    async with Emulator(worker(cls, fetch=fetch_), faults=plan) as emulator:
        await told(lambda: emulator.fetch("/"))
        await emulator.settle()
        return emulator.faults.sites


def kernels() -> int:
    gc.collect()
    return sum(type(one) is Kernel for one in gc.get_objects())


async def test_no_fault_keeps_an_emulator_alive() -> None:
    sites, before = await scenario(), kernels()
    faults = [fault for site in sites for fault in site.faults() if site.name[0] in "osa"]
    assert len(faults) > 20
    leaky = []
    for fault in faults:
        await scenario(fault)
        after = kernels()
        if after > before:
            leaky.append(str(fault))
        before = after
    assert leaky == []
