"""The garbage collector during a sweep: it looks only at what the latest run made, after it.

Else much of the time goes to walking, again and again, through what the process had before and
through what runs leave behind for ever, the tasks that a power cut froze.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final

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
        return self

    def between(self) -> None:
        """Called between two runs."""
        self._runs += 1
        # Each time: what one run leaves is still in the processor's cache.
        gc.collect(1 if self._runs % _OLDER == 0 else 0)

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
