"""What KV refuses, and in which words.

Names, empty or too long, are checked by the runtime (`workerd`, kv.c++); the rest by the service,
whose texts the local simulator (miniflare) repeats and public reports show.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from emulator.values import JsException

MOST_KEYS: Final = 1_000
_LONGEST_KEY: Final = 512  # bytes
_LARGEST_VALUE: Final = 25 * 1_048_576  # bytes
_LARGEST_METADATA: Final = 1_024  # bytes
_SHORTEST_TTL: Final = 60  # seconds
_SHORTEST_CACHE_TTL: Final = 30  # seconds
_MOST_AT_ONCE: Final = 100


def failed(method: str, text: str) -> JsException:
    """The error that the service answers with: `KV GET failed: 400 …`."""
    return JsException("Error", f"KV {method} failed: {text}")


def unreachable(method: str) -> JsException:
    """The error of a call that the service did not answer."""
    return failed(method, "500 Internal Server Error")


def check_key(method: str, key: str) -> None:
    """Refuse a name as the runtime does."""
    if key == "":
        raise JsException("TypeError", "Key name cannot be empty.")
    if key in (".", ".."):
        raise JsException("TypeError", f'"{key}" is not allowed as a key name.')
    check_length(method, key)


def check_length(method: str, text: str) -> None:
    """Refuse a name or a prefix that is too long."""
    length = len(text.encode())
    if length > _LONGEST_KEY:
        shown = f"UTF-8 encoded length of {length} exceeds key length limit of {_LONGEST_KEY}."
        raise failed(method, f"414 {shown}")


def check_keys(keys: list[str], kind: str) -> None:
    """Refuse names, or a type, in a read of several; the service does it, not the runtime."""
    method = "GET_BULK"
    if kind not in ("text", "json"):
        raise failed(method, f'400 "{kind}" is not a valid type. Use "json" or "text"')
    if len(keys) > _MOST_AT_ONCE:
        raise failed(method, f"400 You can request a maximum of {_MOST_AT_ONCE} keys")
    if not keys:
        raise failed(method, "400 You must request a minimum of 1 key")
    for key in keys:
        if key == "":
            raise failed(method, "400 Key names must not be empty")
        if key in (".", ".."):
            raise failed(method, f'400 Illegal key name "{key}". Please use a different name.')
        check_length(method, key)


def check_cache_ttl(method: str, seconds: int | None) -> None:
    """Refuse a `cacheTtl` that is too short."""
    if seconds is not None and seconds < _SHORTEST_CACHE_TTL:
        shown = f"Cache TTL must be at least {_SHORTEST_CACHE_TTL}."
        raise failed(method, f"400 Invalid cache_ttl of {seconds}. {shown}")


def check_size(values: list[bytes]) -> None:
    """Refuse to read so much at once."""
    if sum(map(len, values)) > _LARGEST_VALUE:
        raise failed("GET_BULK", "413 Total size of request exceeds the limit of 25MB")


def expiration(at: int | None, ttl: int | None, now: int) -> int | None:
    """Return when an entry expires, in seconds since the epoch as `now` is; `ttl` counts first."""
    if ttl is not None:
        if ttl <= 0:
            raise _invalid("expiration_ttl", ttl, "Please specify integer greater than 0.")
        if ttl < _SHORTEST_TTL:
            raise _invalid(
                "expiration_ttl", ttl, f"Expiration TTL must be at least {_SHORTEST_TTL}."
            )
        return now + ttl
    if at is not None and at <= now:
        text = "Please specify integer greater than the current number of seconds since the UNIX "
        raise _invalid("expiration", at, f"{text}epoch.")
    if at is not None and at < now + _SHORTEST_TTL:
        text = f"Expiration times must be at least {_SHORTEST_TTL} seconds in the future."
        raise _invalid("expiration", at, text)
    return at


def _invalid(name: str, value: int, text: str) -> JsException:
    return failed("PUT", f"400 Invalid {name} of {value}. {text}")


def check_metadata(metadata: str | None) -> None:
    """Refuse metadata, as JSON, that is too large."""
    length = 0 if metadata is None else len(metadata.encode())
    if length > _LARGEST_METADATA:
        text = f"Metadata length of {length} exceeds limit of {_LARGEST_METADATA}."
        raise failed("PUT", f"413 {text}")


def check_value(value: bytes) -> None:
    """Refuse a value that is too large."""
    if len(value) > _LARGEST_VALUE:
        text = f"Value length of {len(value)} exceeds limit of {_LARGEST_VALUE}."
        raise failed("PUT", f"413 {text}")


def check_limit(limit: int) -> None:
    """Refuse to list so many."""
    if limit > MOST_KEYS:
        text = f"Please specify an integer less than {MOST_KEYS}."
        raise failed("GET", f"400 Invalid key_count_limit of {limit}. {text}")


def cursor(key: str) -> str:
    """Return where a list goes on after a key."""
    return base64.b64encode(key.encode()).decode()


def key_of(cursor: str, *, strict: bool) -> str:
    """Return the key after which a list goes on.

    Where it is `strict` nothing but a cursor that `cursor` made is one, the empty text neither.
    """
    try:
        key = base64.b64decode(cursor, validate=True).decode()
    except (binascii.Error, ValueError):
        key = ""
    if strict and not key:
        raise failed("GET", "400 invalid cursor")
    return key
