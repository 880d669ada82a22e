"""Objects that must never be finalised.

Collecting a suspended coroutine, generator or greenlet runs its `finally`, and an object with
`__del__` runs that: lines of an isolate whose power was cut. One reference that nobody owns keeps
such an object alive until the process ends, collection at interpreter exit included.

What is frozen in the emulator's own frames would keep the whole emulator with it, some 70 KiB;
`release` overwrites such local variables once the emulator is closed, and leaves the user's frames
alone.

`weakref.finalize` calls what is left at exit even for objects that live. A Worker has no exit, so
those that its code makes lose that one property: `newest_finalizer` is asked when the simulation
starts to run and `disarm_since` when it stops.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_keep = ctypes.pythonapi.Py_IncRef
_keep.argtypes = [ctypes.py_object]
_keep.restype = None

_PACKAGE = os.path.dirname(__file__) + os.sep

# Every live finalizer of the process, in order of creation.
finalizers: dict[Any, Any] = weakref.finalize._registry  # type: ignore[attr-defined]


def pin(subject: object) -> None:
    """Keep `subject`, and all it refers to, for the life of the process."""
    _keep(subject)


def newest_finalizer() -> Any:
    """The `weakref.finalize` object made last, or None."""
    return next(reversed(finalizers), None)


def disarm_since(known: Any) -> None:
    """Keep the finalizers made after `known` from being called at interpreter exit."""
    bound = finalizers[known].index if known in finalizers else -1
    for finalizer in reversed(list(finalizers)):
        if finalizer is known or finalizers[finalizer].index < bound:
            return
        finalizer.atexit = False


def release(coroutine: object, is_part: Callable[[object], bool]) -> None:
    """Overwrite what the emulator's own frames of a frozen coroutine hold of the emulator.

    A generator of the emulator's that drives a coroutine by hand calls it `coroutine`.
    """
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        driven = None
        if frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
            driven = frame.f_locals.get("coroutine")
            _overwrite(frame, is_part)
        waits_for = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
        coroutine = waits_for or driven


def _overwrite(frame: FrameType, is_part: Callable[[object], bool]) -> None:
    # A cell may be shared with a function that still runs.
    shared = frame.f_code.co_cellvars + frame.f_code.co_freevars
    values = frame.f_locals
    for name in [name for name, value in values.items() if is_part(value) and name not in shared]:
        values[name] = None
    if sys.version_info < (3, 13):
        # There `f_locals` is a copy, written back by this.
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
