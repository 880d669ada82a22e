"""stdout and stderr while user code runs: what it writes is masked, and kept out of reports.

1. What a scenario prints goes on at once, line by line, with secrets masked.
2. What a Worker prints is in `emulator.logs`, which a command prints itself, and goes no further.
3. Before the secrets are known everything is held back. If that is where it ends, because a file
   cannot be imported, all of it is written.
4. A debugger must be heard: from its first word on everything goes on as it is.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

from emulator.capture import DEBUGGERS, worker_runs
from emulator.cli.refusal import Refusal
from emulator.secrets import Masker

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType


class Gate:
    """A context manager: user code writes to streams of its own.

    With `aside` what goes to stdout is written to stderr, since stdout is for a program to read.
    With `silent` nothing is written once the gate is open: of a sweep's many runs nobody would
    know which one it was.
    """

    def __init__(self, *, aside: bool = False, silent: bool = False) -> None:
        self.masker: Callable[[str], str] = Masker()
        self._silent = silent
        self._aside = aside
        self._live = False
        # What was written before the gate opened, and whether a Worker wrote it.
        self._held: list[tuple[_Stream, str, bool]] | None = []

    def __enter__(self) -> Gate:
        self._outer = sys.stdout, sys.stderr
        self.stdout = _Stream(self, sys.stderr if self._aside else sys.stdout)
        self.stderr = _Stream(self, sys.stderr)
        sys.stdout, sys.stderr = self.stdout, self.stderr
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._spill(workers=True)
        self.stdout.flush()
        self.stderr.flush()
        sys.stdout, sys.stderr = self._outer
        if isinstance(error, Refusal):
            raise Refusal(self.masker(error.message)) from None

    @property
    def output(self) -> Any:
        """The real stdout."""
        return self._outer[0]

    @property
    def terminal(self) -> Any:
        """The real stderr."""
        return self._outer[1]

    def open(self, masker: Callable[[str], str]) -> None:
        """Let through what was held back, and what comes: the secrets are known now."""
        self.masker = masker
        self._spill(workers=False)

    def take(self, stream: _Stream, text: str, *, debugger: bool) -> None:
        """Called for each text that is written to one of the streams."""
        if debugger and not self._live:
            self._spill(workers=True)
            self._live = True
        is_workers = worker_runs()
        if self._held is not None:
            self._held.append((stream, text, is_workers))
        elif self._live:
            stream.send(text, at_once=True)
        elif not (is_workers or self._silent):
            stream.send(text)

    def _spill(self, *, workers: bool) -> None:
        held, self._held = self._held or (), None
        for stream, text, is_workers in held:
            if workers or not is_workers:
                stream.send(text)


class _Stream(io.TextIOBase):
    """What user code finds as `sys.stdout` or `sys.stderr`."""

    def __init__(self, gate: Gate, target: Any) -> None:
        self._gate = gate
        self._target = target
        self._partial = ""
        self.buffer = _Bytes(self)

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return str(self._target.encoding)

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    def write(self, text: str, /) -> int:
        self._gate.take(self, text, debugger=_is_debugger(sys._getframe(1)))
        return len(text)

    def send(self, text: str, *, at_once: bool = False) -> None:
        """Write complete lines, masked; the rest waits for its end."""
        lines, end, rest = (self._partial + text).rpartition("\n")
        self._partial = rest
        if end:
            self._target.write(self._gate.masker(lines) + end)
            self._target.flush()
        if at_once:
            self.flush()

    def flush(self) -> None:
        partial, self._partial = self._partial, ""
        if partial:
            self._target.write(self._gate.masker(partial))
        self._target.flush()

    def close(self) -> None:
        """What stands behind it is somebody else's; Python closes a stream that it collects."""

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return bool(self._target.isatty())

    def fileno(self) -> int:
        return int(self._target.fileno())


class _Bytes(io.RawIOBase):
    """The `buffer` of such a stream, for code that writes bytes."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def write(self, data: Any, /) -> int:
        octets = bytes(data)
        self._stream.write(octets.decode("utf-8", "backslashreplace"))
        return len(octets)

    def writable(self) -> bool:
        return True


def _is_debugger(frame: FrameType | None) -> bool:
    """Whether a debugger writes; through the simulation's own stream, if a Worker stands."""
    for _ in range(2):
        if frame is None:
            return False
        name = str(frame.f_globals.get("__name__", ""))
        if name in DEBUGGERS:
            return True
        if name != "emulator.capture":
            return False
        frame = frame.f_back
    return False
