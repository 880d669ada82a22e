"""Faults of calls, storage and alarms of Durable Objects: each action of the three rows."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from object_bench import (
    alarms,
    fired,
    kept,
    kinds,
    object_class,
    seconds,
    stub,
    told,
    worker,
)

from emulator import Emulator, WorkerCrashed
from emulator.faults import KINDS, class_of

pytestmark = pytest.mark.asyncio


def init(self: Any, ctx: Any, env: Any) -> None:
    super(type(self), self).__init__(ctx, env)
    self.calls = 0


async def add(self: Any) -> int:
    """Counts in memory and in storage."""
    self.calls += 1
    await self.ctx.storage.put("count", (await self.ctx.storage.get("count") or 0) + 1)
    return int(self.calls)


async def twice(self: Any, request: Any) -> Any:
    one = self.env.OBJ.getByName("x")
    return [await told(one.add), await told(one.add)]


def counter(**members: Any) -> type[Any]:
    return object_class(__init__=init, add=add, **members)


# -- calls -----------------------------------------------------------------------------------------


async def test_fail_does_not_reach_the_object() -> None:
    config = worker(counter(), fetch=twice)
    async with Emulator(config, faults="object.OBJ.add#1:fail") as emulator:
        answer = (await emulator.fetch("/")).json()
        assert answer == [["Error", "Network connection lost."], 1]
        assert kept(emulator) == {"count": 1}
        assert fired(emulator) == ["object.OBJ.add#1:fail"]


async def test_lose_reply_reaches_it_and_its_answer_is_lost() -> None:
    config = worker(counter(), fetch=twice)
    async with Emulator(config, faults="object.OBJ.add#1:lose_reply") as emulator:
        assert (await emulator.fetch("/")).json() == [["Error", "Network connection lost."], 2]
        assert kept(emulator) == {"count": 2}


@pytest.mark.parametrize(("action", "count"), [("crash_before", 0), ("crash_after", 1)])
async def test_a_crash_takes_the_caller_and_not_the_object(action: str, count: int) -> None:
    config = worker(counter(), fetch=twice)
    async with Emulator(config, faults=f"object.OBJ.add#1:{action}") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert kept(emulator).get("count", 0) == count
        assert kinds(emulator, "crash") == []
        assert await stub(emulator).add() == count + 1  # its memory is there


async def test_evict_takes_the_object_s_memory_after_the_call() -> None:
    config = worker(counter(), fetch=twice)
    async with Emulator(config, faults="object.OBJ.add#1:evict") as emulator:
        assert (await emulator.fetch("/")).json() == [1, 1]
        assert kept(emulator) == {"count": 2}
        assert kinds(emulator, "evict") == ["evict"]


async def test_an_eviction_waits_for_the_other_calls() -> None:
    async def slow(self: Any) -> int:
        await asyncio.sleep(5)
        return await add(self)

    async def fetch(self: Any, request: Any) -> Any:
        one = self.env.OBJ.getByName("x")
        return await asyncio.gather(one.slow(), one.add())

    config = worker(counter(slow=slow), fetch=fetch)
    async with Emulator(config, faults="object.OBJ.add#1:evict") as emulator:
        assert (await emulator.fetch("/")).json() == [2, 1]
        assert kinds(emulator, "object_started", "evict") == ["object_started", "evict"]


async def test_a_request_is_a_site_too_and_a_call_of_the_test_is_none() -> None:
    async def handle(self: Any, request: Any) -> Any:
        from workers import Response

        return Response("ok")

    async def fetch(self: Any, request: Any) -> Any:
        await self.env.OBJ.getByName("x").fetch("http://x/")

    async with Emulator(worker(counter(fetch=handle), fetch=fetch)) as emulator:
        await emulator.fetch("/")
        await stub(emulator).add()
        names = [site.name for site in emulator.faults.sites if site.name.startswith("object.")]
        assert names == ["object.OBJ.fetch"]


async def test_classes_follow_the_caller() -> None:
    """Inside the test's request the client sees a crash too; an alarm is repeated."""

    async def alarm(self: Any) -> None:
        await self.env.OBJ.getByName("y").add()

    async def ring(self: Any) -> None:
        await self.ctx.storage.setAlarm(1)

    async def fetch(self: Any, request: Any) -> Any:
        await self.env.OBJ.getByName("x").ring()

    cls = object_class(__init__=init, add=add, alarm=alarm, ring=ring)
    async with Emulator(worker(cls, fetch=fetch)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        classes = {
            site.name: dict(site.actions)
            for site in emulator.faults.sites
            if site.name.split(".")[0] in ("object", "storage", "alarm")
        }
        assert classes["object.OBJ.ring"] == {
            "evict": "platform",
            "crash_before": "request",
            "fail": "request",
            "crash_after": "request",
            "lose_reply": "request",
        }
        assert classes["object.OBJ.add"] == {
            "evict": "platform",
            "crash_before": "platform",
            "fail": "platform",
            "crash_after": "platform",
            "lose_reply": "platform",
        }
        assert classes["storage.OBJ.setAlarm"] == {
            "crash_before": "request",
            "crash_after": "request",
        }
        assert classes["storage.OBJ.put"] == {"crash_before": "platform", "crash_after": "platform"}
        assert set(classes["alarm.OBJ"].values()) == {"platform"}
    assert class_of(KINDS["object"].actions[0]) == "platform"


# -- storage ---------------------------------------------------------------------------------------


def coalescing(log: list[str]) -> type[Any]:
    """Two writes with no other await in between, and one after."""

    async def go(self: Any) -> str:
        log.append("begins")
        try:
            await self.ctx.storage.put("a", 1)
            log.append("between")
            await self.ctx.storage.put("b", 1)
            log.append("written")
            await asyncio.sleep(1)
            await self.ctx.storage.put("c", 1)
            log.append("ends")
        finally:
            log.append("finally")
        return "done"

    return object_class(go=go)


LOST = ["Error", "Network connection lost."]


@pytest.mark.parametrize(
    ("fault", "values", "lines"),
    [
        ("storage.OBJ.put#1:crash_before", {}, ["begins"]),
        ("storage.OBJ.put#2:crash_before", {}, ["begins", "between"]),
        ("storage.OBJ.put#1:crash_after", {"a": 1, "b": 1}, ["begins", "between", "written"]),
        ("storage.OBJ.put#2:crash_after", {"a": 1, "b": 1}, ["begins", "between", "written"]),
        ("storage.OBJ.put#3:crash_before", {"a": 1, "b": 1}, ["begins", "between", "written"]),
        (
            "storage.OBJ.put#3:crash_after",
            {"a": 1, "b": 1, "c": 1},
            ["begins", "between", "written", "ends", "finally"],
        ),
    ],
)
async def test_no_crash_parts_writes_that_nothing_parts(
    fault: str, values: dict[str, int], lines: list[str]
) -> None:
    log: list[str] = []

    async def fetch(self: Any, request: Any) -> Any:
        return await told(self.env.OBJ.getByName("x").go)

    async with Emulator(worker(coalescing(log), fetch=fetch), faults=fault) as emulator:
        assert (await emulator.fetch("/")).json() == LOST
        assert kept(emulator) == values
        assert log == lines
        assert kinds(emulator, "crash") == ["crash"]
        assert fired(emulator) == [fault]
        # The next call finds a new instance.
        assert await stub(emulator).go() == "done"
        assert kept(emulator) == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("action", ["crash_before", "crash_after"])
@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("get", lambda s: s.get("a")),
        ("list", lambda s: s.list()),
        ("delete", lambda s: s.delete("a")),
        ("deleteAll", lambda s: s.deleteAll()),
        ("getAlarm", lambda s: s.getAlarm()),
        ("setAlarm", lambda s: s.setAlarm(1)),
        ("deleteAlarm", lambda s: s.deleteAlarm()),
        ("transactionSync", lambda s: s.transactionSync(lambda: None)),
        ("kv.get", lambda s: s.kv.get("a")),
        ("kv.put", lambda s: s.kv.put("a", 2)),
        ("kv.delete", lambda s: s.kv.delete("a")),
        ("kv.list", lambda s: s.kv.list()),
        ("sql.exec", lambda s: s.sql.exec("CREATE TABLE t (a)")),
    ],
)
async def test_every_operation_is_a_site(operation: str, call: Any, action: str) -> None:
    async def go(self: Any) -> str:
        self.ctx.storage.put("before", 1)
        call(self.ctx.storage)
        return "done"

    cls = object_class(go=go, alarm=lambda self: None)
    fault = f"storage.OBJ.{operation}#1:{action}"
    async with Emulator(worker(cls), faults=fault) as emulator:
        assert await told(stub(emulator).go) == LOST
        assert fired(emulator) == [fault]
        reads = operation in ("get", "list", "getAlarm", "kv.get", "kv.list")
        stays = action == "crash_after" and not reads and operation != "deleteAll"
        assert ("before" in kept(emulator)) is stays
        assert ("a" in kept(emulator)) is (stays and operation == "kv.put")


@pytest.mark.parametrize(("action", "count"), [("crash_before", 0), ("crash_after", 1)])
async def test_a_transaction_is_one_write(action: str, count: int) -> None:
    async def go(self: Any) -> str:
        async def closure(txn: Any) -> None:
            await txn.put("count", 1)

        await self.ctx.storage.transaction(closure)
        await asyncio.sleep(1)
        return "done"

    fault = f"storage.OBJ.transaction#1:{action}"
    async with Emulator(worker(object_class(go=go)), faults=fault) as emulator:
        assert await told(stub(emulator).go) == LOST
        assert kept(emulator) == ({"count": count} if count else {})


async def test_what_a_dying_turn_sent_does_not_leave() -> None:
    """Nor does the answer, nor the call of another object: the output gate."""

    async def go(self: Any) -> str:
        call = asyncio.ensure_future(self.env.OBJ.getByName("y").add())
        self.env.JOBS.send("message")
        await asyncio.sleep(0)
        await self.ctx.storage.put("a", 1)
        await call
        return "done"

    queues = {"producers": [{"binding": "JOBS", "queue": "jobs"}]}
    config = worker(counter(go=go), queues=queues)
    for fault, sent in (("crash_before", 0), ("crash_after", 0)):
        async with Emulator(config, faults=f"storage.OBJ.put#1:{fault}") as emulator:
            assert await told(stub(emulator).go) == LOST
            await emulator.settle()
            assert len(emulator.queues["jobs"].backlog) == sent
            assert kept(emulator, "y") == {}


async def test_a_crash_of_an_object_leaves_the_others_and_the_worker() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        other = self.env.OBJ.getByName("other")
        await other.add()
        found = await told(self.env.OBJ.getByName("x").add)
        return [found, await other.add()]

    config = worker(counter(), fetch=fetch)
    async with Emulator(config, faults="storage.OBJ.put#2:crash_before") as emulator:
        assert (await emulator.fetch("/")).json() == [LOST, 2]
        assert [e.subject for e in emulator.trace if e.kind == "crash"] == ["object OBJ x"]


# -- alarms ----------------------------------------------------------------------------------------


def ringing(log: list[Any]) -> dict[str, Any]:
    async def alarm(self: Any, info: Any) -> None:
        log.append((seconds(self.emulator[0]), info.retryCount))
        await self.ctx.storage.put("runs", (await self.ctx.storage.get("runs") or 0) + 1)

    async def ring(self: Any) -> None:
        await self.ctx.storage.setAlarm(int(time.time() * 1000) + 10_000)

    holder: list[Any] = []
    return {"cls": object_class(alarm=alarm, ring=ring, emulator=holder), "holder": holder}


@pytest.mark.parametrize(
    ("action", "runs", "events"),
    [
        ("duplicate", [(10, 0), (10, 0)], ["alarm_done", "alarm_done"]),
        ("duplicate(30 s)", [(10, 0), (40, 0)], ["alarm_done", "alarm_done"]),
        ("crash_before", [(12, 0)], ["alarm_lost", "alarm_done"]),
        ("fail", [(12, 1)], ["alarm_retry", "alarm_done"]),
        ("crash_after", [(10, 0), (12, 0)], ["alarm_lost", "alarm_done"]),
    ],
)
async def test_faults_of_an_alarm(action: str, runs: list[Any], events: list[str]) -> None:
    log: list[Any] = []
    given = ringing(log)
    fault = f"alarm.OBJ#1:{action}"
    async with Emulator(worker(given["cls"]), faults=fault) as emulator:
        given["holder"].append(emulator)
        await stub(emulator).ring()
        await emulator.settle()
        assert log == runs
        assert [kind for _, kind in alarms(emulator) if kind != "alarm"] == events
        assert kept(emulator) == {"runs": len(runs)}
        assert fired(emulator) == [fault]
        assert list(emulator.findings) == []


async def test_an_alarm_may_fail_each_time() -> None:
    log: list[Any] = []
    given = ringing(log)
    async with Emulator(worker(given["cls"]), faults="alarm.OBJ#*:fail") as emulator:
        given["holder"].append(emulator)
        await stub(emulator).ring()
        await emulator.settle()
        assert log == []
        assert [kind for _, kind in alarms(emulator)].count("alarm") == 7
        assert emulator.durable_objects["OBJ"].alarm("x") is None
        assert [f.code for f in emulator.findings] == []  # the fault is its cause


# -- replay ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "object.OBJ.add#1:evict",
        "storage.OBJ.put#1:crash_after",
        "alarm.OBJ#1:duplicate; storage.OBJ.put#2:crash_before",
    ],
)
async def test_the_same_plan_gives_the_same_trace(plan: str) -> None:
    async def ring(self: Any) -> None:
        await self.ctx.storage.setAlarm(1)
        await self.ctx.storage.put("rung", 1)

    async def fetch(self: Any, request: Any) -> Any:
        one = self.env.OBJ.getByName("x")
        await told(one.ring)
        return [await told(one.add), await told(self.env.OBJ.get(self.env.OBJ.newUniqueId()).add)]

    traces = []
    for _ in range(2):
        cls = counter(ring=ring, alarm=add)
        async with Emulator(worker(cls, fetch=fetch), faults=plan) as emulator:
            await emulator.fetch("/")
            await emulator.settle()
            traces.append(emulator.trace.to_jsonl())
    assert traces[0] == traces[1]
