"""`emulator.durable_objects`: what a test sees of objects, and does to them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from object_bench import inside, kept, kinds, object_class, stub, told, worker
from workers import Response

from emulator import Emulator, InsideSimulation

pytestmark = pytest.mark.asyncio


def init(self: Any, ctx: Any, env: Any) -> None:
    super(type(self), self).__init__(ctx, env)
    self.calls = 0


async def add(self: Any) -> list[int]:
    self.calls += 1
    count = (await self.ctx.storage.get("count") or 0) + 1
    await self.ctx.storage.put("count", count)
    return [self.calls, count]


COUNTER = object_class(__init__=init, add=add)


async def test_an_unknown_binding_names_those_there_are() -> None:
    async with Emulator(worker(COUNTER)) as emulator:
        with pytest.raises(KeyError) as raised:
            emulator.durable_objects["ROOMS"]
        assert raised.value.args[0] == (
            "there is no Durable Object binding 'ROOMS'; there are: OBJ"
        )


async def test_a_stub_of_the_test() -> None:
    async def handle(self: Any, request: Any) -> Any:
        return Response.json({"url": request.url, "name": self.ctx.id.name})

    cls = object_class(__init__=init, add=add, fetch=handle)
    async with Emulator(worker(cls)) as emulator:
        one = emulator.durable_objects["OBJ"].get("lobby")
        assert one.name == "lobby"
        assert await one.add() == [1, 1]
        answer = await one.fetch("http://x/hello")
        assert await answer.json() == {"url": "http://x/hello", "name": "lobby"}
        # The env of the test has the same, with ids.
        namespace = emulator.env.OBJ
        id = namespace.idFromName("lobby")
        assert await namespace.get(id).add() == [2, 2]
        assert await namespace.getByName("lobby").add() == [3, 3]
        assert await namespace.jurisdiction("eu").getByName("lobby").add() == [1, 1]
        with pytest.raises(Exception, match="Method nope does not exist"):
            await one.nope()


async def test_an_object_can_be_named_by_its_id() -> None:
    async with Emulator(worker(COUNTER)) as emulator:
        objects = emulator.durable_objects["OBJ"]
        id = str(emulator.env.OBJ.newUniqueId())
        assert await objects.get(id).add() == [1, 1]
        assert dict(objects.storage(id)) == {"count": 1}
        await objects.evict(id)
        assert await objects.get(id).add() == [1, 2]
        assert [(one.id, one.name) for one in objects.objects] == [(id, None)]
        # Digits of another namespace are a name like any other.
        assert await objects.get("0" * 64).add() == [1, 1]


async def test_storage_is_a_mapping_that_cannot_be_written_to() -> None:
    async def go(self: Any) -> None:
        await self.ctx.storage.put({"b": [1, None], "a": {"x": 1.0}, "c": b"bytes"})

    async with Emulator(worker(inside(go))) as emulator:
        storage = emulator.durable_objects["OBJ"].storage("x")
        assert (dict(storage), len(storage), "a" in storage) == ({}, 0, False)
        await stub(emulator).go()
        assert list(storage) == ["a", "b", "c"]
        assert dict(storage) == {"a": {"x": 1}, "b": [1, None], "c": b"bytes"}
        assert repr(storage) == "{'a': {'x': 1}, 'b': [1, None], 'c': b'bytes'}"
        storage["b"].append("changed")
        assert storage["b"] == [1, None]
        with pytest.raises(KeyError):
            storage["nope"]
        assert not hasattr(storage, "__setitem__")


async def test_the_objects_that_there_are() -> None:
    async def nothing(self: Any) -> None: ...

    async with Emulator(worker(object_class(__init__=init, add=add, no=nothing))) as emulator:
        objects = emulator.durable_objects["OBJ"]
        assert objects.objects == []
        await objects.get("a").add()
        await objects.get("b").no()
        assert [(one.name, one.in_memory) for one in objects.objects] == [("a", True), ("b", True)]
        await emulator.evict()
        assert [(one.name, one.in_memory) for one in objects.objects] == [("a", False)]
        assert repr(objects) == "<Durable Objects of OBJ: 1>"


async def test_an_eviction_loses_attributes_and_keeps_storage() -> None:
    """O-39."""
    async with Emulator(worker(COUNTER)) as emulator:
        objects = emulator.durable_objects["OBJ"]
        assert await stub(emulator).add() == [1, 1]
        assert await stub(emulator).add() == [2, 2]
        await objects.evict("x")
        assert await stub(emulator).add() == [1, 3]
        await objects.crash("x")
        assert await stub(emulator).add() == [1, 4]
        assert kinds(emulator, "object_started", "evict", "crash") == [
            *("object_started", "evict", "object_started", "crash", "object_started"),
        ]


async def test_an_eviction_waits_for_what_goes_on_and_a_crash_does_not() -> None:
    log: list[str] = []

    async def slow(self: Any) -> str:
        await asyncio.sleep(10)
        log.append("done")
        return "answer"

    async with Emulator(worker(object_class(slow=slow))) as emulator:
        objects = emulator.durable_objects["OBJ"]
        call = asyncio.ensure_future(stub(emulator).slow())
        await emulator.run_until(lambda: kinds(emulator, "object_started"))
        await objects.evict("x")
        assert (await call, log) == ("answer", ["done"])
        call = asyncio.ensure_future(told(stub(emulator).slow))
        await emulator.run_until(lambda: kinds(emulator, "object_started").__len__() == 2)
        await objects.crash("x")
        assert await call == ["Error", "Network connection lost."]
        assert log == ["done"]


@pytest.mark.parametrize("how", ["evict", "crash"])
async def test_what_is_not_in_memory_cannot_be_evicted(how: str) -> None:
    async with Emulator(worker(COUNTER)) as emulator:
        await getattr(emulator.durable_objects["OBJ"], how)("x")
        assert kinds(emulator) == []


async def test_a_lost_connection_may_be_tried_again() -> None:
    """The runtime says so, and the stub is good for it."""

    async def slow(self: Any) -> None:
        await asyncio.sleep(10)

    async def fetch(self: Any, request: Any) -> Any:
        one = self.env.OBJ.getByName("x")
        try:
            await one.slow()
        except Exception as error:
            return [str(error), error.retryable, await one.add()]  # type: ignore[attr-defined]

    cls = object_class(__init__=init, add=add, slow=slow)
    async with Emulator(worker(cls, fetch=fetch)) as emulator:
        call = asyncio.ensure_future(emulator.fetch("/"))
        await emulator.run_until(lambda: kinds(emulator, "object_started"))
        await emulator.durable_objects["OBJ"].crash("x")
        assert (await call).json() == ["Error: Network connection lost.", True, [1, 1]]


async def test_the_hands_are_the_test_s() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        return await told(lambda: emulator.durable_objects["OBJ"].evict("x"))

    async with Emulator(worker(COUNTER, fetch=fetch)) as emulator:
        await stub(emulator).add()
        name, _ = (await emulator.fetch("/")).json()
        assert name == InsideSimulation.__name__


async def test_a_crash_of_the_emulator_takes_objects_and_workers() -> None:
    async def slow(self: Any) -> None:
        await asyncio.sleep(10)
        await self.ctx.storage.put("not", "reached")

    async with Emulator(worker(object_class(slow=slow))) as emulator:
        call = asyncio.ensure_future(told(stub(emulator).slow))
        await emulator.run_until(lambda: kinds(emulator, "object_started"))
        await emulator.crash()
        assert (await call)[1] == "Network connection lost."
        await emulator.settle()
        assert kept(emulator) == {}


async def test_what_waits_for_an_object_is_named_when_nothing_goes_on() -> None:
    from emulator import Stuck

    async def never(self: Any) -> None:
        await asyncio.get_running_loop().create_future()

    async def fetch(self: Any, request: Any) -> Any:
        return await self.env.OBJ.getByName("x").never()

    async with Emulator(worker(object_class(never=never), fetch=fetch)) as emulator:
        with pytest.raises(Stuck) as raised:
            await emulator.fetch("/")
        assert "object OBJ x waits at " in str(raised.value)
        assert "test_object_control.py:" in str(raised.value)
