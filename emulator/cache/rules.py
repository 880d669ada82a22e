"""Which responses are stored, and for how long.

Production follows the headers of the response, by Cloudflare's documentation of the Cache API and
of its edge cache; without any that say how long, the status decides. The local simulator asks the
library http-cache-semantics, as a shared cache would.

Numbered rules, in the order in which they are asked:

1. `Cache-Control: private=Set-Cookie` takes `Set-Cookie` off the response and says nothing else.
2. A response with `Set-Cookie` is not stored.
3. `no-store`, `private` and `no-cache` forbid it.
4. An answer to a request with `Authorization` is stored only with `public`, `s-maxage` or
   `must-revalidate`.
5. It is stored for `s-maxage`, else `max-age`, else until `Expires`, else as the status says.
6. What would have expired at once is not stored.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Pairs = tuple[tuple[str, str], ...]

_SECOND: Final = 1_000_000
_LARGEST: Final = 512 * 1_048_576  # bytes
_MINUTE: Final = 60 * _SECOND
_BY_STATUS: Final = {
    **dict.fromkeys((200, 206, 301), 120 * _MINUTE),
    **dict.fromkeys((302, 303), 20 * _MINUTE),
    **dict.fromkeys((404, 410), 3 * _MINUTE),
}
# What http-cache-semantics stores, and what it stores without being told.
_UNDERSTOOD: Final = frozenset(
    (*(200, 203, 204, 300, 301, 302, 303, 307, 308), *(404, 405, 410, 414, 501))
)
_BY_DEFAULT: Final = frozenset((200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501))
# Its 24 hours of milliseconds, which it takes for seconds.
_IMMUTABLE: Final = 86_400_000 * _SECOND
_HOP_BY_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_PRIVATE_COOKIE: Final = re.compile(r'\s*private\s*=\s*"?set-cookie"?\s*[,;]?', re.IGNORECASE)
_DIRECTIVE: Final = re.compile(r'\s*([^\s,;=]+)\s*(?:=\s*(?:"([^"]*)"|([^,;\s]*)))?\s*[,;]?')


class Verdict(NamedTuple):
    """The headers to store and how long, in microseconds; or why the response is not stored."""

    headers: Pairs = ()
    lifetime: int = 0
    refusal: str = ""


def judge(
    status: int, headers: Pairs, size: int, asked: Pairs, now: int, *, strict: bool
) -> Verdict:
    """Decide on a response to a request with the headers `asked`; `strict` is production."""
    kept = tuple(pair for pair in headers if pair[0] not in _HOP_BY_HOP)
    control = _joined(kept, "cache-control")
    if _PRIVATE_COOKIE.search(control):  # rule 1
        control = _PRIVATE_COOKIE.sub("", control)
        kept = tuple(pair for pair in kept if pair[0] != "set-cookie")
        if not strict:
            kept = _replaced(kept, "cache-control", control.strip().lower())
    told = _directives(control)
    refusal = _refusal(kept, told, asked, size, strict=strict)
    if refusal:
        return Verdict(refusal=refusal)
    lifetime = _lifetime(status, kept, told, now) if strict else _semantics(status, kept, told, now)
    if lifetime <= 0:  # rule 6
        return Verdict(refusal="it would have expired")
    if not strict:
        kept = (*_replaced(kept, "date", http_date(now)), ("age", "0"))
    return Verdict(kept, lifetime)


def _refusal(
    headers: Pairs, told: Mapping[str, str], asked: Pairs, size: int, *, strict: bool
) -> str:
    if size > _LARGEST:
        return "413 Payload Too Large"
    if any(name == "set-cookie" for name, _ in headers):  # rule 2
        return "Set-Cookie"
    # The simulator keeps what must be validated for as long as it may be stale.
    for directive in ("no-store", "private", *(("no-cache",) if strict else ())):  # rule 3
        if directive in told:
            return f"Cache-Control: {directive}"
    if any(name == "authorization" for name, _ in asked):  # rule 4
        allowed = ("public", "s-maxage", "must-revalidate")
        if not any(directive in told for directive in allowed):
            return "Authorization"
    return ""


def _lifetime(status: int, headers: Pairs, told: Mapping[str, str], now: int) -> int:
    """Rule 5 in production."""
    seconds = _told_lifetime(told)
    if seconds is not None:
        return seconds * _SECOND
    if expires := _joined(headers, "expires"):
        return _moment(expires, 0) - _moment(_joined(headers, "date"), now)
    return _BY_STATUS.get(status, 0)


def _semantics(status: int, headers: Pairs, told: Mapping[str, str], now: int) -> int:
    """Rule 5 as http-cache-semantics has it: what is stale may stay for a while."""
    seconds = _told_lifetime(told)
    is_told = seconds is not None or _joined(headers, "expires") or "public" in told
    if status not in _UNDERSTOOD or not (is_told or status in _BY_DEFAULT):
        return 0
    if not told and "no-cache" in _joined(headers, "pragma"):
        return 0
    fresh = _freshness(seconds, headers, told, now) - _seconds(_joined(headers, "age"))
    stale = (_seconds(told.get(f"stale-{why}", "")) for why in ("if-error", "while-revalidate"))
    return fresh + max(stale)


def _freshness(seconds: int | None, headers: Pairs, told: Mapping[str, str], now: int) -> int:
    if "no-cache" in told or "proxy-revalidate" in told:
        return 0
    if seconds is not None:
        return seconds * _SECOND
    least = _IMMUTABLE if "immutable" in told else 0
    date = _moment(_joined(headers, "date"), now)
    expires = _joined(headers, "expires")
    if expires:
        until = _moment(expires, 0)
        return max(least, until - date) if until >= date else 0
    modified = _moment(_joined(headers, "last-modified"), date)
    return max(least, (date - modified) // 10)


def _seconds(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found[0]) * _SECOND if found else 0


def _told_lifetime(told: Mapping[str, str]) -> int | None:
    for directive in ("s-maxage", "max-age"):
        if directive in told:
            found = re.match(r"-?\d+", told[directive])
            return int(found[0]) if found else 0
    return None


def _directives(text: str) -> dict[str, str]:
    return {
        name.lower(): quoted or plain for name, quoted, plain in _DIRECTIVE.findall(text) if name
    }


def _joined(headers: Pairs, name: str) -> str:
    return ", ".join(value for key, value in headers if key == name)


def _replaced(headers: Pairs, name: str, value: str) -> Pairs:
    rest = tuple(pair for pair in headers if pair[0] != name)
    return (*rest, (name, value)) if value else rest


def _moment(text: str, otherwise: int) -> int:
    """A date of HTTP in microseconds since the epoch, or `otherwise` where it is none."""
    try:
        found = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return otherwise
    zoned = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return round(zoned.timestamp() * _SECOND)


def http_date(now: int) -> str:
    """Return a time in microseconds since the epoch as HTTP writes it."""
    return format_datetime(datetime.fromtimestamp(now // _SECOND, UTC), usegmt=True)
