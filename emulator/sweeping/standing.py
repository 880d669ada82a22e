"""Keeps another process for the next sweep, since to start one takes longer than most sweeps.

What an earlier scenario left behind in its modules is there as it is here, where they ran too. And
a process that disagrees is never believed alone: fresh ones decide (`check.py`).
"""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

from emulator.sweeping.check import GIVEN_UP, MOST_APART
from emulator.sweeping.process import OtherProcess, Unable
from emulator.sweeping.transfer import SERVE

if TYPE_CHECKING:
    from emulator.sweeping.check import Loading
    from emulator.sweeping.transfer import Transfer


class Standing:
    """At most one process that waits for a scenario; `apart` counts what it was asked in vain."""

    def __init__(self) -> None:
        self.apart = 0
        self._kept: OtherProcess | None = None
        self._owner = 0

    def load(self, transfer: Transfer, hash_seed: int) -> Loading:
        """Let the kept process load a scenario, or a new one if there is none; raises `Unable`."""
        if self.apart >= MOST_APART:
            raise Unable(GIVEN_UP)
        return transfer.load_in(self._take(hash_seed) or OtherProcess(SERVE, hash_seed))

    def _take(self, hash_seed: int) -> OtherProcess | None:
        kept, self._kept = self._kept, None
        if kept is None or self._owner != os.getpid():
            return None  # after a fork it is the parent's
        if kept.is_alive and kept.hash_seed == hash_seed:
            return kept
        kept.close()
        return None

    def keep(self, process: OtherProcess) -> None:
        """Keep a process for the next sweep; one that has ended, or a second one, is closed."""
        if self._kept is None and process.is_alive:
            self._kept, self._owner = process, os.getpid()
        else:
            process.close()

    def close(self) -> None:
        """End the process that is kept, and forget what there was."""
        self.apart = 0
        if self._kept is not None and self._owner == os.getpid():
            self._kept.close()
        self._kept = None


# One per process, as it is a process itself.
standing = Standing()
atexit.register(standing.close)
