"""Ctrl-C and the real time a run may take.

asyncio answers the first Ctrl-C by cancelling its main task, which a Worker that spins never gets
to see. Here it raises where the code stands.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from emulator.cli.refusal import Refusal
from emulator.foreign import watched
from emulator.location import format_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

HAS_TIME_LIMIT: Final = hasattr(signal, "setitimer")
# Code that swallows the exception is told again.
_AGAIN: Final = 1.0


class OutOfTime(KeyboardInterrupt):
    """A run took more real time than it may.

    It is a `KeyboardInterrupt` because that is what asyncio and the simulation let through.
    """


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    # Should that be swallowed, the next Ctrl-C ends the process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` at once, also in a Worker that never ends."""
    is_main = threading.current_thread() is threading.main_thread()
    # A shell lets what it starts in the background ignore Ctrl-C.
    if not is_main or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    previous = signal.signal(signal.SIGINT, watched(_interrupt))
    try:
        yield
    finally:
        _restore(signal.SIGINT, previous)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `OutOfTime` inside after so many seconds of real time; None is no limit."""
    if seconds is None:
        yield
        return

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise OutOfTime(f"more than {seconds:g} s of real time, the limit of --timeout")

    previous = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _restore(signal.SIGALRM, previous)


@contextmanager
def preparing(seconds: float | None) -> Iterator[None]:
    """Apply the limit to what comes before a run, too; raises `Refusal` where it strikes."""
    try:
        with time_limit(seconds):
            yield
    except OutOfTime as error:
        raise Refusal(traced(error)) from None


def traced(error: BaseException) -> str:
    """Return the user's traceback of an error that ended a run; the limit's has no name in it."""
    text = format_error(error, Path.cwd())
    return text.replace(f"{OutOfTime.__module__}.{OutOfTime.__qualname__}: ", "")


def _restore(number: int, handler: Any) -> None:
    signal.signal(number, signal.SIG_DFL if handler is None else handler)
