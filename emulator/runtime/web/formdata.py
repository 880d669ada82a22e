"""The JavaScript class `FormData`, and its two spellings on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.runtime.web import idl
from emulator.runtime.web.blob import Blob, File
from emulator.runtime.web.iterators import IterablePairs
from emulator.runtime.web.python_text import text_of
from emulator.values import UNDEFINED

if TYPE_CHECKING:
    from collections.abc import Iterable

Value = str | File
_VALUE_TYPES: Final = "File or Blob or string"


class FormData(IterablePairs):
    """Names with texts and files, in order."""

    js_class = "FormData"
    js_members = frozenset(
        ["append", "delete", "entries", "forEach", "get", "getAll", "has", "keys", "set", "values"]
    )

    def __init__(self, pairs: Iterable[tuple[str, Value]] = ()) -> None:
        self.pairs = list(pairs)

    @classmethod
    def js_new(cls) -> FormData:
        """Do `new FormData()`; arguments are ignored, as the runtime does."""
        return cls()

    def append(
        self,
        name: object = UNDEFINED,
        value: object = UNDEFINED,
        filename: object = UNDEFINED,
    ) -> object:
        """Add a value at the end; a Blob becomes a File."""
        text = _name("append", name)
        self.pairs.append((text, _value(text, value, filename)))
        return UNDEFINED

    def set(
        self,
        name: object = UNDEFINED,
        value: object = UNDEFINED,
        filename: object = UNDEFINED,
    ) -> object:
        """Give the first entry of that name this value and drop the others."""
        wanted = _name("set", name)
        entry = (wanted, _value(wanted, value, filename))
        where = next((i for i, (key, _) in enumerate(self.pairs) if key == wanted), None)
        if where is None:
            self.pairs.append(entry)
        else:
            rest = [pair for pair in self.pairs[where + 1 :] if pair[0] != wanted]
            self.pairs[where:] = [entry, *rest]
        return UNDEFINED

    def delete(self, name: object = UNDEFINED) -> object:
        """Drop the entries of that name."""
        wanted = _name("delete", name)
        self.pairs = [pair for pair in self.pairs if pair[0] != wanted]
        return UNDEFINED

    def get(self, name: object = UNDEFINED) -> Value | None:
        """Return the first value, None (null) if there is none."""
        wanted = _name("get", name)
        return next((value for key, value in self.pairs if key == wanted), None)

    def getAll(self, name: object = UNDEFINED) -> list[Value]:
        """Return every value of that name."""
        wanted = _name("getAll", name)
        return [value for key, value in self.pairs if key == wanted]

    def has(self, name: object = UNDEFINED) -> bool:
        """Tell whether there is an entry of that name."""
        wanted = _name("has", name)
        return any(key == wanted for key, _ in self.pairs)


def _name(method: str, name: object) -> str:
    if idl.missing(name):
        raise idl.wrong_argument(method, "FormData", 1, "string")
    return idl.string(name)


def _value(name: str, value: object, filename: object) -> Value:
    named = filename is not None and not idl.missing(filename)
    if isinstance(value, File) and not named:
        return value
    if isinstance(value, Blob):
        return File(value.data, idl.string(filename) if named else name, content_type=value.type)
    # The runtime wants a value here; Python's None is undefined, which it takes for the text.
    return text_of(value, f"the field {name!r} of a FormData")
