"""What the loop of a simulation refuses: sockets and processes.

Requests of a Worker go through httpx and `fetch`, where they are mocked; anything else would really
leave the process, while virtual time passes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Refusals(asyncio.BaseEventLoop):
    """The part of an event loop that a Worker does not have."""

    # Returns the error for a refused connection to a target, such as `api.example:443`.
    on_socket: Callable[[str], BaseException]

    async def create_connection(self, *args: Any, **options: Any) -> Any:
        raise self._refuse(*args, **options)

    async def create_datagram_endpoint(self, *args: Any, **options: Any) -> Any:
        address = options.get("remote_addr") or options.get("local_addr") or ("", 0)
        raise self._refuse(None, *address[:2])

    async def create_unix_connection(self, *args: Any, **options: Any) -> Any:
        raise self._refuse(None, options.get("path", args[1] if len(args) > 1 else ""))

    async def create_server(self, *args: Any, **options: Any) -> Any:
        raise self._refuse(*args, **options)

    async def create_unix_server(self, *args: Any, **options: Any) -> Any:
        raise self._refuse(None, options.get("path", args[1] if len(args) > 1 else ""))

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        raise self._refuse(None, host, port)

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> Any:
        raise self._refuse(None, *sockaddr[:2])

    async def sock_connect(self, sock: Any, address: Any) -> None:
        raise (
            self._refuse(None, *address[:2])
            if isinstance(address, tuple)
            else self._refuse(None, address)
        )

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        raise OSError("a Worker cannot start processes")

    async def subprocess_shell(self, *args: Any, **options: Any) -> Any:
        raise OSError("a Worker cannot start processes")

    def _refuse(self, *args: Any, **options: Any) -> BaseException:
        host = options.get("host", args[1] if len(args) > 1 else None)
        port = options.get("port", args[2] if len(args) > 2 else None)
        if isinstance(host, bytes):
            host = host.decode("ascii", "replace")
        return self.on_socket(f"{host}:{port}" if port is not None else str(host))

    # The selector's part of a loop, which this one does not have.
    def _process_events(self, event_list: object) -> None: ...
