"""Workers with an R2 bucket, made of functions, and short ways to look at what they got."""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

# Found by the importer that `emulator` has installed.
from workers import Response, WorkerEntrypoint

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PROFILES = ("production", "miniflare")
# A date of each SDK and Pyodide: frozen 0.26 and 0.28, external 0.28 and 314.
FROZEN = ("2025-09-01", "2026-04-20")
EXTERNAL = ("2026-04-21", "2026-09-08")
BUCKETS = [{"binding": "R2", "bucket_name": "files"}]
PART = 5 * 1024 * 1024
HELLO_MD5 = "5d41402abc4b2a76b9719d911017c592"


def worker(
    handle: Callable[..., Any] | None = None,
    consume: Callable[..., Any] | None = None,
    **config: Any,
) -> dict[str, Any]:
    """The config of a Worker with a bucket R2; `handle(env)` answers requests.

    `handle(env, request)` gets the request too; `consume(batch, env)` consumes the queue `q`.
    """
    members: dict[str, Any] = {}
    if handle is not None:
        wants_request = len(inspect.signature(handle).parameters) > 1

        async def fetch(self: Any, request: Any) -> Any:
            value = handle(self.env, request) if wants_request else handle(self.env)
            value = await value if inspect.isawaitable(value) else value
            return value if isinstance(value, Response) else Response(str(value))

        members["fetch"] = fetch
    queues: dict[str, Any] = {}
    if consume is not None:

        async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
            await consume(batch, self.env)

        members["queue"] = queue
        queues["consumers"] = [{"queue": "q", "max_batch_timeout": 0}]
    main = type("Default", (WorkerEntrypoint,), members)
    return {"main": main, "r2_buckets": BUCKETS, "queues": queues, **config}


@asynccontextmanager
async def running(
    handle: Callable[..., Any] | None = None,
    *,
    consume: Callable[..., Any] | None = None,
    config: dict[str, Any] | None = None,
    **arguments: Any,
) -> AsyncIterator[Emulator]:
    """An emulator of such a Worker."""
    async with Emulator(worker(handle, consume, **(config or {})), **arguments) as emulator:
        yield emulator


async def got(handle: Callable[..., Any], **arguments: Any) -> Any:
    """What `handle` returns in a Worker."""
    found: list[Any] = []

    async def fetch(env: Any) -> str:
        value = handle(env)
        found.append(await value if inspect.isawaitable(value) else value)
        return "done"

    date = arguments.pop("date", None)
    config = {} if date is None else {"compatibility_date": date}
    async with running(fetch, config=config, **arguments) as emulator:
        response = await emulator.fetch("/")
        assert response.text == "done", response.text
        assert emulator.findings.unexpected() == []
    return found[0]


async def problem(make: Callable[[], Any]) -> str:
    """The error of a call: what it raises, at once or when it is awaited."""
    try:
        value = make()
        if inspect.isawaitable(value):
            await value
    except Exception as error:
        return str(error) if hasattr(error, "message") else f"{type(error).__name__}: {error}"
    return ""


def fired(emulator: Emulator) -> list[str]:
    return [str(fault) for fault in emulator.faults.fired]
