"""The JavaScript class `Headers`.

Names are kept in lower case and in the order they came; only reading sorts and joins them, so that
a request nobody asks about its headers costs a tuple. Error texts are those of workerd.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from emulator.runtime.web import idl
from emulator.runtime.web.iterators import JsIterator
from emulator.values import UNDEFINED, HostObject, JsException, LiteralMap, ProxiedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Pairs = tuple[tuple[str, str], ...]

# Control characters, the space and the separators; workerd lets any character above ASCII pass.
_NOT_A_NAME: Final = re.compile(r'[\x00-\x20"(),/:;<=>?@\[\\\]{}\x7f]')
_NOT_A_VALUE: Final = re.compile(r"[\x00\r\n]")
_WHITESPACE: Final = " \t\r\n"
_INIT_TYPES: Final = "Headers or Sequence or object"


def _name(value: object) -> str:
    text = idl.string(value)
    if _NOT_A_NAME.search(text):
        raise JsException("TypeError", "Invalid header name.")
    return text.lower()


def _value(value: object) -> str:
    text = idl.string(value).strip(_WHITESPACE)
    if _NOT_A_VALUE.search(text):
        raise JsException("TypeError", "Invalid header value.")
    return text


class Headers(HostObject):
    """A list of HTTP headers, as `Request.headers` and `Response.headers` hold it."""

    js_class = "Headers"
    js_members = frozenset(
        [
            "append",
            "delete",
            "entries",
            "forEach",
            "get",
            "getAll",
            "getSetCookie",
            "has",
            "keys",
            "set",
            "values",
        ]
    )

    def __init__(self, pairs: Iterable[tuple[str, str]] = (), *, immutable: bool = False) -> None:
        """Hold `pairs`, whose names are in lower case and whose values are valid already."""
        self._pairs: Iterable[tuple[str, str]] = pairs
        self._immutable = immutable

    @classmethod
    def js_new(cls, init: object = UNDEFINED) -> Headers:
        """Do `new Headers(init)`: a record, a sequence of pairs, another `Headers` or nothing."""
        headers = cls()
        if not idl.missing(init):
            headers._pairs = _read_init(init)
        return headers

    @classmethod
    def of_field(cls, init: object, owner: str) -> Headers:
        """Read the `headers` member of an options object of the type `owner`."""
        if isinstance(init, Headers):
            return init.copy()
        if not _is_init(init):
            raise idl.wrong_field("headers", owner, _INIT_TYPES)
        return cls.js_new(init)

    @property
    def pairs(self) -> Pairs:
        """Every header in the order it was added, nothing joined."""
        if not isinstance(self._pairs, tuple):
            self._pairs = tuple(self._pairs)
        return self._pairs

    def copy(self) -> Headers:
        """Return headers of the same content that may be changed."""
        return Headers(self.pairs)

    def default(self, name: str, value: str) -> None:
        """Add a header of the platform's own unless there is one of that name."""
        if not any(key == name for key, _ in self._pairs):
            self._pairs = (*self._pairs, (name, value))

    def get(self, name: object = UNDEFINED) -> str | None:
        """Return the values of a header joined by ", ", None (null) if there is none."""
        wanted = _name(_required("get", 1, name))
        values = [value for key, value in self._pairs if key == wanted]
        return ", ".join(values) if values else None

    def has(self, name: object = UNDEFINED) -> bool:
        """Tell whether there is a header of that name."""
        wanted = _name(_required("has", 1, name))
        return any(key == wanted for key, _ in self._pairs)

    def getSetCookie(self) -> list[str]:
        """Return the Set-Cookie headers, each by itself."""
        return [value for key, value in self._pairs if key == "set-cookie"]

    def getAll(self, name: object = UNDEFINED) -> list[str]:
        """Return the Set-Cookie headers; the runtime refuses every other name."""
        if _name(_required("getAll", 1, name)) != "set-cookie":
            raise JsException(
                "TypeError", 'getAll() can only be used with the header name "Set-Cookie".'
            )
        return self.getSetCookie()

    def append(self, name: object = UNDEFINED, value: object = UNDEFINED) -> object:
        """Add a header beside those of the same name."""
        pair = _checked("append", name, value)
        self._check_mutable()
        self._pairs = (*self._pairs, pair)
        return UNDEFINED

    def set(self, name: object = UNDEFINED, value: object = UNDEFINED) -> object:
        """Add a header instead of those of the same name."""
        key, text = _checked("set", name, value)
        self._check_mutable()
        self._pairs = (*(pair for pair in self._pairs if pair[0] != key), (key, text))
        return UNDEFINED

    def delete(self, name: object = UNDEFINED) -> object:
        """Remove the headers of that name."""
        wanted = _name(_required("delete", 1, name))
        self._check_mutable()
        self._pairs = tuple(pair for pair in self._pairs if pair[0] != wanted)
        return UNDEFINED

    def sorted(self) -> list[tuple[str, str]]:
        """Return the headers as JavaScript iterates them: by name, joined, cookies apart."""
        joined: dict[str, str] = {}
        cookies: list[tuple[str, str]] = []
        for key, value in self._pairs:
            if key == "set-cookie":
                cookies.append((key, value))
            else:
                joined[key] = f"{joined[key]}, {value}" if key in joined else value
        return sorted([*joined.items(), *cookies], key=lambda pair: pair[0])

    def entries(self) -> JsIterator:
        """Return an iterator of `[name, value]`."""
        return JsIterator("EntryIterator", ([key, value] for key, value in self.sorted()))

    def keys(self) -> JsIterator:
        """Return an iterator of the names."""
        return JsIterator("KeyIterator", (key for key, _ in self.sorted()))

    def values(self) -> JsIterator:
        """Return an iterator of the values."""
        return JsIterator("ValueIterator", (value for _, value in self.sorted()))

    def __iter__(self) -> Iterator[list[str]]:
        return iter([[key, value] for key, value in self.sorted()])

    def forEach(self, callback: Callable[..., object]) -> object:
        """Call `callback(value, name, headers)` for each header."""
        for key, value in self.sorted():
            callback(value, key, self)
        return UNDEFINED

    def _check_mutable(self) -> None:
        if self._immutable:
            raise JsException("TypeError", "Can't modify immutable headers.")


def _required(method: str, position: int, value: object) -> object:
    if idl.missing(value):
        raise idl.wrong_argument(method, "Headers", position, "string")
    return value


def _checked(method: str, name: object, value: object) -> tuple[str, str]:
    _required(method, 1, name)
    return _name(name), _value(_required(method, 2, value))


def _is_init(init: object) -> bool:
    return isinstance(init, (Headers, dict, LiteralMap)) or idl.sequence(init) is not None


def _read_init(init: object) -> Pairs:
    if isinstance(init, Headers):
        return init.pairs
    if isinstance(init, (dict, LiteralMap)) and not isinstance(init, ProxiedDict):
        return tuple((_name(key), _value(value)) for key, value in init.items())
    # A Python dict that nobody converted is iterable in JavaScript, which finds its keys.
    entries = idl.sequence(init)
    if entries is None:
        raise idl.wrong_construction("Headers", 1, _INIT_TYPES)
    return tuple((_name(key), _value(value)) for key, value in map(_pair, entries))


def _pair(entry: object) -> tuple[object, object]:
    found = idl.sequence(entry)
    if found is None:
        raise JsException(
            "TypeError", "Incorrect type: the provided value is not of type 'Sequence'."
        )
    items = list(found)
    if len(items) != 2:
        raise JsException(
            "TypeError",
            "To initialize a Headers object from a sequence, "
            "each inner sequence must have exactly two elements.",
        )
    return items[0], items[1]
