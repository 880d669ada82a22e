"""Shows on a terminal how far a sweep has come."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from emulator.sweeping.search import Search


@contextmanager
def progress(stream: Any) -> Iterator[Callable[[Search], None]]:
    """Give a function to call after each run; it does nothing where nobody looks."""
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda search: None
        return
    # The number of runs is not known before they are done: no time is promised.
    bar = click.progressbar(length=2, label="sweep", show_pos=True, show_eta=False, file=stream)
    with bar:

        def show(search: Search) -> None:
            bar.length = search.total
            bar.update(search.done - bar.pos)

        yield show
