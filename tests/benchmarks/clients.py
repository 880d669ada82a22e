"""Clients of a server under measurement: few lines, so that the server is what is slow."""

from __future__ import annotations

import os
import selectors
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_TICK: Final = os.sysconf("SC_CLK_TCK")
_CHUNK: Final = 65_536
_MICRO: Final = 1e6


@dataclass(slots=True)
class Load:
    """What some connections did: answers, seconds, and how long each answer took."""

    seconds: float = 0.0
    errors: int = 0
    latencies: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds

    def percentile(self, part: float) -> float:
        """The milliseconds within which this part of the answers came."""
        ordered = sorted(self.latencies)
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1e3


class _Connection:
    """A connection that is kept, with one request on its way."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._got = b""
        # Beginning and length of the answer before: most are like it, and need no look inside.
        self._usual = b"?", 0
        self.since = 0.0

    def ask(self) -> None:
        self._got = b""
        self.since = time.perf_counter()
        self.socket.sendall(self._request)

    def answer(self) -> int | None:
        """Take what has come; return the status when the answer is complete."""
        chunk = self.socket.recv(_CHUNK)
        if not chunk:
            raise ConnectionError("the server closed the connection")
        self._got = self._got + chunk if self._got else chunk
        begin, length = self._usual
        if len(self._got) == length and self._got.startswith(begin):
            return int(begin[9:12])
        head, end, body = self._got.partition(b"\r\n\r\n")
        if not end or len(body) < _length(head):
            return None
        self._usual = head[:12], len(self._got)
        return int(head[9:12])


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    raise ValueError(f"an answer without a length: {head!r}")


def request(path: str = "/", *, method: str = "GET", body: bytes = b"") -> bytes:
    """The bytes of a request."""
    length = f"content-length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{length}\r\n".encode() + body


def closed_loop(port: int, asked: bytes, *, connections: int, seconds: float) -> Load:
    """Let each connection ask again as soon as it has its answer."""
    if connections == 1:
        return _one_by_one(port, asked, seconds)
    load = Load()
    with selectors.DefaultSelector() as selector:
        made = [_Connection(port, asked) for _ in range(connections)]
        for connection in made:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.ask()
        begun = now = time.perf_counter()
        while now - begun < seconds:
            for key, _ in selector.select():
                connection = key.data
                status = connection.answer()
                now = time.perf_counter()
                if status is not None:
                    load.errors += status >= 400
                    load.latencies.append(now - connection.since)
                    connection.ask()
        load.seconds = now - begun
        for connection in made:
            connection.socket.close()
    return load


def _one_by_one(port: int, asked: bytes, seconds: float) -> Load:
    """Ask on one connection, and wait for nothing else."""
    load, connection = Load(), _Connection(port, asked)
    begun = now = time.perf_counter()
    while now - begun < seconds:
        connection.ask()
        while (status := connection.answer()) is None:
            pass
        now = time.perf_counter()
        load.errors += status >= 400
        load.latencies.append(now - connection.since)
    load.seconds = now - begun
    connection.socket.close()
    return load


def cpu(process: int) -> float:
    """The processor seconds that a process and its children have used."""
    used = _own_cpu(process)
    for child in _children(process):
        used += cpu(child)
    return used


def resident(process: int) -> float:
    """The memory of a process, in MiB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {process} has no memory")


def _own_cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _children(process: int) -> list[int]:
    found: list[int] = []
    for task in sorted(Path(f"/proc/{process}/task").iterdir()):
        found += map(int, (task / "children").read_text().split())
    return found
