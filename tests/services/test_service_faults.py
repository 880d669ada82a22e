"""The faults of `service.<binding>.<method>`, and what a crash leaves on either side."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from service_bench import callee, caller, codes, entrypoint, fired, kinds, module, told
from workers import Response, WorkerEntrypoint, fetch

from emulator import Emulator, WorkerCrashed, sweep

pytestmark = pytest.mark.asyncio

LOST = ["Error", "Network connection lost."]
KV = {"kv_namespaces": [{"binding": "KV", "id": "shared"}]}


class Default(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        await self.env.KV.put("a", "done")
        return Response("ok")

    async def work(self) -> str:
        await self.env.KV.put("a", "done")
        return "ok"


def workers(body: Any, back: type[Any] = Default, **config: Any) -> list[dict[str, Any]]:
    return [caller(body, **KV, **config), callee(back, **KV)]


CALLS = {
    "work": lambda env: env.BACK.work(),
    "fetch": lambda env: env.BACK.fetch("https://back/"),
}


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize("action", ["crash_before", "fail", "crash_after", "lose_reply"])
async def test_each_action_strikes_the_caller(method: str, action: str) -> None:
    seen: list[Any] = []

    async def body(self: Any) -> Any:
        try:
            seen.append(await told(lambda: CALLS[method](self.env)))
        finally:
            seen.append("finally")
        return "ok"

    plan = f"service.BACK.{method}#1:{action}"
    async with Emulator(workers(body), faults=plan) as emulator:
        if action.startswith("crash"):
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
            assert seen == []  # no further line ran
        else:
            assert (await emulator.fetch("/")).json() == "ok"
            assert [str(seen[0][1]), seen[1]] == [LOST[1], "finally"]
        assert fired(emulator) == [plan]
        is_done = action in ("crash_after", "lose_reply")
        assert await emulator.env.KV.get("a") == ("done" if is_done else None)
        assert kinds(emulator) == (["service_call", "service_done"] if is_done else [])
        assert (await emulator.fetch("/")).json() == "ok"


async def test_a_site_says_what_can_happen_at_it_and_whose_fault_that_is() -> None:
    async def body(self: Any) -> Any:
        await self.env.BACK.work()
        return "ok"

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        await self.env.BACK.work()

    front = caller(body, **KV, main=module(entrypoint(fetch=lambda self: 1, queue=queue)))
    front["queues"] = {"consumers": [{"queue": "jobs"}]}
    async with Emulator(workers(body)) as emulator:
        await emulator.fetch("/")
        (site,) = [site for site in emulator.faults.sites if site.name == "service.BACK.work"]
        assert dict(site.actions) == dict.fromkeys(
            ("crash_before", "fail", "crash_after", "lose_reply"), "request"
        )
    async with Emulator([front, callee(Default, **KV)]) as emulator:
        await emulator.queues["jobs"].send("x")
        await emulator.settle()
        (site,) = [site for site in emulator.faults.sites if site.name == "service.BACK.work"]
        assert set(site.actions.values()) == {"platform"}
        # What the called Worker does there is repeated with the batch, too.
        (inner,) = [site for site in emulator.faults.sites if site.name == "kv.KV.put"]
        assert set(inner.actions.values()) == {"platform"}


# -- crashes on either side ------------------------------------------------------------------------


async def test_a_crash_of_the_called_worker_is_a_lost_connection_to_its_caller() -> None:
    lines: list[str] = []

    class Default(WorkerEntrypoint):
        async def work(self) -> str:
            try:
                await self.env.KV.put("a", "done")
            finally:
                lines.append("finally")
            return "ok"

    async def body(self: Any) -> Any:
        return [await told(self.env.BACK.work), await told(self.env.BACK.work)]

    async with Emulator(workers(body, Default), faults="kv.KV.put#1:crash_after") as emulator:
        assert (await emulator.fetch("/")).json() == [LOST, "ok"]
        assert lines == ["finally"]  # of the second call
        assert await emulator.env.KV.get("a") == "done"
        crashed = [event.subject for event in emulator.trace if event.kind == "crash"]
        assert crashed == ["worker back"]


async def test_the_lost_connection_says_that_it_may_be_tried_again() -> None:
    seen: list[Any] = []

    async def body(self: Any) -> Any:
        try:
            await self.env.BACK.work()
        except Exception as error:
            seen.append([error.retryable, error.remote if hasattr(error, "remote") else None])
        return "ok"

    async with Emulator(workers(body), faults="kv.KV.put#1:crash_before") as emulator:
        await emulator.fetch("/")
        assert seen == [[True, None]]


async def test_a_function_that_is_cut_off_is_a_lost_connection_too() -> None:
    class Default(WorkerEntrypoint):
        def give(self) -> Any:
            async def note() -> str:
                await self.env.KV.put("a", "done")
                return "noted"

            return note

    async def body(self: Any) -> Any:
        note = await self.env.BACK.give()
        first, second = await told(note), await told(note)
        return [first, second[1]]

    async with Emulator(workers(body, Default), faults="kv.KV.put#1:crash_after") as emulator:
        assert (await emulator.fetch("/")).json() == [
            LOST,
            "The execution context which hosts this callback is no longer running.",
        ]
        assert await emulator.env.KV.get("a") == "done"


async def test_a_crash_of_the_caller_leaves_what_the_called_worker_does() -> None:
    class Default(WorkerEntrypoint):
        async def work(self) -> str:
            await self.env.KV.put("a", "begun")
            await asyncio.sleep(5)
            await self.env.KV.put("a", "done")
            return "ok"

    async def body(self: Any) -> Any:
        call = asyncio.ensure_future(self.env.BACK.work())
        await asyncio.sleep(1)
        await fetch("https://outside.example/")  # where its power goes
        return await call

    plan = "fetch.GET.outside.example/#1:crash_before"
    async with Emulator(workers(body, Default), faults=plan) as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert await emulator.env.KV.get("a") == "begun"
        start = emulator.now
        await emulator.settle()
        assert 3.999 < (emulator.now - start).total_seconds() < 4.001
        assert await emulator.env.KV.get("a") == "done"
        assert kinds(emulator) == ["service_call", "service_done"]


async def test_a_power_cut_of_all_takes_both() -> None:
    lines: list[str] = []

    class Default(WorkerEntrypoint):
        async def work(self) -> str:
            try:
                await asyncio.sleep(60)
            finally:
                lines.append("back")
            return "ok"

    async def body(self: Any) -> Any:
        try:
            return await self.env.BACK.work()
        finally:
            lines.append("front")

    async with Emulator(workers(body, Default)) as emulator:
        request = asyncio.ensure_future(emulator.fetch("/", advance=False))
        await emulator.advance("1 s")
        await emulator.crash()
        with pytest.raises(WorkerCrashed):
            await request
        await emulator.settle()
        assert lines == []


async def test_a_worker_that_calls_itself_loses_power_as_a_whole() -> None:
    lines: list[str] = []

    class Own(WorkerEntrypoint):
        async def work(self) -> str:
            await self.env.KV.put("a", "done")
            lines.append("own")
            return "ok"

    async def fetch(self: Any, request: Any) -> Any:
        await self.env.OWN.work()
        lines.append("caller")
        return Response("ok")

    services = [{"binding": "OWN", "service": "front", "entrypoint": "Own"}]
    main = module(entrypoint(fetch=fetch), Own)
    config = {"name": "front", "main": main, "services": services, **KV}
    async with Emulator(config, faults="kv.KV.put#1:crash_after") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert lines == []
        assert (await emulator.fetch("/")).text == "ok"
        assert lines == ["own", "caller"]


# -- background work -------------------------------------------------------------------------------


async def test_work_in_the_background_of_a_call_goes_on_after_its_answer() -> None:
    class Default(WorkerEntrypoint):
        async def later(self) -> None:
            await asyncio.sleep(10)
            await self.env.KV.put("a", "done")

        def work(self) -> str:
            self.ctx.waitUntil(self.later())
            return "ok"

    async def body(self: Any) -> Any:
        return await self.env.BACK.work()

    async with Emulator(workers(body, Default)) as emulator:
        assert (await emulator.fetch("/")).json() == "ok"
        assert await emulator.env.KV.get("a") is None
        (task,) = emulator.background
        assert (task.worker, task.event, task.state) == ("back", "service back work", "pending")
        await emulator.settle()
        assert await emulator.env.KV.get("a") == "done"
        assert task.state == "done"


async def test_background_work_of_a_call_has_thirty_seconds() -> None:
    lines: list[str] = []

    class Default(WorkerEntrypoint):
        async def later(self) -> None:
            await asyncio.sleep(29)
            lines.append("29 s")
            await asyncio.sleep(2)
            lines.append("31 s")

        def work(self) -> str:
            self.ctx.waitUntil(self.later())
            return "ok"

    async def body(self: Any) -> Any:
        return await self.env.BACK.work()

    async with Emulator(workers(body, Default)) as emulator:
        start = emulator.now
        await emulator.fetch("/")
        await emulator.settle()
        assert lines == ["29 s"]
        assert 30 <= (emulator.now - start).total_seconds() < 30.001
        assert codes(emulator) == ["wait_until_cancelled"]
        assert emulator.findings[0].worker == "back"


async def test_failed_background_work_of_a_call_is_a_finding_of_the_called_worker() -> None:
    class Default(WorkerEntrypoint):
        async def later(self) -> None:
            raise ValueError("no")

        def work(self) -> str:
            self.ctx.waitUntil(self.later())
            return "ok"

    async def body(self: Any) -> Any:
        return await self.env.BACK.work()

    async with Emulator(workers(body, Default)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert [(f.code, f.worker) for f in emulator.findings] == [("background_error", "back")]
        emulator.findings.expect("background_error")


@pytest.mark.parametrize(("profile", "made"), [("production", False), ("miniflare", True)])
async def test_a_call_that_nobody_awaits_is_dropped_in_production(profile: Any, made: bool) -> None:
    """Queues 1.17, of any binding's call."""

    async def body(self: Any) -> Any:
        self.env.BACK.work()
        return "ok"

    async with Emulator(workers(body), profile=profile) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert (await emulator.env.KV.get("a") == "done") is made
        assert codes(emulator) == ["never_awaited"]
        emulator.findings.expect("never_awaited")


async def test_an_unawaited_call_of_the_called_worker_is_told_there() -> None:
    class Default(WorkerEntrypoint):
        def work(self) -> str:
            self.env.KV.put("a", "1")
            return "ok"

    async def body(self: Any) -> Any:
        return await self.env.BACK.work()

    async with Emulator(workers(body, Default)) as emulator:
        await emulator.fetch("/")
        assert [(f.code, f.worker) for f in emulator.findings] == [("never_awaited", "back")]
        emulator.findings.expect("never_awaited")


# -- what is shared, and what lasts ----------------------------------------------------------------


async def test_workers_share_kv_d1_and_queues_by_name() -> None:
    d1 = {"d1_databases": [{"binding": "DB", "database_name": "db", "database_id": "one"}]}

    class Default(WorkerEntrypoint):
        async def work(self) -> str:
            await self.env.KV.put("a", "1")
            await self.env.DB.exec("CREATE TABLE t (n)")
            await self.env.DB.prepare("INSERT INTO t VALUES (7)").run()
            await self.env.JOBS.send("job")
            return "ok"

    got: list[Any] = []

    async def fetch(self: Any, request: Any) -> Any:
        await self.env.BACK.work()
        rows = (await self.env.DB.prepare("SELECT n FROM t").all()).results
        return Response.json([await self.env.KV.get("a"), rows[0]["n"]])

    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        got.extend(message.body for message in batch.messages)

    front = caller(None, main=module(entrypoint(fetch=fetch, queue=queue)), **KV, **d1)
    front["queues"] = {"consumers": [{"queue": "jobs"}]}
    back = callee(Default, **KV, **d1)
    back["queues"] = {"producers": [{"binding": "JOBS", "queue": "jobs"}]}
    async with Emulator([front, back]) as emulator:
        assert (await emulator.fetch("/")).json() == ["1", 7]
        await emulator.settle()
        assert got == ["job"]
        await emulator.restart()
        assert await emulator.env.KV.get("a") == "1"


async def test_memory_of_a_service_goes_with_its_isolate(tmp_path: Any) -> None:
    (tmp_path / "back.py").write_text(
        "from workers import WorkerEntrypoint\n"
        "count = 0\n"
        "class Default(WorkerEntrypoint):\n"
        "    def next(self):\n"
        "        global count\n"
        "        count += 1\n"
        "        return count\n"
    )
    back = {"name": "back", "main": tmp_path / "back.py"}
    async with Emulator([caller(lambda self: self.env.BACK.next()), back]) as emulator:
        assert (await emulator.fetch("/")).json() == 1
        assert (await emulator.fetch("/")).json() == 2
        await emulator.evict()
        assert (await emulator.fetch("/")).json() == 1
        (tmp_path / "back.py").write_text(
            (tmp_path / "back.py").read_text().replace("count = 0", "count = 10")
        )
        await emulator.reload()
        assert (await emulator.fetch("/")).json() == 11
        await emulator.restart()
        assert (await emulator.fetch("/")).json() == 11


async def test_calls_at_one_time_do_not_meet() -> None:
    class Default(WorkerEntrypoint):
        async def after(self, seconds: int) -> int:
            await asyncio.sleep(seconds)
            return seconds

    async def body(self: Any) -> Any:
        calls = [self.env.BACK.after(seconds) for seconds in (3, 1, 2)]
        return list(await asyncio.gather(*calls))

    async with Emulator(workers(body, Default)) as emulator:
        start = emulator.now
        assert (await emulator.fetch("/")).json() == [3, 1, 2]
        assert 3 <= (emulator.now - start).total_seconds() < 3.001
        subjects = [event.subject for event in emulator.trace if event.kind == "service_call"]
        assert subjects == [
            "service back after",
            "service back after #2",
            "service back after #3",
        ]


async def test_two_runs_have_the_same_trace_and_the_page_has_a_span(tmp_path: Any) -> None:
    async def body(self: Any) -> Any:
        return await self.env.BACK.work()

    def once() -> str:
        async def run() -> str:
            async with Emulator(workers(body)) as emulator:
                await emulator.fetch("/")
                emulator.trace.to_html(tmp_path / "trace.html")
                return emulator.trace.to_jsonl()

        return asyncio.run(run())

    first, second = await asyncio.to_thread(once), await asyncio.to_thread(once)
    assert first == second
    events = [json.loads(line) for line in first.splitlines()]
    (call,) = [event for event in events if event.get("kind") == "service_call"]
    assert (call["subject"], call["data"]) == (
        "service back work",
        {"method": "work", "by": "request GET /"},
    )


async def test_the_sweep_tries_a_service_in_a_consumer() -> None:
    async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> None:
        for _ in batch.messages:
            await self.env.BACK.work()

    class Default(WorkerEntrypoint):
        async def work(self) -> None:
            count = int(await self.env.KV.get("n") or 0)
            await self.env.KV.put("n", str(count + 1))

    front = caller(None, main=module(entrypoint(queue=queue)), **KV)
    front["queues"] = {"consumers": [{"queue": "jobs"}]}

    async def scenario(emulator: Emulator) -> None:
        await emulator.queues["jobs"].send("x")
        await emulator.settle()
        assert await emulator.env.KV.get("n") == "1"

    report = await sweep(scenario, [front, callee(Default, **KV)])
    plans = [str(failure.plan[0]) for failure in report.failures]
    assert "service.BACK.work#1:lose_reply" in plans
    assert "service.BACK.work#1:crash_after" in plans
    assert "service.BACK.work#1:crash_before" not in plans
