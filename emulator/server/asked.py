"""What an ASGI scope says of a request, as the Worker is to see it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from emulator.server.routing import HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    Headers = tuple[tuple[str, str], ...]

# Headers about the connection to the server, of which a Worker sees nothing, or which the server
# writes itself.
OF_CONNECTION: Final = frozenset({"connection", "keep-alive", "transfer-encoding", HEADER})
CONTROL: Final = "/cdn-cgi/"
"""How the paths of control pages begin, and of Cloudflare's own."""
_HOST: Final = re.compile(
    rb"([\w!#$%&'*+,.;=^`|~-]*|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{0,5}))?", re.ASCII
)
_MOST_PORT: Final = 65_535
_SCHEMES: Final = {"ws": "http", "wss": "https"}


@dataclass(slots=True)
class Asked:
    """A request's method, URL and headers, the client's address among these."""

    method: str
    url: str
    host: str
    path: str
    headers: Headers
    named: Mapping[str, str]

    @classmethod
    def of(cls, scope: dict[str, Any]) -> Self:
        """Read a scope."""
        client = scope.get("client")
        seen, named = _read(tuple(scope["headers"]), str(client[0]) if client else "")
        host = named.get("host") or _host(scope)
        path = _path(scope)
        query = text(scope.get("query_string", b""))
        scheme = str(scope.get("scheme", "http"))
        url = f"{_SCHEMES.get(scheme, scheme)}://{host}{path}{f'?{query}' if query else ''}"
        return cls(scope.get("method", "GET"), url, host, path, seen, named)

    @property
    def length(self) -> int | None:
        """The length of the body, if it is known."""
        length = self.named.get("content-length", "")
        return int(length) if length.isdigit() else None


# A client sends the same headers with most of its requests.
@lru_cache(maxsize=64)
def _read(
    headers: tuple[tuple[bytes, bytes], ...], client: str
) -> tuple[Headers, Mapping[str, str]]:
    """Return headers as the Worker is to see them, and all of them by name."""
    pairs = [(text(name).lower(), text(value)) for name, value in headers]
    seen = [pair for pair in pairs if pair[0] not in OF_CONNECTION]
    named = dict(pairs)
    if client and "cf-connecting-ip" not in named:
        seen.append(("cf-connecting-ip", client))
    return tuple(seen), MappingProxyType(named)


def sent(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return a Worker's headers as ASGI sends them; values beyond ASCII leave as UTF-8."""
    return [(name.encode(), value.encode()) for name, value in headers if name not in OF_CONNECTION]


def text(value: bytes) -> str:
    """Read a header's value, UTF-8 or else Latin-1."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


@lru_cache(maxsize=256)
def is_host(value: bytes) -> bool:
    """Whether a `Host` header has a name or an address, and perhaps a port."""
    found = _HOST.fullmatch(value)
    return found is not None and int(found["port"] or 0) <= _MOST_PORT


def _host(scope: dict[str, Any]) -> str:
    server = scope.get("server") or ("localhost", None)
    return f"{server[0]}:{server[1]}" if server[1] else str(server[0])


def _path(scope: dict[str, Any]) -> str:
    raw = scope.get("raw_path")
    return text(raw).partition("?")[0] if raw else str(scope["path"])
