"""The JavaScript class `HTMLRewriter`.

Theory of operation. The body is read as a whole and cut into tokens. Open elements are on a stack
with the handlers that their selectors chose; each token goes to the handlers of those around it, in
the order in which they were added, and then to the output, unless an element around it was removed
or got other content. Handlers may be asynchronous, and one that raises breaks the body.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.html.content import (
    Comment,
    Content,
    Doctype,
    DocumentEnd,
    Element,
    EndTag,
    Text,
)
from emulator.runtime.html.selectors import Node, Selector
from emulator.runtime.html.tokens import VOID, Token, attributes_of, cut
from emulator.runtime.pyproxy import PyProxy, await_given, python_function
from emulator.runtime.web import idl
from emulator.runtime.web.response import Response
from emulator.runtime.web.sources import IteratorSource
from emulator.runtime.web.streams import ReadableStream
from emulator.values import UNDEFINED, HostObject, LiteralMap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_FOREIGN: Final = ("svg", "math")


@dataclass(frozen=True, slots=True)
class _Handlers:
    """The functions of one `on` or `onDocument`, by name."""

    selector: Selector | None
    functions: dict[str, Any]


@dataclass(slots=True)
class _Open:
    """An element on the stack."""

    node: Node
    name: str
    element: Element | None = None
    handlers: list[_Handlers] = field(default_factory=list)
    hides: bool = False  # what is inside does not come out


class HTMLRewriter(HostObject):
    """Rewrites the HTML of a response."""

    js_class = "HTMLRewriter"
    js_members = frozenset({"on", "onDocument", "transform"})

    def __init__(self) -> None:
        self._handlers: list[_Handlers] = []

    @classmethod
    def js_new(cls) -> HTMLRewriter:
        """Do `new HTMLRewriter()`."""
        return cls()

    def on(self, selector: Any = UNDEFINED, handlers: Any = UNDEFINED) -> HTMLRewriter:
        """Add handlers (`element`, `comments`, `text`) of the elements that a selector chooses."""
        names = ("element", "comments", "text")
        functions = _functions("on", 2, "ElementContentHandlers", handlers, names)
        self._handlers.append(_Handlers(Selector(idl.string(selector)), functions))
        return self

    def onDocument(self, handlers: Any = UNDEFINED) -> HTMLRewriter:
        """Add handlers (`doctype`, `comments`, `text`, `end`) of the whole document."""
        names = ("doctype", "comments", "text", "end")
        functions = _functions("onDocument", 1, "DocumentContentHandlers", handlers, names)
        self._handlers.append(_Handlers(None, functions))
        return self

    def transform(self, response: Any = UNDEFINED) -> Response:
        """Return a response with the rewritten body."""
        if not isinstance(response, Response):
            raise idl.wrong_argument("transform", "HTMLRewriter", 1, "Response")
        body = response.body
        if body is None:
            return response
        made = Response(
            ReadableStream(IteratorSource(_rewritten(body, list(self._handlers)))),
            status=response.status,
            status_text=response.statusText,
            headers=response.headers.copy(),
            url=response.url,
            redirected=response.redirected,
        )
        made.cf = response.cf
        return made


def _functions(
    method: str, place: int, kind: str, given: Any, names: tuple[str, ...]
) -> dict[str, Any]:
    if isinstance(given, PyProxy):
        found = {name: getattr(given.obj, name, None) for name in names}
        return {name: python_function(f) for name, f in found.items() if callable(f)}
    if not isinstance(given, (dict, LiteralMap)):
        raise idl.wrong_argument(method, "HTMLRewriter", place, kind)
    chosen = idl.options(given)
    return {name: chosen[name] for name in names if callable(chosen.get(name))}


async def _rewritten(body: ReadableStream, handlers: list[_Handlers]) -> AsyncIterator[bytes]:
    reader, parts = body.getReader(), []
    while not (read := await reader.read())["done"]:
        parts.append(idl.buffer(read["value"]) or b"")
    document = b"".join(parts).decode("utf-8", "surrogateescape")
    rewriting = _Rewriting(handlers)
    for token in cut(document):
        await rewriting.take(token)
    await rewriting.finish()
    output = "".join(rewriting.output).encode("utf-8", "surrogateescape")
    if output:
        yield output


class _Rewriting:
    """One document on its way."""

    def __init__(self, handlers: list[_Handlers]) -> None:
        self.output: list[str] = []
        self._document = [one for one in handlers if one.selector is None]
        self._chosen = [one for one in handlers if one.selector is not None]
        self._root = Node("", {})
        self._stack: list[_Open] = []

    async def take(self, token: Token) -> None:
        """Let handlers see a token, and write what comes of it."""
        if token.kind == "start":
            await self._start(token)
        elif token.kind == "end":
            await self._end(token)
        elif token.kind == "text":
            await self._text(token.raw)
        elif token.kind == "comment":
            comment = Comment(token.raw)
            await self._call("comments", comment)
            self._write(comment.around(comment.raw))
        else:
            if token.kind == "doctype":
                await self._run(self._document, "doctype", Doctype(token.raw))
            self._write(token.raw)

    async def finish(self) -> None:
        """The document is over."""
        end = DocumentEnd()
        await self._run(self._document, "end", end)
        self.output.extend(end.added)

    def _write(self, text: str) -> None:
        if text and not any(one.hides for one in self._stack):
            self.output.append(text)

    async def _start(self, token: Token) -> None:
        name = token.name.lower()
        found = {one.name.lower(): one.value for one in reversed(attributes_of(token.raw))}
        parent = self._stack[-1].node if self._stack else self._root
        opened = _Open(parent.child(name, found), name)
        path = [*(one.node for one in self._stack), opened.node]
        opened.handlers = [
            one for one in self._chosen if one.selector and one.selector.matches(path)
        ]
        foreign = next((one.name for one in reversed(self._stack) if one.name in _FOREIGN), "")
        foreign = name if name in _FOREIGN else foreign
        closed = token.raw.endswith("/>") and bool(foreign)
        has_content = not (name in VOID or closed)
        if any("element" in one.functions for one in opened.handlers):
            opened.element = Element(
                token.raw, token.name, has_content=has_content, foreign=foreign
            )
            await self._run(opened.handlers, "element", opened.element)
        self._open(token, opened, has_content=has_content)

    def _open(self, token: Token, opened: _Open, *, has_content: bool) -> None:
        element = opened.element
        if element is None:
            self._write(token.raw)
        else:
            self._write("".join(element.put_before))
            self._write(element.replacement if element.removed else element.tag)
            if not has_content:
                self._write("".join(element.put_after))
            elif not element.removed or element.keeps_content:
                self._write("".join(element.put_first))
                self._write(element.inner or "")
        if has_content:
            if element is not None:
                gone = element.removed and not element.keeps_content
                opened.hides = gone or element.inner is not None
            self._stack.append(opened)

    async def _end(self, token: Token) -> None:
        name = token.name.lower()
        places = (n for n in range(len(self._stack) - 1, -1, -1) if self._stack[n].name == name)
        place = next(places, None)
        if place is None:
            self._write(token.raw)
            return
        # Of several elements that an end tag closes the outermost has its say (seen in workerd).
        closed = [one.element for one in self._stack[place:] if one.element is not None]
        element = next((one for one in closed if one.acts_at_end), None)
        del self._stack[place:]
        if element is None:
            self._write(token.raw)
            return
        if not element.removed or element.keeps_content:
            self._write("".join(element.put_last))
        end = EndTag(element.name if element.renamed else token.name)
        end.renamed = element.renamed
        for handler in element.end_handlers:
            await await_given(handler, end)
        end.live = False
        raw = f"</{end._name}>" if end.renamed else token.raw
        end.removed = end.removed or element.removed
        self._write(end.around(raw))
        self._write("".join(element.put_after))

    async def _text(self, raw: str) -> None:
        wanted = [*self._document, *self._around()]
        if not any("text" in one.functions for one in wanted):
            self._write(raw)
            return
        for text, last in ((raw, False), ("", True)):
            chunk = Text(text, last=last)
            await self._call("text", chunk)
            self._write(chunk.around(text))

    def _around(self) -> Iterator[_Handlers]:
        for opened in self._stack:
            yield from opened.handlers

    async def _call(self, name: str, content: Any) -> None:
        await self._run([*self._document, *self._around()], name, content)

    @staticmethod
    async def _run(handlers: list[_Handlers], name: str, content: Any) -> None:
        seen: list[_Handlers] = []
        for one in handlers:
            if name in one.functions and not any(one is other for other in seen):
                seen.append(one)
                await await_given(one.functions[name], content)
        if isinstance(content, Content):
            content.live = False
