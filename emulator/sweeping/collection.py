"""The garbage collector during a sweep: it looks only at what the latest run made, after it.

Else much of the time goes to walking, again and again, through what the process had before. What
power cuts froze in a run goes with the rest of it, so that a long sweep needs no more memory than a
short one; no line of it runs.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final

from emulator import remains

if TYPE_CHECKING:
    from types import TracebackType

# What is frozen is let go of after so many runs.
_TOGETHER: Final = 8


class Collections:
    """A context manager: no collection inside, but one at each call of `between`."""

    def __enter__(self) -> Collections:
        self._was_enabled = gc.isenabled()
        # Somebody else's frozen objects cannot be told from ours afterwards.
        self._freezes = gc.get_freeze_count() == 0
        self._pinned: list[object] = []
        self._runs = 0
        gc.disable()
        if self._freezes:
            gc.freeze()
        else:
            gc.collect(1)
        self._known = _collections()
        return self

    def between(self, pinned: list[object]) -> None:
        """Called between two runs, with what was pinned in the one that is over; empties it."""
        if _collections() == self._known:
            self._pinned += pinned
        else:  # The scenario collected: it is not known what is of these runs, and all stays.
            self._pinned.clear()
        pinned.clear()
        # Each time: what one run leaves is still in the processor's cache.
        gc.collect(0)
        self._runs += 1
        if self._runs % _TOGETHER == 0:
            self._let_go()
        self._known = _collections()

    def _let_go(self) -> None:
        """Let go of what the latest runs froze: it has survived one collection, and no other."""
        if self._pinned:
            remains.let_go(self._pinned, generation=1)
            self._pinned.clear()
        gc.collect(1)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._let_go()
        if self._freezes:
            gc.unfreeze()
        if self._was_enabled:
            gc.enable()


def _collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())
