"""The JavaScript class `URLSearchParams`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from emulator.runtime.web import idl
from emulator.runtime.web.iterators import IterablePairs
from emulator.runtime.web.text import utf8
from emulator.runtime.web.url_parser import unescape
from emulator.values import UNDEFINED, JsException, ProxiedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class URLSearchParams(IterablePairs):
    """The parameters of a query, in order."""

    js_class = "URLSearchParams"
    js_members = frozenset(
        [
            "append",
            "delete",
            "entries",
            "forEach",
            "get",
            "getAll",
            "has",
            "keys",
            "set",
            "size",
            "sort",
            "toString",
            "values",
        ]
    )

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]] = (),
        *,
        changed: Callable[[], None] | None = None,
    ) -> None:
        self.pairs = list(pairs)
        self._tell_url = changed

    @classmethod
    def js_new(cls, init: object = UNDEFINED) -> URLSearchParams:
        """Do `new URLSearchParams(init)`: a query, a record, pairs or another one."""
        if idl.missing(init):
            return cls()
        if isinstance(init, dict) and not isinstance(init, ProxiedDict):
            return cls((idl.string(key), idl.string(value)) for key, value in init.items())
        entries = idl.sequence(init)
        if entries is not None:
            return cls(map(_pair, entries))
        return cls(parse_query(idl.string(init).removeprefix("?")))

    @property
    def size(self) -> int:
        """Return the number of parameters."""
        return len(self.pairs)

    def get(self, name: object = UNDEFINED) -> str | None:
        """Return the first value, None (null) if there is none."""
        wanted = _text("get", 1, name)
        return next((value for key, value in self.pairs if key == wanted), None)

    def getAll(self, name: object = UNDEFINED) -> list[str]:
        """Return every value of that name."""
        wanted = _text("getAll", 1, name)
        return [value for key, value in self.pairs if key == wanted]

    def has(self, name: object = UNDEFINED, value: object = UNDEFINED) -> bool:
        """Tell whether there is such a parameter (with that value, if one is given)."""
        wanted = _text("has", 1, name)
        return any(_matches(pair, wanted, value) for pair in self.pairs)

    def append(self, name: object = UNDEFINED, value: object = UNDEFINED) -> object:
        """Add a parameter at the end."""
        self.pairs.append((_text("append", 1, name), _text("append", 2, value)))
        return self._changed()

    def set(self, name: object = UNDEFINED, value: object = UNDEFINED) -> object:
        """Give the first parameter of that name this value and drop the others."""
        wanted, text = _text("set", 1, name), _text("set", 2, value)
        where = next((i for i, (key, _) in enumerate(self.pairs) if key == wanted), None)
        if where is None:
            self.pairs.append((wanted, text))
        else:
            rest = [pair for pair in self.pairs[where + 1 :] if pair[0] != wanted]
            self.pairs[where:] = [(wanted, text), *rest]
        return self._changed()

    def delete(self, name: object = UNDEFINED, value: object = UNDEFINED) -> object:
        """Drop the parameters of that name (with that value, if one is given)."""
        wanted = _text("delete", 1, name)
        self.pairs = [pair for pair in self.pairs if not _matches(pair, wanted, value)]
        return self._changed()

    def sort(self) -> object:
        """Sort by name, as UTF-16; equal names keep their order."""
        self.pairs.sort(key=lambda pair: pair[0].encode("utf-16-be", "surrogatepass"))
        return self._changed()

    def toString(self) -> str:
        """Return the query without its "?"."""
        return format_query(self.pairs)

    def __str__(self) -> str:
        return self.toString()

    def _changed(self) -> object:
        if self._tell_url is not None:
            self._tell_url()
        return UNDEFINED


def parse_query(text: str) -> list[tuple[str, str]]:
    """Read `application/x-www-form-urlencoded` as the standard does: nothing is an error."""
    pieces = (piece.partition("=") for piece in text.split("&") if piece)
    return [(_decode(name), _decode(value)) for name, _, value in pieces]


def format_query(pairs: Iterable[tuple[str, str]]) -> str:
    """Write `application/x-www-form-urlencoded`."""
    return "&".join(f"{_encode(name)}={_encode(value)}" for name, value in pairs)


def _decode(text: str) -> str:
    return unescape(utf8(text.replace("+", " "))).decode("utf-8", "replace")


def _encode(text: str) -> str:
    # urllib leaves "~" alone, the standard leaves "*".
    return quote_plus(utf8(text), safe="*").replace("~", "%7E")


def _text(method: str, position: int, value: object) -> str:
    if idl.missing(value):
        raise idl.wrong_argument(method, "URLSearchParams", position, "USVString")
    return idl.string(value)


def _matches(pair: tuple[str, str], name: str, value: object) -> bool:
    return pair[0] == name and (idl.missing(value) or pair[1] == idl.string(value))


def _pair(entry: object) -> tuple[str, str]:
    items = list(idl.sequence(entry) or ())
    if len(items) != 2:
        raise JsException("TypeError", "Invalid URL search params sequence.")
    return idl.string(items[0]), idl.string(items[1])
