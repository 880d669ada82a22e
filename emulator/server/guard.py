"""Who may use the control pages, which can read and change everything.

1. The server listens on the loopback interface unless told otherwise; then its token is asked for,
   in `Authorization: Bearer TOKEN`, or once as `?token=TOKEN`, which a cookie then remembers.
2. Without a token the `Host` must be a name of this machine: a page of another site whose name was
   made to point here (DNS rebinding) sends its own.
3. A request of another site's page is refused, by `Origin` and by `Sec-Fetch-Site`; only following
   a link to a page that changes nothing is not.
4. A body may have `MOST_BYTES`.

A page of a Worker that runs here has the same origin as the control pages: it may use them.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Receive = Callable[[], Awaitable[Any]]

MOST_BYTES: Final = 33_554_432
COOKIE: Final = "emulator_token"
SAFE: Final = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""

_HOST: Final = re.compile(
    r"(localhost|[a-z0-9_-]+\.localhost|127(\.\d{1,3}){3}|\[::1\])\.?(:\d+)?", re.IGNORECASE
)


class Refused(Exception):
    """A request that may not be served, with the status of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules for one server; `token` is None on the loopback interface."""

    token: str | None = None

    def check(self, method: str, headers: Mapping[str, str], query: str, *, acts: bool) -> None:
        """Raise `Refused` for a request that breaks a rule; `acts`: a GET changes things too."""
        if self.token is not None:
            self._check_token(headers, query)
        elif _HOST.fullmatch(headers.get("host", "")) is None:
            raise Refused(
                403,
                f"control pages answer under the names of this machine, such as localhost; this "
                f"request is for {headers.get('host', '')!r}",
            )
        _check_origin(method, headers, acts=acts)
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > MOST_BYTES:
            raise _too_large()

    def brings_token(self, query: str) -> bool:
        """Whether the query has the right token, which a cookie may then remember."""
        return self.token is not None and self._is_token(_token_in(query))

    def _check_token(self, headers: Mapping[str, str], query: str) -> None:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given = (bearer if scheme.lower() == "bearer" else "", _cookie(headers), _token_in(query))
        if not any(map(self._is_token, given)):
            raise Refused(
                401,
                "control pages need the token that the server printed when it started: "
                "`Authorization: Bearer TOKEN`, or ?token=TOKEN once in a browser",
            )

    def _is_token(self, given: str) -> bool:
        return bool(given) and hmac.compare_digest(given.encode(), (self.token or "").encode())


def limited(receive: Receive) -> Receive:
    """Return a `receive` that raises `Refused` when the body is too long."""
    count = 0

    async def counted() -> Any:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b""))
        if count > MOST_BYTES:
            raise _too_large()
        return message

    return counted


def _check_origin(method: str, headers: Mapping[str, str], *, acts: bool) -> None:
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    if origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower():
        raise Refused(403, f"control pages take no requests of pages of {origin}")
    if site in ("none", "same-origin"):
        return
    follows_link = headers.get("sec-fetch-mode") == "navigate" and method in SAFE
    if acts or not follows_link:
        raise Refused(403, "control pages take no requests of other sites' pages")


def _too_large() -> Refused:
    return Refused(413, f"the body is larger than {MOST_BYTES:,} bytes, the most there may be")


def _token_in(query: str) -> str:
    return next(iter(parse_qs(query).get("token", ())), "")


def _cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
