"""Where a config has something: the line to look at."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAIN: Final = re.compile(r"""(?<![\w-])["']?main["']?\s*[:=]\s*(["'])(?P<path>.*?)\1""")
_STRING: Final = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'""")
_COMMENT: Final = re.compile(r"//|#|/\*")


def place_of_main(source: Path, main: Path) -> str:
    """Return the line of a config that names this file as its `main`, as `file:line`.

    The config alone where no line does, as when the key is written in an unusual way.
    """
    for line, found in _outside_comments(source, _MAIN):
        if os.path.abspath(source.parent / found["path"]) == os.path.abspath(main):
            return f"{source}:{line}"
    return str(source)


def place_of_name(where: str, name: str) -> str:
    """Return the first line of a config that has this name, as `file:line`.

    `where` alone if there is none, as where the config is no file.
    """
    named = re.compile(rf"""(?<![\w-])(["']?){re.escape(name)}\1(?![\w-])""")
    for line, _ in _outside_comments(Path(where), named):
        return f"{where}:{line}"
    return where


def _outside_comments(source: Path, wanted: re.Pattern[str]) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield what a file has of this, each with its line's number."""
    try:
        text = source.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError):
        return
    for found in wanted.finditer(text):
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if not _COMMENT.search(_STRING.sub("", before)):
            yield text.count("\n", 0, found.start()) + 1, found
