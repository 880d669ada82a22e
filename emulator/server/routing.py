"""Which Worker a request is for.

1. The header `Emulator-Worker: NAME` names it; so does the host `NAME.localhost`.
2. Else the `routes` of the configs are asked, as production does it: the most specific pattern
   that matches host and path. For the machine's own names (`localhost`, `127.0.0.1`) a pattern
   counts by its path alone, if it has one: `example.com/api/*` takes `/api/` there.
3. Else it is for the first Worker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from emulator.worker_config import WorkerConfig

HEADER: Final = "emulator-worker"
_LOCAL: Final = re.compile(r"localhost|127(\.\d+){3}|\[::1\]|0\.0\.0\.0|\[::\]")
_SUBDOMAIN: Final = ".localhost"


class UnknownWorker(Exception):
    """A request names a Worker that is not there."""


@dataclass(frozen=True, slots=True)
class Route:
    """A pattern of `routes`, and the Worker it leads to.

    The host may begin with `*`, which stands for anything, the path may end with it.
    """

    worker: str
    pattern: str
    host: str
    path: str

    @property
    def weight(self) -> tuple[bool, int, bool, int]:
        """How specific it is: a whole host before one with `*`, then the longer text."""
        return (
            not self.host.startswith("*"),
            len(self.host),
            not self.path.endswith("*"),
            len(self.path),
        )

    def matches(self, host: str, path: str) -> bool:
        """Whether a request to this host and path is its."""
        if not self.matches_path(path):
            return False
        if self.host.startswith("*"):
            return host.endswith(self.host[1:])
        return host == self.host

    def matches_path(self, path: str) -> bool:
        """Whether a request with this path is its, if the host is."""
        if self.path.endswith("*"):
            return path.startswith(self.path[:-1])
        return path == self.path


class Routing:
    """The routes of some Workers; the first one takes what no other does."""

    def __init__(self, workers: Sequence[WorkerConfig]) -> None:
        self.workers = tuple(worker.name for worker in workers)
        found = [route for worker in workers for route in _routes(worker)]
        self.routes = tuple(sorted(found, key=lambda route: route.weight, reverse=True))
        own = [route for route in self.routes if route.path != "/*"]
        self._by_path = sorted(own, key=lambda route: route.weight[2:], reverse=True)

    def worker(self, host: str, path: str, headers: Mapping[str, str]) -> str:
        """Return the name of the Worker; raises `UnknownWorker` where a request asks for one."""
        name, subdomain, is_local = _read(host)
        named = headers.get(HEADER, subdomain)
        if named is not None:
            if named not in self.workers:
                raise UnknownWorker(
                    f"there is no Worker {named!r}; there are: {', '.join(self.workers)}"
                )
            return named
        for route in self._by_path if is_local else self.routes:
            if route.matches_path(path) if is_local else route.matches(name, path):
                return route.worker
        return self.workers[0]


def _routes(worker: WorkerConfig) -> Iterator[Route]:
    given = worker.other.get("routes", ())
    single = worker.other.get("route")
    for item in (*(given if isinstance(given, list) else ()), single):
        custom = isinstance(item, dict) and item.get("custom_domain") is True
        pattern = item.get("pattern") if isinstance(item, dict) else item
        if isinstance(pattern, str):
            yield _route(worker.name, pattern, whole_host=custom)


def _route(worker: str, pattern: str, *, whole_host: bool) -> Route:
    bare = pattern.partition("://")[2] or pattern
    host, slash, path = bare.partition("/")
    path = "/*" if whole_host else slash + path or "/"
    return Route(worker, pattern, host.lower(), path)


@lru_cache(maxsize=64)
def _read(host: str) -> tuple[str, str | None, bool]:
    """A host's name, the Worker that a host below `localhost` names, and whether it is local."""
    name, colon, port = host.rpartition(":")
    name = (name if colon and port.isdigit() else host).lower()
    subdomain = name.removesuffix(_SUBDOMAIN) if name.endswith(_SUBDOMAIN) else None
    return name, subdomain, _LOCAL.fullmatch(name) is not None
