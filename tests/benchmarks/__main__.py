"""Print how fast the emulator is, beside what the local JavaScript runtime needs.

Figures of the local runtime (Miniflare 4 and 5 with workerd, Node 22, two cores, otherwise idle)
were measured on a machine of the same kind; see docs/fidelity.md. Medians of several runs.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

from emulator import Emulator, WorkerCrashed
from tests.benchmarks import d1, objects, queues, rivals, sweep, workflows
from tests.benchmarks.figures import Figure, show

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

_WORKER = """
import asyncio
from workers import Response, WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        if request.url.endswith("/sleep"):
            for _ in range(10_000):
                await asyncio.sleep(60)
        if request.url.endswith("/wait"):
            await asyncio.sleep(3600)
        return Response("ok")

    async def queue(self, batch, env, ctx):
        pass
"""
_QUEUE = {
    "producers": [{"binding": "JOBS", "queue": "jobs"}],
    "consumers": [{"queue": "jobs", "max_batch_size": 100, "max_batch_timeout": 0}],
}


def figures() -> Iterator[Figure]:
    """Yield all figures there are, those of the other benchmarks after those of one emulator."""
    theirs = "local JavaScript runtime:"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "entry.py")
        path.write_text(_WORKER)
        config = {"main": str(path), "queues": _QUEUE}
        note = f"{theirs} 240 to 390 (cold start)"
        yield Figure("create, load, answer, close", _cycle(config), "ms", note)
        note = f"{theirs} 174 to 267 (dispatchFetch)"
        yield Figure("emulator.fetch", _fetches(config), "/s", note)
        yield Figure("virtual sleeps through the pump", _sleeps(config), "/s")
        yield Figure("fixture, per test", _fixture(folder), "ms")
        yield Figure("plugin, on pytest's start", _plugin_start(folder), "ms")
        yield Figure("memory of 1,000 emulators more", _memory(_open_and_close, config), "KiB")
        yield Figure("memory of 1,000 crashes more", _memory(_crash, config), "KiB")
    for other in (queues, workflows, objects, d1, sweep, rivals):
        yield from other.figures()


def _median(runs: int, once: Callable[[], float]) -> float:
    return statistics.median(once() for _ in range(runs))


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _cycle(config: dict[str, object]) -> float:
    async def once() -> None:
        async with Emulator(config) as emulator:
            await emulator.fetch("/")

    return _median(50, lambda: _timed(lambda: asyncio.run(once()))) * 1e3


def _inside(config: dict[str, object], work: Callable[[Emulator], Awaitable[int]]) -> float:
    """Units of `work` per second."""

    async def once() -> float:
        async with Emulator(config) as emulator:
            await emulator.fetch("/")
            start = time.perf_counter()
            done = await work(emulator)
            return done / (time.perf_counter() - start)

    return _median(5, lambda: asyncio.run(once()))


def _fetches(config: dict[str, object]) -> float:
    async def work(emulator: Emulator) -> int:
        for _ in range(1000):
            await emulator.fetch("/")
        return 1000

    return _inside(config, work)


def _sleeps(config: dict[str, object]) -> float:
    async def work(emulator: Emulator) -> int:
        await emulator.fetch("/sleep")
        return 10_000

    return _inside(config, work)


def _pytest(folder: str, test: str, *options: str) -> float:
    Path(folder, "test_bench.py").write_text(textwrap.dedent(test))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return _timed(
        lambda: subprocess.run(
            command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    )


_TESTS = """
    import pytest
    @pytest.mark.emulator(config={{"main": "entry.py"}})
    @pytest.mark.parametrize("n", range({count}))
    def test_nothing(n{fixture}):
        pass
"""


def _fixture(folder: str) -> float:
    """What one more test costs with the fixture and without; imports are left out."""

    def each(fixture: str) -> float:
        few = _median(3, lambda: _pytest(folder, _TESTS.format(count=100, fixture=fixture)))
        many = _median(3, lambda: _pytest(folder, _TESTS.format(count=900, fixture=fixture)))
        return (many - few) / 800

    return (each(", emulator") - each("")) * 1e3


def _plugin_start(folder: str) -> float:
    test = "def test_nothing(): pass"
    off = ("-p", "no:workers-emulator")
    pairs = [(_pytest(folder, test), _pytest(folder, test, *off)) for _ in range(7)]
    return statistics.median(with_it - without for with_it, without in pairs) * 1e3


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _memory(work: Callable[[dict[str, object]], None], config: dict[str, object]) -> float:
    for _ in range(200):
        work(config)
    gc.collect()
    before = _resident()
    for _ in range(1000):
        work(config)
    gc.collect()
    return _resident() - before


def _open_and_close(config: dict[str, object]) -> None:
    with Emulator(config) as emulator:
        emulator.run(emulator.fetch("/"))


def _crash(config: dict[str, object]) -> None:
    with Emulator(config, faults="request.GET./#1:crash_after") as emulator:
        try:
            emulator.run(emulator.fetch("/"))
        except WorkerCrashed:
            return
    raise AssertionError("the request was to crash")


if __name__ == "__main__":
    show(figures())
