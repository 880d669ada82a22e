"""What a power cut leaves in memory: the user's frozen code, and nothing of the emulator."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import greenlet
import pytest
import respx
from worker_files import worker as worker_file

from emulator import Emulator
from emulator.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = """
import asyncio
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint, fetch

class Flow(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do("charge")
        async def charge():
            await fetch("https://pay.example/charges", method="POST")

        @step.do("tell")
        async def tell():
            await self.env.JOBS.send("charged")

        await asyncio.gather(charge(), step.sleep("nap", "1 minute"))
        await tell()
        await step.wait_for_event("yes", "go", timeout="1 hour")

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        flow = await self.env.FLOW.create({"id": "x"})
        self.ctx.waitUntil(flow.send_event({"type": "go", "payload": 1}))
        return Response("started")

    async def scheduled(self, controller, env, ctx):
        await fetch("https://pay.example/charges", method="POST")

    async def queue(self, batch, env, ctx):
        for message in batch.messages:
            await fetch("https://pay.example/charges", method="POST")
            await asyncio.sleep(1)
            message.ack()
"""


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return worker_file(
        tmp_path,
        SOURCE,
        workflows=[{"binding": "FLOW", "name": "flow", "class_name": "Flow"}],
        queues={
            "producers": [{"binding": "JOBS", "queue": "jobs"}],
            "consumers": [{"queue": "jobs"}],
        },
    )


@pytest.fixture(autouse=True)
def young() -> Iterator[None]:
    """Let the collector look at what a test makes, and not again and again at all before it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def run(config: dict[str, Any], *plan: Any) -> list[Any]:
    with respx.mock(assert_all_called=False) as mock, Emulator(config, faults=plan) as emulator:
        mock.post("https://pay.example/charges").respond(201)
        try:
            emulator.run(emulator.fetch("/", method="POST"))
        except Exception:
            pass  # a crash reaches the client
        emulator.run(emulator.scheduled())
        emulator.run(emulator.settle())
        return emulator.faults.sites


def kernels() -> int:
    gc.collect()
    return sum(type(one) is Kernel for one in gc.get_objects())


def test_no_fault_keeps_an_emulator_alive(config: dict[str, Any]) -> None:
    """Each fault of a scenario with requests, sends, steps, sleeps, waits and background work."""
    faults = [fault for site in run(config) for fault in site.faults()]
    assert len(faults) > 50
    before = kernels()
    leaky = []
    for fault in faults:
        run(config, fault)
        after = kernels()
        if after > before:
            leaky.append(str(fault))
        before = after
    assert leaky == []


CALLS = """
import asyncio
from workers import Response, WorkerEntrypoint, fetch

class Own(WorkerEntrypoint):
    def give(self):
        async def charge():
            await fetch("https://pay.example/charges", method="POST")
        return charge

    async def work(self):
        self.ctx.waitUntil(asyncio.sleep(5))
        await fetch("https://pay.example/charges", method="POST")
        await self.env.LIMITER.limit(key="ada")
        await self.env.MAIL.send(**{"from": "a@b.example", "to": "c@d.example", "subject": "hi"})
        self.env.VISITS.writeDataPoint({"blobs": ["x"]})

    async def fetch(self, request):
        return Response("own")

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        await self.env.OWN.work()
        charge = await self.env.OWN.give()
        await charge()
        await self.ctx.exports.Own.fetch("https://own/")
        return Response(await (await self.env.OWN.fetch("https://own/")).text())

    async def scheduled(self, controller, env, ctx):
        await self.env.OWN.work()
"""


def test_no_fault_of_a_service_keeps_an_emulator_alive(tmp_path: Path) -> None:
    limit = {"name": "LIMITER", "namespace_id": "1", "simple": {"limit": 9, "period": 10}}
    config = worker_file(
        tmp_path,
        CALLS,
        services=[{"binding": "OWN", "service": "worker", "entrypoint": "Own"}],
        ratelimits=[limit],
        send_email=[{"name": "MAIL"}],
        analytics_engine_datasets=[{"binding": "VISITS"}],
    )
    faults = [fault for site in run(config) for fault in site.faults()]
    assert {"service", "ratelimit", "email"} <= {fault.site.partition(".")[0] for fault in faults}
    before = kernels()
    leaky = []
    for fault in faults:
        run(config, fault)
        after = kernels()
        if after > before:
            leaky.append(str(fault))
        before = after
    assert leaky == []


def test_no_stack_outlives_its_emulator(tmp_path: Path) -> None:
    """The loop's work runs on a stack of its own, which waits for more when the emulator closes."""

    def stacks() -> int:
        gc.collect()
        return sum(issubclass(type(one), greenlet.greenlet) for one in gc.get_objects())

    async def scenario() -> None:
        async with Emulator(config) as emulator:
            assert (await emulator.fetch("/")).text == "ok"
            assert stacks() > before

    config = worker_file(
        tmp_path,
        """
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                return Response("ok")
        """,
    )
    before = stacks()
    asyncio.run(scenario())
    asyncio.run(scenario())
    assert stacks() == before
