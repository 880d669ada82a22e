"""How long a statement may run, and how a signal ends it before.

SQLite runs a statement without giving way: neither the loop turns meanwhile nor do Python's signal
handlers run. Every so many of its instructions it asks whether to go on. What a signal's handler
raises there (Ctrl-C, a time-out) reaches whoever ran the statement, as from any other line.

The budget is counted in instructions, not in time: a statement fails at the same point always.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Some milliseconds of SQLite's; asking takes a microsecond.
_ASKED_EACH: Final = 100_000


class Budget:
    """What the statements of one connection may take; most take next to nothing."""

    def __init__(self, steps: int) -> None:
        self._most = steps // _ASKED_EACH
        self.asked = 0  # since a statement of user code began, which sets it
        self.unlimited = False  # while a statement of the emulator's own runs
        self._raised: BaseException | None = None

    def install(self, connection: sqlite3.Connection) -> None:
        """Have SQLite ask."""
        watch = self._watch()
        next(watch)
        connection.set_progress_handler(watch.__next__, _ASKED_EACH)

    def is_why(self, error: sqlite3.Error) -> bool:
        """Whether a statement took too much; raises what a signal's handler raised meanwhile."""
        if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
            return False
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        return True

    def _watch(self) -> Iterator[int]:
        """Say whether to stop, each time SQLite asks.

        A generator, because `sqlite3` swallows what its callback raises, and a signal's handler
        runs at the first instruction of one: in a generator that goes on, that is inside its `try`.
        """
        stop = 0
        while True:
            try:
                yield stop
                self.asked += 1
                stop = int(self.asked > self._most and not self.unlimited)
            except GeneratorExit:
                raise
            except BaseException as error:
                self._raised, stop = error, 1
