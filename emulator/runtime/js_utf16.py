"""JavaScript's texts are units of UTF-16; Python's are characters.

`units` writes a text so that each unit is a character of its own, halves of pairs included, and
`characters` joins the pairs again. Most texts need neither.
"""

from __future__ import annotations

import re
from typing import Any, Final

_WIDE: Final = re.compile("[\U00010000-\U0010ffff]")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# What is one character for JavaScript to trim, or for `\s`.
SPACES: Final = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


def is_wide(text: str) -> bool:
    """Whether a text has characters that take two units."""
    return not text.isascii() and _WIDE.search(text) is not None


def units(text: str) -> str:
    """Return a text whose characters are units of UTF-16."""
    return _WIDE.sub(_halves, text) if is_wide(text) else text


def _halves(found: re.Match[str]) -> str:
    code = ord(found[0]) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))


def characters(text: str) -> str:
    """Return a text whose pairs of halves are characters."""
    return text if text.isascii() else _PAIR.sub(_whole, text)


def _whole(found: re.Match[str]) -> str:
    high, low = map(ord, found[0])
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


def joined(value: Any) -> Any:
    """Return what a method made of units, with texts of characters."""
    if isinstance(value, str):
        return characters(value)
    if type(value) is list:
        return [joined(item) for item in value]
    return value
