"""Which instances count against their Workflow's concurrency, and which wait for a turn.

Only running instances count; one that sleeps, waits for an event or for a retry lets the oldest of
those that queue go first, and queues itself when it wakes up (limits of §15).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.workflows.instance import Instance


class Slots:
    """The slots in use and the queue for them, by Workflow."""

    def __init__(self) -> None:
        self._limits: dict[str, int | None] = {}
        self._used: dict[str, int] = {}
        self._queues: dict[str, dict[int, Instance]] = {}

    def configure(self, limits: Mapping[str, int | None]) -> None:
        """Take over new limits; whoever has a slot keeps it."""
        self._limits = dict(limits)

    def take(self, instance: Instance) -> bool:
        """Give the instance a slot if it has none and one is free; if not it queues."""
        if instance.slot:
            return True
        name = instance.workflow
        limit = self._limits.get(name)
        used = self._used.get(name, 0)
        if limit is not None and used >= limit:
            self._queues.setdefault(name, {})[instance.number] = instance
            return False
        self._used[name] = used + 1
        instance.slot = True
        return True

    def leave(self, instance: Instance) -> None:
        """Give the slot back, or the place in the queue."""
        name = instance.workflow
        if instance.slot:
            instance.slot = False
            self._used[name] -= 1
        elif name in self._queues:
            self._queues[name].pop(instance.number, None)

    def queues(self, instance: Instance) -> bool:
        """Whether the instance is in the queue."""
        return instance.number in self._queues.get(instance.workflow, ())

    def admit(self, name: str) -> Instance | None:
        """Give a free slot to the first in the queue."""
        queue = self._queues.get(name)
        limit = self._limits.get(name)
        used = self._used.get(name, 0)
        if not queue or (limit is not None and used >= limit):
            return None
        first = queue.pop(next(iter(queue)))
        self._used[name] = used + 1
        first.slot = True
        return first

    def clear(self) -> None:
        """Forget who has a slot and who queues."""
        self._used.clear()
        self._queues.clear()
