"""Shows on a terminal how far a sweep has come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


class Progress:
    """Writes `pytest_sweep: 41/97` behind what the line holds, and takes it away again.

    Only where somebody looks: not with `-q`, not into a file, not where the line is full.
    """

    def __init__(self, config: pytest.Config) -> None:
        reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
        self._writer: Any = None
        if reporter is not None and reporter.isatty and config.get_verbosity() >= 0:
            self._writer = config.get_terminal_writer()
        self._shown = ""

    def show(self, done: int, total: int) -> None:
        """Say that so many runs of so many are done."""
        if self._writer is None:
            return
        text = f" pytest_sweep: {done}/{total}"
        if self._writer.width_of_current_line + len(text) < self._writer.fullwidth:
            self._overwrite(text)

    def clear(self) -> None:
        """Take away what was shown."""
        if self._shown:
            self._overwrite("")

    def _overwrite(self, text: str) -> None:
        # Past the writer, which counts what it has written on its line.
        width = max(len(self._shown), len(text))
        back = "\b" * width
        stream = self._writer._file
        stream.write(f"{text:<{width}}{back}")
        stream.flush()
        self._shown = text
