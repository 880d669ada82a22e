"""Where a config names a Worker's main file: the line to look at when the file is gone."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_MAIN: Final = re.compile(r"""(?<![\w-])["']?main["']?\s*[:=]\s*(["'])(?P<path>.*?)\1""")
_STRING: Final = re.compile(r""""(?:\\.|[^"\\])*"|'[^']*'""")
_COMMENT: Final = re.compile(r"//|#|/\*")


def place_of_main(source: Path, main: Path) -> str:
    """Return the line of a config that names this file, as `file:line`.

    The config alone where no line does, as when the key is written in an unusual way.
    """
    try:
        text = source.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return str(source)
    for found in _MAIN.finditer(text):
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if _COMMENT.search(_STRING.sub("", before)):
            continue
        if os.path.abspath(source.parent / found["path"]) == os.path.abspath(main):
            return f"{source}:{text.count(chr(10), 0, found.start()) + 1}"
    return str(source)
