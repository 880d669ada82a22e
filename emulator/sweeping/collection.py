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

# After so many runs, also through what has survived a run.
_OLDER: Final = 1024


class Collections:
    """A context manager: no collection inside, but one at each call of `between`."""

    def __enter__(self) -> Collections:
        self._was_enabled = gc.isenabled()
        # Somebody else's frozen objects cannot be told from ours afterwards.
        self._freezes = gc.get_freeze_count() == 0
        self._runs = 0
        gc.disable()
        if self._freezes:
            gc.freeze()
        else:
            gc.collect(0)
        self._collections = _collections()
        return self

    def between(self, pinned: list[object]) -> None:
        """Called between two runs, with what was pinned in the one that is over; empties it."""
        self._runs += 1
        # Else what is young is not all of the run: the scenario collected.
        if pinned and _collections() == self._collections:
            remains.let_go(pinned)
        pinned.clear()
        # Each time: what one run leaves is still in the processor's cache.
        gc.collect(1 if self._runs % _OLDER == 0 else 0)
        self._collections = _collections()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._freezes:
            gc.unfreeze()
        if self._was_enabled:
            gc.enable()


def _collections() -> int:
    return sum(generation["collections"] for generation in gc.get_stats())
