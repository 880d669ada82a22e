"""A cache in a test's hand: `emulator.caches["default"]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from emulator.cache.service import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.cache.service import Caches
    from emulator.cache.store import Store


class CacheControl:
    """One cache as tests use it; its methods are plain functions and no fault sites."""

    def __init__(self, service: Caches, name: str) -> None:
        self._service = service
        self.name = name

    @property
    def _store(self) -> Store:
        return self._service.store(None if self.name == DEFAULT else self.name)

    @property
    def urls(self) -> list[str]:
        """The URLs under which there is something, in the order in which it was put."""
        return [entry.url for entry in self._store.entries(self._service.now)]

    def get(self, url: str) -> httpx.Response | None:
        """Return what is stored under a URL, None where there is nothing."""
        entry = self._store.get(str(httpx.URL(url)), self._service.now)
        if entry is None:
            return None
        return httpx.Response(entry.status, headers=list(entry.headers), content=entry.body)

    def purge(self) -> None:
        """Empty the cache, as "purge everything" does."""
        self._store.clear()


class CacheControls:
    """The caches of an emulator by name; `default` is the one that `caches.default` is."""

    def __init__(self, service: Caches) -> None:
        self._service = service

    def __getitem__(self, name: str) -> CacheControl:
        return CacheControl(self._service, name)

    def __iter__(self) -> Iterator[str]:
        yield DEFAULT
        yield from self._service.names
