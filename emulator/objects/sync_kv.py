"""`ctx.storage.kv`: values by key without promises, for objects that keep them in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.objects import texts
from emulator.objects.operations import serialised
from emulator.objects.options import range_of
from emulator.runtime.js_text import display
from emulator.values import UNDEFINED, HostObject, JsException, from_v8

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.objects.live import LiveObject
    from emulator.objects.operations import Operations
    from emulator.objects.stored import Range

_CLASS = "SyncKvStorage"


class SyncKvStorage(HostObject):
    """The same values as `ctx.storage` has; errors are raised."""

    js_class = _CLASS
    js_members = frozenset({"get", "list", "put", "delete"})

    def __init__(self, live: LiveObject, operations: Operations) -> None:
        self._live = live
        self._operations = operations
        self._list: ListIterator | None = None

    def get(self, key: Any = UNDEFINED) -> Any:
        """The value of a key."""
        return self._operations.get(self._key("get", key), site="kv.get")

    def put(self, *given: Any) -> object:
        """Store a value, undefined too."""
        name = self._key("put", given[0] if given else UNDEFINED)
        if len(given) < 2:
            raise texts.wrong_type("put", "JsValue", _CLASS, 2)
        data = serialised(given[1])
        self._operations.check_size(name, data)
        self._live.meet("kv.put", writes=True)
        self._live.stored.put(name, data)
        return UNDEFINED

    def delete(self, key: Any = UNDEFINED) -> Any:
        """Delete a key; whether it was there."""
        return self._operations.delete(self._key("delete", key), site="kv.delete")

    def list(self, options: Any = UNDEFINED) -> ListIterator:
        """An iterator over pairs of key and value; there is one at a time."""
        self._live.check_caller()
        wanted = range_of(options, of=_CLASS)
        self._live.meet("kv.list", writes=False)
        if self._list is not None:
            self._list.invalidated = True
        self._list = ListIterator(self._live, wanted)
        return self._list

    def _key(self, method: str, key: Any) -> str:
        self._live.check_caller()
        if key is UNDEFINED:
            raise texts.wrong_type(method, "string", _CLASS)
        return display(key)


class ListIterator(HostObject):
    """Pairs of key and value, as they are when it comes to them."""

    js_class = "ListIterator"
    js_members = frozenset({"next"})

    def __init__(self, live: LiveObject, wanted: Range) -> None:
        self.invalidated = False
        self._live = live
        self._wanted = wanted

    def next(self, *_: Any) -> dict[str, Any]:
        """The next pair as `{done, value}`."""
        pair = self._pair()
        return {"done": pair is None, "value": UNDEFINED if pair is None else pair}

    def __iter__(self) -> Iterator[Any]:
        while (pair := self._pair()) is not None:
            yield pair

    def _pair(self) -> list[Any] | None:
        if self.invalidated:
            raise JsException("Error", texts.LIST_AGAIN)
        stored, wanted = self._live.stored, self._wanted
        if wanted.limit == 0:
            return None
        first = stored.keys(wanted._replace(limit=1))
        if not first:
            return None
        key = first[0]
        limit = None if wanted.limit is None else wanted.limit - 1
        bound = {"end": key} if wanted.backwards else {"start": None, "after": key}
        self._wanted = wanted._replace(limit=limit, **bound)
        return [key, from_v8(stored.values[key])]
