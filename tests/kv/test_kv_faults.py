"""The faults of `kv.<binding>.<operation>`: what strikes, what is left; and what lasts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from kv_bench import fired, problem, running, worker

from emulator import Emulator, WorkerCrashed, sweep

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

CALLS: dict[str, Any] = {
    "get": (lambda kv: kv.get("a"), "GET"),
    "getWithMetadata": (lambda kv: kv.getWithMetadata("a"), "GET"),
    "list": (lambda kv: kv.list(), "GET"),
    "put": (lambda kv: kv.put("a", "2"), "PUT"),
    "delete": (lambda kv: kv.delete("a"), "DELETE"),
}
AFTER = {"put": "2", "delete": None}


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize("action", ["crash_before", "fail", "crash_after", "lose_reply"])
async def test_each_action_at_each_operation(operation: str, action: str) -> None:
    seen: list[str] = []
    call, method = CALLS[operation]

    async def handle(env: Any) -> str:
        try:
            seen.append(await problem(lambda: call(env.KV)))
        finally:
            seen.append("finally")
        return "ok"

    plan = f"kv.KV.{operation}#1:{action}"
    async with running(handle, faults=plan) as emulator:
        await emulator.env.KV.put("a", "1")
        if action.startswith("crash"):
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
            assert seen == []  # no further line ran
        else:
            assert (await emulator.fetch("/")).text == "ok"
            assert seen == [f"Error: KV {method} failed: 500 Internal Server Error", "finally"]
        assert fired(emulator) == [plan]
        is_done = action in ("crash_after", "lose_reply")
        assert await emulator.env.KV.get("a") == (AFTER.get(operation, "1") if is_done else "1")


async def test_a_stale_read_is_as_before_the_last_write() -> None:
    async def handle(env: Any) -> Any:
        found = await env.KV.getWithMetadata("a")
        listed = await env.KV.list()
        many = await env.KV.get(["a", "b"])
        return json.dumps(
            [
                await env.KV.get("a"),
                [found["value"], found["metadata"]],
                [key["name"] for key in listed["keys"]],
                many,
            ]
        )

    plan = "kv.KV.get#*:stale; kv.KV.getWithMetadata#1:stale; kv.KV.list#1:stale"
    async with running(handle, faults=plan) as emulator:
        await emulator.env.KV.put("a", "1", metadata={"n": 1})
        await emulator.advance("1 h")
        await emulator.env.KV.put("a", "2")
        await emulator.env.KV.put("b", "3")
        assert (await emulator.fetch("/")).json() == [
            "1",
            ["1", {"n": 1}],
            ["a"],
            {"a": "1", "b": None},
        ]
        assert await emulator.env.KV.get("a") == "2"  # a test's call is no site
        told = [event.data["call"] for event in emulator.trace if event.data.get("stale")]
        assert told == ["getWithMetadata", "list", "get", "get"]
        await emulator.advance("60.001 s")
        assert (await emulator.fetch("/")).json() == [
            "2",
            ["2", None],
            ["a", "b"],
            {"a": "2", "b": "3"},
        ]
        assert len(fired(emulator)) == 4


@pytest.mark.parametrize(
    ("before", "write", "operation", "is_possible"),
    [
        (None, ("put", "1"), "get", True),
        ("1", ("put", "1"), "get", False),  # the same value again
        ("1", ("put", "1"), "list", False),
        (None, ("put", "1"), "list", True),
        ("1", ("put", "2"), "list", False),  # a list does not show values
        ("1", ("put", "2"), "getWithMetadata", True),
        ("1", ("delete",), "get", True),
        (None, ("delete",), "get", False),
    ],
)
async def test_a_read_can_be_stale_only_where_it_would_differ(
    before: str | None, write: tuple[str, ...], operation: str, is_possible: bool
) -> None:
    async def handle(env: Any) -> str:
        await CALLS[operation][0](env.KV)
        return "ok"

    async with running(handle) as emulator:
        if before is not None:
            await emulator.env.KV.put("a", before)
        await getattr(emulator.env.KV, write[0])("a", *write[1:])
        await emulator.fetch("/")
        await emulator.advance("61 s")
        await emulator.fetch("/")
        sites = [site for site in emulator.faults.sites if site.name == f"kv.KV.{operation}"]
        assert ["stale" in site.actions for site in sites] == [is_possible, False]
        assert all("crash_after" in site.actions for site in sites)


# -- what a sweep finds ----------------------------------------------------------------------------


async def count_once(batch: Any, env: Any) -> None:
    """A message is done when its key is there, and the key is written after the work."""
    for message in batch.messages:
        if await env.KV.get(f"done:{message.id}") is None:
            count = int(await env.KV.get("count") or 0)
            await env.KV.put("count", str(count + 1))
            await env.KV.put(f"done:{message.id}", "yes")


async def put_once(batch: Any, env: Any) -> None:
    """Work that may be repeated, under a key of the message's own."""
    for message in batch.messages:
        await env.KV.put(f"order:{message.body}", "stored")


async def counted(emulator: Emulator) -> None:
    await emulator.queues["q"].send("a")
    await emulator.settle()
    assert await emulator.env.KV.get("count") == "1"


async def stored(emulator: Emulator) -> None:
    await emulator.queues["q"].send("a")
    await emulator.settle()
    assert await emulator.env.KV.get("order:a") == "stored"


async def test_a_sweep_finds_work_that_a_key_does_not_protect() -> None:
    report = await sweep(counted, worker(consume=count_once))
    plans = [str(fault) for failure in report.failures for fault in failure.plan]
    assert any(plan.startswith("kv.KV.put#1:crash_after") for plan in plans), plans


async def test_work_that_may_be_repeated_bears_every_fault() -> None:
    report = await sweep(stored, worker(consume=put_once), classes="all")
    assert report.failures == []
    assert "kv.KV.put" in [site.name for site in report.sites]


# -- what lasts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["evict", "crash", "restart", "reload"])
async def test_entries_outlive_the_workers_memory(how: str) -> None:
    async with running() as emulator:
        await emulator.env.KV.put("a", "1", metadata=[1], expirationTtl=120)
        await emulator.env.KV.put("b", "1")
        await emulator.env.KV.delete("b")
        await getattr(emulator, how)()
        assert await emulator.env.KV.getWithMetadata("a") == {
            "value": "1",
            "metadata": [1],
            "cacheStatus": None,
        }
        assert await emulator.env.KV.get("b") is None
        await emulator.advance("120 s")
        assert await emulator.env.KV.get("a") is None


async def test_a_stale_read_is_possible_after_a_restart() -> None:
    async def handle(env: Any) -> Any:
        return await env.KV.get("a")

    async with running(handle, faults="kv.KV.get#1:stale") as emulator:
        await emulator.env.KV.put("a", "1")
        await emulator.env.KV.put("a", "2")
        await emulator.restart()
        assert (await emulator.fetch("/")).text == "1"


async def test_a_reset_empties_namespaces() -> None:
    async with running() as emulator:
        await emulator.env.KV.put("a", "1")
        await emulator.reset()
        assert await emulator.env.KV.get("a") is None
        await emulator.restart()
        assert (await emulator.env.KV.list())["keys"] == []


async def test_a_state_file_keeps_entries(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with running(state=state) as emulator:
        await emulator.env.KV.put("a", b"\xff", expirationTtl=120, metadata={"n": 1})
        await emulator.advance("60 s")
    async with running(state=state) as emulator:
        found = await emulator.env.KV.getWithMetadata("a", "arrayBuffer")
        assert (bytes(found["value"]), found["metadata"]) == (b"\xff", {"n": 1})
        await emulator.advance("60 s")
        assert await emulator.env.KV.get("a") is None
        await emulator.reset()
    async with running(state=state) as emulator:
        assert (await emulator.env.KV.list())["keys"] == []


def killed(state: Path) -> None:
    """Put a key in a process of its own, and kill that."""
    program = f"""
        import asyncio, os, signal
        from emulator import Emulator
        from workers import Response, WorkerEntrypoint

        class W(WorkerEntrypoint):
            async def fetch(self, request):
                await self.env.KV.put("a", "1")
                return Response("ok")

        async def main():
            config = {{"main": W, "kv_namespaces": [{{"binding": "KV"}}]}}
            async with Emulator(config, state={str(state)!r}) as emulator:
                assert (await emulator.fetch("/")).text == "ok"
                os.kill(os.getpid(), signal.SIGKILL)

        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


async def test_a_killed_process_loses_nothing_that_was_stored(tmp_path: Path) -> None:
    state = tmp_path / "state"
    killed(state)
    async with running(state=state) as emulator:
        assert await emulator.env.KV.get("a") == "1"


async def test_a_snapshot_in_the_middle_keeps_all(tmp_path: Path) -> None:
    """More records than the store keeps before it writes the state as a whole."""

    async def handle(env: Any) -> str:
        for number in range(11_000):
            await env.KV.put(f"key:{number % 100:02}", str(number))
        return "ok"

    async with running(handle, state=tmp_path / "state") as emulator:
        assert (await emulator.fetch("/")).text == "ok"
        await emulator.restart()
        assert await emulator.env.KV.get("key:99") == "10999"
        assert len((await emulator.env.KV.list())["keys"]) == 100
