"""Print what Workflows cost: instances a second, long sleeps, resuming, timers that stay.

    python -m tests.benchmarks.workflows

CPU time, which other work on the machine changes least, the best of several rounds. What a round
left is collected before the next one begins.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator import Emulator
from tests.benchmarks.figures import Figure, show

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Config = dict[str, Any]

_ROUNDS = 5
_INSTANCES = 200
_JOURNALS = (10, 100, 1_000, 10_000)
_WORKER = """
from workers import WorkerEntrypoint, WorkflowEntrypoint


class Steps(WorkflowEntrypoint):
    async def run(self, event, step):
        for number in range(event["payload"]):

            @step.do(f"step {number}")
            async def body():
                return number

            await body()


class StepsAndSleep(Steps):
    async def run(self, event, step):
        await super().run(event, step)
        await step.sleep("the end", "1 hour")


class Days(WorkflowEntrypoint):
    async def run(self, event, step):
        for number in range(event["payload"]):
            await step.sleep(f"day {number}", "1 day")


class Default(WorkerEntrypoint):
    pass
"""
_WORKFLOWS = [
    {"binding": "STEPS", "name": "steps", "class_name": "Steps"},
    {"binding": "LONG", "name": "long", "class_name": "StepsAndSleep", "limits": {"steps": 20_000}},
    {"binding": "DAYS", "name": "days", "class_name": "Days"},
]


def figures() -> Iterator[Figure]:
    """Yield instances a second, and what sleeping, resuming and finished steps cost."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "entry.py")
        path.write_text(_WORKER)
        config = {"main": str(path), "workflows": _WORKFLOWS}
        rate = _INSTANCES / _seconds(config, _finish, 5)
        yield Figure("Workflows, 200 instances of five steps", rate, "instances/s")
        yield Figure("a year of daily sleeps", _seconds(config, _sleep, 365) * 1e3, "ms")
        for count in _JOURNALS:
            each = _seconds(config, _resume, count) / count * 1e6
            yield Figure(f"resuming, {count:,} steps in the journal", each, "µs/step")
        timers = asyncio.run(_timers(config))
        yield Figure("timers of a sleep after 1,000 finished steps", timers, "")


def _seconds(
    config: Config, work: Callable[[Emulator, int], Awaitable[float]], count: int
) -> float:
    """What `work` says it takes with so many steps."""

    async def once() -> float:
        async with Emulator(config) as emulator:
            return await work(emulator, count)

    took = []
    for _ in range(_ROUNDS):
        gc.collect()
        took.append(asyncio.run(once()))
    return min(took)


async def _finish(emulator: Emulator, steps: int) -> float:
    flow = emulator.workflows["steps"]
    start = time.process_time()
    for _ in range(_INSTANCES // 100):  # so many may be in a batch
        await flow.create_batch([{"params": steps}] * 100)
    await emulator.settle()
    took = time.process_time() - start
    assert [one.status for one in flow.instances] == ["complete"] * _INSTANCES
    return took


async def _sleep(emulator: Emulator, days: int) -> float:
    start = time.process_time()
    instance = await emulator.workflows["days"].create(params=days)
    await emulator.settle()
    took = time.process_time() - start
    assert instance.status == "complete"
    return took


async def _resume(emulator: Emulator, steps: int) -> float:
    """An eviction in the sleep: `run` starts over, and all its steps are in the journal."""
    instance = await emulator.workflows["long"].create(params=steps)
    await emulator.settle(sleeps=False)
    start = time.process_time()
    await instance.evict()
    await emulator.settle(sleeps=False)
    took = time.process_time() - start
    await emulator.settle()
    assert instance.status == "complete"
    assert [step.attempts for step in instance.steps[:steps]] == [1] * steps
    return took


async def _timers(config: Config) -> float:
    async with Emulator(config) as emulator:
        await emulator.workflows["long"].create(params=1_000)
        await emulator.settle(sleeps=False)
        return len(emulator.clock.timers)


if __name__ == "__main__":
    show(figures())
