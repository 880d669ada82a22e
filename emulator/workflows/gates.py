"""Holding a step: a gate before its body, which the test opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.pump import Goal

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from emulator.kernel import Kernel


class Gate:
    """A held step; from the moment it is reached time does not move by itself until it is open."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self._kernel = kernel
        self._name = name
        self._then: list[tuple[object, Callable[[], None]]] = []
        self._hold: AbstractContextManager[None] | None = None
        self.was_reached = False
        self.is_open = False

    async def reached(self) -> None:
        """Wait until the step would start; time passes on the way.

        Raises `NotSettled` if it never does.
        """
        year = 365 * 86_400_000_000
        end = self._kernel.limit(year)
        goal = Goal(
            f"gate of {self._name!r}.reached()",
            lambda: self.was_reached,
            each_event=True,
            horizon=end,
            limit=end,
        )
        await self._kernel.pump.reach(goal)

    def open(self) -> None:
        """Let the step's body start, now and from now on."""
        self.is_open = True
        self._let_go()
        waiting, self._then = self._then, []
        for _, then in waiting:
            self._kernel.loop.kernel_soon(then)

    def arrive(self, run: object, then: Callable[[], None]) -> None:
        """A run's step is about to start: `then` starts it."""
        self.was_reached = True
        if self.is_open:
            then()
            return
        self._then.append((run, then))
        if self._hold is None:
            self._hold = self._kernel.pump.hold()
            self._hold.__enter__()

    def leave(self, run: object) -> None:
        """A run is gone, and with it the steps it had here."""
        self._then = [(one, then) for one, then in self._then if one is not run]
        if not self._then:
            self._let_go()

    def _let_go(self) -> None:
        if self._hold is not None:
            self._hold.__exit__(None, None, None)
            self._hold = None
