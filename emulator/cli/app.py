"""The group of commands. Each command's module is imported when it is asked for."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, Final

import click

from emulator import __version__

# The module of each command, and its help in one line: the emulator's import takes a moment.
COMMANDS: Final = {
    "dev": "Serve Workers on this machine, and reload them when files change.",
    "run": "Run a scenario once, and print its timeline.",
    "sweep": "Run a scenario once under each fault that can strike it.",
    "check": "Check configs, and the handlers of their Workers.",
    "init": "Write first tests for a Worker project.",
}
INTERRUPTED: Final = 130


class Commands(click.Group):
    """A group that knows its commands by name, and loads one on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, with its module loaded."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"emulator.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; Ctrl-C ends it with the exit code a shell expects."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="workers-emulator %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Run Cloudflare Workers written in Python on a virtual clock, with injected faults."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    for stream in (sys.stdout, sys.stderr):
        # Where the terminal's encoding lacks a character, a report must not die of it.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def main() -> None:
    """Run the command line, as the console script does."""
    app()
