"""Turns, `blockConcurrencyWhile`, and when answers leave: input and output gates.

What is interleaved was seen in runs of workerd 2026-07-30 with the same code in JavaScript.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from object_bench import inside, kept, kinds, object_class, stub, told, worker

from emulator import Emulator

pytestmark = pytest.mark.asyncio


async def gather(emulator: Emulator, method: str, *names: Any) -> list[Any]:
    one = stub(emulator)
    return await asyncio.gather(*(getattr(one, method)(name) for name in names))


async def test_what_is_read_and_written_in_a_turn_does_not_race() -> None:
    log: list[str] = []

    async def add(self: Any, name: str) -> int:
        log.append(f"{name}1")
        count = await self.ctx.storage.get("count") or 0
        log.append(f"{name}2")
        await self.ctx.storage.put("count", count + 1)
        log.append(f"{name}3")
        return count + 1

    async with Emulator(worker(object_class(add=add))) as emulator:
        assert await gather(emulator, "add", "a", "b", "c") == [1, 2, 3]
        assert log == ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"]
        assert kept(emulator) == {"count": 3}


async def test_what_waits_for_the_outside_in_between_does_race() -> None:
    async def add(self: Any, name: str) -> int:
        count = await self.ctx.storage.get("count") or 0
        await asyncio.sleep(1)
        await self.ctx.storage.put("count", count + 1)
        return count + 1

    async with Emulator(worker(object_class(add=add))) as emulator:
        assert await gather(emulator, "add", "a", "b", "c") == [1, 1, 1]
        assert kept(emulator) == {"count": 1}


async def test_a_section_keeps_others_out_across_waits() -> None:
    async def add(self: Any, name: str) -> int:
        async def section() -> int:
            count = await self.ctx.storage.get("count") or 0
            await asyncio.sleep(1)
            await self.ctx.storage.put("count", count + 1)
            return count + 1

        return await self.ctx.blockConcurrencyWhile(section)

    async with Emulator(worker(object_class(add=add))) as emulator:
        assert await gather(emulator, "add", "a", "b", "c") == [1, 2, 3]
        assert kept(emulator) == {"count": 3}


async def test_a_call_that_comes_while_the_constructor_blocks_waits_for_it() -> None:
    log: list[str] = []

    def init(self: Any, ctx: Any, env: Any) -> None:
        super(cls, self).__init__(ctx, env)

        async def load() -> None:
            log.append("loading")
            await asyncio.sleep(5)
            self.loaded = await ctx.storage.get("value")
            log.append("loaded")

        ctx.blockConcurrencyWhile(load)
        log.append("constructed")

    async def go(self: Any, name: str) -> Any:
        log.append(name)
        return self.loaded

    cls = object_class(__init__=init, go=go)
    async with Emulator(worker(cls)) as emulator:
        assert await gather(emulator, "go", "a", "b") == [None, None]
        assert log == ["constructed", "loading", "loaded", "a", "b"]


async def test_an_answer_leaves_when_what_was_written_is_durable() -> None:
    """Even one that is given before a write that follows without an await in between."""

    async def go(self: Any) -> str:
        async def afterwards() -> None:
            await self.ctx.storage.put("late", 1)

        self.task = asyncio.create_task(afterwards())
        return "answered"

    seen: list[Any] = []

    async def fetch(self: Any, request: Any) -> Any:
        answer = await self.env.OBJ.getByName("x").go()
        seen.append(kept(emulator))
        return answer

    async with Emulator(worker(object_class(go=go), fetch=fetch)) as emulator:
        assert (await emulator.fetch("/")).json() == "answered"
        assert seen == [{"late": 1}]


async def test_a_call_of_another_object_lets_events_in() -> None:
    log: list[str] = []

    async def go(self: Any, name: str) -> None:
        log.append(f"{name}: before")
        if name != "inner":
            await self.env.OBJ.getByName("other").go("inner")
            log.append(f"{name}: after")

    async with Emulator(worker(object_class(go=go))) as emulator:
        await gather(emulator, "go", "a", "b")
        assert log == [
            *("a: before", "b: before"),
            *("inner: before", "inner: before"),
            *("a: after", "b: after"),
        ]


async def test_objects_that_call_each_other_do_not_block_each_other() -> None:
    async def go(self: Any, depth: int) -> int:
        if not depth:
            return 0
        other = "y" if self.ctx.id.name == "x" else "x"
        return 1 + await self.env.OBJ.getByName(other).go(depth - 1)

    async with Emulator(worker(object_class(go=go))) as emulator:
        assert await stub(emulator).go(20) == 20


async def test_an_object_that_waits_for_itself_in_a_section_is_reset_after_30_seconds() -> None:
    async def block(self: Any) -> Any:
        return await self.ctx.blockConcurrencyWhile(self.env.OBJ.getByName("x").other)

    async def other(self: Any) -> int:
        return 1

    async with Emulator(worker(object_class(block=block, other=other))) as emulator:
        before = emulator.now
        assert await told(stub(emulator).block) == [
            "Error",
            "A call to blockConcurrencyWhile() in a Durable Object waited for too long. The call "
            "was canceled and the Durable Object was reset.",
        ]
        assert (emulator.now - before).total_seconds() == 30
        assert await stub(emulator).other() == 1


async def test_a_section_that_fails_resets_the_object_and_all_its_calls() -> None:
    async def block(self: Any) -> None:
        async def section() -> None:
            await asyncio.sleep(2)
            raise ValueError("not today")

        await self.ctx.storage.put("before", 1)
        await self.ctx.blockConcurrencyWhile(section)

    async def wait(self: Any) -> None:
        await asyncio.sleep(60)

    async def go(self: Any) -> str:
        return "new"

    cls = object_class(block=block, wait=wait, go=go)
    async with Emulator(worker(cls)) as emulator:
        one = stub(emulator)
        errors = await asyncio.gather(one.wait(), one.block(), return_exceptions=True)
        for error in errors:
            assert isinstance(error, Exception)
            assert error.name == "PythonError"  # type: ignore[attr-defined]
            assert error.message.endswith("ValueError: not today\n")  # type: ignore[attr-defined]
            assert error.durableObjectReset is True  # type: ignore[attr-defined]
            assert not hasattr(error, "remote")
        # The stub that saw it stays broken, and a new one works on a new instance.
        assert (await told(one.go))[0] == "PythonError"
        assert await stub(emulator).go() == "new"
        assert kept(emulator) == {"before": 1}
        assert kinds(emulator, "object_started", "reset") == [
            *("object_started", "reset", "object_started"),
        ]


async def test_sections_nest_only_so_deep() -> None:
    refused: list[Any] = []

    async def go(self: Any) -> int:
        async def nest(depth: int) -> int:
            found = await told(lambda: self.ctx.blockConcurrencyWhile(lambda: nest(depth + 1)))
            if isinstance(found, list):
                refused.append(found)
                return depth
            return int(found)

        return await nest(0)

    async with Emulator(worker(inside(go))) as emulator:
        assert await stub(emulator).go() == 64
        assert refused == [["Error", "blockConcurrencyWhile() calls are nested too deeply."]]


@pytest.mark.parametrize("given", [(), (5,), (None,)])
async def test_a_section_needs_a_function(given: tuple[Any, ...]) -> None:
    async def go(self: Any) -> Any:
        return await told(lambda: self.ctx.blockConcurrencyWhile(*given))

    async with Emulator(worker(inside(go))) as emulator:
        assert await stub(emulator).go() == [
            "TypeError",
            "Failed to execute 'blockConcurrencyWhile' on 'DurableObjectState': parameter 1 is not "
            "of type 'function'.",
        ]


@pytest.mark.parametrize("value", [None, 5, "text", {"a": 1}, [1]])
async def test_a_section_hands_on_what_its_function_returns(value: Any) -> None:
    async def go(self: Any) -> Any:
        async def section() -> Any:
            return value

        return [
            await self.ctx.blockConcurrencyWhile(section),
            await self.ctx.blockConcurrencyWhile(lambda: value),
        ]

    async with Emulator(worker(inside(go))) as emulator:
        assert await stub(emulator).go() == [value, value]


async def test_work_that_nobody_awaits_goes_on_after_the_call() -> None:
    async def go(self: Any) -> str:
        async def later() -> None:
            await asyncio.sleep(10)
            await self.ctx.storage.put("late", 1)

        self.task = asyncio.create_task(later())
        return "answered"

    async with Emulator(worker(inside(go))) as emulator:
        assert await stub(emulator).go() == "answered"
        assert kept(emulator) == {}
        await emulator.settle()
        assert kept(emulator) == {"late": 1}
        assert list(emulator.findings) == []


async def test_work_given_to_wait_until_goes_on_and_is_listed() -> None:
    async def go(self: Any) -> None:
        async def later() -> None:
            await asyncio.sleep(100)  # longer than a request's may
            await self.ctx.storage.put("late", 1)

        self.ctx.waitUntil(later())

    async with Emulator(worker(inside(go))) as emulator:
        await stub(emulator).go()
        assert [task.state for task in emulator.background] == ["pending"]
        await emulator.settle()
        assert [task.state for task in emulator.background] == ["done"]
        assert kept(emulator) == {"late": 1}


async def test_storage_of_another_object_cannot_be_used() -> None:
    shared: dict[str, Any] = {}

    async def keep(self: Any) -> None:
        shared["storage"] = self.ctx.storage

    async def use(self: Any) -> Any:
        return await told(lambda: shared["storage"].get("a"))

    async with Emulator(worker(object_class(keep=keep, use=use))) as emulator:
        await stub(emulator, "x").keep()
        name, text = await stub(emulator, "y").use()
        assert name == "Error"
        assert text.startswith("Cannot perform I/O on behalf of a different Durable Object. I/O ")
