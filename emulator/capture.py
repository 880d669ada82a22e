"""What Worker code prints and logs, as lines of `emulator.logs`.

Inside the simulation `sys.stdout` and `sys.stderr` are streams that keep what a Worker writes, line
by line, and pass it on to the real ones. Records of `logging` are kept with their level, whatever
handlers there are; what a handler then writes to such a stream is not kept a second time.

A record's exception is told with it, in the user's own lines. A record that cannot be put into
words is told as `logging` tells of it, and does not fail the code that made it.

Workers have a root logger of their own: it begins with no handlers, as in production, so that
`logging.basicConfig` works, and the level it is given stays theirs. Records go on to the test's
handlers (pytest's `caplog`) as well.

A sweep runs a Worker hundreds of times: emulators made under `keeping` keep what their Workers
write from the real streams, until a debugger writes to one. Lines of `emulator.logs` there are in
any case.
"""

from __future__ import annotations

import io
import logging
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from emulator.location import describe_error, format_error
from emulator.scope import SCOPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_LEVELS: Final = (
    (logging.ERROR, "error"),
    (logging.WARNING, "warn"),
    (logging.INFO, "info"),
    (logging.DEBUG, "debug"),
)
# Who writes to a stream from here has the record kept already.
_EMIT: Final = logging.StreamHandler.emit.__code__
DEBUGGERS: Final = ("bdb", "cmd", "pdb", "ipdb", "pudb", "code")
"""Modules whose output a person waits for."""


class Kept(io.TextIOWrapper):
    """What Workers wrote, instead of the real streams."""

    def __init__(self) -> None:
        self._octets = io.BytesIO()
        super().__init__(
            self._octets, "utf-8", errors="backslashreplace", newline="", write_through=True
        )

    @property
    def text(self) -> str:
        """All of it."""
        return self._octets.getvalue().decode("utf-8", "backslashreplace")

    def close(self) -> None:
        """What a Worker closes goes on for others."""


_KEPT: Final[ContextVar[Kept | None]] = ContextVar("emulator_kept_output", default=None)


@contextmanager
def keeping() -> Iterator[Kept]:
    """Let what Workers write, of emulators that are made meanwhile, go here and nowhere else."""
    kept = Kept()
    token = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(token)


class Output:
    """`sys.stdout` or `sys.stderr` inside the simulation.

    Worker code may hold on to it (a logging handler does): outside it is the real stream.
    """

    def __init__(self, name: str, level: str) -> None:
        self._name = name
        self._level = level
        self.outer: TextIO | None = None
        # Where what Workers write goes instead of the real stream.
        self.kept: Kept | None = None

    def write(self, text: str) -> int:
        """Write, and keep what a Worker wrote."""
        worker = _running_worker()
        if worker is not None:
            caller = sys._getframe(1)
            if caller.f_code is not _EMIT:
                worker.write(self._level, text)
            if self.kept is not None and caller.f_globals.get("__name__") in DEBUGGERS:
                self.kept = None
        return self._real().write(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def _real(self) -> TextIO:
        if self.kept is not None and worker_runs():
            return self.kept
        stream = self.outer if self.outer is not None else getattr(sys, self._name)
        return cast("TextIO", getattr(sys, f"__{self._name}__") if stream is self else stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)


class Capture:
    """The output of one emulator's Workers."""

    def __init__(self) -> None:
        self._stdout = Output("stdout", "log")
        self._stderr = Output("stderr", "error")
        self._stdout.kept = self._stderr.kept = _KEPT.get()
        # The root logger as Workers see it, and as it is outside.
        self._handlers: list[logging.Handler] = []
        self._level: int | None = None
        self._outer_handlers: list[logging.Handler] = []
        self._outer_level = logging.NOTSET
        self._call_handlers = logging.Logger.callHandlers
        self._ours = _keeping(self)

    def enter(self) -> None:
        """Called when the simulation starts to run."""
        self._stdout.outer, self._stderr.outer = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = self._stdout, self._stderr
        root = logging.root
        self._outer_handlers, self._outer_level = root.handlers, root.level
        root.handlers = self._handlers
        if self._level is not None and self._level != root.level:
            root.setLevel(self._level)
        logging.Logger.callHandlers = self._ours  # type: ignore[method-assign, assignment]

    def leave(self) -> None:
        """Called when the simulation stops."""
        root = logging.root
        logging.Logger.callHandlers = self._call_handlers  # type: ignore[method-assign]
        if root.level != self._outer_level:
            self._level = root.level
            root.setLevel(self._outer_level)
        self._handlers, root.handlers = root.handlers, self._outer_handlers
        sys.stdout, sys.stderr = self._stdout.outer, self._stderr.outer
        self._stdout.outer = self._stderr.outer = None

    def close(self) -> None:
        """Take away the handlers that Worker code added to loggers of the process."""
        for logger in [*logging.root.manager.loggerDict.values(), logging.root]:
            for handler in list(getattr(logger, "handlers", ())):
                if getattr(handler, "stream", None) in (self._stdout, self._stderr):
                    cast("logging.Logger", logger).removeHandler(handler)

    @property
    def _real_streams(self) -> tuple[TextIO | None, ...]:
        return (self._stdout.outer, self._stderr.outer, sys.__stdout__, sys.__stderr__)

    def handle(self, logger: logging.Logger, record: logging.LogRecord) -> None:
        """Keep a Worker's record and give it to its handlers and the test's; others go outside."""
        worker = _running_worker()
        if worker is not None:
            level = next((name for least, name in _LEVELS if record.levelno >= least), "debug")
            try:
                text = record.getMessage()
            except Exception as error:  # the user's own `__str__` may raise anything
                worker.log("error", _without_words(record, error))
                return
            worker.log(level, _with_exception(text, record, worker.isolate.worker.folder))
            self._call_handlers(logger, record)
        held = worker is not None and self._stderr.kept is not None
        for handler in self._outer_handlers if _reaches_root(logger) else ():
            if held and getattr(handler, "stream", None) in self._real_streams:
                continue
            if record.levelno >= handler.level:
                handler.handle(record)


def _with_exception(text: str, record: logging.LogRecord, folder: Path | None) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return text if error is None else f"{text}\n{format_error(error, folder)}"


def _without_words(record: logging.LogRecord, error: Exception) -> str:
    """What `logging` says of a record whose arguments do not fit its message."""
    lines = ("--- Logging error ---", describe_error(error), f"Message: {record.msg!r}")
    return "\n".join(lines)


def _keeping(capture: Capture) -> Callable[[logging.Logger, logging.LogRecord], None]:
    # A function, so that it becomes a method of the class it is put into.
    return lambda logger, record: capture.handle(logger, record)


def worker_runs() -> bool:
    """Whether a Worker's code runs now, and not a test's or the emulator's."""
    return _running_worker() is not None


def _running_worker() -> Any:
    """The Worker's invocation that runs now; None for the test and the emulator itself."""
    scope = SCOPE.get()
    return None if getattr(scope, "is_test", True) else scope


def _reaches_root(logger: logging.Logger) -> bool:
    current: logging.Logger | None = logger
    while current is not None and current.propagate:
        current = current.parent
    return current is None
