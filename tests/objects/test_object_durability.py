"""What lasts of objects: restarts, state files, processes that are killed, code that changes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from object_bench import (
    alarms,
    inside,
    kept,
    kinds,
    object_class,
    seconds,
    stub,
    told,
    worker,
)
from worker_files import worker as files

from emulator import Emulator

pytestmark = pytest.mark.asyncio

CLASSES = """
    import time
    from workers import DurableObject, Response, WorkerEntrypoint

    loaded = []

    class Obj(DurableObject):
        def __init__(self, ctx, env):
            super().__init__(ctx, env)
            loaded.append(ctx.id.name)

        async def put(self, key, value):
            await self.ctx.storage.put(key, value)
            return "{version}"

        async def ring(self, after):
            await self.ctx.storage.setAlarm(int(time.time() * 1000) + after * 1000)

        async def alarm(self):
            runs = (await self.ctx.storage.get("runs") or [])
            await self.ctx.storage.put("runs", [*runs, "{version}"])
            if {again}:
                await self.ring(10)

        async def globals(self):
            return list(loaded)

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            return Response("ok")
"""
BINDING = {"bindings": [{"name": "OBJ", "class_name": "Obj"}]}


def code(version: str = "v1", *, again: bool = False) -> str:
    return CLASSES.replace("{version}", version).replace("{again}", str(again))


async def test_a_restart_keeps_what_was_durable() -> None:
    async def go(self: Any) -> None:
        await self.ctx.storage.put("a", 1)
        await asyncio.sleep(10)
        await self.ctx.storage.put("b", 1)

    async with Emulator(worker(inside(go, alarm=lambda self: None))) as emulator:
        call = asyncio.ensure_future(told(stub(emulator).go))
        await emulator.advance(5)
        await emulator.restart()
        assert (await call)[1] == "Network connection lost."
        assert kept(emulator) == {"a": 1}
        assert kinds(emulator, "crash") == ["crash"]


async def test_a_state_file_keeps_values_alarms_and_names(tmp_path: Path) -> None:
    config = files(tmp_path, code(), durable_objects=BINDING)
    state = tmp_path / "state"
    async with Emulator(config, state=state) as emulator:
        await stub(emulator, "a").put("x", 1)
        await stub(emulator, "a").ring(60)
        unique = str(emulator.env.OBJ.newUniqueId())
        await stub(emulator, unique).put("x", 2)
    async with Emulator(config, state=state) as emulator:
        objects = emulator.durable_objects["OBJ"]
        found = [(one.name, one.in_memory) for one in objects.objects]
        assert found == [("a", False), (None, False)]
        assert (kept(emulator, "a"), kept(emulator, unique)) == ({"x": 1}, {"x": 2})
        assert str(emulator.env.OBJ.newUniqueId()) != unique
        await emulator.settle()
        assert kept(emulator, "a") == {"x": 1, "runs": ["v1"]}
        assert seconds(emulator) == 60


async def test_an_overdue_alarm_runs_at_once_and_once(tmp_path: Path) -> None:
    """O-38: before any request touches the object."""
    config = files(tmp_path, code(), durable_objects=BINDING)
    state = tmp_path / "state"
    async with Emulator(config, state=state) as emulator:
        await stub(emulator).ring(300)
    later = emulator.now.replace(hour=1)
    async with Emulator(config, state=state, start=later) as emulator:
        await emulator.advance(0)
        assert kept(emulator) == {"runs": ["v1"]}
        await emulator.settle()
        assert [kind for _, kind in alarms(emulator)] == ["alarm", "alarm_done"]


async def test_a_run_that_the_end_cut_off_comes_again(tmp_path: Path) -> None:
    async def alarm(self: Any, info: Any) -> None:
        runs.append(info.retryCount)
        await asyncio.sleep(100)
        await self.ctx.storage.put("rang", True)

    async def ring(self: Any) -> None:
        await self.ctx.storage.setAlarm(1)

    runs: list[int] = []
    config = worker(object_class(alarm=alarm, ring=ring))
    state = tmp_path / "state"
    async with Emulator(config, state=state) as emulator:
        await stub(emulator).ring()
        await emulator.advance(10)
    async with Emulator(config, state=state) as emulator:
        assert kept(emulator) == {}
        await emulator.settle()
        assert kept(emulator) == {"rang": True}
    assert runs == [0, 0]


# -- a process that is killed ----------------------------------------------------------------------

SCRIPT = """
import asyncio, sys
from emulator import Emulator

async def main():
    emulator = Emulator({config!r}, state={state!r})
    stub = emulator.durable_objects["OBJ"].get("x")
    number = 0
    while True:
        number += 1
        await stub.both(number)
        print(number, flush=True)

asyncio.run(main())
"""
BOTH = """
    import time
    from workers import DurableObject, Response, WorkerEntrypoint

    class Obj(DurableObject):
        async def both(self, number):
            storage = self.ctx.storage
            {sql}
            await storage.put("a", number)
            await storage.put("b", number)
            await storage.setAlarm(int(time.time() * 1000) + 3_600_000 + number * 1000)

        async def look(self):
            storage = self.ctx.storage
            alarm = await storage.getAlarm() - int(time.time() * 1000) - 3_600_000
            rows = {rows}
            return [await storage.get("a"), await storage.get("b"), alarm // 1000, rows]

        async def alarm(self): ...

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            return Response("ok")
"""
SQL = (
    'storage.sql.exec("CREATE TABLE IF NOT EXISTS t (n)"); '
    'storage.sql.exec("INSERT INTO t VALUES (?)", number)'
)
COUNT = 'storage.sql.exec("SELECT count(*) AS n FROM t").one().n'


def last_told(script: Path) -> int:
    """The last number that the script printed, which is killed in the middle of its work."""
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if int(line) == 40:
                os.kill(process.pid, signal.SIGKILL)
                break
        rest = process.stdout.read().split()
    return int(rest[-1]) if rest else 40


@pytest.mark.parametrize("uses_sql", [False, True])
async def test_a_killed_process_leaves_whole_turns_and_all_that_was_told(
    tmp_path: Path, uses_sql: bool
) -> None:
    source = BOTH.replace("{sql}", SQL if uses_sql else "pass")
    source = source.replace("{rows}", COUNT if uses_sql else "None")
    config = files(tmp_path, source, durable_objects=BINDING)
    state = str(tmp_path / "state")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(config=config, state=state))
    last = last_told(script)
    async with Emulator(config, state=state) as emulator:
        first, second, alarm, rows = await stub(emulator).look()
        assert first == second == alarm
        assert first in (last, last + 1)  # it may have been killed before it told
        assert rows == (first if uses_sql else None)


# -- code that changes -----------------------------------------------------------------------------


async def test_an_alarm_runs_with_the_new_code(tmp_path: Path) -> None:
    """O-37."""
    config = files(tmp_path, code(again=True), durable_objects=BINDING)
    async with Emulator(config) as emulator:
        await stub(emulator).ring(10)
        await emulator.advance(20)
        files(tmp_path, code("v2", again=True))
        await emulator.reload()
        await emulator.advance(20)
        assert kept(emulator)["runs"] == ["v1", "v1", "v2", "v2"]
        assert await stub(emulator).put("x", 1) == "v2"


@pytest.mark.parametrize(("mode", "answer"), [("deferred", "v1"), ("immediate", None)])
async def test_a_busy_object_gets_new_code_as_the_config_says(
    tmp_path: Path, mode: str, answer: str | None
) -> None:
    slow = code().replace('return "v1"', 'import asyncio; await asyncio.sleep(5); return "v1"')
    objects = {**BINDING, "code_update_strategy": {"mode": mode}}
    config = files(tmp_path, slow, durable_objects=objects)
    async with Emulator(config) as emulator:
        call = asyncio.ensure_future(told(lambda: stub(emulator).put("x", 1)))
        await emulator.advance(1)
        files(tmp_path, code("v2"))
        await emulator.reload()
        found = await call
        text = "Durable Object reset because its code was updated."
        assert found == (answer if answer else ["Error", text])
        assert await stub(emulator).put("x", 1) == "v2"


async def test_globals_go_with_the_memory_of_an_object(tmp_path: Path) -> None:
    """Objects of a Worker share an isolate that is not the Worker's; a fresh one follows a loss."""
    config = files(tmp_path, code(), durable_objects=BINDING)
    async with Emulator(config) as emulator:
        assert await stub(emulator, "a").globals() == ["a"]
        assert await stub(emulator, "b").globals() == ["a", "b"]
        await emulator.durable_objects["OBJ"].evict("a")
        assert await stub(emulator, "b").globals() == ["a", "b"]
        assert await stub(emulator, "a").globals() == ["a"]
        assert await stub(emulator, "c").globals() == ["a", "c"]


@pytest.mark.parametrize("sql", [False, True])
async def test_migrations_happen_to_a_state_file_once(tmp_path: Path, sql: bool) -> None:
    async def go(self: Any, value: int) -> Any:
        if sql:
            self.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS t (a)")
        before = await self.ctx.storage.get("value")
        await self.ctx.storage.put("value", value)
        return before

    def config(name: str, *migrations: Any) -> dict[str, Any]:
        made = worker(inside(go))
        cls = made["main"].Obj
        cls.__name__ = name
        setattr(made["main"], name, cls)
        made["durable_objects"] = {"bindings": [{"name": "OBJ", "class_name": name}]}
        return {**made, "migrations": [{"tag": "v1", "new_sqlite_classes": ["Obj"]}, *migrations]}

    state = tmp_path / "state"
    rename = {"tag": "v2", "renamed_classes": [{"from": "Obj", "to": "Room"}]}
    delete = {"tag": "v3", "deleted_classes": ["Room"]}
    again = {"tag": "v4", "new_sqlite_classes": ["Room"]}
    folder = tmp_path / "state.databases" / "objects"
    for made, value, before in (
        (config("Obj"), 1, None),
        (config("Room", rename), 2, 1),
        (config("Room", rename), 3, 2),
        (config("Room", rename, delete, again), 4, None),
        (config("Room", rename, delete, again), 5, 4),
    ):
        async with Emulator(made, state=state) as emulator:
            assert await stub(emulator).go(value) == before
        if sql:
            assert len(list(folder.rglob("*.sqlite"))) == 1


async def test_reset_forgets_everything() -> None:
    async def ring(self: Any) -> None:
        await self.ctx.storage.put("a", 1)
        await self.ctx.storage.setAlarm(int(time.time() * 1000) + 1000)

    config = worker(object_class(ring=ring, alarm=lambda self: None))
    async with Emulator(config) as emulator:
        first = []
        for _ in range(2):
            await stub(emulator).ring()
            id = str(emulator.env.OBJ.newUniqueId())
            first.append((id, emulator.trace.to_jsonl()))
            await emulator.reset()
            assert (kept(emulator), list(emulator.trace)) == ({}, [])
        assert first[0] == first[1]
        await emulator.settle()
        assert list(emulator.trace) == []
