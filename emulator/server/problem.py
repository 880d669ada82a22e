"""Why a server cannot run the code it is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.errors import ConfigError, EmulatorError
from emulator.location import format_error, raised_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


@dataclass(frozen=True, slots=True)
class Problem:
    """What keeps the present files from running: a line that says it, and all there is to say."""

    title: str
    text: str

    @classmethod
    def of(cls, error: EmulatorError, masker: Callable[[str], str] = str) -> Self:
        """Describe an error of loading, with the user's lines, masked."""
        title = (
            "The config is wrong" if isinstance(error, ConfigError) else "The code does not load"
        )
        cause = error.__cause__
        if cause is None or (raised_at(cause) is None and not isinstance(cause, SyntaxError)):
            return cls(title, masker(str(error)))
        return cls(title, masker(f"{error}\n{format_error(cause, Path.cwd())}"))


class NotRunning(EmulatorError):
    """There is no emulator at the moment; `problem` says why."""

    def __init__(self, problem: Problem | None) -> None:
        super().__init__(problem.text if problem else "the server is starting, or ending")
        self.problem = problem
