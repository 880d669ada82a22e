"""The Durable Objects of one emulator: namespaces, objects in memory, and what lasts of them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from emulator.clock import moment
from emulator.objects import texts
from emulator.objects.alarm_clock import AlarmClock
from emulator.objects.bindings import DurableObjectNamespace
from emulator.objects.live import LiveObject
from emulator.objects.sockets import Sockets
from emulator.objects.space import Space
from emulator.objects.state import State
from emulator.objects.stored import Stored, Unchanged
from emulator.objects.target import ObjectTarget, site_of
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from emulator.isolate import Isolate, Worker
    from emulator.kernel import Kernel
    from emulator.objects.bindings import DurableObjectId
    from emulator.objects.database import ObjectDatabase
    from emulator.objects.stored import Alarm, Changes
    from emulator.sql import DatabaseFolder
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

Record = Any


class Objects:
    """Durable Objects; what tests see of a namespace is `control.DurableObjects`.

    They run in isolates of their own, apart from those of their Worker: one for all objects of a
    Worker, and a new one for those that come to life after an object was evicted or lost its power.
    """

    def __init__(
        self, kernel: Kernel, workers: Sequence[WorkerConfig], folder: DatabaseFolder | None
    ) -> None:
        self.kernel = kernel
        self.state = State()
        self.alarms = AlarmClock(self)
        self.spaces = _spaces(workers)
        # By the names that tests use: the first Worker that has a binding of this name counts.
        self.named: dict[str, tuple[str, Space]] = {}
        self._workers = workers
        self._folder = folder
        self._namespaces: list[DurableObjectNamespace] = []
        # Weak: user code may keep stubs, and make as many as it likes.
        self._targets: WeakSet[ObjectTarget] = WeakSet()
        self._isolates: dict[str, Isolate] = {}
        self._databases: dict[tuple[str, str], ObjectDatabase] = {}
        self._sites: dict[tuple[str, str], str] = {}
        self._prepare()
        kernel.pending.append(self._describe_pending)

    def _prepare(self) -> None:
        """Let all migrations have happened, and give the namespaces their keys."""
        for config in self._workers:
            for move in config.objects.moves:
                self.state.move(config.name, move)
        self._set_keys()

    def _set_keys(self) -> None:
        for space in self.spaces.values():
            space.set_key(self.state.key_of(space.script, space.class_name))

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The namespaces of a Worker, as far as their own Workers are here."""
        found: dict[str, HostObject] = {}
        for one in config.objects.bindings:
            space = self.spaces.get((one.script, one.class_name))
            if space is not None:
                namespace = DurableObjectNamespace(one.binding, space, self)
                found[one.binding] = namespace
                self._namespaces.append(namespace)
                self.named.setdefault(one.binding, (config.name, space))
        return found

    def add(self, worker: Worker) -> None:
        """The Worker that has the classes of some namespaces."""
        for space in self.spaces_of(worker):
            space.worker = worker

    def spaces_of(self, worker: Worker) -> list[Space]:
        """The namespaces whose classes a Worker has."""
        return [space for space in self.spaces.values() if space.script == worker.name]

    def exports(self, worker: Worker) -> dict[str, HostObject]:
        """The namespaces whose classes a Worker has, by class: what `ctx.exports` has of them."""
        found: dict[str, HostObject] = {}
        for space in self.spaces_of(worker):
            namespace = DurableObjectNamespace(space.label, space, self)
            self._namespaces.append(namespace)
            found[space.class_name] = namespace
        return found

    # -- calls -----------------------------------------------------------------------------------

    def target(self, binding: str, space: Space, id: DurableObjectId) -> ObjectTarget:
        """Where the calls of a new stub go."""
        target = ObjectTarget(self, space, id, binding)
        self._targets.add(target)
        return target

    def site(self, binding: str, method: str) -> str:
        """The fault site of calls of a method."""
        site = self._sites.get((binding, method))
        if site is None:
            site = self._sites[binding, method] = site_of(binding, method)
        return site

    def live(self, space: Space, id: DurableObjectId) -> LiveObject:
        """The object in memory; it comes to life if it is not. Raises `WorkerLoadError`."""
        live = space.live.get(id.id)
        if live is None:
            isolate = self._isolate(space.worker)
            stored = self.state.get(space.key, id.id)
            if stored is None:
                stored = Stored(id.id, id.known_name)
            live = space.live[id.id] = LiveObject(self, space, stored, isolate)
        return live

    def _isolate(self, worker: Worker) -> Isolate:
        isolate = self._isolates.get(worker.name)
        if isolate is None:
            isolate = self._isolates[worker.name] = worker.another_isolate()
        return isolate

    def renew(self, worker: Worker) -> None:
        """Let objects that come to life from now on do so in fresh memory."""
        self._isolates.pop(worker.name, None)

    def random_bytes(self) -> bytes:
        """What a new id is made of."""
        return bytes.fromhex(self.kernel.hexadecimal(32))

    def sockets_of(self, live: LiveObject) -> Sockets:
        """The WebSockets that an object holds."""
        known, id = live.space.sockets, live.stored.id
        if id not in known:
            known[id] = Sockets(self, live.space, live.space.id_of(live.stored))
        return known[id]

    def kept_by(self, space: Space, id: str) -> Stored | None:
        """What an object keeps, if it does or is in memory."""
        live = space.live.get(id)
        return live.stored if live is not None else self.state.get(space.key, id)

    # -- what lasts ------------------------------------------------------------------------------

    def commit(self, live: LiveObject) -> JsException | None:
        """Make durable what a turn wrote; the error where the database forbids it."""
        space, stored = live.space, live.stored
        changes = stored.changes()
        if stored.has_database:
            database = self.database(space, stored)
            if changes is not None or database.is_written:
                # All that came before is durable first: what lasts was so at some moment.
                self.kernel.commit()
                problem = database.keep(stored, changes)
                if problem is not None:
                    return problem
        if changes is not None:
            stored.keep_changes()
            self.state.keep(space.key, stored, changes)
            self._tell(live, changes)
        return None

    def _tell(self, live: LiveObject, changes: Changes) -> None:
        facts: dict[str, Any] = {}
        if changes.puts:
            facts["put"] = [key for key, _ in changes.puts]
        if changes.deletes:
            facts["deleted"] = changes.deletes
        if facts:
            self.kernel.record("object_stored", live.subject, **facts)
        if not isinstance(changes.alarm, Unchanged):
            time = None if changes.alarm is None else moment(changes.alarm.time)
            self.kernel.record("alarm_set", live.subject, time=time)
            self.alarms.arm(live.space, live.stored)

    def put_alarm(self, space: Space, stored: Stored, alarm: Alarm | None) -> None:
        """Make durable what the platform made of an alarm."""
        self.state.put_alarm(space.key, stored, alarm)
        if stored.has_database:
            self.kernel.commit()
            self.database(space, stored).put_alarm(stored, alarm)

    def commit_level(self, live: LiveObject) -> JsException | None:
        """Keep what a transaction wrote; the error where the database forbids it."""
        live.stored.commit()
        database = self._databases.get((live.space.key, live.stored.id))
        return None if database is None else database.commit_level(live.stored.depth)

    def rollback(self, live: LiveObject) -> None:
        """Undo what a transaction wrote."""
        live.stored.rollback()
        database = self._databases.get((live.space.key, live.stored.id))
        if database is not None:
            database.rollback_level(live.stored.depth)

    def drop(self, live: LiveObject) -> None:
        """An incarnation is over: what its last turn wrote is undone."""
        space, stored = live.space, live.stored
        stored.drop_changes()
        database = self._databases.get((space.key, stored.id))
        if database is not None:
            database.rollback_level(0)
        if space.live.get(stored.id) is live:
            del space.live[stored.id]

    # -- databases -------------------------------------------------------------------------------

    def open_database(self, live: LiveObject) -> ObjectDatabase:
        """The database of an object that uses SQL now."""
        space, stored = live.space, live.stored
        if not stored.has_database:
            path = self._file(space.key, stored.id)
            if path is not None:
                _remove(path)  # nothing that the state file knows of
            self.state.give_database(space.key, stored)
        return self.database(space, stored)

    def empty_database(self, live: LiveObject) -> None:
        """Drop the tables of an object."""
        if live.stored.has_database:
            self.database(live.space, live.stored).empty(live.stored)

    def database(self, space: Space, stored: Stored) -> ObjectDatabase:
        """The database of an object that has one."""
        return self._database(space.key, stored.id)

    def _database(self, key: str, id: str) -> ObjectDatabase:
        database = self._databases.get((key, id))
        if database is None:
            from emulator.objects.database import ObjectDatabase

            database = ObjectDatabase(self._file(key, id), self.kernel)
            self._databases[key, id] = database
        return database

    def _file(self, key: str, id: str) -> Path | None:
        return None if self._folder is None else self._folder.file("objects", key, id)

    # -- life ------------------------------------------------------------------------------------

    def all_live(self) -> list[LiveObject]:
        """All objects in memory, in the order of their namespaces and their coming to life."""
        return [live for space in self.spaces.values() for live in space.live.values()]

    def evict(self) -> None:
        """Drop the memory of every object: at once, or when what it does is done."""
        for live in self.all_live():
            live.evict()
        self._isolates.clear()

    def reload(self, worker: Worker) -> None:
        """A Worker has new code: each object gets it when nothing goes on in it (docs: Durable
        Objects, "Code updates"), or at once where the config says so."""
        self.renew(worker)
        for space in self.spaces_of(worker):
            for sockets in space.sockets.values():
                sockets.drop()
            for live in list(space.live.values()):
                if worker.config.objects.updates_at_once and live.busy:
                    live.reset(JsException("Error", texts.UPDATED))
                else:
                    live.evict()

    def crash(self) -> None:
        """Cut the power of every object."""
        for live in self.all_live():
            live.crash()
        for space in self.spaces.values():
            for sockets in space.sockets.values():
                sockets.drop()
        self._isolates.clear()

    def take_records(self) -> list[Record]:
        """The records of all changes since the last call."""
        return self.state.take_records()

    def snapshot(self) -> Record:
        """The whole state, but for what is in databases."""
        return self.state.snapshot()

    @property
    def stored(self) -> int:
        """How many values there are."""
        return self.state.stored

    def rebuild(self, snapshot: Record | None, records: Iterable[Record]) -> None:
        """Start again from stored state; overdue alarms run at once."""
        self.alarms.clear()
        self.state = State.rebuilt(snapshot, records)
        self._prepare()
        known = {(key, one.id): one for key, one in self.state.all() if one.has_database}
        for place, database in list(self._databases.items()):
            if place in known:
                database.restart()
            else:
                database.close()
                del self._databases[place]
        for place, stored in known.items():
            self._database(*place).load(stored)
        self._clean(list(known))
        self._arm_all()

    def _clean(self, known: Sequence[tuple[str, str]]) -> None:
        """Remove what is left of classes that are gone."""
        if self._folder is None or self._folder.path is None:
            return
        folder = self._folder.path / "objects"
        if not folder.exists():
            return
        kept = [path.parent for path in (self._file(*place) for place in known) if path is not None]
        for inner in sorted(folder.iterdir()):
            if inner not in kept:
                shutil.rmtree(inner)

    def _arm_all(self) -> None:
        for space in self.spaces.values():
            for stored in self.state.objects(space.key):
                self.alarms.arm(space, stored)

    def reset(self) -> None:
        """Forget all objects."""
        self._stop()
        for key, id in self._databases:
            path = self._file(key, id)
            if path is not None:
                _remove(path)
        self._databases.clear()
        self.rebuild(None, [])

    def close(self) -> None:
        """Let go of what user code may still hold."""
        self._stop()
        while self._namespaces:
            self._namespaces.pop().disconnect()
        for target in self._targets:  # in no order that could be seen
            target.disconnect()
        for space in self.spaces.values():
            space.close()

    def _stop(self) -> None:
        for live in self.all_live():
            live.stop()
        for space in self.spaces.values():
            space.sockets.clear()
        self._isolates.clear()
        for database in self._databases.values():
            database.close()

    def _describe_pending(self) -> list[str]:
        return [line for live in self.all_live() for line in live.describe_pending()]


def _spaces(workers: Sequence[WorkerConfig]) -> dict[tuple[str, str], Space]:
    """The namespaces of all Workers that are here, named as their own Workers name them."""
    here = {worker.name: worker for worker in workers}
    bound = [(one, worker.name) for worker in workers for one in worker.objects.bindings]
    spaces: dict[tuple[str, str], Space] = {}
    for one, _ in sorted(bound, key=lambda pair: pair[0].script != pair[1]):
        owner = here.get(one.script)
        place = one.script, one.class_name
        if owner is not None and place not in spaces:
            is_sqlite = owner.objects.sqlite.get(one.class_name, True)
            spaces[place] = Space(*place, one.binding, sqlite=is_sqlite, cls=one.cls)
    return spaces


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
