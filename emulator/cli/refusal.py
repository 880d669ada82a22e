"""What keeps a command from doing its work."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import click

from emulator.cli.terminal import lines, say
from emulator.location import format_error, raised_at


class Refusal(click.ClickException):
    """A command that cannot run: its message goes to stderr, and the exit code is 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message."""
        say(f"Error: {lines(self.message)}", aside=True)


def explained(error: BaseException) -> str:
    """Return an error of the emulator's, with the traceback of the user's code that it is about."""
    cause = error.__cause__
    if cause is None or (raised_at(cause) is None and not isinstance(cause, SyntaxError)):
        return str(error)
    return f"{error}\n{format_error(cause, Path.cwd())}"
