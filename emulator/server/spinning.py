"""What holds up the server: Worker code or SQL that does not give way.

All runs in one thread, so a Worker that spins lets nothing else happen: no answer, no line of the
terminal, no end. Another thread looks whether the loop turns, and says where the code stands.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emulator.location import Location, is_users
from emulator.loop import SimLoop
from emulator.sql import budget

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from types import FrameType

_LOOK_EACH: Final = 1.0
_PATIENCE: Final = 5


def held_up_by(frame: FrameType | None) -> str | None:
    """What runs there instead of the server, in words; None where that is the server itself."""
    is_sql = False
    while frame is not None and frame.f_code is not SimLoop.bottom:
        is_sql = is_sql or frame.f_code.co_filename == budget.__file__
        # The script that started the server is nobody's Worker.
        if is_users(frame.f_code) and frame.f_globals.get("__name__") != "__main__":
            place = Location(frame.f_code.co_filename, frame.f_lineno).relative_to(Path.cwd())
            return f"{'SQL of the Worker' if is_sql else 'the Worker'} runs at {place}"
        frame = frame.f_back
    return "a statement of SQL runs" if is_sql else None


class Watchdog:
    """Tells, once each time, that the loop has not turned for some seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, say: Callable[[str], None]) -> None:
        self._loop = loop
        self._say = say
        self._thread = threading.get_ident()
        self._unanswered = 0
        self._ended = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look every second, from a thread of its own."""
        thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(_LOOK_EACH):
            self.look()

    def look(self) -> None:
        """Ask the loop for a sign of life, or say how long there was none."""
        if not self._unanswered:
            self._loop.call_soon_threadsafe(self._answer)
        self._unanswered += 1
        if self._unanswered == _PATIENCE + 1:
            why = held_up_by(sys._current_frames().get(self._thread))
            if why is not None:
                self._say(
                    f"warning: {why}, and nothing else could run for {_PATIENCE} s; Ctrl-C twice "
                    "ends it"
                )

    def _answer(self) -> None:
        self._unanswered = 0
