"""Limits of an object's storage (docs: Durable Objects, "Limits"; workerd, `api/actor-state.c++`).

An object of a class without SQLite has those of the key-value backend, which it keeps in
production; the local runtime puts all into SQLite.
"""

from __future__ import annotations

from typing import Final

from emulator.values import JsException

MOST_PAIRS: Final = 128
LONGEST_KEY: Final = 2_048
LARGEST_VALUE: Final = 131_072
# The runtime allows a little more than it says, for what the serialisation adds.
_ADDED: Final = 34
# A key and its value together, in SQLite.
LARGEST_ROW: Final = 2_000_000

_TOO_BIG: Final = "string or blob too big: SQLITE_TOOBIG"


def check_pairs(count: int) -> None:
    """Raise the `RangeError` of too many keys in one call."""
    if count > MOST_PAIRS:
        text = f"Maximum number of key value pairs is {MOST_PAIRS}. {count} pairs were provided."
        raise JsException("RangeError", text)


def check_key(key: str) -> None:
    """Raise the `RangeError` of a key that is too long, in UTF-8."""
    size = len(key.encode(errors="surrogatepass"))
    if size > LONGEST_KEY:
        raise JsException(
            "RangeError",
            f"Keys cannot be larger than {LONGEST_KEY} bytes. A key of size {size} was provided.",
        )


def check_value(value: bytes) -> None:
    """Raise the `RangeError` of a value that is too large."""
    size = len(value)
    if size > LARGEST_VALUE + _ADDED:
        raise JsException(
            "RangeError",
            f"Values cannot be larger than {LARGEST_VALUE} bytes. A value of size {size} was "
            "provided.",
        )


def check_row(key: str, value: bytes) -> None:
    """Raise SQLite's error for a value that it does not take."""
    if len(key) + len(value) > LARGEST_ROW:
        raise JsException("Error", _TOO_BIG)
