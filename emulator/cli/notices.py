"""Config warnings, told as a command tells things."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.terminal import lines
from emulator.section import ConfigWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.cli.streams import Gate


@contextmanager
def config_warnings(gate: Gate) -> Iterator[None]:
    """Print each config warning once, at the end, on stderr; others are shown as Python does."""
    told: dict[str, None] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("always", ConfigWarning)
        show = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *args: Any, **more: Any) -> None:
            if issubclass(category, ConfigWarning):
                told[str(message)] = None
            else:
                show(message, category, *args, **more)

        warnings.showwarning = tell
        try:
            yield
        finally:
            for text in told:
                line = f"Warning: {lines(gate.masker(text))}"
                click.echo(line, file=gate.terminal)
