"""Which exceptions come from outside the simulation.

Ctrl-C, pytest-timeout and other signal handlers raise into whatever line happens to run, which may
be user code. Such an exception is not that code's failure: it must reach the caller of the
emulator. Its mark is the signal handler's own frame in the traceback; besides, pytest's outcomes
(`pytest.fail`, `pytest.skip` in a mock's callback) always are. A `KeyboardInterrupt` is, unless the
innermost line of its traceback is a `raise` of user code: Python's own handler, which has no frame,
strikes between instructions, and `raise` itself is none where it looks for signals.

User code may swallow it (`except Exception` around a retry loop catches a `TimeoutError` that a
handler raised), so the handler of SIGALRM, which time-outs use, is wrapped while an emulator is
open: the wrapper tells the running simulation before user code sees the exception. The handler
stays wrapped between runs, because replacing it costs 3 microseconds and looking at it 0.03.
"""

from __future__ import annotations

import dis
import signal
import sys
import threading
from asyncio import events
from typing import TYPE_CHECKING, Any

from emulator.location import is_users

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType, TracebackType

try:
    # `signal.getsignal` makes an enum member of the answer, which costs ten times as much.
    from _signal import getsignal as _getsignal  # type: ignore[import-not-found]
except ImportError:  # pragma: no cover
    _getsignal = signal.getsignal

_ALARM: int | None = getattr(signal, "SIGALRM", None)
_WATCHED = tuple(
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGALRM", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGPROF")
    if hasattr(signal, name)
)


def is_foreign(error: BaseException) -> bool:
    """Whether `error` must abort the run instead of failing the invocation it passed through."""
    if _is_test_outcome(error):
        return True
    is_interrupt = isinstance(error, KeyboardInterrupt)
    traceback = error.__traceback__
    if traceback is None:
        return is_interrupt
    handlers = _handlers()
    while True:
        if traceback.tb_frame.f_code in handlers:
            return True
        if traceback.tb_next is None:
            return is_interrupt and not _is_raise(traceback)
        traceback = traceback.tb_next


def _is_raise(traceback: TracebackType) -> bool:
    """Whether an entry of a traceback is a `raise` in user code."""
    code = traceback.tb_frame.f_code
    return is_users(code) and dis.opname[code.co_code[traceback.tb_lasti]] == "RAISE_VARARGS"


class _Watched:
    """A signal handler whose exceptions abort the simulation that runs."""

    __slots__ = ("handler",)

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        try:
            return self.handler(number, frame)
        except BaseException as error:
            # Only a simulation's loop has it; this module is below the loop.
            abort = getattr(events._get_running_loop(), "abort", None)
            if abort is not None:
                abort(error)
            raise


def watched(handler: Callable[[int, FrameType | None], Any]) -> Callable[..., Any]:
    """Return a signal handler whose exceptions no user code can swallow inside the simulation."""
    return _Watched(handler)


def watch_time_outs() -> None:
    """Wrap the handler of SIGALRM, if there is one; costs next to nothing if it is wrapped."""
    if _ALARM is None:
        return
    handler = _getsignal(_ALARM)
    # Most often there is none: then this is SIG_DFL, an integer.
    if type(handler) is _Watched or not callable(handler):
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(_ALARM, _Watched(handler))


def unwatch_time_outs() -> None:
    """Put the handler back as it was."""
    if _ALARM is None:
        return
    handler = _getsignal(_ALARM)
    if type(handler) is _Watched and threading.current_thread() is threading.main_thread():
        signal.signal(_ALARM, handler.handler)


def _is_test_outcome(error: BaseException) -> bool:
    outcomes = sys.modules.get("_pytest.outcomes")
    return outcomes is not None and isinstance(error, outcomes.OutcomeException)


def _handlers() -> list[CodeType]:
    codes = [_Watched.__call__.__code__]
    for number in _WATCHED:
        code = getattr(_getsignal(number), "__code__", None)
        if code is not None:
            codes.append(code)
    return codes
