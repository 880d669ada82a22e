"""Durable Objects as tests use them: `emulator.durable_objects["ROOMS"]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from emulator.caller import TestBinding
from emulator.clock import moment
from emulator.objects.bindings import DurableObjectId, DurableObjectStub
from emulator.objects.ids import normalised
from emulator.pump import Goal
from emulator.runtime.proxies import wrap
from emulator.runtime.rpc import _FetcherWrapper
from emulator.values import from_v8
from emulator.values.plain import plain

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from datetime import datetime

    from emulator.caller import Caller
    from emulator.objects.service import Objects
    from emulator.objects.space import Space
    from emulator.objects.stored import Stored

# pytest leaves these frames out of a failing test's traceback.
__tracebackhide__ = True


@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """An object that is in memory or keeps something; `name` is None where it has only an id."""

    id: str
    name: str | None
    in_memory: bool


@dataclass(frozen=True, slots=True)
class SocketRecord:
    """A WebSocket that an object holds: its tags, and its attachment as plain Python."""

    tags: tuple[str, ...]
    attachment: Any


class Storage(Mapping[str, Any]):
    """What an object keeps: its values by key, in the order of the keys, as plain Python.

    It shows what is durable at the moment, and cannot be written to.
    """

    def __init__(self, objects: Objects, space: Space, id: str) -> None:
        self._objects = objects
        self._space = space
        self._id = id

    @property
    def _stored(self) -> Stored | None:
        return self._objects.kept_by(self._space, self._id)

    @property
    def _values(self) -> dict[str, bytes]:
        stored = self._stored
        return {} if stored is None else stored.committed[0]

    def __getitem__(self, key: str) -> Any:
        return plain(from_v8(self._values[key]))

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self))

    def sql(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """Read from the object's SQLite database: the rows, each a dict by column.

        Raises `ValueError` for SQL that writes, and for an object that has used none yet.
        """
        stored = self._stored
        if stored is None or not stored.has_database:
            raise ValueError(f"this object of {self._space.label} has used no SQL yet")
        return self._objects.database(self._space, stored).read(query, parameters)


class DurableObjects:
    """The objects of one binding. Each is named by its name, or by the 64 digits of its id."""

    def __init__(self, objects: Objects, binding: str, space: Space, caller: Caller) -> None:
        self._objects = objects
        self._space = space
        self._caller = caller
        self.binding = binding

    def get(self, name: str) -> Any:
        """A stub, whose methods and `fetch` the test may await; calls of it are no fault sites."""
        target = self._objects.target(self.binding, self._space, self._id(name))
        return TestBinding(self._caller, _FetcherWrapper(wrap(DurableObjectStub(target))))

    def storage(self, name: str) -> Storage:
        """What an object keeps."""
        return Storage(self._objects, self._space, self._id(name).id)

    def sockets(self, name: str) -> list[SocketRecord]:
        """The WebSockets that an object has accepted with `ctx.acceptWebSocket`, oldest first."""
        held = self._space.sockets.get(self._id(name).id)
        return [] if held is None else [SocketRecord(*facts) for facts in held.shown()]

    def alarm(self, name: str) -> datetime | None:
        """When the alarm of an object runs next, aware; None if there is none."""
        stored = self._stored(name)
        alarm = None if stored is None else stored.committed[1]
        if stored is None or alarm is None or alarm is stored.running:
            return None
        return moment(max(alarm.due, self._objects.kernel.now))

    @property
    def objects(self) -> list[ObjectRecord]:
        """All objects that are in memory or keep something."""
        space = self._space
        live = {id: one.stored for id, one in space.live.items()}
        kept = {one.id: one for one in self._objects.state.objects(space.key)}
        return [ObjectRecord(one.id, one.name, one.id in live) for one in {**kept, **live}.values()]

    async def run_alarm(self, name: str) -> bool:
        """Run the alarm of an object now, whenever it is due; whether there was one.

        Returns when the run is over. One that fails is tried again as usual.
        """
        stored = self._stored(name)
        if stored is None or stored.alarm is None:
            return False
        alarms = self._objects.alarms
        await self._act("run_alarm", lambda: alarms.run_now(self._space, stored))
        return True

    async def evict(self, name: str) -> None:
        """Drop the memory of an object, when what it does is done; what is durable stays."""
        live = self._space.live.get(self._id(name).id)
        if live is not None:
            await self._act("evict", live.evict)

    async def crash(self, name: str) -> None:
        """Cut the power of an object: its callers see a lost connection."""
        live = self._space.live.get(self._id(name).id)
        if live is not None:
            await self._act("crash", live.crash)

    async def _act(self, name: str, action: Callable[[], asyncio.Future[None] | None]) -> None:
        """Do something to an object, and run until it is done."""
        kernel = self._objects.kernel
        done: asyncio.Future[None] = kernel.loop.create_future()

        def act() -> None:
            over = action()
            if over is None:
                done.set_result(None)
            else:
                over.add_done_callback(lambda _: done.set_result(None))

        kernel.loop.kernel_soon(act)
        await kernel.pump.reach(Goal(f"{name}()", done.done))

    def _stored(self, name: str) -> Stored | None:
        return self._objects.kept_by(self._space, self._id(name).id)

    def _id(self, name: str) -> DurableObjectId:
        ids = self._space.ids()
        digits = normalised(name)
        if digits is not None and ids.has_made(digits):
            stored = self._objects.kept_by(self._space, digits)
            return DurableObjectId(digits, None if stored is None else stored.name)
        return DurableObjectId(ids.from_name(name), name)

    def __repr__(self) -> str:
        return f"<Durable Objects of {self.binding}: {len(self.objects)}>"
