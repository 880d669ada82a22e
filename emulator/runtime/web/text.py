"""Text to bytes and back, as JavaScript's encoder and decoder do it."""

from __future__ import annotations

import re
from typing import Final

_HALF_A_PAIR: Final = re.compile("[\ud800-\udfff]")


def utf8(text: str) -> bytes:
    """Return a JavaScript string in UTF-8: half a surrogate pair becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _HALF_A_PAIR.sub("\ufffd", text).encode()


def decode(data: bytes) -> str:
    """Read UTF-8 as `text()` does: no byte order mark, bad bytes replaced."""
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
