"""Workers with Workflows made of functions, and short names for what became of instances."""

from __future__ import annotations

import inspect
import logging
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Found by the importer that `emulator` has installed.
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from emulator import Emulator

START = datetime(2026, 1, 1, tzinfo=UTC)
PROFILES = ("production", "miniflare")
DAY = 86_400

NO_RETRY = {"retries": {"limit": 0, "delay": 0}}
ONE_RETRY = {"retries": {"limit": 1, "delay": "10 seconds", "backoff": "constant"}}


def worker(
    run: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    *,
    fetch: Callable[..., Any] | None = None,
    queue: Callable[..., Any] | None = None,
    limits: Mapping[str, Any] | None = None,
    **config: Any,
) -> dict[str, Any]:
    """The config of a Worker with the Workflow `flow`, bound as FLOW, or with several by name.

    `run(self, event, step)` is the class's method; `fetch(worker, request)` is the fetch handler,
    what it returns the answer's JSON; `queue(batch, worker)` is the queue handler.
    """
    runs = run if not callable(run) else {"flow": run}
    module = ModuleType("entry")
    module.Default = type("Default", (WorkerEntrypoint,), _handlers(fetch, queue))  # type: ignore[attr-defined]
    workflows = []
    for name, method in runs.items():
        cls = name.title().replace("-", "")
        setattr(module, cls, type(cls, (WorkflowEntrypoint,), {"run": method}))
        binding = name.upper().replace("-", "_")
        workflows.append({"binding": binding, "name": name, "class_name": cls})
    if limits is not None:
        workflows[0]["limits"] = limits  # type: ignore[assignment]
    return {"main": module, "workflows": workflows, **config}


def _handlers(fetch: Callable[..., Any] | None, queue: Callable[..., Any] | None) -> dict[str, Any]:
    members: dict[str, Any] = {}
    if fetch is not None:

        async def handle(self: Any, request: Any) -> Any:
            value = fetch(self, request)
            return Response.json(await value if inspect.isawaitable(value) else value)

        members["fetch"] = handle
    if queue is not None:

        async def consume(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
            value = queue(batch, self)
            return await value if inspect.isawaitable(value) else value

        members["queue"] = consume
    return members


async def do(step: Any, name: str, body: Any = None, config: Any = None) -> Any:
    """A step with this body: a value, or a function that gets the step's `ctx`."""

    @step.do(name, config=config)
    async def call(ctx: Any) -> Any:
        value = body(ctx) if callable(body) else body
        return await value if inspect.isawaitable(value) else value

    return await call()


def now() -> float:
    """Seconds of virtual time since the start, in Worker code.

    A library reads the clock here, which is no finding between steps.
    """
    stamped = logging.LogRecord("", 0, "", 0, "", (), None)
    return round(stamped.created - START.timestamp(), 6)


def seconds(at: datetime | None) -> float:
    """Seconds of virtual time since the start."""
    assert at is not None
    return (at - START).total_seconds()


def clock(emulator: Emulator) -> float:
    """Seconds of virtual time since the start, in the test."""
    return seconds(emulator.now)


def events(instance: Any) -> list[int]:
    """The numbers of an instance's history."""
    return [int(row.event) for row in instance.history]


def rows(instance: Any, *numbers: int) -> list[Any]:
    """The rows of an instance's history with these numbers."""
    return [row for row in instance.history if int(row.event) in numbers]


def delays(instance: Any) -> list[Any]:
    """The retry delay of each failed attempt, in milliseconds; None where there is none."""
    return [row.data.get("retryDelayMs") for row in rows(instance, 12)]


def states(instance: Any) -> list[tuple[str, str, int]]:
    """Name, state and attempts of each started step."""
    return [(step.name, step.state, step.attempts) for step in instance.steps]


def codes(emulator: Emulator) -> list[str]:
    return [finding.code for finding in emulator.findings]


def fired(emulator: Emulator) -> list[str]:
    return [str(fault) for fault in emulator.faults.fired]


def failing(times: list[Any] | None = None, text: str = "no") -> Callable[[Any], Any]:
    """A body that always fails, and notes when."""

    def body(ctx: Any) -> None:
        if times is not None:
            times.append(now())
        raise ValueError(text)

    return body


def one_step(body: Any = None, config: Any = None, name: str = "s") -> Callable[..., Any]:
    """A `run` with one step, whose result it returns."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        return await do(step, name, body, config)

    return run


async def told(call: Callable[[], Any]) -> Any:
    """What Worker code sees of a call that may be refused: its value, or name and message."""
    try:
        value = call()
        return await value if inspect.isawaitable(value) else value
    except Exception as error:
        name = getattr(error, "name", type(error).__name__)
        return [str(name), str(getattr(error, "message", error))]


def ids(instances: Iterable[Any]) -> list[str]:
    return [instance.id for instance in instances]
