"""What handlers of `HTMLRewriter` get: elements, texts, comments, the doctype and both ends."""

from __future__ import annotations

import re
from typing import Any, Final

from emulator.runtime.html.tokens import Attribute, attributes_of
from emulator.runtime.web import idl
from emulator.values import UNDEFINED, Function, HostObject, JsException

_OVER: Final = (
    "This content token is no longer valid. Content tokens are only valid during the execution of "
    "the relevant content handler."
)
_FORBIDDEN: Final = re.compile(r"[\s/>=\"']")
_DOCTYPE: Final = re.compile(
    r"""<!doctype\s*([^\s>]*)\s*
    (?:public\s*("[^"]*"|'[^']*')\s*("[^"]*"|'[^']*')?|system\s*("[^"]*"|'[^']*'))?""",
    re.VERBOSE | re.IGNORECASE,
)
_NAMESPACES: Final = {
    "svg": "http://www.w3.org/2000/svg",
    "math": "http://www.w3.org/1998/Math/MathML",
}
_HTML: Final = "http://www.w3.org/1999/xhtml"


def refusal(text: str) -> JsException:
    """Return an error of the rewriter's."""
    return JsException("TypeError", f"Parser error: {text}")


def written(content: Any, options: Any) -> str:
    """Return what is to be inserted: escaped, unless it is said to be HTML."""
    text = idl.string(content)
    if idl.options(options).get("html", False):
        return text
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Content(HostObject):
    """What all have in common: content before and after, and removal."""

    js_members = frozenset({"before", "after", "replace", "remove", "removed"})

    def __init__(self) -> None:
        self.live = True
        self.removed = False
        self.put_before: list[str] = []
        self.put_after: list[str] = []
        self.replacement = ""

    def js_lookup(self, name: str) -> Any:
        """Return a member; raises the runtime's `TypeError` when the handler is over."""
        if name in self.js_members and not self.live:
            raise JsException("TypeError", _OVER)
        return super().js_lookup(name)

    def before(self, content: Any = UNDEFINED, options: Any = UNDEFINED) -> Content:
        """Insert content before it."""
        self.put_before.append(written(content, options))
        return self

    def after(self, content: Any = UNDEFINED, options: Any = UNDEFINED) -> Content:
        """Insert content after it; what was inserted before comes after that."""
        self.put_after.insert(0, written(content, options))
        return self

    def replace(self, content: Any = UNDEFINED, options: Any = UNDEFINED) -> Content:
        """Put content in its place."""
        self.replacement = written(content, options)
        self.removed = True
        return self

    def remove(self) -> Content:
        """Leave it out."""
        self.removed = True
        return self

    def around(self, raw: str) -> str:
        """Return it as it is written now."""
        inner = self.replacement if self.removed else raw
        return "".join((*self.put_before, inner, *self.put_after))


class Text(Content):
    """A piece of text, entities and all."""

    js_class = "Text"
    js_members = Content.js_members | {"text", "lastInTextNode"}

    def __init__(self, text: str, *, last: bool) -> None:
        super().__init__()
        self.text = text
        self.lastInTextNode = last


class Comment(Content):
    """A comment."""

    js_class = "Comment"
    js_members = Content.js_members | {"text"}

    def __init__(self, raw: str) -> None:
        super().__init__()
        self._raw = raw
        self._text = raw.removeprefix("<!--").removesuffix("-->")

    @property
    def text(self) -> str:
        """Return what is between the marks."""
        return self._text

    @text.setter
    def text(self, value: Any) -> None:
        text = idl.string(value)
        if "-->" in text:
            raise refusal("Comment text shouldn't contain a comment-closing sequence.")
        self._text, self._raw = text, f"<!--{text}-->"

    @property
    def raw(self) -> str:
        """Return it as it is written now, without what is around it."""
        return self._raw


class Doctype(HostObject):
    """The doctype."""

    js_class = "Doctype"
    js_members = frozenset({"name", "publicId", "systemId"})

    def __init__(self, raw: str) -> None:
        found = _DOCTYPE.match(raw)
        name, public, system, alone = (None,) * 4 if found is None else found.groups()
        self.name = (name or "").lower() or None
        self.publicId = None if public is None else public[1:-1]
        last = system or alone
        self.systemId = None if last is None else last[1:-1]


class DocumentEnd(HostObject):
    """The end of a document."""

    js_class = "DocumentEnd"
    js_members = frozenset({"append"})

    def __init__(self) -> None:
        self.added: list[str] = []

    def append(self, content: Any = UNDEFINED, options: Any = UNDEFINED) -> DocumentEnd:
        """Add content at the end."""
        self.added.append(written(content, options))
        return self


class EndTag(Content):
    """The end tag of an element."""

    js_class = "EndTag"
    js_members = frozenset({"before", "after", "remove", "name"})

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.renamed = False

    @property
    def name(self) -> str:
        """Return the tag's name, in lower case."""
        return self._name.lower()

    @name.setter
    def name(self, value: Any) -> None:
        self._name, self.renamed = checked_name(value, "tag"), True


def checked_name(value: Any, what: str) -> str:
    """Return a name for a tag or an attribute; raises the runtime's `TypeError`."""
    name = idl.string(value)
    if not name:
        raise refusal(f"{what.capitalize()} name can't be empty.")
    bad = _FORBIDDEN.search(name)
    if bad is not None:
        raise refusal(f"`{bad[0]}` character is forbidden in the {what} name")
    return name


class Element(Content):
    """An element as it opens."""

    js_class = "Element"
    js_members = Content.js_members | {
        *("tagName", "attributes", "namespaceURI", "getAttribute", "hasAttribute"),
        *("setAttribute", "removeAttribute", "prepend", "append", "setInnerContent"),
        *("removeAndKeepContent", "onEndTag"),
    }

    def __init__(self, raw: str, name: str, *, has_content: bool, foreign: str) -> None:
        super().__init__()
        self.put_first: list[str] = []
        self.put_last: list[str] = []
        self.inner: str | None = None
        self.keeps_content = False
        self.end_handlers: list[Any] = []
        self.name, self.renamed = name, False
        self.has_content = has_content
        self.namespaceURI = _NAMESPACES.get(foreign, _HTML)
        self._raw = raw
        self._attributes = attributes_of(raw)
        self._changed = False

    @property
    def tagName(self) -> str:
        """Return the name, in lower case."""
        return self.name.lower()

    @tagName.setter
    def tagName(self, value: Any) -> None:
        self.name, self.renamed, self._changed = checked_name(value, "tag"), True, True

    @property
    def attributes(self) -> list[list[str]]:
        """Return pairs of names, in lower case, and values."""
        return [[one.name.lower(), one.value] for one in self._attributes]

    def getAttribute(self, name: Any = UNDEFINED) -> str | None:
        """Return the value of an attribute as it is written, or null."""
        found = self._find(name)
        return None if found is None else self._attributes[found].value

    def hasAttribute(self, name: Any = UNDEFINED) -> bool:
        """Tell whether there is such an attribute."""
        return self._find(name) is not None

    def setAttribute(self, name: Any = UNDEFINED, value: Any = UNDEFINED) -> Element:
        """Set an attribute."""
        given, text = checked_name(name, "attribute"), idl.string(value)
        found = self._find(name)
        shown = given if found is None else self._attributes[found].name
        quoted = text.replace('"', "&quot;")
        made = Attribute(shown, text, f'{shown}="{quoted}"')
        if found is None:
            self._attributes.append(made)
        else:
            self._attributes[found] = made
        self._changed = True
        return self

    def removeAttribute(self, name: Any = UNDEFINED) -> Element:
        """Remove an attribute."""
        found = self._find(name)
        if found is not None:
            del self._attributes[found]
            self._changed = True
        return self

    def prepend(self, content: Any = UNDEFINED, options: Any = UNDEFINED) -> Element:
        """Insert content right after the start tag."""
        self.put_first.insert(0, written(content, options))
        return self

    def append(self, content: Any = UNDEFINED, options: Any = UNDEFINED) -> Element:
        """Insert content right before the end tag."""
        self.put_last.append(written(content, options))
        return self

    def setInnerContent(self, content: Any = UNDEFINED, options: Any = UNDEFINED) -> Element:
        """Put content in the place of all that is inside."""
        self.inner = written(content, options)
        self.put_first.clear()
        self.put_last.clear()
        return self

    def removeAndKeepContent(self) -> Element:
        """Leave out the tags."""
        self.removed = self.keeps_content = True
        return self

    @property
    def onEndTag(self) -> Function:
        """Call a function with the end tag."""
        return Function(self._on_end_tag, "onEndTag")

    def _on_end_tag(self, handler: Any = UNDEFINED, *_: Any) -> Any:
        if not self.has_content:
            raise refusal("No end tag.")
        self.end_handlers.append(handler)
        return UNDEFINED

    def _find(self, name: Any) -> int | None:
        wanted = idl.string(name).lower()
        places = (n for n, one in enumerate(self._attributes) if one.name.lower() == wanted)
        return next(places, None)

    @property
    def acts_at_end(self) -> bool:
        """Tell whether the end tag is not to be left as it is."""
        changed = self.removed or self.renamed
        return changed or bool(self.put_last or self.put_after or self.end_handlers)

    @property
    def tag(self) -> str:
        """Return the start tag as it is written now."""
        if not self._changed:
            return self._raw
        closing = "/>" if self._raw.endswith("/>") else ">"
        inner = " ".join((self.name, *(one.raw for one in self._attributes)))
        return f"<{inner}{' ' if closing == '/>' and self._attributes else ''}{closing}"
