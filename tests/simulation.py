"""Loop and pump alone, without a Worker: what the kernel's tests drive."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from emulator.clock import MICROSECONDS, Clock
from emulator.foreign import is_foreign
from emulator.loop import SimLoop
from emulator.pump import Goal, Pump
from emulator.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from types import TracebackType

_T = TypeVar("_T")

START = 1_767_225_600 * MICROSECONDS


class Simulation:
    """One simulation: `call` runs user code in it, as a request would."""

    def __init__(self) -> None:
        self.clock = Clock(START)
        self.loop = SimLoop(self.clock)
        self.pump = Pump(self.loop, self._describe)

    @property
    def seconds(self) -> float:
        """Virtual time since the start."""
        return (self.clock.now - START) / MICROSECONDS

    def start(self, coroutine: Coroutine[Any, Any, Any], scope: Scope | None = None) -> list[Any]:
        """Start user code; the list gets its outcome: a result, or an exception."""
        outcome: list[Any] = []

        async def run() -> None:
            try:
                outcome.append(await coroutine)
            except BaseException as error:
                if is_foreign(error):
                    raise
                outcome.append(error)

        self.loop.spawn(scope or Scope(), run(), "user code")
        return outcome

    async def call(
        self,
        coroutine: Coroutine[Any, Any, _T],
        *,
        advance: bool = True,
        scope: Scope | None = None,
        name: str = "call()",
    ) -> _T:
        """Run user code and return its result, or raise its exception."""
        outcome = self.start(coroutine, scope)
        await self.pump.reach(Goal(name, lambda: bool(outcome), advance=advance))
        result: _T | BaseException = outcome[0]
        if isinstance(result, BaseException):
            raise result
        return result

    async def advance(self, seconds: float) -> None:
        until = self.clock.now + round(seconds * MICROSECONDS)
        goal = Goal("advance()", lambda: self.clock.now >= until, horizon=until, stop_at=until)
        await self.pump.reach(goal)

    async def settle(self, limit: float = 365 * 86400) -> None:
        end = self.clock.now + round(limit * MICROSECONDS)
        goal = Goal("settle()", lambda: not self.loop.has_work, horizon=end, limit=end)
        await self.pump.reach(goal)

    async def run_until(self, predicate: Callable[[], object], limit: float = 365 * 86400) -> None:
        end = self.clock.now + round(limit * MICROSECONDS)
        goal = Goal(
            "run_until()", lambda: bool(predicate()), each_event=True, horizon=end, limit=end
        )
        await self.pump.reach(goal)

    def _describe(self) -> list[str]:
        return [f"a timer due at {timer.when():g} s" for timer in self.loop.timers]

    def __enter__(self) -> Simulation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.loop.close()


async def turn() -> None:
    """Let the running loop go round once."""
    await asyncio.sleep(0)


def simulate(test: Callable[[Simulation], Awaitable[Any]]) -> Any:
    """Run an async test body with a simulation, from a plain `asyncio.run`."""

    async def main() -> Any:
        with Simulation() as simulation:
            return await test(simulation)

    return asyncio.run(main())


def inside(body: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine function as user code of a simulation and return its result."""
    return simulate(lambda simulation: simulation.call(body()))


def python(source: str, **environment: str) -> str:
    """Run a script in a fresh interpreter and return what it printed; fails with its errors."""
    tests = Path(__file__).parent
    path = os.pathsep.join([str(tests.parent), str(tests)])
    with TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(source)
        done = subprocess.run(
            [sys.executable, script],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path, **environment},
            check=False,
        )
    assert done.returncode == 0, done.stderr
    # In asyncio's debug mode a busy machine is told of, which is no error.
    errors = [line for line in done.stderr.splitlines() if not line.startswith("Executing <")]
    assert not errors, done.stderr
    return done.stdout
