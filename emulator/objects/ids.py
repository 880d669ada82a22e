"""Ids of objects (workerd, `server/server.c++`; miniflare makes the same).

An id is 32 bytes in hexadecimal: 16 that are made from a name, or are random, and 16 that only the
namespace could have made of those.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final

_HALF: Final = 16
_DIGITS: Final = frozenset("0123456789abcdef")
# Names whose ids are remembered.
_MOST_KNOWN: Final = 10_000


class IdMaker:
    """Makes the ids of one namespace, or of its part in a jurisdiction."""

    def __init__(self, unique_key: str, jurisdiction: str = "") -> None:
        whole = f"{unique_key}\0{jurisdiction}" if jurisdiction else unique_key
        self._key = sha256(whole.encode()).digest()
        self._known: dict[str, str] = {}

    def from_name(self, name: str) -> str:
        """The id that belongs to a name."""
        id = self._known.get(name)
        if id is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            # A lone surrogate is no UTF-8, and JavaScript's texts may have one.
            encoded = name.encode(errors="surrogatepass")
            id = self._known[name] = self._signed(self._digest(encoded))
        return id

    def unique(self, random: bytes) -> str:
        """An id of 16 random bytes."""
        return self._signed(random)

    def has_made(self, id: str) -> bool:
        """Whether this is an id of the namespace; it has 64 digits."""
        return self._signed(bytes.fromhex(id[: 2 * _HALF])) == id

    def _signed(self, half: bytes) -> str:
        return (half + self._digest(half)).hex()

    def _digest(self, data: bytes) -> bytes:
        return hmac.digest(self._key, data, "sha256")[:_HALF]


def normalised(text: str) -> str | None:
    """An id in lower case; None for what has not the form of one."""
    id = text.lower()
    return id if len(id) == 4 * _HALF and _DIGITS.issuperset(id) else None
