"""Paths of URLs: decoded to look for a file, encoded again to show where it is."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

# What `encodeURIComponent` leaves alone, besides letters, digits and `_.-~`.
_PLAIN: Final = "!*'()"
_MALFORMED: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_SLASHES: Final = re.compile(r"/+")


def decoded(path: str) -> str:
    """Return a path with what is encoded decoded, part by part, and no two slashes together.

    >>> decoded("/caf%C3%A9//%2Fa/%A0")
    '/café/a/%A0'
    """
    return _SLASHES.sub("/", "/".join(map(_decoded_part, path.split("/"))))


def _decoded_part(part: str) -> str:
    if _MALFORMED.search(part):
        return part
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return part


def encoded(path: str) -> str:
    """Return a path as the assets have it in their URLs.

    >>> encoded("/[a b]/é")
    '/%5Ba%20b%5D/%C3%A9'
    """
    return "/".join(quote(part, safe=_PLAIN) for part in path.split("/"))
