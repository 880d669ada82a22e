"""`EmailMessage` of JavaScript's module `cloudflare:email`."""

from __future__ import annotations

from typing import Any

from emulator.runtime.js_text import display
from emulator.runtime.web.streams import ReadableStream
from emulator.values import UNDEFINED, HostObject, JsException


class EmailMessage(HostObject):
    """A mail that is given as MIME; `sender` and `to` are the addresses on its envelope."""

    js_class = "EmailMessage"
    js_members = frozenset({"from", "to"})

    def __init__(self, sender: str, to: str, raw: str | ReadableStream) -> None:
        self.sender = sender
        self.to = to
        self.raw = raw

    @classmethod
    def js_new(
        cls, sender: Any = UNDEFINED, to: Any = UNDEFINED, raw: Any = UNDEFINED, *_: Any
    ) -> EmailMessage:
        """Make one of an address, another, and a stream or a text."""
        if raw is UNDEFINED:
            text = (
                "Failed to construct 'EmailMessage': parameter 3 is not of type 'ReadableStream or "
                "string'."
            )
            raise JsException("TypeError", text)
        is_stream = isinstance(raw, ReadableStream)
        nobody = to is None or to is UNDEFINED
        return cls(
            display(sender), "" if nobody else display(to), raw if is_stream else display(raw)
        )

    def js_lookup(self, name: str) -> Any:
        """Return a member; `from` is no name in Python."""
        return self.sender if name == "from" else super().js_lookup(name)
