"""A story in plain asyncio, run again and again by one simulator: what a run costs.

    python -m tests.benchmarks.story simloop

Prints milliseconds of CPU time, the best of some rounds; nothing where the simulator is not
installed. A process of its own for each: some collect all garbage after each run, and that takes
the longer the more else is loaded.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_RUNS = 200
_ROUNDS = 5
_DAY = 86_400


async def story(*_: Any) -> None:
    """A customer comes: an account, two mails and a subscription, over thirty days."""
    mails: asyncio.Queue[str] = asyncio.Queue()
    sent: list[str] = []
    charges: list[str] = []

    async def call(service: list[str], what: str) -> None:
        await asyncio.sleep(0.05)
        service.append(what)

    async def consume() -> None:
        while True:
            mail = await mails.get()
            await asyncio.sleep(5)
            await call(sent, mail)
            mails.task_done()

    consumer = asyncio.create_task(consume())
    async with asyncio.timeout(60):
        await call(charges, "setup")
    await mails.put("Welcome")
    await asyncio.sleep(3 * _DAY)
    await mails.put("How is it going?")
    await asyncio.sleep(27 * _DAY)
    async with asyncio.timeout(60):
        await call(charges, "subscription")
    await mails.join()
    consumer.cancel()
    assert (charges, sent) == (["setup", "subscription"], ["Welcome", "How is it going?"])


def _emulator(library: Any) -> None:
    emulator_class = library.Emulator  # which lets the next line find its module
    from workers import Response, WorkerEntrypoint

    class Story(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            await story()
            return Response("over")

    async def main() -> None:
        for seed in range(_RUNS):
            async with emulator_class({"main": Story}, seed=seed) as emulator:
                assert (await emulator.fetch("/")).text == "over"

    asyncio.run(main())


def _simloop(library: Any) -> None:
    report = library.explore(story, range(_RUNS))
    assert report is None, report


def _simloom(library: Any) -> None:
    found = library.explore(story, runs=_RUNS)
    assert not found.failures, found


def _seedloop(library: Any) -> None:
    assert library.check(story, seeds=_RUNS).checked == _RUNS


SIMULATORS: dict[str, Callable[[Any], None]] = {
    "emulator": _emulator,
    "simloop": _simloop,
    "simloom": _simloom,
    "seedloop": _seedloop,
}


def main(name: str) -> None:
    try:
        library = importlib.import_module(name)
    except ImportError:
        return
    run = SIMULATORS[name]
    run(library)
    took = []
    for _ in range(_ROUNDS):
        gc.collect()
        start = time.process_time()
        run(library)
        took.append(time.process_time() - start)
    print(min(took) / _RUNS * 1e3)


if __name__ == "__main__":
    main(sys.argv[1])
