"""The Worker's log lines: print, logging, `js.console` and the platform's own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from emulator.secrets import Masker
from emulator.trace.written import write_datetime

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Log:
    """A line that a Worker logged, or the platform about it, at a virtual time.

    `level` is `debug`, `log`, `info`, `warn` or `error`.
    """

    at: datetime
    worker: str
    level: str
    text: str

    def __str__(self) -> str:
        return f"{write_datetime(self.at)} {self.worker} {self.level}: {self.text}"


class Logs(list[Log]):
    """The lines in order; what `append` takes is masked, so that no line holds a secret."""

    def __init__(self, masker: Masker | None = None) -> None:
        super().__init__()
        self._masker = masker if masker is not None else Masker()

    def append(self, log: Log) -> None:
        """Add a line, its text masked."""
        masked = self._masker(log.text)
        super().append(log if masked == log.text else replace(log, text=masked))

    def __str__(self) -> str:
        return "\n".join(map(str, self))
