"""One run of a scenario, on an event loop of its own."""

from __future__ import annotations

import asyncio
import selectors
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.cli.interrupts import OutOfTime, time_limit
from emulator.errors import Stuck
from emulator.immortal import pin
from emulator.lenient_respx import lenient
from emulator.location import raised_at, waiting_at

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from emulator.emulator import Emulator


class _Idle(Exception):
    """The loop has nothing to run and nothing to wait for."""


class _Selector(selectors.DefaultSelector):
    """Refuses to wait for ever for nobody."""

    def select(self, timeout: float | None = None) -> Any:
        # One file descriptor is the loop's own, by which other threads wake it.
        if timeout is None and len(self.get_map()) <= 1 and threading.active_count() == 1:
            raise _Idle
        return super().select(timeout)


def perform(
    scenario: Callable[[Emulator], Awaitable[object]],
    emulator: Emulator,
    *,
    timeout: float | None = None,
) -> BaseException | None:
    """Run a scenario; return what it raised, or None.

    `timeout` is in seconds of real time; a run that takes longer returns `OutOfTime`. One that
    waits for what can never come returns `Stuck`. Ctrl-C raises `KeyboardInterrupt`.
    """

    async def main() -> None:
        await scenario(emulator)

    coroutine, loop = main(), asyncio.SelectorEventLoop(_Selector())
    try:
        runner = asyncio.Runner(loop_factory=lambda: loop)
        with time_limit(timeout), runner, lenient(emulator):
            return _run(runner, coroutine)
    except OutOfTime as error:
        # The first knows where it was; a scenario that swallowed it was told again.
        while isinstance(error.__context__, OutOfTime):
            error = error.__context__
        return error
    finally:
        # What would not end when it was told to must not run when it is collected, either.
        for task in asyncio.all_tasks(loop):
            pin(task)


def _run(runner: asyncio.Runner, coroutine: Coroutine[Any, Any, None]) -> BaseException | None:
    try:
        runner.run(coroutine)
    except _Idle:
        return Stuck(
            f"the scenario waits{_place(coroutine)} for something that can never happen: nothing "
            "is due on its event loop, and no call of the emulator is in progress, so that time "
            "stands. Let it pass there, as with `await emulator.settle()`"
        )
    except KeyboardInterrupt as error:
        # Raised where nothing of the user's ran: what it waited for is on the coroutine.
        if raised_at(error) is None:
            error.add_note(f"the scenario waited{_place(coroutine)}")
        raise
    except BaseException as error:  # `sys.exit()` and `pytest.fail()` too
        return error
    return None


def _place(coroutine: Coroutine[Any, Any, None]) -> str:
    where = waiting_at(coroutine)
    return f" at {where.relative_to(Path.cwd())}" if where is not None else ""
