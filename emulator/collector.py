"""The garbage collector while the simulation runs: less often.

A run makes many small objects at once that all live until it ends (messages, records, the trace).
With CPython's own threshold, a collection after 700 of them, looking through them again and again
takes as long as the work itself. Between runs the threshold is the test's, and what a run left is
looked through then.
"""

from __future__ import annotations

import gc
from typing import Final

_OBJECTS: Final = 50_000


class Collector:
    """Sets the threshold of the youngest generation while a simulation runs."""

    def __init__(self) -> None:
        self._saved: tuple[int, int, int] = gc.get_threshold()

    def enter(self) -> None:
        """Called when the simulation starts to run."""
        self._saved = gc.get_threshold()
        young, *others = self._saved
        if 0 < young < _OBJECTS:  # 0 is never
            gc.set_threshold(_OBJECTS, *others)

    def leave(self) -> None:
        """Called when the simulation stops."""
        gc.set_threshold(*self._saved)
