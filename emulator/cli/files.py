"""The files a command writes: looked at before it runs, so that no result is lost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from emulator.cli.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STDOUT = "-"


def check_files(files: Mapping[str, str | None], *, kept: Path) -> None:
    """Raise `Refusal` for a file, by its option, that cannot be written.

    `kept` is the scenario's own file, which no option may overwrite.
    """
    seen: dict[str, str] = {}
    for option, name in files.items():
        if name is None:
            continue
        problem = _problem(Path(name), kept)
        real = os.path.realpath(name)
        if problem is None and real in seen:
            problem = f"is the file of {seen[real]}, too"
        if problem is not None:
            raise Refusal(f"{option}: {name} {problem}")
        seen[real] = option


def _problem(path: Path, kept: Path) -> str | None:
    if str(path) in ("", STDOUT):
        return "is no file; give a path"
    if path.is_dir():
        return "is a folder; give a file"
    if os.path.realpath(path) == os.path.realpath(kept):
        return "is the scenario itself, which would be overwritten"
    folder = path.parent
    if not folder.is_dir():
        return f"cannot be written: there is no folder {folder}"
    if not os.access(path if path.exists() else folder, os.W_OK):
        return "cannot be written: permission denied"
    return None


def write(files: Mapping[str, tuple[str | None, Callable[[str], object]]]) -> Refusal | None:
    """Let each writer write its file, by option; return what is wrong with the first that fails.

    The others are written all the same.
    """
    refusals = []
    for option, (name, writer) in files.items():
        if name is None:
            continue
        try:
            writer(name)
        except OSError as error:
            problem = error.strerror or error
            refusals.append(Refusal(f"{option}: {name} cannot be written: {problem}"))
    return refusals[0] if refusals else None
