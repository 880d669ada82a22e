"""D1 over the REST API, with the official client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from rest_client import ACCOUNT, connected, listed, refused
from rest_stores import USERS, write_stores

if TYPE_CHECKING:
    from served_project import Project

pytestmark = pytest.mark.asyncio


@pytest.fixture
def shop(project: Project) -> Project:
    write_stores(project)
    return project


async def run(client: Any, sql: str, *params: Any) -> list[Any]:
    pages = client.d1.database.query(
        database_id=USERS, account_id=ACCOUNT, sql=sql, params=list(params)
    )
    return await listed(pages)


async def test_the_databases_are_those_of_the_config(shop: Project) -> None:
    async with connected(shop) as (client, _):
        (one,) = await listed(client.d1.database.list(account_id=ACCOUNT))
        assert (one.uuid, one.name) == (USERS, "users")
        assert await listed(client.d1.database.list(account_id=ACCOUNT, name="other")) == []
        got = await client.d1.database.get(USERS, account_id=ACCOUNT)
        assert got.file_size > 0
        assert await refused(client.d1.database.get("nope", account_id=ACCOUNT)) == (
            404,
            7404,
            "The database nope could not be found",
        )
        assert await refused(client.d1.database.get("users", account_id=ACCOUNT)) == (
            404,
            7404,
            "The database users could not be found: this path takes a database's id, and the "
            f"database named 'users' has the id {USERS}",
        )


async def test_sql_runs_on_the_database_that_the_worker_has(shop: Project) -> None:
    state = {"state": shop.state}
    async with connected(shop, **state) as (client, served):
        (inserted,) = await run(client, "INSERT INTO users (name, score) VALUES (?, ?)", "ada", 2)
        assert (inserted.success, inserted.results, inserted.meta.changes) == (True, [], 1)
        (selected,) = await run(client, "SELECT * FROM users")
        assert selected.results == [{"id": 1, "name": "ada", "score": 2}]
        assert (await served.client.get("/")).text == "ada"
        writes = [event for event in served.desk.emulator.trace if event.kind == "query"]
        assert writes[0].data["by"] == "rest"
    async with connected(shop, **state) as (client, served):
        assert (await served.client.get("/")).text == "ada"


async def test_several_statements_give_several_results(shop: Project) -> None:
    async with connected(shop) as (client, served):
        results = await run(
            client,
            "INSERT INTO users (name) VALUES ('b'); INSERT INTO users (name) VALUES ('a');"
            "SELECT name FROM users WHERE name > ? ORDER BY name",
            "a",
        )
        assert [result.results for result in results] == [[], [], [{"name": "b"}]]
        pages = client.d1.database.query(
            database_id=USERS,
            account_id=ACCOUNT,
            batch=[
                {"sql": "INSERT INTO users (name) VALUES (?)", "params": ["c"]},
                {"sql": "SELECT count(*) AS n FROM users"},
            ],
        )
        assert [result.results for result in await listed(pages)] == [[], [{"n": 3}]]
        assert (await served.client.get("/")).text == "a,b,c"


async def test_raw_rows_are_lists(shop: Project) -> None:
    async with connected(shop) as (client, _):
        pages = client.d1.database.raw(
            database_id=USERS, account_id=ACCOUNT, sql="SELECT 1 AS a, 'x' AS b, 2 AS a"
        )
        (result,) = await listed(pages)
        assert (result.results.columns, result.results.rows) == (["a", "b", "a"], [[1, "x", 2]])


async def test_what_fails_leaves_nothing(shop: Project) -> None:
    """Code 7500, with SQLite's text."""
    async with connected(shop) as (client, served):
        twice = "INSERT INTO users (name) VALUES ('a'); INSERT INTO users (name) VALUES ('a')"
        status, code, text = await refused(run(client, twice))
        assert (status, code) == (400, 7500)
        assert "UNIQUE constraint failed: users.name" in text
        assert (await served.client.get("/")).text == ""


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        ({"sql": "SELEC 1"}, 7500, "syntax error"),
        ({"sql": "SELECT * FROM nope"}, 7500, "no such table: nope"),
        ({"sql": "SELECT ?", "params": [{"a": 1}]}, 7500, "D1_TYPE_ERROR"),
        ({"sql": "SELECT ?", "params": []}, 7500, ""),
        ({"sql": "  "}, 7500, "No SQL statements detected."),
        ({}, 10207, 'Required at "sql"'),
        ({"sql": 5}, 10207, 'Expected string, received number at "sql"'),
        ({"sql": "SELECT 1", "params": {}}, 10207, "Expected array"),
        ({"batch": []}, 10207, "at least 1"),
        ({"batch": [{}]}, 10207, 'Required at "batch.0.sql"'),
    ],
)
async def test_wrong_sql_is_refused(
    shop: Project, given: dict[str, Any], code: int, text: str
) -> None:
    async with connected(shop) as (_, served):
        base = f"/cdn-cgi/emulator/client/v4/accounts/{ACCOUNT}/d1/database/{USERS}"
        for path in ("query", "raw"):
            answer = await served.client.post(f"{base}/{path}", json=given)
            assert answer.status_code == 400, answer.text
            (error,) = answer.json()["errors"]
            assert error["code"] == code
            assert text in error["message"]
