"""`pyodide.webloop`: the names by which code tells Pyodide's event loop from others."""

from __future__ import annotations

from typing import Any

from emulator.loop import SimLoop, Task
from emulator.runtime.promises import PyodideFuture


class _Stands(type):
    """A class that `isinstance` answers for a class of the simulation's."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__dict__["_stands_for"])

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"workers-emulator does not make a {cls.__name__}: the loop of the Worker runs, "
            "`asyncio.get_running_loop()` returns it"
        )


class WebLoop(metaclass=_Stands):
    """The event loop of a Worker, for `isinstance`."""

    _stands_for = SimLoop


class PyodideTask(metaclass=_Stands):
    """A task of a Worker, for `isinstance`."""

    _stands_for = Task


WebLoop.__module__ = PyodideTask.__module__ = "pyodide.webloop"

__all__ = ["PyodideFuture", "PyodideTask", "WebLoop"]
