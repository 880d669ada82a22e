"""Coroutines that user code made and dropped without awaiting them.

Python finds them when it frees them, and then calls a function of `warnings`, which is replaced
while the simulation runs. Where a coroutine was made is known because the run switches Python's
origin tracking on, one frame deep: 80 ns a coroutine, below 1 % of a request, and the only way to
tell a line of user code (`asyncio.sleep(1)` without `await`) from one of a library.
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
_warn: Hook = _python._warn_unawaited_coroutine


def hook(report: Report) -> Hook:
    """Return what to `install`: reports lines of user code, and lets Python warn of the rest."""

    def dropped(coroutine: Any) -> None:
        where = _made_at(coroutine)
        if where is None or not report(coroutine.__qualname__, where):
            _warn(coroutine)

    return dropped


def install(dropped: Hook) -> tuple[Hook, int]:
    """Call `dropped` for each dropped coroutine from now on; returns what `restore` needs."""
    depth = sys.get_coroutine_origin_tracking_depth()
    # Another depth than outside, where asyncio's debug mode has 10, tells what was made inside.
    sys.set_coroutine_origin_tracking_depth(2 if depth == 1 else 1)
    before = _python._warn_unawaited_coroutine, depth
    _python._warn_unawaited_coroutine = dropped
    return before


def restore(before: tuple[Hook, int]) -> None:
    """Put everything back."""
    _python._warn_unawaited_coroutine, depth = before
    sys.set_coroutine_origin_tracking_depth(depth)


def _made_at(coroutine: Any) -> Location | None:
    """The line of user code that made a coroutine; None if other code did, or no run was on."""
    origin: Any = getattr(coroutine, "cr_origin", None) or ()
    made_inside = len(origin) == sys.get_coroutine_origin_tracking_depth()
    if not made_inside or not is_users_file(origin[0][0]):
        return None
    return Location(origin[0][0], origin[0][1])
