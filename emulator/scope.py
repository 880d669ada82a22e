"""What a piece of running user code belongs to.

A `Scope` is one invocation of one isolate. Every handle, timer and task of the simulation carries
the scope it was made in; those of a dead scope never run again, which is all there is to a crash.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from emulator.gate import InputGate


class Scope:
    """One invocation, as the event loop sees it."""

    __slots__ = ("__weakref__", "closing", "dead", "gate", "tasks")

    def __init__(self) -> None:
        self.dead = False
        # What decides when events of a Durable Object may run; others need no leave.
        self.gate: InputGate | None = None
        # In creation order; a task leaves when its coroutine ends.
        self.tasks: dict[asyncio.Task[Any], None] = {}
        # Tasks of the loop's that close async generators the code left suspended.
        self.closing: dict[asyncio.Task[Any], None] = {}

    def reads(self, what: str) -> None:
        """Told when user code asks for the time or for randomness; only a Workflow's `run` has a
        rule about these."""

    def cut_links(self) -> None:
        """Drop what leads to the emulator; called when the loop of a killed scope is closed.

        A killed scope lives as long as the process, and would keep all of the emulator with it.
        What its own code made has to stay: collecting it may run a `__del__`.
        """


SCOPE: ContextVar[Scope | None] = ContextVar("emulator.scope", default=None)

# The emulator's own work, which no crash stops.
KERNEL = Scope()
