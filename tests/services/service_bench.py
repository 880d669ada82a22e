"""Workers that call each other, made of functions and classes."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Found by the importer that `emulator` has installed.
from workers import Response, WorkerEntrypoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator import Emulator

FROZEN = "2026-04-20"


def entrypoint(name: str = "Default", **members: Any) -> type[Any]:
    """A class of entrypoints with these methods."""
    return type(name, (WorkerEntrypoint,), members)


def module(*classes: type[Any], **members: Any) -> ModuleType:
    """A main module that exports these classes."""
    made = ModuleType("entry")
    for cls in classes:
        cls.__module__ = "entry"
        setattr(made, cls.__name__, cls)
    for name, value in members.items():
        setattr(made, name, value)
    return made


def caller(body: Callable[..., Any], *, name: str = "front", **config: Any) -> dict[str, Any]:
    """The config of a Worker that answers with what `body(worker)` returns, as JSON."""

    async def fetch(self: Any, request: Any) -> Any:
        value = body(self)
        return Response.json(await value if inspect.isawaitable(value) else value)

    services = config.pop("services", [{"binding": "BACK", "service": "back"}])
    main = config.pop("main", None) or module(entrypoint(fetch=fetch))
    return {"name": name, "main": main, "services": services, **config}


def callee(*classes: type[Any], name: str = "back", **config: Any) -> dict[str, Any]:
    """The config of the Worker that is called."""
    return {"name": name, "main": module(*classes), **config}


async def told(call: Callable[[], Any]) -> Any:
    """What code sees of a call that may be refused: its value, or name and message."""
    try:
        value = call()
        return await value if inspect.isawaitable(value) else value
    except Exception as error:
        name = getattr(error, "name", type(error).__name__)
        return [str(name), str(getattr(error, "message", error))]


def kinds(emulator: Emulator) -> list[str]:
    """The kinds of the events of services, in order."""
    return [event.kind for event in emulator.trace if event.subject.startswith("service ")]


def fired(emulator: Emulator) -> list[str]:
    return [str(fault) for fault in emulator.faults.fired]


def codes(emulator: Emulator) -> list[str]:
    return [finding.code for finding in emulator.findings]
