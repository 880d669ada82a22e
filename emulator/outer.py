"""The loop of whoever calls the emulator, as far as the pump must know it.

Only a stock asyncio loop shows what it has ready and what it waits for. Of any other one (uvloop)
we assume that something may still happen, and give it a few turns before the clock moves.
"""

from __future__ import annotations

import sys
import threading
from asyncio import AbstractEventLoop, events
from typing import TYPE_CHECKING, Any

from emulator.errors import UnsupportedLoop

if TYPE_CHECKING:
    from collections.abc import Iterable


def running_loop() -> AbstractEventLoop:
    """The caller's loop; raises `UnsupportedLoop` on trio and `RuntimeError` without one."""
    loop = events._get_running_loop()
    if loop is not None:
        return loop
    if _on_trio():
        raise UnsupportedLoop(
            "the emulator is driven by asyncio, and this code runs on trio; under anyio's pytest "
            "plugin let the fixture `anyio_backend` return 'asyncio'"
        )
    raise RuntimeError(
        "no asyncio loop is running here; in synchronous code use `emulator.run(coroutine)`"
    )


def has_ready(loop: AbstractEventLoop, own: tuple[object, ...]) -> bool | None:
    """Whether callbacks other than the functions `own` are ready; None if the loop hides it."""
    ready = getattr(loop, "_ready", None)
    if ready is None:
        return None
    return bool(ready) and _others(ready, own)


def is_dead(loop: AbstractEventLoop, own: tuple[object, ...]) -> bool | None:
    """Whether the loop can never again run anything but `own`; None if it hides that."""
    ready = getattr(loop, "_ready", None)
    timers = getattr(loop, "_scheduled", None)
    selector = getattr(loop, "_selector", None)
    watched = getattr(selector, "get_map", None)
    if ready is None or timers is None or watched is None:
        return None
    # One file descriptor is the loop's own, by which other threads wake it.
    waits = ready or _others(timers, own) or len(watched()) > 1
    return not (waits or _executor_works(loop) or _anyio_works(loop))


def _others(handles: Iterable[Any], own: tuple[object, ...]) -> bool:
    for handle in handles:
        if not handle._cancelled and getattr(handle._callback, "__func__", None) not in own:
            return True
    return False


def _executor_works(loop: AbstractEventLoop) -> bool:
    """Whether a job is in asyncio's own thread pool."""
    executor: Any = getattr(loop, "_default_executor", None)
    threads, idle = getattr(executor, "_threads", ()), getattr(executor, "_idle_semaphore", None)
    return idle is not None and idle._value < len(threads)


def _anyio_works(loop: AbstractEventLoop) -> bool:
    """Whether a job is in anyio's thread pool of the loop."""
    backend: Any = sys.modules.get("anyio._backends._asyncio")
    if backend is None:
        return False
    return any(
        isinstance(thread, backend.WorkerThread)
        and thread.loop is loop
        and thread not in thread.idle_workers
        for thread in threading.enumerate()
    )


def _on_trio() -> bool:
    trio: Any = sys.modules.get("trio")
    if trio is None:
        return False
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        return False
    return True
