"""Durable Objects before 2026-04-21: the SDK in the runtime gives out what JavaScript has.

`ctx` and all that it leads to are raw; arguments need `to_js` (python-api.md 1.9, 1.13).
"""

from __future__ import annotations

from typing import Any

import pytest
from js import Object
from object_bench import FROZEN, inside, kept, object_class, stub, told, worker
from pyodide.ffi import to_js

from emulator import Emulator

pytestmark = pytest.mark.asyncio

# The three generations of Pyodide, as far as they have the frozen SDK.
DATES = ("2025-09-01", "2026-01-01", FROZEN)


def as_object(value: Any) -> Any:
    return to_js(value, dict_converter=Object.fromEntries)


@pytest.mark.parametrize("date", DATES)
async def test_storage_takes_and_gives_javascript_s_values(date: str) -> None:
    async def go(self: Any) -> Any:
        storage = self.ctx.storage
        plain = await told(lambda: storage.put("plain", {"a": 1}))
        await storage.put("object", as_object({"a": [1, 2]}))
        await storage.put("text", "t")
        found = await storage.get("object")
        return [
            plain[0],
            type(found).__name__,
            found.to_py(),
            await storage.get("text"),
            await storage.get("nope"),
            [key for key, _ in (await storage.list()).entries()],
            [key for key, _ in (await storage.list(prefix="o")).entries()],
        ]

    config = worker(inside(go), compatibility_date=date)
    async with Emulator(config) as emulator:
        found = await stub(emulator).go()
        assert found[0] == "DataCloneError"
        assert found[1:] == ["JsProxy", {"a": [1, 2]}, "t", None, ["object", "text"], ["object"]]
        assert kept(emulator) == {"object": {"a": [1, 2]}, "text": "t"}


@pytest.mark.parametrize("date", DATES)
async def test_calls_and_errors(date: str) -> None:
    async def fetch(self: Any, request: Any) -> Any:
        one = self.env.OBJ.getByName("x")
        return [
            await one.echo(1, "two", None),
            await told(one.boom),
            await told(one.nope),
        ]

    async def echo(self: Any, *values: Any) -> Any:
        return [repr(value) for value in values]

    async def boom(self: Any) -> None:
        raise ValueError("boom")

    cls = object_class(echo=echo, boom=boom)
    async with Emulator(worker(cls, fetch=fetch, compatibility_date=date)) as emulator:
        echoed, failed, missing = (await emulator.fetch("/")).json()
        assert echoed[:2] == ["1", "'two'"]
        assert (failed[0], failed[1].splitlines()[-1]) == ("Error", "ValueError: boom")
        assert missing == ["TypeError", "Method nope does not exist"]


async def test_an_abort_ends_the_code_at_once() -> None:
    async def go(self: Any) -> None:
        await self.ctx.storage.put("a", 1)
        self.ctx.abort("raw")

    config = worker(inside(go), compatibility_date=FROZEN)
    async with Emulator(config) as emulator:
        assert await told(stub(emulator).go) == ["Error", "raw"]
        assert kept(emulator) == {}


@pytest.mark.parametrize("date", DATES)
async def test_sql_and_sections(date: str) -> None:
    async def go(self: Any) -> Any:
        sql = self.ctx.storage.sql

        async def section() -> None:
            sql.exec("CREATE TABLE t (a)")
            sql.exec("INSERT INTO t VALUES (?)", 1)

        await self.ctx.blockConcurrencyWhile(section)
        return [[row.a for row in sql.exec("SELECT a FROM t")], sql.exec("SELECT 2 AS b").one().b]

    async with Emulator(worker(inside(go), compatibility_date=date)) as emulator:
        assert await stub(emulator).go() == [[1], 2]


async def test_ctx_is_what_the_platform_gives() -> None:
    async def go(self: Any) -> Any:
        return [type(self.ctx).__name__, type(self.ctx.storage).__name__, str(self.ctx.id)]

    names = {}
    for date in (FROZEN, "2026-04-21"):
        async with Emulator(worker(inside(go), compatibility_date=date)) as emulator:
            names[date] = (await stub(emulator).go())[:2]
    assert names == {
        FROZEN: ["JsProxy", "JsProxy"],
        "2026-04-21": ["DurableObjectContext", "_BindingWrapper"],
    }


async def test_a_constructor_sees_what_the_sdk_makes_of_ctx() -> None:
    seen: list[str] = []

    def init(self: Any, ctx: Any, env: Any) -> None:
        seen.append(type(ctx).__name__)
        seen.append(type(env).__name__)
        self.mine = ctx  # without `super().__init__`

    async def go(self: Any) -> Any:
        return [hasattr(self, "ctx"), self.mine.id.name]

    async with Emulator(worker(object_class(__init__=init, go=go))) as emulator:
        assert await stub(emulator).go() == [False, "x"]
        assert seen == ["DurableObjectContext", "_EnvWrapper"]
