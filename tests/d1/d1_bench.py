"""Workers with a database, made of functions, and short ways to look at what they got."""

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
DATABASE = {"binding": "DB", "database_name": "shop", "database_id": "shop-id"}
ACCOUNTS = (
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT UNIQUE, balance INTEGER DEFAULT 0)"
)


def worker(
    handle: Callable[..., Any] | None = None,
    consume: Callable[..., Any] | None = None,
    *,
    consumer: dict[str, Any] | None = None,
    **config: Any,
) -> dict[str, Any]:
    """The config of a Worker with a database DB; `handle(env, request)` answers requests.

    `consume(batch, env)` consumes the queue `q`, whose binding is Q.
    """
    members: dict[str, Any] = {}
    if handle is not None:

        async def fetch(self: Any, request: Any) -> Any:
            value = handle(self.env, request) if _takes_two(handle) else handle(self.env)
            value = await value if inspect.isawaitable(value) else value
            return value if isinstance(value, Response) else Response(str(value))

        members["fetch"] = fetch
    queues: dict[str, Any] = {"producers": [{"binding": "Q", "queue": "q"}]}
    if consume is not None:

        async def queue(self: Any, batch: Any, env: Any, ctx: Any) -> Any:
            await consume(batch, self.env)

        members["queue"] = queue
        queues["consumers"] = [{"queue": "q", "max_batch_timeout": 0, **(consumer or {})}]
    main = type("Default", (WorkerEntrypoint,), members)
    return {"main": main, "d1_databases": [DATABASE], "queues": queues, **config}


def _takes_two(function: Callable[..., Any]) -> bool:
    return len(inspect.signature(function).parameters) > 1


@asynccontextmanager
async def running(
    handle: Callable[..., Any] | None = None,
    *schema: str,
    consume: Callable[..., Any] | None = None,
    consumer: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    **arguments: Any,
) -> AsyncIterator[Emulator]:
    """An emulator of such a Worker, its database with this schema."""
    made = worker(handle, consume, consumer=consumer, **(config or {}))
    async with Emulator(made, **arguments) as emulator:
        for sql in schema:
            emulator.d1["DB"].execute(sql)
        yield emulator


async def got(handle: Callable[..., Any], *schema: str, **arguments: Any) -> Any:
    """What `handle` returns in a Worker."""
    found: list[Any] = []

    async def fetch(env: Any) -> str:
        value = handle(env)
        found.append(await value if inspect.isawaitable(value) else value)
        return "done"

    date = arguments.pop("date", None)
    config = {} if date is None else {"compatibility_date": date}
    async with running(fetch, *schema, config=config, **arguments) as emulator:
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


def queries(emulator: Emulator) -> list[tuple[str, Any]]:
    """The calls that reached a database, as the trace has them."""
    return [
        (event.data["call"], event.data["sql"]) for event in emulator.trace if event.kind == "query"
    ]
