"""A KV namespace in a test's hand: `emulator.kv["CACHE"]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.clock import moment
from emulator.kv import arguments, rules
from emulator.kv.store import Entry
from emulator.runtime.rpc import to_canonical
from emulator.values import from_json

if TYPE_CHECKING:
    from datetime import datetime

    from emulator.caller import Caller
    from emulator.kv.service import Kv
    from emulator.kv.store import Namespace

# What is refused is shown at the line that gave it.
__tracebackhide__ = True

_SECOND = 1_000_000
# More than there can be.
_ALL = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """An entry of a namespace; `metadata` is what was given, `expiration` when it is gone."""

    key: str
    value: bytes
    metadata: Any
    expiration: datetime | None

    @property
    def text(self) -> str:
        """The value as text."""
        return self.value.decode()


class KvControl:
    """One namespace as tests use it; get it from `emulator.kv`, by its binding or its id.

    Its methods are plain functions and no fault sites, and show what was written last.
    """

    def __init__(self, service: Kv, name: str, caller: Caller) -> None:
        self._service = service
        self._caller = caller.converting()
        self.name = name

    @property
    def _namespace(self) -> Namespace:
        return self._service.namespace(self._service.names[self.name])

    @property
    def keys(self) -> list[str]:
        """The keys of all entries that have not expired, in order."""
        return [row.name for row in self._namespace.page("", _ALL, "", self._service.now).rows]

    @property
    def entries(self) -> list[StoredEntry]:
        """All entries that have not expired, in the order of their keys."""
        found = ((key, self._namespace.get(key, self._service.now)) for key in self.keys)
        return [_shown(key, entry) for key, entry in found if entry is not None]

    def get(self, key: str) -> StoredEntry | None:
        """Return an entry, None if there is none or it has expired."""
        entry = self._namespace.get(key, self._service.now)
        return None if entry is None else _shown(key, entry)

    def put(
        self,
        key: str,
        value: bytes | str,
        *,
        expiration: int | None = None,
        expiration_ttl: int | None = None,
        metadata: Any = None,
    ) -> None:
        """Store an entry now; times are in seconds, as KV has them.

        Raises `JsException` with KV's text for what KV refuses.

            emulator.kv["CACHE"].put("greeting", "hello", metadata={"language": "en"})
        """
        times = {"expiration": expiration, "expirationTtl": expiration_ttl}
        given = {name: seconds for name, seconds in times.items() if seconds is not None}
        options = {"metadata": metadata, **given}
        data = value.encode() if isinstance(value, str) else bytes(value)
        self._caller.inside(lambda: self._put(key, data, options))

    def _put(self, key: str, data: bytes, options: dict[str, Any]) -> None:
        writing = arguments.writing(to_canonical(options))
        rules.check_key("PUT", key)
        seconds = self._service.now // _SECOND
        expiration = rules.expiration(writing.expiration, writing.expiration_ttl, seconds)
        rules.check_metadata(writing.metadata)
        rules.check_value(data)
        self._service.put(self._namespace, key, Entry(data, expiration, writing.metadata))
        self._service.record(self.name, {"call": "put", "by": "test", "key": key})

    def delete(self, *keys: str) -> None:
        """Delete entries now, those that are there."""

        def delete() -> None:
            for key in keys:
                self._service.delete(self._namespace, key)
                self._service.record(self.name, {"call": "delete", "by": "test", "key": key})

        self._caller.inside(delete)

    def __repr__(self) -> str:
        return f"<KV namespace {self.name}>"


def _shown(key: str, entry: Entry) -> StoredEntry:
    expiration = entry.expiration
    return StoredEntry(
        key=key,
        value=entry.value,
        metadata=None if entry.metadata is None else from_json(entry.metadata),
        expiration=None if expiration is None else moment(expiration * _SECOND),
    )
