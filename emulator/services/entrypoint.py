"""Which entrypoints a Worker has for services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.errors import WorkerLoadError
from emulator.runtime.sdk.entrypoints import WorkerEntrypoint

if TYPE_CHECKING:
    from emulator.entrypoints import Script
    from emulator.isolate import Isolate

DEFAULT = "default"


def entrypoint_class(isolate: Isolate, name: str, binding: str) -> type[Any]:
    """The class of a named entrypoint; raises `WorkerLoadError` if there is none.

    The texts are for whoever wrote the config of `binding`.
    """
    found = named(isolate.script)
    if name not in found:
        worker = isolate.worker.name
        hint = "; the default entrypoint needs no name" if name == "Default" else ""
        raise WorkerLoadError(
            f"the service binding {binding} needs {name}, a WorkerEntrypoint that the Worker "
            f"{worker} exports; it exports: {', '.join(found) or 'none'}{hint} (workerd: "
            f'"{worker}" has no such named entrypoint.)'
        )
    return found[name]


def named(script: Script) -> dict[str, type[Any]]:
    """The entrypoints of a Worker by name, the default one apart."""
    return {
        name: cls
        for name, cls in script.named.items()
        if issubclass(cls, WorkerEntrypoint) and cls is not script.default
    }
