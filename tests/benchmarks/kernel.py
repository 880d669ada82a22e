"""Print what loop and pump cost, without a Worker: `python tests/benchmarks/kernel.py`.

Each figure is the best of several runs, so that a busy machine disturbs little. Nothing fails.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from typing import TYPE_CHECKING

from simulation import Simulation

from emulator.scope import Scope
from emulator.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ROUNDS = 7


async def nothing() -> None: ...


async def sleeps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(1)


async def switches(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def tasks(count: int) -> None:
    for _ in range(count):
        await asyncio.create_task(nothing())


async def coroutines(count: int) -> None:
    for _ in range(count):
        await nothing()


async def sleep_long() -> None:
    await asyncio.sleep(10_000)


def main() -> None:
    rows = [
        ("a call that does nothing", measure(calls, 1000), "us"),
        ("the same, power cuts in greenlets", measure(calls_in_greenlets, 1000), "us"),
        ("the same, with the surroundings of an emulator", measure(calls_surrounded, 1000), "us"),
        ("a virtual sleep", measure(inside(sleeps), 10_000), "us"),
        ("a switch of tasks", measure(inside(switches), 10_000), "us"),
        ("a switch of tasks, stock asyncio", measure(plain(switches), 10_000), "us"),
        ("a task", measure(inside(tasks), 5000), "us"),
        ("a task, stock asyncio", measure(plain(tasks), 5000), "us"),
        ("a coroutine", measure(inside(coroutines), 50_000), "us"),
        ("a coroutine, stock asyncio", measure(plain(coroutines), 50_000), "us"),
        ("a simulation made and closed", measure(make_and_close, 500), "us"),
        ("a power cut, with its task", measure(crashes, 500), "us"),
        ("memory a power cut keeps", bytes_each(crashes, 1000), "bytes"),
        ("memory a closed simulation keeps", bytes_each(make_and_close, 1000), "bytes"),
        ("memory one closed in flight keeps", bytes_each(make_and_close_cut, 1000), "bytes"),
    ]
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    for name, value, unit in rows:
        print(f"{name:<50}{value:>12,.2f} {unit}")


def measure(work: Callable[[int], Awaitable[float]], count: int) -> float:
    """Microseconds for each of `count`; `work` returns the seconds that all took."""
    gc.collect()
    return min(asyncio.run(_awaited(work, count)) for _ in range(ROUNDS)) / count * 1e6


async def _awaited(work: Callable[[int], Awaitable[float]], count: int) -> float:
    return await work(count)


def bytes_each(work: Callable[[int], Awaitable[float]], count: int) -> float:
    """Bytes that stay allocated for each of `count`, after a collection."""
    asyncio.run(_awaited(work, 20))
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    asyncio.run(_awaited(work, count))
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / count


async def calls(count: int) -> float:
    with Simulation() as simulation:
        return await _calls(simulation, count)


async def calls_in_greenlets(count: int) -> float:
    with Simulation() as simulation:
        simulation.loop.suspends = True
        return await _calls(simulation, count)


async def calls_surrounded(count: int) -> float:
    with Simulation() as simulation:
        surroundings = Surroundings(simulation.clock, 0)
        simulation.loop.before_run = surroundings.enter
        simulation.loop.after_run = surroundings.leave
        took = await _calls(simulation, count)
        surroundings.close()
        return took


async def _calls(simulation: Simulation, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        await simulation.call(nothing())
    return time.perf_counter() - start


def inside(work: Callable[[int], Awaitable[None]]) -> Callable[[int], Awaitable[float]]:
    """The work as user code of a simulation."""

    async def run(count: int) -> float:
        with Simulation() as simulation:
            start = time.perf_counter()
            await simulation.call(work(count))  # type: ignore[arg-type]
            return time.perf_counter() - start

    return run


def plain(work: Callable[[int], Awaitable[None]]) -> Callable[[int], Awaitable[float]]:
    """The work on asyncio's own loop."""

    async def run(count: int) -> float:
        start = time.perf_counter()
        await work(count)
        return time.perf_counter() - start

    return run


async def make_and_close(count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        with Simulation() as simulation:
            await simulation.call(nothing())
    return time.perf_counter() - start


async def make_and_close_cut(count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        with Simulation() as simulation:
            await _crash(simulation)
    return time.perf_counter() - start


async def crashes(count: int) -> float:
    with Simulation() as simulation:
        start = time.perf_counter()
        for _ in range(count):
            await _crash(simulation)
        return time.perf_counter() - start


async def _crash(simulation: Simulation) -> None:
    scope = Scope()
    simulation.loop.spawn(scope, sleep_long(), "user code")
    await simulation.advance(0)
    simulation.loop.kill(scope)


if __name__ == "__main__":
    main()
