"""The faults of `d1.<binding>.<operation>`: what strikes, what is left (api.md section 4)."""

from __future__ import annotations

from typing import Any

import pytest
from d1_bench import ACCOUNTS, fired, problem, queries, running, worker

from emulator import Emulator, WorkerCrashed, sweep

pytestmark = pytest.mark.asyncio

LOST = "Error: D1_ERROR: Network connection lost."
INSERT = "INSERT INTO accounts (name) VALUES ('ada')"
CALLS: dict[str, Any] = {
    "run": lambda db: db.prepare(INSERT).run(),
    "all": lambda db: db.prepare(f"{INSERT} RETURNING id").all(),
    "first": lambda db: db.prepare(f"{INSERT} RETURNING id").first(),
    "raw": lambda db: db.prepare(f"{INSERT} RETURNING id").raw(),
    "batch": lambda db: db.batch([db.prepare(INSERT), db.prepare("SELECT 1")]),
    "exec": lambda db: db.exec(INSERT),
}


def names(emulator: Emulator) -> list[str]:
    return [row["name"] for row in emulator.d1["DB"].rows("accounts")]


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize(
    ("action", "written", "error"),
    [
        ("crash_before", False, None),
        ("fail", False, LOST),
        ("crash_after", True, None),
        ("lose_reply", True, LOST),
    ],
)
async def test_each_action_at_each_operation(
    operation: str, action: str, written: bool, error: str | None
) -> None:
    seen: list[str] = []

    async def handle(env: Any) -> str:
        try:
            seen.append(await problem(lambda: CALLS[operation](env.DB)))
        finally:
            seen.append("finally")
        return "ok"

    plan = f"d1.DB.{operation}#1:{action}"
    async with running(handle, ACCOUNTS, faults=plan) as emulator:
        if error is None:
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
            assert seen == []  # no further line ran
        else:
            assert (await emulator.fetch("/")).text == "ok"
            expected = error
            if operation == "exec":
                expected = (
                    f"Error: D1_EXEC_ERROR: Error in line 1: {INSERT}: Network connection lost."
                )
            assert seen == [expected, "finally"]
        assert fired(emulator) == [plan]
        assert names(emulator) == (["ada"] if written else [])


async def test_prepare_bind_and_sessions_are_no_sites_and_a_batch_is_one() -> None:
    async def handle(env: Any) -> str:
        session = env.DB.withSession()
        statement = session.prepare("SELECT ?").bind(1)
        session.getBookmark()
        await session.batch([statement, statement, statement])
        await problem(lambda: env.DB.dump())
        return "ok"

    async with running(handle) as emulator:
        await emulator.fetch("/")
        sites = [site.name for site in emulator.faults.sites if site.name.startswith("d1.")]
        assert sites == ["d1.DB.batch"]


async def test_a_call_of_the_test_is_no_site() -> None:
    async with running(None, ACCOUNTS, faults="d1.DB.*#*:fail") as emulator:
        await emulator.env.DB.prepare(INSERT).run()
        emulator.d1["DB"].execute("SELECT 1")
        assert names(emulator) == ["ada"]
        assert fired(emulator) == []


async def test_a_crash_never_parts_a_batch() -> None:
    async def handle(env: Any) -> str:
        insert = env.DB.prepare("INSERT INTO accounts (name) VALUES (?)")
        await env.DB.batch([insert.bind("a"), insert.bind("b"), insert.bind("c")])
        return "ok"

    for action, left in (("crash_before", []), ("crash_after", ["a", "b", "c"])):
        async with running(handle, ACCOUNTS, faults=f"d1.DB.batch#1:{action}") as emulator:
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
            assert names(emulator) == left


async def test_a_wrong_statement_that_fails_leaves_no_more_than_one_that_is_lost() -> None:
    """The caller of a statement that fails and whose answer is lost sees the network's error."""

    async def handle(env: Any) -> str:
        return await problem(lambda: env.DB.prepare("NONSENSE").run())

    async with running(handle, faults="d1.DB.run#1:lose_reply") as emulator:
        assert (await emulator.fetch("/")).text == LOST
        assert queries(emulator) == [("run", "NONSENSE")]


# -- what a sweep finds ----------------------------------------------------------------------------


async def deposit_twice(batch: Any, env: Any) -> None:
    for message in batch.messages:
        statement = env.DB.prepare("UPDATE accounts SET balance = balance + 10 WHERE name = ?")
        await statement.bind(message.body).run()


async def deposit_once(batch: Any, env: Any) -> None:
    for message in batch.messages:
        mark = env.DB.prepare("INSERT INTO seen VALUES (?)").bind(message.id)
        add = env.DB.prepare("UPDATE accounts SET balance = balance + 10 WHERE name = ?")
        try:
            await env.DB.batch([mark, add.bind(message.body)])
        except Exception as error:
            if "UNIQUE constraint failed: seen.id" not in str(error):
                raise


async def scenario(emulator: Emulator) -> None:
    emulator.d1["DB"].execute(
        f"{ACCOUNTS}; CREATE TABLE seen (id TEXT PRIMARY KEY);"
        "INSERT INTO accounts (name) VALUES ('ada')"
    )
    await emulator.queues["q"].send("ada")
    await emulator.settle()
    assert emulator.d1["DB"].execute("SELECT balance FROM accounts") == [{"balance": 10}]


async def test_a_sweep_finds_an_update_that_is_repeated() -> None:
    report = await sweep(scenario, worker(consume=deposit_twice))
    plans = [str(fault) for failure in report.failures for fault in failure.plan]
    assert any(plan.startswith("d1.DB.run#1:crash_after") for plan in plans), plans


async def test_a_batch_with_its_own_mark_bears_every_fault() -> None:
    report = await sweep(scenario, worker(consume=deposit_once), classes="all")
    assert report.failures == []
    sites = [site.name for site in report.sites]
    assert "d1.DB.batch" in sites
