"""A sweep says what no crash cleared, where the Worker is given as a class or a module."""

from __future__ import annotations

import asyncio
from collections import deque
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from workers import Response, WorkerEntrypoint

from emulator import Emulator, sweep
from emulator.kept_memory import Memory

if TYPE_CHECKING:
    from pathlib import Path

    from emulator import SweepReport

QUEUES = {
    "producers": [{"binding": "JOBS", "queue": "jobs"}],
    "consumers": [{"queue": "jobs"}],
}
SURVIVED = "no crash cleared the Worker's memory, as it is given as an object: "
SOURCE = """
from workers import Response, WorkerEntrypoint

asked = set()

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        asked.add(request.url)
        await self.env.JOBS.send("x")
        return Response("ok")

    async def queue(self, batch):
        pass
"""
asked: set[str] = set()


class Asked(WorkerEntrypoint):
    async def fetch(self, request):
        asked.add(request.url)
        await self.env.JOBS.send("x")
        return Response("ok")

    async def queue(self, batch, env, ctx):
        pass


class Idle(Asked):
    async def fetch(self, request):
        await self.env.JOBS.send("x")
        return Response("ok")


async def ask(emulator: Emulator) -> None:
    asked.clear()
    await emulator.fetch("/")
    await emulator.settle()


async def ask_in_vain(emulator: Emulator) -> None:
    await ask(emulator)
    assert not emulator.faults.fired


def run(main: Any, scenario: Any = ask, fault: str = "crash_before") -> SweepReport:
    only = [f"batch.*#*:{fault}"]
    config = {"main": main, "queues": QUEUES}
    return asyncio.run(sweep(scenario, config, only=only, determinism="in-process"))


def test_global_that_survives_a_crash_is_named_by_a_sweep_that_found_nothing():
    report = run(Asked)
    assert report.passed
    assert report.kept_memory == [f"{__name__}.asked"]
    said = f"{SURVIVED}1 ({__name__}.asked) survived; give the path of its file"
    assert report.summary().splitlines()[-1] == said
    assert said in report.render()


@pytest.mark.parametrize(
    ("main", "fault"), [(Asked, "fail"), (Idle, "crash_before")], ids=["no crash", "no change"]
)
def test_nothing_is_said_where_nothing_was_kept(main: type, fault: str):
    report = run(main, fault=fault)
    assert report.passed
    assert report.kept_memory == []
    assert SURVIVED not in report.summary()


def test_sweep_that_found_something_has_it_in_its_report_only():
    report = run(Asked, ask_in_vain)
    assert not report.passed
    assert report.kept_memory == [f"{__name__}.asked"]
    assert SURVIVED not in report.render()


def test_worker_that_is_given_by_its_path_keeps_nothing(tmp_path: Path):
    (tmp_path / "entry.py").write_text(SOURCE.replace("batch)", "batch, env, ctx)"))
    report = run(tmp_path / "entry.py")
    assert report.passed
    assert report.kept_memory == []


def test_eviction_counts_too():
    asked.clear()
    with Emulator({"main": Asked, "queues": QUEUES}) as emulator:
        worker = emulator._platform.worker(None)
        emulator.run(emulator.evict())
        emulator.run(emulator.fetch("/?1"))
        assert list(worker.kept) == []
        emulator.run(emulator.evict())
        emulator.run(emulator.fetch("/?2"))
        assert list(worker.kept) == [f"{__name__}.asked"]


def test_memory_is_what_may_change_in_a_module_and_a_class():
    module = ModuleType("memory")
    exec(
        "import os\nnumber = 1\nnames = ['a']\ntable = {'a': [1]}\nqueue = None\n"
        "def function(): ...\nclass Same: ...\n",
        vars(module),
    )
    memory = Memory(module)
    assert memory.changed() == []
    module.names.append("b")
    assert memory.changed() == ["memory.names"]
    module.names.clear()
    assert memory.changed() == []
    module.names.append("a")
    module.table["a"] = [1]  # equal, and another
    module.number += 1
    module.queue = deque([1])
    module.new = True
    module.function = module.Same = print
    assert memory.changed() == [f"memory.{name}" for name in ("number", "table", "queue", "new")]


def test_attributes_of_the_class_are_memory_too():
    main = type("Counting", (WorkerEntrypoint,), {"count": 0, "__module__": "none.of.this.name"})
    memory = Memory(main)
    main.count = 1
    assert memory.changed() == ["Counting.count"]


def test_code_of_what_is_kept_is_not_run():
    class Angry:
        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]

    module = ModuleType("memory")
    module.items = [Angry()]
    module.one = Angry()
    memory = Memory(module)
    assert memory.changed() == []
    module.items.append(Angry())
    assert memory.changed() == ["memory.items"]
