"""Workers made of functions, and short names for what became of messages."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

# Found by the importer that `emulator` has installed.
from workers import Response, WorkerEntrypoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator import Emulator

START = datetime(2026, 1, 1, tzinfo=UTC)
PROFILES = ("production", "miniflare")


def worker(
    produce: Callable[..., Any] | None = None,
    consume: Callable[..., Any] | None = None,
    *,
    consumer: dict[str, Any] | None = None,
    queues: dict[str, Any] | None = None,
    **config: Any,
) -> dict[str, Any]:
    """The config of a Worker with the binding Q of a queue `q`.

    `produce(worker)` is its fetch handler, what it returns the answer's JSON; `consume(batch,
    worker)` its queue handler, with the consumer's settings in `consumer`.
    """
    members: dict[str, Any] = {}
    if produce is not None:

        async def fetch(self: Any, request: Any) -> Any:
            value = produce(self)
            return Response.json(await value if inspect.isawaitable(value) else value)

        members["fetch"] = fetch
    if consume is not None:

        async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
            value = consume(batch, self)
            return await value if inspect.isawaitable(value) else value

        members["queue"] = queue
    if queues is None:
        queues = {"producers": [{"binding": "Q", "queue": "q"}]}
        if consume is not None or consumer is not None:
            queues["consumers"] = [{"queue": "q", **(consumer or {})}]
    main = type("Default", (WorkerEntrypoint,), members)
    return {"main": main, "queues": queues, **config}


def seconds(at: datetime) -> float:
    """Seconds of virtual time since the start."""
    return (at - START).total_seconds()


def clock(emulator: Emulator) -> float:
    """Seconds of virtual time since the start."""
    return seconds(emulator.now)


def deliveries(emulator: Emulator, queue: str = "q") -> list[tuple[float, Any, int, str]]:
    """Start, body, attempt and outcome of each delivery."""
    return [
        (seconds(record.at), record.body, record.attempt, record.outcome)
        for record in emulator.queues[queue].deliveries
    ]


def batches(emulator: Emulator, queue: str = "q") -> list[tuple[float, list[Any]]]:
    """Start and bodies of each batch, in order of starting."""
    found: dict[int, tuple[float, list[Any]]] = {}
    for record in emulator.queues[queue].deliveries:
        found.setdefault(record.batch, (seconds(record.at), []))[1].append(record.body)
    return [found[number] for number in sorted(found)]


def bodies(emulator: Emulator, queue: str = "q") -> list[Any]:
    """What waits or is delayed."""
    return [waiting.body for waiting in emulator.queues[queue].backlog]


def codes(emulator: Emulator) -> list[str]:
    """The codes of the findings, but for that nobody consumes the queue of a test on producers."""
    return [finding.code for finding in emulator.findings if finding.code != "no_consumer"]


def hours(count: float) -> timedelta:
    return timedelta(hours=count)
