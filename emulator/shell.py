"""Texts as they are pasted into a shell."""

from __future__ import annotations

import re
import shlex
from typing import Final

_PLAIN: Final = re.compile(r"[\w./:=@+,-]+", re.ASCII)
# What a shell, or Windows' command line, reads inside double quotes.
_SPECIAL: Final = re.compile(r'[$`"\\!%\n]')


def quoted(text: str) -> str:
    """Return one argument of a command line, quoted where it has to be.

    >>> quoted("batch.emails#1:lose_ack"), quoted("src/entry.py")
    ('"batch.emails#1:lose_ack"', 'src/entry.py')
    """
    if _PLAIN.fullmatch(text):
        return text
    return shlex.quote(text) if _SPECIAL.search(text) else f'"{text}"'
