"""What user code gets of D1: shapes of results, errors, batches, sessions.

Facts about the runtime were seen in miniflare 4.20260730 with workerd 1.20260730.1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from d1_bench import ACCOUNTS, EXTERNAL, FROZEN, PROFILES, got, problem, queries, running
from pyodide.ffi import JsException

from emulator.d1 import store

pytestmark = pytest.mark.asyncio

T = "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b TEXT)"
ROWS = "INSERT INTO t (a, b) VALUES (1, 'x'), (2, NULL)"


# -- results ---------------------------------------------------------------------------------------


async def test_a_result_has_success_meta_and_rows() -> None:
    """python-api.md 1.7; the fields of `meta` are those of the documentation and of answers seen
    in public logs."""
    result = await got(lambda env: env.DB.prepare("SELECT * FROM t").all(), T, ROWS)
    assert list(result) == ["success", "meta", "results"]
    assert result.success is True
    assert result.results == [{"id": 1, "a": 1, "b": "x"}, {"id": 2, "a": 2, "b": None}]
    assert result["results"][0]["b"] == result.results[0].b == "x"
    assert result.meta == {
        "served_by": "v3-prod",
        "served_by_region": "WEUR",
        "served_by_colo": "AMS",
        "served_by_primary": True,
        "timings": {"sql_duration_ms": 0},
        "duration": 0,
        "changes": 0,
        "last_row_id": 2,
        "changed_db": False,
        "size_after": 12288,
        "rows_read": 2,
        "rows_written": 0,
        "total_attempts": 1,
    }


async def test_the_local_simulator_tells_less() -> None:
    result = await got(
        lambda env: env.DB.prepare("INSERT INTO t (a) VALUES (1)").run(), T, profile="miniflare"
    )
    assert result.meta == {
        "served_by": "miniflare.db",
        "duration": 0,
        "changes": 1,
        "last_row_id": 1,
        "changed_db": True,
        "size_after": 12288,
        "rows_read": 0,
        "rows_written": 1,
    }


@pytest.mark.parametrize(
    ("sql", "changes", "last", "changed"),
    [
        ("SELECT 1", 0, 2, False),
        ("INSERT INTO t (a) VALUES (3), (4)", 2, 4, True),
        ("UPDATE t SET a = 5", 2, 2, True),
        ("DELETE FROM t WHERE id = 9", 0, 2, False),
        ("CREATE TABLE u (a)", 0, 2, True),
        ("CREATE TABLE IF NOT EXISTS t (a)", 0, 2, False),
    ],
)
async def test_meta_tells_what_changed(sql: str, changes: int, last: int, changed: bool) -> None:
    meta = (await got(lambda env: env.DB.prepare(sql).run(), T, ROWS)).meta
    assert (meta.changes, meta.last_row_id, meta.changed_db) == (changes, last, changed)


@pytest.mark.parametrize("method", ["run", "all"])
async def test_run_returns_rows_as_all_does(method: str) -> None:
    async def handle(env: Any) -> Any:
        insert = env.DB.prepare("INSERT INTO t (a) VALUES (7) RETURNING id, a")
        return (await getattr(insert, method)()).results

    assert await got(handle, T) == [{"id": 1, "a": 7}]


async def test_raw_gives_lists_and_the_names_of_the_columns_if_asked() -> None:
    async def handle(env: Any) -> Any:
        statement = env.DB.prepare("SELECT 1 AS a, 2 AS a")
        empty = env.DB.prepare("SELECT 1 AS a WHERE 0")
        return [
            await statement.raw(),
            await statement.raw(columnNames=True),
            await statement.raw({"columnNames": True}),
            await statement.raw({"columnNames": False}),
            await empty.raw(columnNames=True),
            (await statement.all()).results,
        ]

    names, row = ["a", "a"], [1, 2]
    assert await got(handle) == [[row], [names, row], [names, row], [row], [["a"]], [{"a": 2}]]


async def test_first_gives_a_row_a_column_or_none() -> None:
    async def handle(env: Any) -> Any:
        statement, none = env.DB.prepare("SELECT * FROM t"), env.DB.prepare("SELECT 1 WHERE 0")
        return [
            await statement.first(),
            await statement.first("b"),
            await none.first(),
            await none.first("anything"),
            await env.DB.prepare("SELECT NULL AS a").first("a"),
            await problem(lambda: statement.first("nope")),
            await problem(lambda: statement.first(None)),
        ]

    assert await got(handle, T, ROWS) == [
        {"id": 1, "a": 1, "b": "x"},
        "x",
        None,
        None,
        None,
        "Error: D1_COLUMN_NOTFOUND: Column not found (nope)",
        "Error: D1_COLUMN_NOTFOUND: Column not found (null)",
    ]


async def test_numbers_beyond_what_javascript_counts_lose_their_last_digits() -> None:
    sql = "SELECT 9007199254740993 AS x, 9223372036854775807 AS y, 1e400 AS z, 1.0 AS w"
    row = await got(lambda env: env.DB.prepare(sql).first())
    assert row == {"x": 9007199254740992, "y": 9223372036854775807.0, "z": None, "w": 1}
    assert type(row.w) is int


async def test_a_blob_comes_back_as_a_list_of_numbers() -> None:
    row = await got(lambda env: env.DB.prepare("SELECT x'01ff' AS b, '\ud83d\ude00' AS s").first())
    assert (row.b, row.s) == ([1, 255], "😀")


async def test_a_statement_can_be_bound_again_and_shows_what_it_has() -> None:
    async def handle(env: Any) -> Any:
        statement = env.DB.prepare("SELECT ? AS a")
        first, second = statement.bind(1), statement.bind(True).bind("two")
        return [
            (await second.first()).a,
            (await first.first()).a,
            second.statement,
            second.params,
            statement.params,
        ]

    assert await got(handle) == ["two", 1, "SELECT ? AS a", ["two"], []]


# -- errors ----------------------------------------------------------------------------------------


async def test_what_is_wrong_with_sql_is_told_in_d1s_words() -> None:
    async def handle(env: Any) -> Any:
        try:
            await env.DB.prepare("INSERT INTO accounts (name) VALUES (?)").bind("ada").run()
        except JsException as error:
            return [str(error), error.name, error.message, str(error.cause)]
        return None

    text = (
        "UNIQUE constraint failed: accounts.name: SQLITE_CONSTRAINT "
        "(extended: SQLITE_CONSTRAINT_UNIQUE)"
    )
    assert await got(handle, ACCOUNTS, "INSERT INTO accounts (name) VALUES ('ada')") == [
        f"Error: D1_ERROR: {text}",
        "Error",
        f"D1_ERROR: {text}",
        f"Error: {text}",
    ]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT * FROM nope", "no such table: nope: SQLITE_ERROR"),
        ("SELECT nope FROM t", "no such column: nope at offset 7: SQLITE_ERROR"),
        ("", "No SQL statements detected."),
        ("  ", "No SQL statements detected."),
        (" -- only this", "No SQL statements detected."),
        ("-- only this", "SQL code did not contain a statement."),
        ("SELECT ?", "Wrong number of parameter bindings for SQL query."),
        ("PRAGMA user_version", "not authorized: SQLITE_AUTH"),
        ("SELECT * FROM _cf_METADATA", "access to _cf_METADATA.key is prohibited: SQLITE_AUTH"),
        ("DROP TABLE _cf_METADATA", "not authorized: SQLITE_AUTH"),
    ],
)
@pytest.mark.parametrize("method", ["run", "all", "first", "raw"])
async def test_every_method_fails_alike(sql: str, text: str, method: str) -> None:
    async def handle(env: Any) -> str:
        return await problem(getattr(env.DB.prepare(sql), method))

    assert await got(handle, T) == f"Error: D1_ERROR: {text}"


async def test_the_platforms_own_table_shows_in_lists_as_in_production() -> None:
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    assert await got(lambda env: env.DB.prepare(sql).raw(), T) == [["_cf_METADATA"], ["t"]]


async def test_transactions_are_refused_with_the_runtimes_advice() -> None:
    async def handle(env: Any) -> str:
        return await problem(lambda: env.DB.exec("BEGIN TRANSACTION"))

    assert "please use the state.storage.transaction()" in await got(handle)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda db: db.batch(None), "TypeError: Cannot read properties of null (reading 'map')"),
        (lambda db: db.batch(), "TypeError: Cannot read properties of undefined (reading 'map')"),
        (lambda db: db.batch({"a": 1}), "TypeError: statements.map is not a function"),
        (
            lambda db: db.batch(db.prepare("SELECT 1")),
            "TypeError: statements.map is not a function",
        ),
        (
            lambda db: db.batch([None]),
            "TypeError: Cannot read properties of null (reading 'statement')",
        ),
        (lambda db: db.batch(["SELECT 1"]), "Error: D1_ERROR: the query is not a text"),
        (lambda db: db.batch([]), "Error: D1_ERROR: No SQL statements detected."),
        (lambda db: db.exec(5), "TypeError: query.trim is not a function"),
        (lambda db: db.exec(None), "TypeError: Cannot read properties of null (reading 'trim')"),
        (lambda db: db.prepare(5).all(), "Error: D1_ERROR: the query is not a text"),
        (
            lambda db: db.withSession(5),
            "TypeError: constraintOrBookmark?.trim is not a function",
        ),
        (lambda db: db.withSession().exec("SELECT 1"), "AttributeError: exec"),
        (lambda db: db.query("SELECT 1"), "AttributeError: query"),
    ],
)
async def test_wrong_arguments_are_refused_as_the_runtime_does(make: Any, text: str) -> None:
    async def handle(env: Any) -> str:
        return await problem(lambda: make(env.DB))

    assert await got(handle) == text


@pytest.mark.parametrize(("profile", "status"), [("production", 400), ("miniflare", 404)])
async def test_a_database_cannot_be_dumped(profile: str, status: int) -> None:
    async def handle(env: Any) -> str:
        return await problem(env.DB.dump)

    assert await got(handle, profile=profile) == f"Error: D1_DUMP_ERROR: Status + {status}"


async def test_an_error_nobody_takes_is_the_answer_with_the_users_line() -> None:
    async def handle(env: Any) -> Any:
        return await env.DB.prepare("SELECT * FROM nope").run()

    async with running(handle) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert response.text == "Error: D1_ERROR: no such table: nope: SQLITE_ERROR"
        (found,) = emulator.findings.unexpected() or list(emulator.findings)
        assert (found.code, "D1_ERROR: no such table" in found.message) == (
            "handler_exception",
            True,
        )
        assert "test_d1_queries.py" in str(found.location)


# -- several statements ----------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_batch_is_a_transaction(profile: str) -> None:
    async def handle(env: Any) -> Any:
        insert = env.DB.prepare("INSERT INTO accounts (name) VALUES (?)")
        good = await env.DB.batch(
            [insert.bind("ada"), insert.bind("eve"), env.DB.prepare("SELECT name FROM accounts")]
        )
        bad = await problem(lambda: env.DB.batch([insert.bind("bob"), insert.bind("ada")]))
        after = await env.DB.prepare("SELECT name FROM accounts").raw()
        return [[r.results for r in good], [r.meta.changes for r in good], bad, after]

    results, changes, bad, after = await got(handle, ACCOUNTS, profile=profile)
    assert results == [[], [], [{"name": "ada"}, {"name": "eve"}]]
    assert changes == [1, 1, 0]
    assert bad.startswith("Error: D1_ERROR: UNIQUE constraint failed: accounts.name")
    assert after == [["ada"], ["eve"]]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OR FAIL INTO accounts (name) VALUES ('bob'), ('ada')",
        "INSERT OR ROLLBACK INTO accounts (name) VALUES ('bob'), ('ada')",
        "INSERT INTO accounts (name) VALUES ('bob'); INSERT INTO accounts (name) VALUES ('ada')",
    ],
)
async def test_nothing_stays_of_a_statement_that_fails(sql: str) -> None:
    async def handle(env: Any) -> Any:
        await env.DB.prepare("INSERT INTO accounts (name) VALUES ('ada')").run()
        refused = await problem(env.DB.prepare(sql).run)
        return [refused[:30], await env.DB.prepare("SELECT name FROM accounts").raw()]

    assert await got(handle, ACCOUNTS) == ["Error: D1_ERROR: UNIQUE constr", [["ada"]]]


async def test_foreign_keys_that_are_put_off_are_checked_when_the_batch_ends() -> None:
    async def handle(env: Any) -> Any:
        prepare = env.DB.prepare
        defer = prepare("PRAGMA defer_foreign_keys = on")
        child, parent = prepare("INSERT INTO c VALUES (?)"), prepare("INSERT INTO p VALUES (?)")
        whole = await env.DB.batch([defer, child.bind(1), parent.bind(1)])
        refused = await problem(lambda: env.DB.batch([defer, child.bind(2)]))
        at_once = await problem(child.bind(3).run)
        rows = await prepare("SELECT p FROM c").raw()
        return [[r.meta.changes for r in whole], refused, at_once, rows]

    text = (
        "Error: D1_ERROR: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT "
        "(extended: SQLITE_CONSTRAINT_FOREIGNKEY)"
    )
    schema = ("CREATE TABLE p (id INTEGER PRIMARY KEY)", "CREATE TABLE c (p REFERENCES p(id))")
    assert await got(handle, *schema) == [[0, 1, 1], text, text, [[1]]]


async def test_exec_runs_line_by_line_all_or_none() -> None:
    async def handle(env: Any) -> Any:
        execute = env.DB.exec
        return [
            await execute("SELECT 1; SELECT 2;"),
            await execute("  INSERT INTO t (a) VALUES (1);\n\nINSERT INTO t (a) VALUES (2);\n"),
            await problem(lambda: execute("INSERT INTO t (a) VALUES (3);\nNOPE;")),
            await problem(lambda: execute("SELECT 1\n, 2;")),
            await problem(lambda: execute("SELECT 1;\n-- two")),
            await problem(lambda: execute("")),
            await env.DB.prepare("SELECT a FROM t").raw(),
        ]

    assert await got(handle, T) == [
        {"count": 1, "duration": 0},
        {"count": 2, "duration": 0},
        'Error: D1_EXEC_ERROR: Error in line 1: INSERT INTO t (a) VALUES (3);: near "NOPE": '
        "syntax error at offset 0: SQLITE_ERROR",
        'Error: D1_EXEC_ERROR: Error in line 1: SELECT 1: near ",": syntax error at offset 0: '
        "SQLITE_ERROR",
        "Error: D1_EXEC_ERROR: Error in line 1: SELECT 1;: SQL code did not contain a statement.",
        "Error: D1_EXEC_ERROR: Error in line 1: : No SQL statements detected.",
        [[1], [2]],
    ]


async def test_a_statement_with_several_gives_the_rows_of_the_last() -> None:
    async def handle(env: Any) -> Any:
        return (await env.DB.prepare("SELECT 1 AS a; SELECT ? AS b").bind(2).all()).results

    assert await got(handle) == [{"b": 2}]


# -- sessions --------------------------------------------------------------------------------------


async def test_a_session_knows_how_far_the_database_was() -> None:
    async def handle(env: Any) -> Any:
        marks = []
        session = env.DB.withSession()
        marks.append(session.getBookmark())
        await session.prepare("SELECT 1").run()
        marks.append(session.getBookmark())
        await session.batch([session.prepare("INSERT INTO t (a) VALUES (1)")])
        marks.append(session.getBookmark())
        other = env.DB.withSession(marks[-1])
        marks.append(other.getBookmark())
        await env.DB.prepare("INSERT INTO t (a) VALUES (2)").run()
        rows = await other.prepare("SELECT a FROM t").raw()
        return marks, other.getBookmark(), rows

    marks, last, rows = await got(handle, T)
    assert marks[0] is None
    assert marks[1] < marks[2] == marks[3] < last
    assert [len(part) for part in last.split("-")] == [8, 8, 8, 32]
    assert rows == [[1], [2]]


@pytest.mark.parametrize("constraint", [None, "", "  ", "first-primary", "first-unconstrained"])
async def test_a_constraint_is_no_bookmark(constraint: Any) -> None:
    async def handle(env: Any) -> Any:
        session = env.DB.withSession(constraint)
        before = session.getBookmark()
        await session.prepare("SELECT 1").first()
        return before, session.getBookmark()

    before, after = await got(handle)
    assert before is None
    assert after is not None


# -- both SDKs, and the trace ----------------------------------------------------------------------


@pytest.mark.parametrize("date", EXTERNAL)
async def test_the_external_sdk_gives_plain_python(date: str) -> None:
    async def handle(env: Any) -> Any:
        result = await env.DB.prepare("SELECT NULL AS n, 1 AS a").all()
        rows = await env.DB.batch([env.DB.prepare("SELECT 1 AS a")])
        return [
            type(env.DB).__name__,
            type(result).__name__,
            type(result.results).__name__,
            result.results[0],
            hasattr(result.results, "to_py"),
            rows[0].results,
            await env.DB.prepare("SELECT 1 WHERE 0").first(),
        ]

    assert await got(handle, date=date) == [
        "_BindingWrapper",
        "JsDict",
        "list",
        {"n": None, "a": 1},
        False,
        [{"a": 1}],
        None,
    ]


@pytest.mark.parametrize("date", FROZEN)
async def test_the_frozen_sdk_leaves_everything_raw(date: str) -> None:
    """python-api.md 1.13; null is None on Pyodide 0.26 and `jsnull` later."""

    async def handle(env: Any) -> Any:
        result = await env.DB.prepare("SELECT NULL AS n, 1 AS a").all()
        statement = env.DB.prepare("SELECT 1 AS a")
        batch = await env.DB.batch([statement, statement])
        missing = await env.DB.prepare("SELECT 1 WHERE 0").first()
        return [
            type(env.DB).__name__,
            type(result).__name__,
            result.results[0].a,
            await problem(lambda: result.results[0]["a"]),
            repr(result.results.to_py()[0]["n"]),
            repr(missing),
            [item.results[0].a for item in batch],
            (await statement.raw(columnNames=True)).to_py(),
        ]

    null = "None" if date < "2025-09-29" else "jsnull"
    assert await got(handle, date=date) == [
        "JsProxy",
        "JsProxy",
        1,
        "TypeError: 'pyodide.ffi.JsProxy' object is not subscriptable",
        null,
        null,
        [1, 1],
        [["a"], [1]],
    ]


async def test_the_trace_has_each_query_with_its_caller_and_no_parameters() -> None:
    async def handle(env: Any) -> Any:
        await env.DB.prepare("INSERT INTO t (a) VALUES (?)").bind("private").run()
        await env.DB.batch([env.DB.prepare("SELECT 1"), env.DB.prepare("SELECT 2")])
        await problem(env.DB.prepare("SELECT nope").all)
        return "done"

    async with running(handle, T) as emulator:
        await emulator.fetch("/")
        events = [event for event in emulator.trace if event.kind == "query"]
        assert {event.subject for event in events} == {"d1 DB"}
        assert queries(emulator) == [
            ("execute", T),
            ("run", "INSERT INTO t (a) VALUES (?)"),
            ("batch", ["SELECT 1", "SELECT 2"]),
            ("all", "SELECT nope"),
        ]
        assert events[1].data["by"] == "request GET /"
        assert events[1].data["changes"] == 1
        assert events[3].data["error"] == "no such column: nope at offset 7: SQLITE_ERROR"
        assert "private" not in emulator.trace.to_jsonl()


async def test_a_call_takes_effect_when_it_is_made_awaited_or_not() -> None:
    """Binding calls are eager; one nobody awaits is a finding (python-api.md 0.7)."""

    async def handle(env: Any) -> Any:
        pending = env.DB.prepare("INSERT INTO t (a) VALUES (1)").run()
        found = await env.DB.prepare("SELECT count(*) AS n FROM t").first("n")
        await pending
        return found

    assert await got(handle, T) == 1


async def test_a_query_that_never_ends_fails_as_in_production(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The text is that of public reports; what was written before stays."""
    monkeypatch.setattr(store, "LIMITS", replace(store.LIMITS, steps=500_000))
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"

    async def handle(env: Any) -> Any:
        await env.DB.exec("DELETE FROM t WHERE a IS NULL")
        reads = await problem(env.DB.prepare(f"{endless} SELECT count(*) FROM c").all)
        writes = await problem(env.DB.prepare(f"{endless} INSERT INTO t (a) SELECT x FROM c").run)
        return reads, writes, await env.DB.prepare("SELECT a FROM t").first("a")

    text = "Error: D1_ERROR: D1 DB exceeded its CPU time limit and was reset."
    assert await got(handle, T, ROWS) == (text, text, 1)
