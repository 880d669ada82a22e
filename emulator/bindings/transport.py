"""httpx's client and transport on a network of ours, and what mocks of it raise."""

from __future__ import annotations

import sys
from typing import Any

import httpcore
import httpx


class Transport(httpx.AsyncHTTPTransport):
    """httpx's own transport on a network of ours, so that mocks of it and of httpcore apply.

    Its constructor is skipped: reading the certificates costs more than most tests, and the pool
    reads them itself when it really needs them. No connection outlives its request, since nobody
    could close it when the emulator is closed.
    """

    def __init__(self, network: httpcore.AsyncNetworkBackend) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            network_backend=network, max_connections=None, max_keepalive_connections=0
        )


class Client(httpx.AsyncClient):
    """A client that keeps no cookies, as `fetch` keeps none: to look for them costs much."""

    def __init__(self, network: httpcore.AsyncNetworkBackend) -> None:
        super().__init__(transport=Transport(network), timeout=None, trust_env=False)

    @property
    def cookies(self) -> httpx.Cookies:
        """A jar that stays empty."""
        return _NO_JAR

    @cookies.setter
    def cookies(self, cookies: object) -> None: ...


class _NoJar(httpx.Cookies):
    def extract_cookies(self, response: httpx.Response) -> None: ...


_NO_JAR = _NoJar()


def is_unmatched(error: Exception) -> bool:
    """Whether respx raised this for a request that none of its routes matches."""
    models: Any = sys.modules.get("respx.models")
    return models is not None and isinstance(error, models.AllMockedAssertionError)
