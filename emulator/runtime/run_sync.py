"""`pyodide.ffi.run_sync`: waiting without `await`.

Pyodide suspends the whole stack of WebAssembly and lets the event loop go on; here the stack is a
greenlet's (`emulator.stacks`). It works wherever the event loop entered Python: in handlers, tasks
and callbacks of asyncio's. It does not in a function that JavaScript called and whose result it
takes at once (`array.forEach(create_proxy(f))`), nor while a module is imported. Seen in Pyodide
0.28.2 and 314.0.6, and that 0.26.0a2 has no `run_sync` in the runtime of 2024.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import TYPE_CHECKING, Any

from emulator.loop import SimLoop
from emulator.runtime import pyproxy

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from types import FrameType

_NO_SWITCH = (
    "Cannot stack switch because the Python entrypoint was a synchronous function. "
    "Use pyFunc.callPromising() to fix."
)
# Where JavaScript calls a Python function and takes what it returns.
_CALLS = ("call", "call_given", "call_value")


def can_run_sync() -> bool:
    """Return whether `run_sync` would work here."""
    loop = asyncio._get_running_loop()
    return isinstance(loop, SimLoop) and loop.stacks.can_wait and not _is_called_by_js()


def run_sync(awaitable: Awaitable[Any], /) -> Any:
    """Wait for a coroutine, a future or a promise and return its result, or raise its error.

    Other work of the Worker, and time, go on meanwhile. Raises `RuntimeError` where JavaScript
    waits for the result at once, and while a module is imported.
    """
    if not inspect.isawaitable(awaitable):
        raise TypeError(f"object {type(awaitable).__name__} is not awaitable")
    if not can_run_sync():
        if inspect.iscoroutine(awaitable):
            awaitable.close()  # nobody can await it any more
        error = RuntimeError(_NO_SWITCH)
        error.add_note(
            "Only code that the event loop entered can wait without `await`: handlers, tasks and "
            "asyncio's callbacks. Production raises the same error."
        )
        raise error
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    future = asyncio.ensure_future(awaitable)
    loop.stacks.wait(future)
    return future.result()


def _is_called_by_js() -> bool:
    """Whether a function that JavaScript called is on the stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name in _CALLS and code.co_filename == pyproxy.__file__:
            return True
        frame = frame.f_back
    return False


can_run_sync.__module__ = run_sync.__module__ = "pyodide.ffi"
