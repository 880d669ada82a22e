"""Emulators in one process: they do not meet, and leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import socket
import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import handler

from emulator import Emulator, Stuck

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

# Uses everything that an emulator borrows from the process.
BUSY = """
    import logging, os, random, time, uuid
    import helper
    from js import setTimeout
    logging.basicConfig(level=logging.INFO)
    logging.info("x")
    print(helper.NAME, random.random(), uuid.uuid4(), os.urandom(4), time.time())
    waitUntil(asyncio.sleep(5))
    asyncio.get_running_loop().call_later(100, print)
    if path == "/wait":
        await asyncio.Event().wait()
    if path == "/boom":
        raise ValueError("boom")
    return Response("")
"""


def busy(folder: Path, name: str = "w") -> dict[str, Any]:
    return handler(folder, BUSY, files={"helper.py": f"NAME = {name!r}"}, name=name)


def process() -> dict[str, Any]:
    """What an emulator might change in this process."""
    return {
        "stdout": (sys.stdout, sys.stderr, sys.displayhook, sys.excepthook),
        "meta_path": list(sys.meta_path),
        "path": list(sys.path),
        "path_hooks": list(sys.path_hooks),
        "cwd": os.getcwd(),
        "functions": (
            time.time,
            time.monotonic,
            time.perf_counter,
            time.sleep,
            os.urandom,
            random.random,
            random._urandom,  # type: ignore[attr-defined]
        ),
        "asyncio": (
            asyncio.mixins._LoopBoundMixin._get_loop,  # type: ignore[attr-defined]
            asyncio.as_completed,
            asyncio.tasks.as_completed,
            asyncio.tasks.ensure_future,
            getattr(asyncio.tasks, "_ensure_future", None),
        ),
        "socket": (socket.getaddrinfo, sorted(vars(socket.socket))),
        "random": random.getstate(),
        "root": (logging.root.level, list(logging.root.handlers), logging.Logger.callHandlers),
        "warnings": (list(warnings.filters), warnings.showwarning, warnings.warn),
        "asyncgen": sys.get_asyncgen_hooks(),
        "origin": sys.get_coroutine_origin_tracking_depth(),
        "threads": threading.active_count(),
        "tasks": len(asyncio.all_tasks()),
        "loop": asyncio._get_running_loop(),
        "environ": dict(os.environ),
        "tz": time.tzname,
        "modules": sorted(name for name in sys.modules if name in ("entry", "helper")),
    }


async def one_life(folder: Path, *, settle: bool) -> None:
    async with Emulator(busy(folder)) as emulator:
        await emulator.fetch("/")
        await emulator.fetch("/boom")
        waiting = asyncio.ensure_future(emulator.fetch("/wait", advance=False))
        await emulator.advance(1)
        await emulator.crash()
        await asyncio.gather(waiting, return_exceptions=True)
        await emulator.fetch("/")
        await emulator.client.get("/")
        await emulator.scheduled()
        if settle:
            await emulator.settle()


@pytest.mark.parametrize("settle", [True, False])
async def test_a_life_leaves_nothing_behind(tmp_path: Path, settle: bool) -> None:
    await one_life(tmp_path, settle=settle)  # what is imported on first use is imported now
    before, modules = process(), set(sys.modules)
    await one_life(tmp_path, settle=settle)
    assert set(sys.modules) == modules
    after = process()
    for key, value in before.items():
        assert after[key] == value, key
    assert random.getstate() == before["random"]


async def test_nothing_is_left_behind_after_an_error(tmp_path: Path) -> None:
    await one_life(tmp_path, settle=True)
    before = process()
    for path, error in (("/boom", LookupError), ("/wait", Stuck)):
        with pytest.raises(error):
            await _life_that_fails(tmp_path, path)
    after = process()
    for key, value in before.items():
        assert after[key] == value, key


async def _life_that_fails(folder: Path, path: str) -> None:
    async with Emulator(busy(folder)) as emulator:
        await emulator.fetch(path)
        raise LookupError


async def test_memory_of_closed_emulators_is_given_back(tmp_path: Path) -> None:
    """Crashes included, whose frozen frames live as long as the process."""

    async def alive_after(lives: int) -> int:
        for count in range(lives):
            await one_life(tmp_path, settle=bool(count % 2))
        gc.collect()
        return sum(type(found) is Emulator for found in gc.get_objects())

    before = await alive_after(1)
    assert await alive_after(6) <= before


async def test_interleaved_emulators_have_their_own_everything(tmp_path: Path) -> None:
    body = """
        import random, time, uuid, helper
        helper.count += 1
        await asyncio.sleep(float(path[1:]))
        return Response.json([helper.NAME, helper.count, time.time(), random.random(),
                              str(uuid.uuid4())])
    """

    def config(name: str) -> dict[str, Any]:
        files = {"helper.py": f"NAME = {name!r}\ncount = 0"}
        return handler(tmp_path / name, body, files=files, name=name)

    async def alone(name: str) -> list[Any]:
        async with Emulator(config(name)) as emulator:
            return [(await emulator.fetch(f"/{n}")).json() for n in (1, 2, 3)]

    separately = await alone("a"), await alone("b")
    async with Emulator(config("a")) as first, Emulator(config("b")) as second:
        together: tuple[list[Any], list[Any]] = [], []
        for n in (1, 2, 3):
            together[0].append((await first.fetch(f"/{n}")).json())
            together[1].append((await second.fetch(f"/{n}")).json())
        assert together == separately
        both = await asyncio.gather(first.fetch("/5"), second.fetch("/7"))
        assert [response.json()[0] for response in both] == ["a", "b"]
        assert (first.now.second, second.now.second) == (11, 13)
        first.close()
        assert (await second.fetch("/1")).json()[0] == "b"


async def test_a_crash_of_one_does_not_touch_the_other(tmp_path: Path) -> None:
    first, second = Emulator(busy(tmp_path / "a")), Emulator(busy(tmp_path / "b"))
    async with first, second:
        waiting = asyncio.ensure_future(second.fetch("/wait", advance=False))
        await second.advance(0)
        await first.crash()
        await second.advance(1)
        assert not waiting.done()
        waiting.cancel()
