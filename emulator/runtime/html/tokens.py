"""Cutting a document into tokens that, joined, are the document."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final, NamedTuple

VOID: Final = frozenset(
    {
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
        *("source", "track", "wbr", "basefont", "bgsound", "frame", "keygen"),
    }
)
_RAW_TEXT: Final = (
    *("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"),
)
_ATTRIBUTE: Final = re.compile(
    r"""([^\s/>=][^\s/>=]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>]+))?""", re.DOTALL
)
_NAME: Final = re.compile(r"</?([^\s/>]+)")


class Token(NamedTuple):
    """A piece of a document: `start`, `end`, `text`, `comment`, `doctype` or `other`."""

    kind: str
    raw: str

    @property
    def name(self) -> str:
        """The name of a tag as it is written."""
        found = _NAME.match(self.raw)
        return found[1] if found is not None else ""


class Attribute(NamedTuple):
    """An attribute of a tag: its name as written, its value, and its text in the tag."""

    name: str
    value: str
    raw: str


def attributes_of(tag: str) -> list[Attribute]:
    """Return the attributes of a start tag."""
    found = _NAME.match(tag)
    inner = tag[found.end() if found is not None else 1 : -1]
    attributes = []
    for match in _ATTRIBUTE.finditer(inner):
        value = match[2] or ""
        if value[:1] in ("'", '"'):
            value = value[1:-1]
        attributes.append(Attribute(match[1], value, match[0]))
    return attributes


class _Cutter(HTMLParser):
    CDATA_CONTENT_ELEMENTS = _RAW_TEXT  # type: ignore[misc]

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.starts: list[tuple[str, tuple[int, int]]] = []

    def _begin(self, kind: str) -> None:
        self.starts.append((kind, self.getpos()))

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._begin("start")

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._begin("start")

    def handle_endtag(self, tag: str) -> None:
        self._begin("end")

    def handle_data(self, data: str) -> None:
        self._begin("text")

    def handle_entityref(self, name: str) -> None:
        self._begin("text")

    def handle_charref(self, name: str) -> None:
        self._begin("text")

    def handle_comment(self, data: str) -> None:
        self._begin("comment")

    def handle_decl(self, decl: str) -> None:
        self._begin("doctype")

    def handle_pi(self, data: str) -> None:
        self._begin("other")

    def unknown_decl(self, data: str) -> None:
        self._begin("other")


def cut(document: str) -> list[Token]:
    """Return the tokens of a document; texts next to each other are one."""
    cutter = _Cutter()
    cutter.feed(document)
    cutter.close()
    lines = [0, *(match.end() for match in re.finditer("\n", document))]
    places = [(kind, lines[line - 1] + column) for kind, (line, column) in cutter.starts]
    found: list[Token] = []
    for number, (kind, start) in enumerate(places):
        end = places[number + 1][1] if number + 1 < len(places) else len(document)
        raw = document[start:end]
        if kind == "text" and found and found[-1].kind == "text":
            found[-1] = Token("text", found[-1].raw + raw)
        elif raw:
            found.append(Token(kind, raw))
    head = places[0][1] if places else len(document)
    return [Token("other", document[:head]), *found] if head else found
