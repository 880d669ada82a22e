"""What lasts: crashes, restarts, state files, killed processes; and that runs repeat."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from d1_bench import ACCOUNTS, running, worker

from emulator import Emulator, StateError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio


async def insert(env: Any, request: Any) -> str:
    name = request.url.rsplit("/", 1)[1]
    await env.DB.prepare("INSERT INTO accounts (name) VALUES (?)").bind(name).run()
    return str(await env.DB.prepare("SELECT count(*) FROM accounts").first("count(*)"))


def names(emulator: Emulator) -> list[str]:
    return [row["name"] for row in emulator.d1["DB"].rows("accounts")]


@pytest.mark.parametrize("how", ["evict", "crash", "restart", "reload"])
async def test_rows_outlive_the_workers_memory(how: str) -> None:
    async with running(insert, ACCOUNTS) as emulator:
        await emulator.fetch("/a")
        await getattr(emulator, how)()
        assert (await emulator.fetch("/b")).text == "2"
        assert names(emulator) == ["a", "b"]


async def test_a_reset_empties_databases() -> None:
    async with running(insert, ACCOUNTS) as emulator:
        await emulator.fetch("/a")
        await emulator.reset()
        assert emulator.d1["DB"].tables == []
        emulator.d1["DB"].execute(ACCOUNTS)
        assert (await emulator.fetch("/b")).text == "1"


async def test_a_state_file_keeps_databases_beside_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with running(insert, ACCOUNTS, state=state) as emulator:
        await emulator.fetch("/a")
        before = await mark(emulator)
    path = tmp_path / "state.databases" / "d1" / "shop-id.sqlite"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    async with running(insert, state=state) as emulator:
        assert names(emulator) == ["a"]
        assert await mark(emulator) == before
        assert (await emulator.fetch("/b")).text == "2"
        await emulator.restart()
        assert names(emulator) == ["a", "b"]
        assert await mark(emulator) > before
        await emulator.reset()
        assert not path.exists()
    async with running(insert, ACCOUNTS, state=state) as emulator:
        assert names(emulator) == []


async def mark(emulator: Emulator) -> str:
    """The bookmark of the database: it goes on where it stood."""
    session = emulator.env.DB.withSession()
    await session.prepare("SELECT 1").run()
    return str(session.getBookmark())


async def test_a_database_that_is_gone_is_told_of(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with running(insert, ACCOUNTS, state=state):
        pass
    (tmp_path / "state.databases" / "d1" / "shop-id.sqlite").unlink()
    with pytest.raises(StateError, match=r"shop-id\.sqlite is missing: put it back"):
        Emulator(worker(insert), state=state)


async def test_databases_of_a_state_file_that_is_gone_are_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with running(insert, ACCOUNTS, state=state):
        pass
    state.unlink()
    with pytest.raises(StateError, match="databases of a state file that is gone: delete it too"):
        Emulator(worker(insert), state=state)


async def test_a_damaged_database_is_told_of_when_it_is_used(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with running(insert, ACCOUNTS, state=state):
        pass
    path = tmp_path / "state.databases" / "d1" / "shop-id.sqlite"
    path.write_bytes(b"no database at all, and long enough to see" * 100)
    async with running(insert, state=state) as emulator:
        with pytest.raises(StateError, match=r"shop-id\.sqlite is not a state file, or damaged"):
            await emulator.fetch("/a")


async def test_what_a_crash_cut_off_is_not_half_there() -> None:
    """A statement that was made has its effect, one whose turn did not come has none."""

    async def handle(env: Any) -> str:
        add = env.DB.prepare("INSERT INTO accounts (name) VALUES (?)")
        await add.bind("first").run()
        await env.Q.send("x")  # crashes here
        await add.bind("second").run()
        return "never"

    async with running(handle, ACCOUNTS, faults="send.q#1:crash_after") as emulator:
        with pytest.raises(Exception, match="lost power"):
            await emulator.fetch("/")
        await emulator.restart()
        assert names(emulator) == ["first"]


@pytest.mark.skipif(os.name == "nt", reason="kill -9")
async def test_a_killed_process_keeps_what_it_answered(tmp_path: Path) -> None:
    """And with each row the message that was sent after it: one does not come without the other."""
    (tmp_path / "entry.py").write_text(
        dedent(
            """
            from workers import Response, WorkerEntrypoint


            class Default(WorkerEntrypoint):
                async def fetch(self, request):
                    n = request.url.rsplit("/", 1)[1]
                    await self.env.Q.send(n)
                    await self.env.DB.prepare("INSERT INTO t VALUES (?)").bind(n).run()
                    return Response("ok")
            """
        )
    )
    config = {
        "main": str(tmp_path / "entry.py"),
        "d1_databases": [{"binding": "DB", "database_id": "x"}],
        "queues": {"producers": [{"binding": "Q", "queue": "q"}]},
    }
    answered = _answered_until_killed(f"""
        import asyncio, json
        from emulator import Emulator

        async def main():
            config = json.loads({json.dumps(config)!r})
            emulator = Emulator(config, state={str(tmp_path / "state")!r})
            emulator.d1["DB"].execute("CREATE TABLE IF NOT EXISTS t (n TEXT)")
            for n in range(10_000):
                await emulator.fetch(f"/{{n}}")
                print(n, flush=True)

        asyncio.run(main())
    """)
    async with Emulator(config, state=tmp_path / "state") as emulator:
        rows = [row["n"] for row in emulator.d1["DB"].rows("t")]
        assert rows[: answered + 1] == [str(n) for n in range(answered + 1)]
        assert len(rows) - (answered + 1) in (0, 1)
        sent = {message.body for message in emulator.queues["q"].backlog}
        assert set(rows[: answered + 1]) <= sent


def _answered_until_killed(code: str) -> int:
    """Kill a program when it has printed the number 150; return the last one it printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    answered = -1
    for line in process.stdout:
        answered = int(line)
        if answered == 150:
            process.send_signal(signal.SIGKILL)  # and read what it had answered by then
    process.stdout.close()
    assert process.wait(timeout=60) == -signal.SIGKILL
    return answered


# -- determinism -----------------------------------------------------------------------------------


async def test_time_and_random_values_in_sql_are_the_emulators() -> None:
    async def handle(env: Any) -> str:
        sql = "SELECT datetime('now'), CURRENT_TIMESTAMP, random(), hex(randomblob(8))"
        return json.dumps(await env.DB.prepare(sql).raw())

    async def run(seed: int) -> tuple[list[Any], bytes]:
        async with running(handle, seed=seed) as emulator:
            first = json.loads((await emulator.fetch("/")).text)[0]
            await emulator.advance("1 day")
            second = json.loads((await emulator.fetch("/")).text)[0]
            return [*first, *second], emulator.trace.to_jsonl().encode()

    values, trace = await run(1)
    assert values[:2] == ["2026-01-01 00:00:00"] * 2
    assert values[4:6] == ["2026-01-02 00:00:00"] * 2
    assert (values, trace) == await run(1)
    other, _ = await run(2)
    assert (other[2], other[3]) != (values[2], values[3])


async def test_one_second_after_the_other_within_a_handler() -> None:
    """Time moves between calls, not within one."""
    import asyncio

    async def handle(env: Any) -> str:
        await env.DB.prepare("INSERT INTO log DEFAULT VALUES").run()
        await asyncio.sleep(90)
        await env.DB.prepare("INSERT INTO log DEFAULT VALUES").run()
        return "ok"

    schema = "CREATE TABLE log (at TEXT DEFAULT CURRENT_TIMESTAMP)"
    async with running(handle, schema) as emulator:
        await emulator.fetch("/")
        assert emulator.d1["DB"].rows("log") == [
            {"at": "2026-01-01 00:00:00"},
            {"at": "2026-01-01 00:01:30"},
        ]
