"""What user code sees of KV: `KvNamespace`.

Arguments are read when a call is made; the service is asked at the next turn of the loop, like
every call that leaves a Worker. Shapes and errors are those of the runtime (`workerd`, kv.c++).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from emulator.bindings import calls
from emulator.bindings.outbound import read_body
from emulator.faults.sites import site_name
from emulator.kv import arguments, rules
from emulator.kv.store import Entry
from emulator.runtime.web.response import Response
from emulator.runtime.web.streams import ReadableStream
from emulator.runtime.web.text import usv_string
from emulator.values import UNDEFINED, ArrayBuffer, HostObject, JsException, JsMap, from_json

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Collection

    from emulator.kv.arguments import Listing, Reading, Writing
    from emulator.kv.service import Kv
    from emulator.kv.store import Namespace, Page

_Keys: TypeAlias = "list[str]"

_SECOND: Final = 1_000_000
_WITHOUT_STALE: Final = ("crash_before", "fail", "crash_after", "lose_reply")
_WITH_STALE: Final = ("stale", *_WITHOUT_STALE)
_UNKNOWN_TYPE: Final = (
    'Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".'
)
# Properties that JavaScript takes for the places of a list.
_INDICES: Final = 2**32 - 1


class KvNamespace(HostObject):
    """A KV binding."""

    js_class = "KvNamespace"
    js_members = frozenset({"get", "getWithMetadata", "put", "delete", "list"})

    def __init__(self, binding: str, namespace: Namespace, service: Kv) -> None:
        self._binding = binding
        self._namespace = namespace
        self._service = service

    def disconnect(self) -> None:
        """Let go of the emulator: code whose power was cut may hold this for ever."""
        del self._namespace, self._service

    # -- reads -----------------------------------------------------------------------------------

    def get(self, key: Any = UNDEFINED, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """The value of a key, null if there is none; of a list of keys a Map."""
        return self._read("get", key, options)

    def getWithMetadata(
        self, key: Any = UNDEFINED, options: Any = UNDEFINED, *_: Any
    ) -> asyncio.Future[Any]:
        """The value and metadata of a key, or of a list of keys."""
        return self._read("getWithMetadata", key, options)

    def _read(self, operation: str, key: Any, options: Any) -> asyncio.Future[Any]:
        try:
            names, reading = arguments.names(key), arguments.reading(options)
            if isinstance(names, list):
                return self._read_many(operation, names, reading)
            rules.check_key("GET", names)
        except JsException as error:
            return calls.refuse(error)
        return self._read_one(operation, names, reading)

    def _read_one(self, operation: str, key: str, reading: Reading) -> asyncio.Future[Any]:
        def perform(*, stale: bool) -> Any:
            rules.check_cache_ttl("GET", reading.cache_ttl)
            entry = self._namespace.get(key, self._service.clock.now, stale=stale)
            value = None if entry is None else _converted(entry.value, reading.type)
            if operation == "get":
                return value
            return {"value": value, "metadata": _metadata(entry), "cacheStatus": None}

        return self._call(
            operation, "GET", perform, {"key": key}, lambda: self._differs(operation, [key])
        )

    def _read_many(self, operation: str, keys: _Keys, reading: Reading) -> asyncio.Future[Any]:
        def perform(*, stale: bool) -> Any:
            rules.check_keys(keys, reading.type or "text")
            rules.check_cache_ttl("GET_BULK", reading.cache_ttl)
            found = {
                key: self._namespace.get(key, self._service.clock.now, stale=stale) for key in keys
            }
            rules.check_size([entry.value for entry in found.values() if entry is not None])
            shape = _value if operation == "get" else _with_metadata
            return JsMap(
                (key, None if entry is None else shape(entry, reading.type))
                for key, entry in found.items()
                if not _is_index(key)
            )

        return self._call(
            operation, "GET_BULK", perform, {"keys": keys}, lambda: self._differs(operation, keys)
        )

    def _differs(self, operation: str, keys: _Keys) -> bool:
        """Whether a stale read would show something else."""
        now = self._service.clock.now
        if not self._namespace.is_fresh(now):
            return False
        shape = _only_value if operation == "get" else _value_and_metadata
        return any(
            shape(self._namespace.get(key, now)) != shape(self._namespace.get(key, now, stale=True))
            for key in keys
        )

    def list(self, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Keys in order, up to 1,000, and a cursor where there are more."""
        try:
            listing = arguments.listing(options)
        except JsException as error:
            return calls.refuse(error)

        def perform(*, stale: bool) -> Any:
            rules.check_limit(listing.limit)
            rules.check_length("GET", listing.prefix)
            return _listed(self._namespace.page(*self._place(listing), stale=stale))

        def differs() -> bool:
            try:
                return self._namespace.page_differs(*self._place(listing))
            except JsException:
                return False

        return self._call("list", "GET", perform, {"prefix": listing.prefix}, differs)

    def _place(self, listing: Listing) -> tuple[str, int, str, int]:
        strict = self._service.profile == "production"
        after = "" if listing.cursor is None else rules.key_of(listing.cursor, strict=strict)
        limit = listing.limit if listing.limit > 0 else rules.MOST_KEYS
        return listing.prefix, limit, after, self._service.clock.now

    # -- writes ----------------------------------------------------------------------------------

    def put(
        self,
        key: Any = UNDEFINED,
        value: Any = UNDEFINED,
        options: Any = UNDEFINED,
        *_: Any,
    ) -> Awaitable[Any]:
        """Store a value in place of what is there."""
        try:
            name, writing = usv_string(key), arguments.writing(options)
            rules.check_key("PUT", name)
            given = arguments.value(value)
        except JsException as error:
            return calls.refuse(error)
        if isinstance(given, ReadableStream):
            return self._put_stream(name, given, writing)
        return self._put(name, given, writing)

    async def _put_stream(self, key: str, stream: ReadableStream, writing: Writing) -> Any:
        # Here, and not in a task of the emulator's: a stream's source is the Worker's own code.
        return await self._put(key, await read_body(Response(stream).take()), writing)

    def _put(self, key: str, value: bytes, writing: Writing) -> asyncio.Future[Any]:
        def perform(*, stale: bool) -> Any:
            seconds = self._service.clock.now // _SECOND
            expiration = rules.expiration(writing.expiration, writing.expiration_ttl, seconds)
            rules.check_metadata(writing.metadata)
            rules.check_value(value)
            self._service.put(self._namespace, key, Entry(value, expiration, writing.metadata))
            return UNDEFINED

        return self._call("put", "PUT", perform, {"key": key})

    def delete(self, key: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Delete a key, if it is there."""
        try:
            name = usv_string(key)
            rules.check_key("DELETE", name)
        except JsException as error:
            return calls.refuse(error)

        def perform(*, stale: bool) -> Any:
            self._service.delete(self._namespace, name)
            return UNDEFINED

        return self._call("delete", "DELETE", perform, {"key": name})

    # -- the way to the service ------------------------------------------------------------------

    def _call(
        self,
        operation: str,
        method: str,
        perform: Callable[..., Any],
        facts: dict[str, Any],
        differs: Callable[[], bool] | None = None,
    ) -> asyncio.Future[Any]:
        """Make a call, and tell the trace of it; what `differs` may be read stale."""
        invocation = calls.caller_of()
        if differs is None and invocation.minds_effects:
            invocation.effect(f"a change in the KV namespace {self._binding}")
        told = {"call": operation, **facts, "by": invocation.subject}

        def traced(others: tuple[str, ...]) -> Any:
            stale = "stale" in others
            if stale:
                told["stale"] = True
            try:
                answer = perform(stale=stale)
            except JsException as error:
                told["error"] = error.message
                self._service.record(self._binding, told)
                raise
            self._service.record(self._binding, told)
            return answer

        def available() -> Collection[str]:
            return _WITH_STALE if differs is not None and differs() else _WITHOUT_STALE

        return calls.call(
            invocation,
            traced,
            site=site_name("kv", self._binding, operation),
            lost=lambda: rules.unreachable(method),
            available=available,
        )


def _converted(value: bytes, kind: str) -> Any:
    """A value as the type of a read has it."""
    if kind == "text":
        return value.decode(errors="replace")
    if kind == "json":
        return from_json(value.decode(errors="replace"))
    if kind == "arrayBuffer":
        return ArrayBuffer(value)
    if kind == "stream":
        return ReadableStream.of_bytes(value)
    raise JsException("TypeError", _UNKNOWN_TYPE)


def _value(entry: Entry, kind: str) -> Any:
    """The value of one of several keys."""
    try:
        return _converted(entry.value, kind or "text")
    except JsException:
        text = f"400 At least one of the requested keys corresponds to a non-{kind} value"
        raise rules.failed("GET_BULK", text) from None


def _with_metadata(entry: Entry, kind: str) -> Any:
    return {"value": _value(entry, kind), "metadata": _metadata(entry)}


def _metadata(entry: Entry | None) -> Any:
    return None if entry is None or entry.metadata is None else from_json(entry.metadata)


def _only_value(entry: Entry | None) -> Any:
    return None if entry is None else entry.value


def _value_and_metadata(entry: Entry | None) -> Any:
    return None if entry is None else (entry.value, entry.metadata)


def _is_index(key: str) -> bool:
    """Whether the runtime leaves a key out of its Map, as the place of a list (kv.c++)."""
    is_number = key.isascii() and key.isdigit() and (key == "0" or key[0] != "0")
    return is_number and len(key) <= 10 and int(key) < _INDICES


def _listed(page: Page) -> dict[str, Any]:
    keys = []
    for row in page.rows:
        found: dict[str, Any] = {"name": row.name}
        if row.expiration is not None:
            found["expiration"] = row.expiration
        if row.metadata is not None:
            found["metadata"] = from_json(row.metadata)
        keys.append(found)
    more = {"cursor": rules.cursor(page.rows[-1].name)} if page.more else {}
    return {"keys": keys, "list_complete": not page.more, **more, "cacheStatus": None}
