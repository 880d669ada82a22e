"""What power cuts froze goes away between the runs of a sweep, and no line of it runs."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import warnings
import weakref
from types import CoroutineType, FunctionType
from typing import TYPE_CHECKING, Any

import pytest
from simulation import Simulation, python, simulate
from test_power_cut import Tells, crash, cut_synchronously
from worker_files import worker

from emulator import Emulator, remains, sweep
from emulator.scope import Scope
from emulator.sweeping.collection import Collections

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    Said = list[str]

pytestmark = pytest.mark.skipif(not remains.KNOWN, reason="here all stays pinned")


def cut(
    collections: Collections,
    body: Callable[[Simulation], Awaitable[Any]],
    *,
    suspends: bool = True,
) -> None:
    """Run a simulation in which power is cut, and let go of what that froze."""
    collections.between(frozen(body, suspends=suspends))
    collections._let_go()


def frozen(body: Callable[[Simulation], Awaitable[Any]], *, suspends: bool = True) -> list[object]:
    """Run a simulation in which power is cut; returns what that froze."""
    pinned: list[object] = []

    async def test(simulation: Simulation) -> None:
        nonlocal pinned
        simulation.loop.suspends = suspends
        await body(simulation)
        pinned = simulation.loop.pinned

    simulate(test)
    assert pinned
    return pinned


async def killed(simulation: Simulation, coroutine: Any) -> None:
    scope = Scope()
    simulation.start(coroutine, scope)
    await simulation.advance(1)
    simulation.loop.kill(scope)


# -- no line runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("suspends", [False, True])
def test_no_line_of_a_whole_handler_runs(suspends: bool) -> None:
    said: Said = []

    async def body(simulation: Simulation) -> None:
        await crash(simulation, said)
        await simulation.advance(1000)

    with Collections() as collections:
        cut(collections, body, suspends=suspends)
        gc.collect()
    gc.collect()
    assert said == []


def test_no_line_of_a_frozen_greenlet_runs() -> None:
    said: Said = []

    async def body(simulation: Simulation) -> None:
        simulation.loop.suspends = True
        await cut_synchronously(simulation, said)

    with Collections() as collections:
        cut(collections, body)
        gc.collect()
    assert said == []


def test_all_of_a_handler_is_gone() -> None:
    said: Said = []
    left: list[weakref.ref[Any]] = []

    async def body(simulation: Simulation) -> None:
        before = set(map(id, gc.get_objects()))
        await crash(simulation, said)
        mine = (Tells, asyncio.Future)
        left.extend(
            weakref.ref(one)
            for one in gc.get_objects()
            if id(one) not in before
            and (isinstance(one, mine) or hasattr(one, "cr_frame") or hasattr(one, "ag_frame"))
        )

    with Collections() as collections:
        cut(collections, body)
    assert len(left) > 20
    assert [ref() for ref in left if ref() is not None] == []
    assert said == []


def test_no_line_runs_when_the_interpreter_exits() -> None:
    script = """
import gc
from simulation import Simulation, simulate
from test_power_cut import crash
from emulator.sweeping.collection import Collections

said = Said = type("Said", (list,), {"append": lambda self, text: print(text)})()
with Collections() as collections:
    for _ in range(3):
        pinned = []
        async def test(simulation):
            await crash(simulation, said)
            pinned.append(simulation.loop.pinned)
        simulate(test)
        print("over")
        collections.between(*pinned)
print("done")
"""
    lines = python(script).splitlines()
    # What the executor's future says comes before the cut.
    assert [line for line in lines if "executor" not in line] == ["over", "over", "over", "done"]


async def holds(*values: Any) -> None:
    await asyncio.sleep(10)
    raise AssertionError(values)


def test_objects_without_a_header_stay_in_silence(tmp_path: Path) -> None:
    """The one such class of the standard library warns where it is collected half-way."""
    (tmp_path / "file").touch()

    def half_way() -> Any:
        entries = os.scandir(tmp_path)
        next(entries)
        return entries

    async def body(simulation: Simulation) -> None:
        await killed(simulation, holds(half_way(), {"one": half_way()}, (1, (half_way(),))))

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        entries = half_way()
        assert not gc.is_tracked(entries)
        del entries
        assert [warning.category for warning in warned] == [ResourceWarning]
        with Collections() as collections:
            cut(collections, body)
        assert len(warned) == 1


def test_looking_at_an_object_runs_none_of_its_code() -> None:
    said: Said = []

    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            said.append(f"class: {name}")
            return super().__getattribute__(name)

        def __hash__(cls) -> int:
            said.append("class hashed")
            return 1

        def __eq__(cls, other: object) -> bool:
            said.append("class compared")
            return cls is other

    class Curious(metaclass=Meta):
        def __getattribute__(self, name: str) -> Any:
            said.append(f"object: {name}")
            return super().__getattribute__(name)

        def __call__(self, *_: object) -> None:
            said.append("called")

        def __eq__(self, other: object) -> bool:
            said.append("compared")
            return self is other

        def __hash__(self) -> int:
            said.append("hashed")
            return 1

    async def body(simulation: Simulation) -> None:
        callbacks = weakref.ref(simulation, Curious())
        await killed(simulation, holds(Curious(), {"one": Curious()}, callbacks))

    with Collections() as collections:
        pinned = frozen(body)
        said.clear()
        collections.between(pinned)
        collections._let_go()
    assert said == []


def test_a_weak_reference_that_calls_user_code_keeps_all_as_it_is() -> None:
    said: Said = []
    alive: list[weakref.ref[Any]] = []

    async def body(simulation: Simulation) -> None:
        local = Tells(said, "local")
        alive.append(weakref.ref(local))
        watch = weakref.ref(local, Tells(said, "callback").speak)
        await killed(simulation, holds(local, watch))

    with Collections() as collections:
        cut(collections, body)
    assert alive[0]() is not None
    assert said == []


def test_a_weak_reference_of_a_librarys_is_no_obstacle() -> None:
    said: Said = []
    alive: list[weakref.ref[Any]] = []

    async def body(simulation: Simulation) -> None:
        local = Tells(said, "local")
        alive.append(weakref.ref(local))
        await killed(simulation, holds(weakref.WeakValueDictionary({1: local}), local))

    with Collections() as collections:
        cut(collections, body)
    assert (alive[0](), said) == (None, [])


def test_after_a_collection_in_the_run_all_stays() -> None:
    said: Said = []
    alive: list[weakref.ref[Any]] = []

    async def body(simulation: Simulation) -> None:
        local = Tells(said, "local")
        alive.append(weakref.ref(local))
        gc.collect()  # what is young now is not all of the run
        await killed(simulation, holds(local))

    with Collections() as collections:
        cut(collections, body)
        assert alive[0]() is not None
    assert said == []


def test_on_another_python_all_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    said: Said = []
    alive: list[weakref.ref[Any]] = []

    async def body(simulation: Simulation) -> None:
        local = Tells(said, "local")
        alive.append(weakref.ref(local))
        await killed(simulation, holds(local))

    monkeypatch.setattr(remains, "KNOWN", False)
    with Collections() as collections:
        cut(collections, body)
    assert alive[0]() is not None
    assert said == []


def test_what_others_hold_lives_on() -> None:
    said: Said = []
    mine: list[Tells] = []

    async def body(simulation: Simulation) -> None:
        mine.append(Tells(said, "the cut one's"))
        mine.append(Tells(said, "the other one's"))
        await killed(simulation, holds(mine[0]))

    with Collections() as collections:
        cut(collections, body)
    mine[0].speak()
    mine[1].speak()
    assert said == ["the cut one's: spoke", "the other one's: spoke"]
    mine.clear()
    assert said[2:] == ["the other one's: __del__"]


# -- sweeps ----------------------------------------------------------------------------------------

ENTRY = """
import asyncio
from contextlib import contextmanager
from workers import Response, WorkerEntrypoint

class Tells:
    def __del__(self):
        print("LINE: __del__")

@contextmanager
def resource():
    try:
        yield
    finally:
        print("LINE: context manager")

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        local = Tells()
        with resource():
            try:
                await self.env.JOBS.send("x")
                await asyncio.sleep(1)
            finally:
                self.env.OVER.append(1)
        return Response("ok")

    async def queue(self, batch, env, ctx):
        with resource():
            await asyncio.sleep(1)
"""
CRASHES = ["*#*:crash_before", "*#*:crash_after", "batch.jobs#*:timeout", "batch.jobs#*:lose_ack"]


def config(folder: Path) -> dict[str, Any]:
    queues = {
        "producers": [{"binding": "JOBS", "queue": "jobs"}],
        "consumers": [{"queue": "jobs", "max_batch_timeout": 0}],
    }
    return worker(folder, ENTRY, queues=queues)


async def scenario(emulator: Emulator) -> None:
    await emulator.fetch("/", retries=3)
    await emulator.settle()


def test_a_sweep_leaves_nothing_behind_and_runs_no_line_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every few runs there are no more coroutines than at first; plans tried are remembered."""
    counts: list[tuple[int, int]] = []
    between = ""

    async def counted(emulator: Emulator) -> None:
        nonlocal between
        objects = gc.get_objects()
        counts.append((len(objects), sum(type(one) is CoroutineType for one in objects)))
        del objects
        # What was printed since the run before ended, by what it left.
        between += capsys.readouterr().out
        await scenario(emulator)
        capsys.readouterr()

    report = asyncio.run(
        sweep(
            counted,
            config(tmp_path),
            classes="all",
            depth=2,
            only=CRASHES,
            bindings={"OVER": []},
        )
    )
    assert report.passed, report.render()
    assert report.runs > 60
    assert between == ""
    assert max(coroutines for _, coroutines in counts) > counts[0][1] + 20
    assert min(coroutines for _, coroutines in counts[-8:]) == counts[0][1]
    early, late = (min(count for count, _ in some) for some in (counts[8:16], counts[-8:]))
    assert late - early < 10 * len(counts)


@pytest.mark.parametrize("plan", ["batch.jobs#1:timeout", "request.GET./#1:crash_after"])
def test_nothing_of_a_cut_worker_is_alive_after_its_run(tmp_path: Path, plan: str) -> None:
    seen: list[weakref.ref[Any]] = []

    async def watched(emulator: Emulator) -> None:
        await scenario(emulator)
        seen.extend(
            weakref.ref(one)
            for one in gc.get_objects()
            if type(one).__module__ == "entry"
            or (type(one) is FunctionType and one.__module__ == "entry")
        )

    report = asyncio.run(
        sweep(watched, config(tmp_path), classes="all", only=[plan], bindings={"OVER": []})
    )
    assert report.runs == 3
    assert len(seen) > 10
    assert [ref() for ref in seen if ref() is not None] == []


def test_the_mark_is_where_remains_looks_for_it() -> None:
    class Thing:
        def __del__(self) -> None:
            raise AssertionError("it was marked")

    thing = Thing()
    assert not gc.is_finalized(thing)
    remains._disarm(thing)
    assert gc.is_finalized(thing), f"remains.py needs the headers of CPython, not {sys.version}"
