"""Requests whose answer is whole at once, as most are, without a task of their own.

A request to a Worker begins in the very callback that read it, and its answer is written by the
pump's, when what happened is durable. Whatever has to wait in between (a body that streams in or
out, a client that reads slowly) goes on as the ASGI application does it, and so does everything out
of the ordinary.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE

from emulator.server.asked import CONTROL, sent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.ingress import Exchange
    from emulator.server.gateway import Scope

    Headers = Sequence[tuple[bytes, bytes]]

# A connection stops reading where more than this is unread, until the application asks for it.
_MOST_BODY: Final = 65_536


def has_body(scope: Scope) -> bool | None:
    """Whether a request has a body to wait for; None if the ASGI application is to answer it."""
    if scope["path"].startswith(CONTROL):
        return None
    found = False
    for name, value in scope["headers"]:
        if name == b"content-length":
            if not value.isdigit() or int(value) > _MOST_BODY:
                return None
            found = value != b"0"
        elif name in (b"transfer-encoding", b"expect"):
            return None
    return found


def whole_answer(exchange: Exchange, default: Headers) -> bytes | None:
    """Return an answer as it goes over the wire, if it is whole and has nothing unusual.

    `default` are the server's own headers.
    """
    head = exchange.head
    if head is None or not exchange.body_done or exchange.error is not None:
        return None
    if exchange.request.method == "HEAD" or head.status not in STATUS_LINE:
        return None
    body = b"".join(exchange.chunks)
    # As `as_sent` leaves it; not there where the status allows no body.
    if not head.headers or head.headers[-1] != ("content-length", str(len(body))):
        return None
    own, others = _own_lines(head.headers), _lines(tuple(default))
    if own is None or others is None:
        return None
    return b"".join((STATUS_LINE[head.status], others, own, b"\r\n", body))


# The headers of most answers are those of an answer before.
@lru_cache(maxsize=256)
def _own_lines(headers: tuple[tuple[str, str], ...]) -> bytes | None:
    """A Worker's headers as lines, unless uvicorn would refuse one."""
    return _lines(tuple(sent(headers)))


@lru_cache(maxsize=4)
def _lines(headers: tuple[tuple[bytes, bytes], ...]) -> bytes | None:
    if any(HEADER_RE.search(name) or HEADER_VALUE_RE.search(value) for name, value in headers):
        return None
    return b"".join([b"%b: %b\r\n" % (name.lower(), value) for name, value in headers])
