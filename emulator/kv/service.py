"""The KV namespaces of one emulator: which there are, who binds to them, what lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.kv.store import Entry, Namespace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.kernel import Kernel, Profile
    from emulator.kv.bindings import KvNamespace
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

Record = list[Any]


class Kv:
    """KV namespaces, by their ids; what tests see of one is `control.KvControl`.

    A record is a namespace's id, the time, a key, and the entry that was stored there; None is a
    delete.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.clock = kernel.clock
        self._bindings: list[KvNamespace] = []
        self._records: list[Record] = []
        self._ids: dict[Namespace, str] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.names: dict[str, str] = {}  # binding or id -> id

    @property
    def now(self) -> int:
        """Virtual now, in microseconds since the epoch."""
        return self._kernel.now

    @property
    def profile(self) -> Profile:
        """Which service is emulated."""
        return self._kernel.profile

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The namespaces of a Worker, by binding."""
        if not config.namespaces:
            return {}
        from emulator.kv.bindings import KvNamespace

        found = {}
        for one in config.namespaces:
            self.names.setdefault(one.binding, one.id)
            self.names.setdefault(one.id, one.id)
            found[one.binding] = KvNamespace(one.binding, self.namespace(one.id), self)
        self._bindings += found.values()
        return {**found}

    def namespace(self, id: str) -> Namespace:
        """The namespace of an id, which need not have been there before."""
        namespace = self.namespaces.get(id)
        if namespace is None:
            namespace = self.namespaces[id] = Namespace()
            self._ids[namespace] = id
        return namespace

    def record(self, binding: str, facts: dict[str, Any]) -> None:
        """Write a call to the trace; the facts are the event's own."""
        self._kernel.record_dict("kv", f"kv {binding}", facts)

    def put(self, namespace: Namespace, key: str, entry: Entry) -> None:
        """Store an entry."""
        namespace.put(key, entry, self.clock.now)
        self._records.append([self._ids[namespace], self.clock.now, key, list(entry)])

    def delete(self, namespace: Namespace, key: str) -> None:
        """Delete a key."""
        if namespace.delete(key, self.clock.now):
            self._records.append([self._ids[namespace], self.clock.now, key, None])

    # -- life ------------------------------------------------------------------------------------

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        records, self._records = self._records, []
        return records

    def snapshot(self) -> Record:
        """The whole state: each namespace's id and what is in it."""
        return [
            [id, one.snapshot(self.clock.now)] for id, one in self.namespaces.items() if len(one)
        ]

    def rebuild(self, snapshot: Record | None, records: Iterable[Record]) -> None:
        """Start again from stored state; namespaces that no Worker binds to any more are kept."""
        self._clear()
        for id, rows in snapshot or ():
            self.namespace(id).restore(rows)
        for id, at, key, entry in records:
            if entry is None:
                self.namespace(id).delete(key, at)
            else:
                self.namespace(id).put(key, Entry(*entry), at)

    def _clear(self) -> None:
        """Empty every namespace; bindings hold them."""
        for namespace in self.namespaces.values():
            namespace.clear()

    @property
    def stored(self) -> int:
        """How many keys there are."""
        return sum(map(len, self.namespaces.values()))

    def reset(self) -> None:
        """Empty every namespace."""
        self._records.clear()
        self._clear()

    def close(self) -> None:
        """Let go of what user code may still hold."""
        while self._bindings:
            self._bindings.pop().disconnect()
