"""Workers with Durable Objects made of functions, and short names for what became of them."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Found by the importer that `emulator` has installed.
from workers import DurableObject, Response, WorkerEntrypoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator import Emulator

START = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
PROFILES = ("production", "miniflare")
FROZEN = "2026-04-20"
KV_BACKED = [{"tag": "v1", "new_classes": ["Obj"]}]


def object_class(**members: Any) -> type[Any]:
    """A class `Obj` with these methods."""
    return type("Obj", (DurableObject,), members)


def worker(
    cls: type[Any] | None = None,
    *,
    fetch: Callable[..., Any] | None = None,
    **config: Any,
) -> dict[str, Any]:
    """The config of a Worker with the class `Obj`, bound as OBJ.

    `fetch(worker, request)` is the fetch handler, what it returns the answer's JSON.
    """
    module = ModuleType("entry")
    module.Obj = cls if cls is not None else object_class()  # type: ignore[attr-defined]
    members: dict[str, Any] = {}
    if fetch is not None:

        async def handle(self: Any, request: Any) -> Any:
            value = fetch(self, request)
            return Response.json(await value if inspect.isawaitable(value) else value)

        members["fetch"] = handle
    module.Default = type("Default", (WorkerEntrypoint,), members)  # type: ignore[attr-defined]
    bindings = {"bindings": [{"name": "OBJ", "class_name": "Obj"}]}
    return {"main": module, "durable_objects": bindings, **config}


def inside(body: Callable[..., Any], **members: Any) -> type[Any]:
    """A class whose method `go` runs `body(self)`; what it returns is the answer."""

    async def go(self: Any, *arguments: Any) -> Any:
        value = body(self, *arguments)
        return await value if inspect.isawaitable(value) else value

    return object_class(go=go, **members)


def stub(emulator: Emulator, name: str = "x") -> Any:
    return emulator.durable_objects["OBJ"].get(name)


def kept(emulator: Emulator, name: str = "x") -> dict[str, Any]:
    """What an object keeps."""
    return dict(emulator.durable_objects["OBJ"].storage(name))


async def told(call: Callable[[], Any]) -> Any:
    """What code sees of a call that may be refused: its value, or name and message."""
    try:
        value = call()
        return await value if inspect.isawaitable(value) else value
    except Exception as error:
        name = getattr(error, "name", type(error).__name__)
        return [str(name), str(getattr(error, "message", error))]


def kinds(emulator: Emulator, *wanted: str) -> list[str]:
    """The kinds of the events of objects, or those of these kinds, in order."""
    found = [event.kind for event in emulator.trace if event.subject.startswith("object ")]
    return [kind for kind in found if kind in wanted] if wanted else found


def alarms(emulator: Emulator) -> list[tuple[float, str]]:
    """Second and kind of each event of an alarm."""
    return [
        ((event.time - START).total_seconds(), event.kind)
        for event in emulator.trace
        if event.kind in ("alarm", "alarm_done", "alarm_retry", "alarm_failed", "alarm_lost")
    ]


def codes(emulator: Emulator) -> list[str]:
    return [finding.code for finding in emulator.findings]


def fired(emulator: Emulator) -> list[str]:
    return [str(fault) for fault in emulator.faults.fired]


def seconds(emulator: Emulator) -> float:
    """Seconds of virtual time since the start, in the test."""
    return (emulator.now - START).total_seconds()
