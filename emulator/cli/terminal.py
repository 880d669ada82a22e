"""Printing, for a terminal, a pipe or a file."""

from __future__ import annotations

import sys

import click

from emulator.trace.timeline import printable


def say(text: str, *, end: str = "\n", aside: bool = False) -> None:
    """Print on stdout, or on stderr; colours only where there is a terminal that has them."""
    # click would take another stream than this one where the encoding is ASCII.
    click.echo(text + end, file=sys.stderr if aside else sys.stdout, nl=False)


def lines(text: str) -> str:
    """Return a text of several lines with what a terminal would not show as it is escaped."""
    return "\n".join(printable(line.expandtabs(4)) for line in text.splitlines())
