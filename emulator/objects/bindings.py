"""What user code has of Durable Objects: namespaces, ids and stubs (workerd, `api/actor.c++`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.bindings import calls
from emulator.objects import texts
from emulator.objects.ids import normalised
from emulator.rpc.stub import EXTRA_HANDLERS, HANDLERS, Fetcher
from emulator.runtime.host import current
from emulator.runtime.js_text import display
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from emulator.objects.service import Objects
    from emulator.objects.space import Space
    from emulator.objects.target import ObjectTarget

_NAMESPACE: Final = "DurableObjectNamespace"
_JURISDICTIONS: Final = ("eu", "fedramp", "us")
_ROUTING: Final = ("primary-only",)
_NO_EVENTS: Final = (
    "workers-emulator hands no {name} event to a Durable Object: with the compatibility flag "
    f"{EXTRA_HANDLERS} `{{name}}` is no method of its class, but an event for its handler. The "
    "flag is experimental and cannot be deployed; without it the method is called"
)


class DurableObjectId(HostObject):
    """The id of an object; its name where it was made from one."""

    js_class = "DurableObjectId"
    js_members = frozenset({"toString", "equals", "name", "jurisdiction"})

    def __init__(self, id: str, name: str | None = None, jurisdiction: str = "") -> None:
        self.id = id
        self._name = name
        self._jurisdiction = jurisdiction

    @property
    def known_name(self) -> str | None:
        """The name it was made from."""
        return self._name

    @property
    def name(self) -> Any:
        """The name it was made from, or undefined."""
        return UNDEFINED if self._name is None else self._name

    @property
    def jurisdiction(self) -> Any:
        """Where the object may be, or undefined."""
        return self._jurisdiction or UNDEFINED

    def toString(self) -> str:
        """Its 64 digits."""
        return self.id

    def __str__(self) -> str:
        return self.id

    def equals(self, other: Any = UNDEFINED) -> bool:
        """Whether this is the id of the same object."""
        if not isinstance(other, DurableObjectId):
            raise texts.wrong_type("equals", self.js_class, self.js_class)
        return self.id == other.id


class DurableObjectStub(Fetcher):
    """A stub for an object: its methods by name, `fetch`, its id and name."""

    js_class = "DurableObject"
    js_members = frozenset({"fetch", "id", "name"})
    target: ObjectTarget

    @property
    def id(self) -> DurableObjectId:
        """The id of the object."""
        return self.target.id

    @property
    def name(self) -> Any:
        """The name of the object, or undefined."""
        return self.target.id.name

    def js_lookup(self, name: str) -> Any:
        """Return a member, or the method of that name."""
        if name in HANDLERS and EXTRA_HANDLERS in current().flags:
            raise AttributeError(_NO_EVENTS.format(name=name))
        return super().js_lookup(name)

    def transferred(self, sender: Any) -> HostObject:
        """A stub of the other side's own for the same object."""
        return DurableObjectStub(self.target.renewed())


class DurableObjectNamespace(HostObject):
    """A binding to the objects of a class."""

    js_class = _NAMESPACE
    js_members = frozenset(
        {
            *("newUniqueId", "idFromName", "idFromString"),
            *("get", "getByName", "jurisdiction"),
        }
    )

    def __init__(
        self, binding: str, space: Space, objects: Objects, jurisdiction: str = ""
    ) -> None:
        self._binding = binding
        self._space = space
        self._objects: Objects | None = objects
        self._jurisdiction = jurisdiction

    def disconnect(self) -> None:
        """Let go of the emulator, which is closed."""
        self._objects = None

    def newUniqueId(self, options: Any = UNDEFINED) -> DurableObjectId:
        """A new id, at random."""
        wanted = options.get("jurisdiction", UNDEFINED) if hasattr(options, "get") else UNDEFINED
        chosen = self._jurisdiction
        if wanted is not UNDEFINED and wanted is not None:
            chosen = self._checked(wanted)
        random = self._live.random_bytes()
        return DurableObjectId(self._space.ids(chosen).unique(random), None, chosen)

    def idFromName(self, name: Any = UNDEFINED) -> DurableObjectId:
        """The id that belongs to a name."""
        return self._named(name, "idFromName")

    def idFromString(self, id: Any = UNDEFINED) -> DurableObjectId:
        """The id that these 64 digits are."""
        if id is UNDEFINED:
            raise texts.wrong_type("idFromString", "string", _NAMESPACE)
        digits = normalised(display(id))
        if digits is None:
            raise JsException("TypeError", texts.BAD_ID)
        for chosen in (self._jurisdiction,) if self._jurisdiction else ("", *_JURISDICTIONS):
            if self._space.ids(chosen).has_made(digits):
                return DurableObjectId(digits, None, chosen)
        raise JsException("TypeError", texts.FOREIGN_ID)

    def get(self, id: Any = UNDEFINED, options: Any = UNDEFINED) -> DurableObjectStub:
        """The stub for an id; a location hint is accepted."""
        if not isinstance(id, DurableObjectId):
            raise texts.wrong_type("get", "DurableObjectId", _NAMESPACE)
        if self._jurisdiction and id.jurisdiction != self._jurisdiction:
            raise JsException("TypeError", texts.OTHER_JURISDICTION)
        return self._stub(id, options)

    def getByName(self, name: Any = UNDEFINED, options: Any = UNDEFINED) -> DurableObjectStub:
        """The stub for a name."""
        return self._stub(self._named(name, "getByName"), options)

    def jurisdiction(self, jurisdiction: Any = UNDEFINED) -> DurableObjectNamespace:
        """The namespace with objects in one jurisdiction only."""
        chosen = "" if jurisdiction in (UNDEFINED, None) else self._checked(jurisdiction)
        return DurableObjectNamespace(self._binding, self._space, self._live, chosen)

    @property
    def _live(self) -> Objects:
        calls.caller_of()
        if self._objects is None:
            raise RuntimeError(f"the emulator that {self._binding} belongs to is closed")
        return self._objects

    def _named(self, name: Any, method: str) -> DurableObjectId:
        if name is UNDEFINED:
            raise texts.wrong_type(method, "string", _NAMESPACE)
        text = name if isinstance(name, str) else display(name)
        return DurableObjectId(
            self._space.ids(self._jurisdiction).from_name(text), text, self._jurisdiction
        )

    def _stub(self, id: DurableObjectId, options: Any) -> DurableObjectStub:
        if hasattr(options, "get"):
            mode = options.get("routingMode", UNDEFINED)
            if mode is not UNDEFINED and mode not in _ROUTING:
                raise JsException("RangeError", f"unknown routingMode: {display(mode)}")
        return DurableObjectStub(self._live.target(self._binding, self._space, id))

    def _checked(self, jurisdiction: Any) -> str:
        if self._live.kernel.profile == "miniflare":
            raise JsException("Error", texts.NO_JURISDICTIONS)
        if jurisdiction not in _JURISDICTIONS:
            known = ", ".join(_JURISDICTIONS)
            error = JsException("TypeError", f"unknown jurisdiction: {display(jurisdiction)}")
            error.add_note(f"emulator: production's own text is not known; it knows {known}")
            raise error
        return str(jurisdiction)
