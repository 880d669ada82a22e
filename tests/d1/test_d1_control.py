"""A database in a test's hand: `emulator.d1`, and `emulator.env`."""

from __future__ import annotations

from typing import Any

import pytest
from d1_bench import ACCOUNTS, FROZEN, queries, running
from pyodide.ffi import JsException

from emulator import Emulator
from emulator.d1.control import D1Control


@pytest.mark.asyncio
async def test_a_database_is_found_by_its_binding_and_its_name() -> None:
    async with running(None, ACCOUNTS) as emulator:
        assert list(emulator.d1) == ["DB", "shop"]
        assert emulator.d1["DB"].tables == emulator.d1["shop"].tables == ["accounts"]
        assert repr(emulator.d1["DB"]) == "<D1 database DB>"
        assert isinstance(emulator.d1["DB"], D1Control)


@pytest.mark.asyncio
async def test_sql_is_executed_all_or_none_of_it() -> None:
    async with running() as emulator:
        execute = emulator.d1["DB"].execute
        assert (
            execute("CREATE TABLE t (a, b);\n\n-- then\nINSERT INTO t VALUES (1, 2);\n-- end") == []
        )
        assert execute("SELECT a, b FROM t WHERE a = ?", 1) == [{"a": 1, "b": 2}]
        with pytest.raises(JsException) as caught:
            execute("INSERT INTO t VALUES (3, 4); NONSENSE")
        assert str(caught.value) == (
            'Error: D1_ERROR: near "NONSENSE": syntax error at offset 0: SQLITE_ERROR'
        )
        assert execute("SELECT count(*) AS n FROM t") == [{"n": 1}]
        with pytest.raises(JsException, match="No SQL statements detected"):
            execute("")


@pytest.mark.asyncio
async def test_values_are_those_of_python() -> None:
    async with running(None, "CREATE TABLE t (a, b, c, d, e)") as emulator:
        database = emulator.d1["DB"]
        database.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", None, b"\x01\xff", "x", True, 1.5)
        assert database.rows("t") == [{"a": None, "b": b"\x01\xff", "c": "x", "d": 1, "e": 1.5}]
        with pytest.raises(JsException, match="D1_TYPE_ERROR: Type 'bigint' not supported"):
            database.execute("SELECT ?", 2**60)
        with pytest.raises(TypeError, match="cannot be sent over RPC"):
            database.execute("SELECT ?", (1,))


@pytest.mark.asyncio
async def test_rows_come_in_order_of_insertion_also_without_a_rowid() -> None:
    schema = "CREATE TABLE w (k TEXT PRIMARY KEY) WITHOUT ROWID"
    async with running(None, schema, 'CREATE TABLE "a ""b" (x)') as emulator:
        database = emulator.d1["DB"]
        database.execute("INSERT INTO w VALUES ('b'), ('a')")
        database.execute('INSERT INTO "a ""b" VALUES (2), (1)')
        assert database.rows("w") == [{"k": "a"}, {"k": "b"}]
        assert database.rows('a "b') == [{"x": 2}, {"x": 1}]
        with pytest.raises(JsException, match="no such table: nope"):
            database.rows("nope")


@pytest.mark.asyncio
async def test_only_what_a_test_changes_is_in_the_trace() -> None:
    async with running(None, ACCOUNTS) as emulator:
        emulator.d1["DB"].execute("SELECT * FROM accounts")
        emulator.d1["DB"].execute("INSERT INTO accounts (name) VALUES (?)", "ada")
        assert queries(emulator) == [
            ("execute", ACCOUNTS),
            ("execute", "INSERT INTO accounts (name) VALUES (?)"),
        ]
        assert {event.data["by"] for event in emulator.trace if event.kind == "query"} == {"test"}


@pytest.mark.parametrize("date", [*FROZEN, "2026-09-08"])
def test_a_test_calls_the_binding_whatever_the_workers_date(date: str) -> None:
    async def run(emulator: Emulator) -> None:
        db = emulator.env.DB
        await db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        result = await db.prepare("INSERT INTO t (a) VALUES (?)").bind(None).run()
        assert result.meta.changes == 1
        both = await db.batch([db.prepare("SELECT id FROM t"), db.prepare("SELECT ?").bind("x")])
        assert [item.results for item in both] == [[{"id": 1}], [{"?": "x"}]]
        assert await db.prepare("SELECT id FROM t").first("id") == 1
        assert await db.prepare("SELECT id FROM t").raw(columnNames=True) == [["id"], [1]]
        session = db.withSession("first-primary")
        assert session.getBookmark() is None
        await session.prepare("SELECT 1").run()
        assert session.getBookmark()
        with pytest.raises(JsException, match="D1_ERROR: no such table: nope"):
            await db.prepare("SELECT * FROM nope").all()

    from d1_bench import worker

    with Emulator(worker(compatibility_date=date)) as emulator:
        emulator.run(run(emulator))


@pytest.mark.asyncio
async def test_a_worker_sees_what_a_test_wrote_while_it_runs() -> None:
    import asyncio

    reached, go = asyncio.Event(), asyncio.Event()

    async def handle(env: Any) -> str:
        reached.set()
        await go.wait()
        return str(await env.DB.prepare("SELECT name FROM accounts").first("name"))

    async with running(handle, ACCOUNTS) as emulator:
        answer = asyncio.ensure_future(emulator.fetch("/"))
        await reached.wait()
        emulator.d1["DB"].execute("INSERT INTO accounts (name) VALUES ('ada')")
        go.set()
        assert (await answer).text == "ada"


@pytest.mark.asyncio
async def test_a_closed_emulator_has_no_database() -> None:
    async with running(None, ACCOUNTS) as emulator:
        statement = emulator.env.DB.prepare("SELECT 1")
    with pytest.raises(Exception, match=r"closed|no attribute"):
        await statement.all()
