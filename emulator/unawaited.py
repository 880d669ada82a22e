"""Coroutines that user code made and dropped without awaiting them.

Python finds them when it frees them, and then calls a function of `warnings`, which is replaced
while the simulation runs. Where a coroutine was made is known because the run switches Python's
origin tracking on, one frame deep: the only way to tell a line of user code (`asyncio.sleep(1)`
without `await`) from one of a library. It takes a few thousand instructions a coroutine, and so it
is off while the emulator's own work runs (`track`).
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from emulator.location import Location, is_users_file

# Given the qualified name and the line that made it; whether it takes care of it.
Report = Callable[[str, Location], bool]
Hook = Callable[[Any], None]

_python: Any = warnings
# The depth of tracking inside the simulation that runs: another one than outside, where asyncio's
# debug mode has 10, and 0 is none.
_inside = 0
_warn: Hook = _python._warn_unawaited_coroutine
# Called with a depth: notes from now on where coroutines are made, or, with 0, does not.
track = sys.set_coroutine_origin_tracking_depth


def hook(report: Report) -> Hook:
    """Return what to `install`: reports lines of user code, and lets Python warn of the rest."""

    def dropped(coroutine: Any) -> None:
        where = _made_at(coroutine)
        if where is None or not report(coroutine.__qualname__, where):
            _warn(coroutine)

    return dropped


def install(dropped: Hook) -> tuple[Hook, int, int]:
    """Call `dropped` for each dropped coroutine from now on; returns what `restore` needs."""
    global _inside
    outside = sys.get_coroutine_origin_tracking_depth()
    before = _python._warn_unawaited_coroutine, outside, _inside
    _inside = 2 if 1 in (outside, _inside) else 1
    sys.set_coroutine_origin_tracking_depth(_inside)
    _python._warn_unawaited_coroutine = dropped
    return before


def restore(before: tuple[Hook, int, int]) -> None:
    """Put everything back."""
    global _inside
    _python._warn_unawaited_coroutine, outside, _inside = before
    sys.set_coroutine_origin_tracking_depth(outside)


def inside() -> int:
    """The depth to `track` where user code runs; 0 is for the emulator's own."""
    return _inside


def _made_at(coroutine: Any) -> Location | None:
    """The line of user code that made a coroutine; None if other code did, or no run was on."""
    origin: Any = getattr(coroutine, "cr_origin", None) or ()
    made_inside = len(origin) == _inside
    if not made_inside or not is_users_file(origin[0][0]):
        return None
    return Location(origin[0][0], origin[0][1])
