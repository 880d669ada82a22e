"""A figure, and the table of figures that a benchmark prints."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Figure(NamedTuple):
    """One line of the table; a `value` of None was not measured, and `note` says why."""

    name: str
    value: float | None
    unit: str
    note: str = ""

    def __str__(self) -> str:
        value = f"{self.value:12,.2f}" if self.value is not None else f"{'-':>12}"
        note = self.note or ("" if self.value is not None else "not installed")
        return f"{self.name:52}{value} {self.unit:12} {note}".rstrip()


def show(figures: Iterable[Figure]) -> None:
    """Print a table as it becomes known."""
    print(f"{sys.implementation.name} {platform.python_version()}, {sys.platform}", flush=True)
    for figure in figures:
        print(figure, flush=True)
