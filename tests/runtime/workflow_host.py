"""A small engine behind `step`, for tests of what the SDK makes of it.

It runs the bodies that it is given in tasks of its own, as often as `attempts` says, keeps results
and errors as the real one does (as bytes; as name and message), and tells them again at a replay.
There is no time in it: sleeps and waits return at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from ffi_worker import FakeHost

from emulator.compatibility import resolve
from emulator.runtime.sdk.workflow_errors import step_error
from emulator.runtime.sdk.workflows import call_step_function, run_workflow
from emulator.scope import SCOPE
from emulator.values import HostObject, JsException, from_v8, to_v8

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.scope import Scope

EXTERNAL = "2026-11-01"  # the SDK from PyPI
IMPLICIT = "2026-03-01"  # the frozen SDK, dependencies by parameter names
LISTED = "2025-11-02"  # the frozen SDK, `depends`
OLDEST = "2025-09-20"  # the frozen SDK on Pyodide 0.26
DATES = (EXTERNAL, IMPLICIT, LISTED, OLDEST)

CONFIG = {"retries": {"limit": 5, "delay": 10000, "backoff": "exponential"}, "timeout": 600000}


@contextmanager
def worker_of(date: str, *flags: str) -> Iterator[FakeHost]:
    """Run the block as code of a Worker with this compatibility date."""
    fake = FakeHost(resolve(date, ["python_workers", *flags]).flags)
    token = SCOPE.set(cast("Scope", fake))
    try:
        yield fake
    finally:
        SCOPE.reset(token)


@dataclass
class Journal:
    """What an engine keeps of an instance: by name and count, the outcome of a step."""

    attempts: int = 1
    modern: bool = True  # how the SDK tells errors
    outcomes: dict[tuple[str, int], bytes | JsException] = field(default_factory=dict)
    # Every attempt of every step, in order of starting, with its error if it had one.
    tried: list[tuple[str, int, str]] = field(default_factory=list)
    event: dict[str, Any] = field(
        default_factory=lambda: {
            "payload": {"order": 7, "note": None, "lines": [{"sku": "a"}]},
            "timestamp": datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
            "instanceId": "order-7",
            "workflowName": "orders",
        }
    )

    def names(self) -> list[str]:
        return [name for name, _, _ in self.tried]

    async def run(self, cls: type[Any]) -> Any:
        """Execute `run` once, from the top; returns the canonical output."""
        return await run_workflow(cls(None, {}), self.event, WorkflowStep(self))


class WorkflowStep(HostObject):
    """The object that the platform hands to `run`, in one execution of it."""

    js_class = "WorkflowStep"
    js_members = frozenset({"do", "sleep", "sleepUntil", "waitForEvent"})

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.counts: Counter[str] = Counter()
        # The arguments of every call, as they arrive.
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    async def do(self, name: str, *rest: Any) -> Any:
        self.calls.append(("do", (name, *rest)))
        self.counts[name] += 1
        key = (name, self.counts[name])
        if key not in self.journal.outcomes:
            function = next(given for given in rest if callable(given))
            self.journal.outcomes[key] = await self._attempts(key, function)
        outcome = self.journal.outcomes[key]
        if isinstance(outcome, JsException):
            raise JsException(outcome.name, outcome.message)
        return from_v8(outcome)

    async def _attempts(self, key: tuple[str, int], function: Any) -> bytes | JsException:
        error = JsException("Error", "never tried")
        for attempt in range(1, self.journal.attempts + 1):
            ctx = {
                "step": {"name": key[0], "count": key[1]},
                "attempt": attempt,
                "config": CONFIG,
            }
            number = len(self.journal.tried)
            self.journal.tried.append((*key, ""))
            # Not in the task of the Worker's code, nor in that of another attempt.
            outcome = await asyncio.create_task(_attempt(function, ctx, modern=self.journal.modern))
            if isinstance(outcome, bytes):
                return outcome
            error = outcome
            self.journal.tried[number] = (*key, error.name)
            if "NonRetryableError" in (error.name, error.message[: len("NonRetryableError")]):
                break
        return error

    async def sleep(self, *arguments: Any) -> None:
        self.calls.append(("sleep", arguments))

    async def sleepUntil(self, *arguments: Any) -> None:
        self.calls.append(("sleepUntil", arguments))

    async def waitForEvent(self, *arguments: Any) -> Any:
        self.calls.append(("waitForEvent", arguments))
        return {
            "payload": {"approved": True},
            "timestamp": datetime(2026, 1, 2, tzinfo=UTC),
            "type": arguments[1]["type"],
        }


async def _attempt(function: Any, ctx: dict[str, Any], *, modern: bool) -> bytes | JsException:
    await asyncio.sleep(0)
    try:
        return to_v8(await call_step_function(function, ctx))
    except BaseException as error:
        return step_error(error, modern=modern)
