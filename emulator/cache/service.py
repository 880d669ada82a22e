"""The caches of one emulator, which all its Workers share.

A cache keeps nothing for certain: an entry may be evicted at any time, and each of Cloudflare's
data centers has its own. So nothing of it is durable here, and a restart finds it empty.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from emulator.bindings import calls
from emulator.bindings.outbound import read_body
from emulator.cache import rules
from emulator.cache.answers import answer
from emulator.cache.store import Entry, Store
from emulator.faults.sites import site_name
from emulator.runtime.host import WebResponse
from emulator.values import UNDEFINED

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from emulator.kernel import Kernel
    from emulator.runtime.host import CacheLookup
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

_CRASHES: Final = ("crash_before", "crash_after")
_WITH_EVICT: Final = ("evict", *_CRASHES)
_SECOND: Final = 1_000_000
DEFAULT: Final = "default"


class Caches:
    """The service behind `caches`; implements `emulator.runtime.host.CacheService`."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._stores: dict[str | None, Store] = {}

    @property
    def now(self) -> int:
        """Virtual now, in microseconds since the epoch."""
        return self._kernel.now

    def store(self, cache: str | None) -> Store:
        """The entries of a cache."""
        return self._stores.setdefault(cache, Store())

    @property
    def names(self) -> list[str]:
        """The names of the caches that were opened and used, the default one left out."""
        return [name for name in self._stores if name is not None]

    # -- calls -----------------------------------------------------------------------------------

    def match(self, cache: str | None, lookup: CacheLookup) -> asyncio.Future[WebResponse | None]:
        """Ask for an entry."""
        store = self.store(cache)

        def perform(others: tuple[str, ...]) -> tuple[WebResponse | None, str]:
            if "evict" in others:
                store.delete(lookup.key, self.now)
                return None, "evicted"
            entry = store.get(lookup.key, self.now)
            if entry is None:
                return None, "miss"
            return self._answer(entry, lookup), "hit"

        def available() -> Collection[str]:
            return _WITH_EVICT if store.get(lookup.key, self.now) is not None else _CRASHES

        return self._call(cache, "match", lookup, perform, available)

    def put(self, cache: str | None, lookup: CacheLookup, response: WebResponse) -> Awaitable[Any]:
        """Store a response, if it may be stored."""
        calls.caller_of().effect("a response put into a cache")
        if not isinstance(response.body, bytes):
            return self._put_stream(cache, lookup, response)
        return self._put(cache, lookup, response, response.body, has_length=True)

    async def _put_stream(
        self, cache: str | None, lookup: CacheLookup, response: WebResponse
    ) -> Any:
        # Here, and not in a task of the emulator's: a stream's source is the Worker's own code.
        body = await read_body(response.body)
        has_length = any(name == "content-length" for name, _ in response.headers)
        return await self._put(cache, lookup, response, body, has_length=has_length)

    def _put(
        self,
        cache: str | None,
        lookup: CacheLookup,
        response: WebResponse,
        body: bytes,
        *,
        has_length: bool,
    ) -> asyncio.Future[Any]:
        store = self.store(cache)

        def perform(_: tuple[str, ...]) -> tuple[Any, str]:
            now = self.now
            verdict = rules.judge(
                response.status,
                _with_length(response.headers, len(body)) if has_length else response.headers,
                len(body),
                lookup.headers,
                now,
                strict=self._is_strict,
            )
            if verdict.refusal:
                return UNDEFINED, f"not stored: {verdict.refusal}"
            entry = Entry(
                *(lookup.url, response.status, response.status_text, verdict.headers, body),
                # The simulator counts the bytes of what comes without a length.
                has_length or not self._is_strict,
                now,
                now + verdict.lifetime,
            )
            store.put(lookup.key, entry)
            return UNDEFINED, "stored"

        return self._call(cache, "put", lookup, perform)

    def delete(self, cache: str | None, lookup: CacheLookup) -> asyncio.Future[bool]:
        """Delete an entry."""
        calls.caller_of().effect("a deletion from a cache")

        def perform(_: tuple[str, ...]) -> tuple[bool, str]:
            found = self.store(cache).delete(lookup.key, self.now)
            return found, "deleted" if found else "miss"

        return self._call(cache, "delete", lookup, perform)

    @property
    def _is_strict(self) -> bool:
        return self._kernel.profile == "production"

    def _answer(self, entry: Entry, lookup: CacheLookup) -> WebResponse:
        age = (("age", str((self.now - entry.stored) // _SECOND)),) if self._is_strict else ()
        headers = tuple(
            pair
            for pair in entry.headers
            if pair[0] != "cf-cache-status" and not (age and pair[0] == "age")
        )
        shown = entry._replace(headers=(*headers, *age, ("cf-cache-status", "HIT")))
        found = answer(shown, lookup.headers)
        response = WebResponse(found.status, found.status_text, found.headers, found.body)
        if found.status == 416:
            return replace(response, headers=(*found.headers, ("cf-cache-status", "HIT")))
        return response

    def _call(
        self,
        cache: str | None,
        operation: str,
        lookup: CacheLookup,
        perform: Callable[[tuple[str, ...]], tuple[Any, str]],
        available: Callable[[], Collection[str]] | None = None,
    ) -> asyncio.Future[Any]:
        """Make a call, and tell the trace of it and of what became of it."""
        invocation, name = calls.caller_of(), DEFAULT if cache is None else cache

        def traced(others: tuple[str, ...]) -> Any:
            result, outcome = perform(others)
            facts = {"call": operation, "url": lookup.url, "outcome": outcome}
            self._kernel.record("cache", f"cache {name}", **facts, by=invocation.subject)
            return result

        return calls.call(
            invocation,
            traced,
            site=site_name("cache", name, operation),
            lost=_never,
            available=available,
        )

    # -- life ------------------------------------------------------------------------------------

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """No names on `env`: caches are global."""
        return {}

    def take_records(self) -> list[Any]:
        """Nothing lasts."""
        return []

    def snapshot(self) -> list[Any]:
        """Nothing lasts."""
        return []

    def rebuild(self, snapshot: Any, records: Iterable[Any]) -> None:
        """A restart finds every cache empty."""
        self.reset()

    @property
    def stored(self) -> int:
        """How much of it lasts."""
        return 0

    def reset(self) -> None:
        """Empty every cache."""
        for store in self._stores.values():
            store.clear()

    def close(self) -> None:
        """Let go of what is stored."""
        self.reset()


def _with_length(headers: rules.Pairs, length: int) -> rules.Pairs:
    rest = tuple(pair for pair in headers if pair[0] != "content-length")
    return (*rest, ("content-length", str(length)))


def _never() -> Exception:
    raise AssertionError("unreachable: no answer of a cache is lost")
