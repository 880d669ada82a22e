"""Text to bytes and back, as JavaScript's encoder and decoder do it."""

from __future__ import annotations

import re
from typing import Any, Final

from emulator.runtime.js_text import display
from emulator.values import JsException, Symbol

_HALF_A_PAIR: Final = re.compile("[\ud800-\udfff]")


def utf8(text: str) -> bytes:
    """Return a JavaScript string in UTF-8: half a surrogate pair becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _HALF_A_PAIR.sub("\ufffd", text).encode()


def well_formed(text: str) -> str:
    """Return a JavaScript string as UTF-8 keeps it."""
    return text if text.isascii() else utf8(text).decode()


def usv_string(value: Any) -> str:
    """Return a value as a `USVString`: half a surrogate pair becomes U+FFFD."""
    if type(value) is str and value.isascii():
        return value
    if isinstance(value, Symbol):
        raise JsException("TypeError", "Cannot convert a Symbol value to a string")
    return well_formed(display(value))


def decode(data: bytes) -> str:
    """Read UTF-8 as `text()` does: no byte order mark, bad bytes replaced."""
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
