"""The objects of one class of one Worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.errors import WorkerLoadError
from emulator.faults.sites import site_name
from emulator.objects.ids import IdMaker
from emulator.runtime.sdk.entrypoints import DurableObject

if TYPE_CHECKING:
    from emulator.isolate import Isolate, Worker
    from emulator.objects.bindings import DurableObjectId
    from emulator.objects.live import LiveObject
    from emulator.objects.sockets import Sockets
    from emulator.objects.stored import Stored


class Space:
    """A namespace: its ids, and which of its objects are in memory.

    `label` is the binding by which faults, traces and tests call it; `key` makes its ids.
    """

    worker: Worker

    def __init__(
        self, script: str, class_name: str, label: str, *, sqlite: bool, cls: type | None
    ) -> None:
        self.script = script
        self.class_name = class_name
        self.label = label
        self.sqlite = sqlite
        self.live: dict[str, LiveObject] = {}
        # By id: what objects hold whether they are in memory or not.
        self.sockets: dict[str, Sockets] = {}
        self._cls = cls
        self._sites: dict[str, str] = {}
        self.key = ""

    def close(self) -> None:
        """Let go of the emulator, which is closed."""
        self.live.clear()
        self.sockets.clear()
        if hasattr(self, "worker"):
            del self.worker

    def set_key(self, key: str) -> None:
        """Give it the key that its ids are made with."""
        if key != self.key:
            self.key = key
            self._makers: dict[str, IdMaker] = {}

    def ids(self, jurisdiction: str = "") -> IdMaker:
        """What makes its ids, those of a jurisdiction apart."""
        maker = self._makers.get(jurisdiction)
        if maker is None:
            maker = self._makers[jurisdiction] = IdMaker(self.key, jurisdiction)
        return maker

    def site(self, operation: str) -> str:
        """The fault site of a storage operation."""
        site = self._sites.get(operation)
        if site is None:
            site = self._sites[operation] = site_name("storage", self.label, operation)
        return site

    def subject(self, stored: Stored) -> str:
        """What traces call an object: `object ROOMS lobby`."""
        return f"object {self.label} {stored.id if stored.name is None else stored.name}"

    def id_of(self, stored: Stored) -> DurableObjectId:
        """The id of an object, as its own code sees it."""
        from emulator.objects.bindings import DurableObjectId

        return DurableObjectId(stored.id, stored.name)

    def class_in(self, isolate: Isolate) -> type[Any]:
        """The class in an isolate; raises `WorkerLoadError` if the Worker does not export it."""
        if self._cls is not None:
            return self._cls
        return object_class(isolate, self.class_name, self.label)


def object_class(isolate: Isolate, name: str, binding: str) -> type[Any]:
    """The class of objects that a binding names; raises `WorkerLoadError` if there is none."""
    script = isolate.script
    cls = script.named.get(name)
    if cls is None or not issubclass(cls, DurableObject):
        found = [name for name, cls in script.named.items() if issubclass(cls, DurableObject)]
        raise WorkerLoadError(
            f"the binding {binding} needs {name}, a DurableObject that the Worker "
            f"{isolate.worker.name} exports; it exports: {', '.join(found) or 'none'} (wrangler: "
            "Your Worker depends on the following Durable Objects, which are not exported in your "
            f"entrypoint file: {name}.)"
        )
    return cls
