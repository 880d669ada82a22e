"""`ctx.storage.sql`: an object's own database, and how it is one with the values by key.

What statements do is tested in tests/sql; here is what is the objects' own. Texts and sizes were
seen in runs of miniflare 4.20260730.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from object_bench import (
    KV_BACKED,
    PROFILES,
    alarms,
    inside,
    kept,
    kinds,
    object_class,
    stub,
    told,
    worker,
)

from emulator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

TABLE = "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, name TEXT)"


def rows(emulator: Emulator, query: str = "SELECT * FROM t", name: str = "x") -> list[Any]:
    return emulator.durable_objects["OBJ"].storage(name).sql(query)


async def in_object(body: Any, **config: Any) -> Any:
    """What `body(sql, storage)` returns inside an object."""
    profile = config.pop("profile", "production")

    async def go(self: Any) -> Any:
        value = body(self.ctx.storage.sql, self.ctx.storage)
        return await value if hasattr(value, "__await__") else value

    async with Emulator(worker(inside(go), **config), profile=profile) as emulator:
        return await stub(emulator).go()


async def test_a_cursor_as_the_sdk_shows_it() -> None:
    def body(sql: Any, storage: Any) -> Any:
        sql.exec(TABLE)
        written = sql.exec("INSERT INTO t (name) VALUES (?), (?)", "a", "b").rowsWritten
        cursor = sql.exec("SELECT * FROM t ORDER BY id")
        return [
            written,
            [row["name"] for row in cursor],
            cursor.rowsRead,
            list(cursor.columnNames),
            sql.exec("SELECT count(*) AS n FROM t").one().n,
            sql.exec("SELECT * FROM t").toArray(),
            [list(row) for row in sql.exec("SELECT * FROM t").raw()],
        ]

    assert await in_object(body) == [
        *(2, ["a", "b"], 2, ["id", "name"], 2),
        [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        [[1, "a"], [2, "b"]],
    ]


async def test_sizes_of_the_database() -> None:
    """The SDK's wrapper keeps the first value it read; JavaScript's object tells the truth."""

    async def body(sql: Any, storage: Any) -> Any:
        sizes = [sql.databaseSize]
        sql.exec(TABLE)
        await storage.put("a", 1)
        return [*sizes, sql.databaseSize, storage._binding.sql.databaseSize]

    assert await in_object(body) == [4096, 4096, 8192]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (
            lambda sql: sql.exec(),
            [
                "TypeError",
                "Failed to execute 'exec' on 'SqlStorage': parameter 1 is not of type 'JsString'.",
            ],
        ),
        (lambda sql: sql.exec(5), ["Error", 'near "5": syntax error at offset 0: SQLITE_ERROR']),
        (
            lambda sql: sql.exec("SELECT ?"),
            ["Error", "Wrong number of parameter bindings for SQL query."],
        ),
        (
            lambda sql: sql.exec("SELECT 1 WHERE 0").one(),
            ["Error", "Expected exactly one result from SQL query, but got no results."],
        ),
        (
            lambda sql: sql.exec("SELECT * FROM _cf_KV"),
            ["Error", "access to _cf_KV.key is prohibited: SQLITE_AUTH"],
        ),
        (
            lambda sql: sql.exec("BEGIN"),
            [
                "Error",
                "To execute a transaction, please use the state.storage.transaction() or "
                "state.storage.transactionSync() APIs instead of the SQL BEGIN TRANSACTION or "
                "SAVEPOINT statements. The JavaScript API is safer because it will automatically "
                "roll back on exceptions, and because it interacts correctly with Durable Objects' "
                "automatic atomic write coalescing.",
            ],
        ),
    ],
)
async def test_errors_are_raised_with_the_runtime_s_texts(call: Any, found: list[str]) -> None:
    async def body(sql: Any, storage: Any) -> Any:
        await storage.put("a", 1)
        sql.exec("SELECT 1")
        return await told(lambda: call(sql))

    seen = await in_object(body)
    assert seen == found


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_class_without_sqlite_has_none(profile: Any) -> None:
    async def go(self: Any) -> Any:
        return await told(lambda: self.ctx.storage.sql)

    config = worker(inside(go), migrations=KV_BACKED)
    async with Emulator(config, profile=profile) as emulator:
        name, text = await stub(emulator).go()
        assert name == "Error"
        start = {
            "production": "This Durable Object is not backed by SQLite storage, so the SQL API is",
            "miniflare": "SQL is not enabled for this Durable Object class. To enable it, change",
        }
        assert text.startswith(start[profile])


# -- one with the values ---------------------------------------------------------------------------


async def test_a_turn_s_sql_and_values_are_one() -> None:
    """A reset in the same turn takes both back."""

    async def go(self: Any, fails: bool) -> None:
        sql = self.ctx.storage.sql
        sql.exec(TABLE)
        sql.exec("INSERT INTO t (name) VALUES ('a')")
        await self.ctx.storage.put("key", "a")
        if fails:
            self.ctx.abort("no")

    async with Emulator(worker(object_class(go=go))) as emulator:
        await told(lambda: stub(emulator).go(True))
        assert kept(emulator) == {}
        assert rows(emulator, "SELECT count(*) AS n FROM sqlite_master WHERE name = 't'") == [
            {"n": 0}
        ]
        await stub(emulator).go(False)
        assert (kept(emulator), rows(emulator)) == ({"key": "a"}, [{"id": 1, "name": "a"}])
        await told(lambda: stub(emulator).go(True))
        assert (kept(emulator), rows(emulator)) == ({"key": "a"}, [{"id": 1, "name": "a"}])


async def test_transactions_hold_sql_and_values() -> None:
    async def body(sql: Any, storage: Any) -> Any:
        sql.exec(TABLE)

        async def closure(txn: Any) -> None:
            sql.exec("INSERT INTO t (name) VALUES ('in vain')")
            await txn.put("a", 1)
            await asyncio.sleep(1)
            sql.exec("INSERT INTO t (name) VALUES ('in vain')")
            raise ValueError

        def sync() -> None:
            sql.exec("INSERT INTO t (name) VALUES ('in vain')")
            storage.put("b", 1)
            raise ValueError

        def good() -> None:
            sql.exec("INSERT INTO t (name) VALUES ('kept')")

        await told(lambda: storage.transaction(closure))
        await told(lambda: storage.transactionSync(sync))
        storage.transactionSync(good)
        names = [row["name"] for row in sql.exec("SELECT name FROM t")]
        return [names, dict(await storage.list())]

    assert await in_object(body) == [["kept"], {}]


async def test_delete_all_drops_tables_and_cancels_what_reads() -> None:
    async def body(sql: Any, storage: Any) -> Any:
        sql.exec(TABLE)
        sql.exec("CREATE TABLE child (t INTEGER REFERENCES t (id)); CREATE VIEW v AS SELECT 1")
        for number in range(5):
            sql.exec("INSERT INTO t (name) VALUES (?)", f"{number}")
            sql.exec("INSERT INTO child VALUES (?)", number + 1)
        await storage.put("a", 1)
        reading = iter(sql.exec("SELECT * FROM t"))
        next(reading)
        await storage.deleteAll()
        after = await told(lambda: next(reading))
        tables = sql.exec("SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\'")
        return [after, tables.toArray(), dict(await storage.list()), sql.databaseSize]

    canceled = ["Error", "SQLite query was canceled because the database was deleted."]
    after, tables, values, size = await in_object(body)
    assert (after, tables, values) == (canceled, [], {})
    assert size <= 8192


async def test_delete_all_is_part_of_its_turn() -> None:
    async def fill(self: Any) -> None:
        self.ctx.storage.sql.exec(TABLE)
        self.ctx.storage.sql.exec("INSERT INTO t (name) VALUES ('a')")
        await self.ctx.storage.put("key", 1)

    async def clear(self: Any) -> None:
        await self.ctx.storage.deleteAll()
        self.ctx.abort("never mind")

    async with Emulator(worker(object_class(fill=fill, clear=clear))) as emulator:
        await stub(emulator).fill()
        await told(lambda: stub(emulator).clear())
        assert kept(emulator) == {"key": 1}
        assert rows(emulator) == [{"id": 1, "name": "a"}]


async def test_a_foreign_key_that_is_checked_late_resets_the_object() -> None:
    async def go(self: Any) -> str:
        sql = self.ctx.storage.sql
        sql.exec(TABLE)
        sql.exec(
            "CREATE TABLE IF NOT EXISTS child "
            "(t INTEGER REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED)"
        )
        await self.ctx.storage.put("key", 1)
        sql.exec("INSERT INTO child VALUES (7)")
        return "not told"

    async with Emulator(worker(inside(go))) as emulator:
        assert await told(stub(emulator).go) == [
            "Error",
            "FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: "
            "SQLITE_CONSTRAINT_FOREIGNKEY)",
        ]
        assert kept(emulator) == {}
        assert kinds(emulator, "reset") == ["reset"]


# -- what lasts ------------------------------------------------------------------------------------


async def counting(self: Any) -> Any:
    sql, storage = self.ctx.storage.sql, self.ctx.storage
    sql.exec(TABLE)
    sql.exec("INSERT INTO t (name) VALUES ('a')")
    count = (await storage.get("count") or 0) + 1
    await storage.put("count", count)
    await storage.setAlarm(self.at)
    return [count, sql.exec("SELECT count(*) AS n FROM t").one().n]


def counter(at: int) -> type[Any]:
    return object_class(go=counting, at=at, alarm=lambda self: None)


@pytest.mark.parametrize("how", ["evict", "crash", "restart"])
async def test_what_was_durable_is_there_again(how: str) -> None:
    async with Emulator(worker(counter(1_767_225_600_000 + 60_000))) as emulator:
        assert await stub(emulator).go() == [1, 1]
        await getattr(emulator, how)()
        assert await stub(emulator).go() == [2, 2]
        assert kept(emulator) == {"count": 2}
        await emulator.settle()
        assert alarms(emulator) == [(60, "alarm"), (60, "alarm_done")]


async def test_a_state_file_keeps_databases_beside_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    config = worker(counter(1_767_225_600_000 + 60_000))
    for number in (1, 2, 3):
        async with Emulator(config, state=state) as emulator:
            assert await stub(emulator).go() == [number, number]
            assert emulator.durable_objects["OBJ"].alarm("x") is not None
    files = sorted(path.name for path in (tmp_path / "state.databases").rglob("*.sqlite"))
    assert len(files) == 1
    async with Emulator(config, state=state) as emulator:
        await emulator.reset()
        assert kept(emulator) == {}
        assert await stub(emulator).go() == [1, 1]


async def test_values_from_before_the_database_move_into_it(tmp_path: Path) -> None:
    async def put(self: Any, key: str, value: Any) -> None:
        await self.ctx.storage.put(key, value)

    async def sql(self: Any) -> None:
        self.ctx.storage.sql.exec(TABLE)

    async def alarm(self: Any) -> None:
        await self.ctx.storage.put("rang", True)

    config = worker(object_class(put=put, sql=sql, alarm=alarm))
    state = tmp_path / "state"
    async with Emulator(config, state=state) as emulator:
        one = stub(emulator)
        await one.put("before", 1)
        await one.sql()
        await one.put("after", 2)
    async with Emulator(config, state=state) as emulator:
        assert kept(emulator) == {"after": 2, "before": 1}
        assert [record.name for record in emulator.durable_objects["OBJ"].objects] == ["x"]


async def test_objects_have_databases_of_their_own() -> None:
    async def add(self: Any, name: str) -> int:
        sql = self.ctx.storage.sql
        sql.exec(TABLE)
        sql.exec("INSERT INTO t (name) VALUES (?)", name)
        return int(sql.exec("SELECT count(*) AS n FROM t").one().n)

    async with Emulator(worker(object_class(add=add))) as emulator:
        found = [await stub(emulator, name).add(name) for name in ("a", "b", "a")]
        assert found == [1, 1, 2]
        assert rows(emulator, name="b") == [{"id": 1, "name": "b"}]


async def test_a_test_reads_and_cannot_write() -> None:
    async with Emulator(worker(counter(1_767_225_600_000 + 60_000))) as emulator:
        storage = emulator.durable_objects["OBJ"].storage("x")
        with pytest.raises(ValueError, match="this object of OBJ has used no SQL yet"):
            storage.sql("SELECT 1")
        await stub(emulator).go()
        assert storage.sql("SELECT name, ? AS two FROM t", 2) == [{"name": "a", "two": 2}]
        with pytest.raises(ValueError, match="reads, and this writes: DELETE FROM t"):
            storage.sql("DELETE FROM t")
