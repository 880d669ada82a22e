"""The JavaScript classes `TextDecoderStream` and `TextEncoderStream`."""

from __future__ import annotations

import codecs
from typing import Final

from emulator.runtime.js_text import display
from emulator.runtime.web import idl
from emulator.runtime.web.compression import NOT_BYTES
from emulator.runtime.web.transform import (
    TransformController,
    TransformStream,
)
from emulator.values import UNDEFINED, JsException

_NAMES: Final = {"utf8": "utf-8", "latin1": "windows-1252", "ascii": "windows-1252"}
_BOM: Final = "\ufeff"


class TextDecoderStream(TransformStream):
    """Bytes to text, chunk by chunk."""

    js_class = "TextDecoderStream"
    js_members = TransformStream.js_members | {"encoding", "fatal", "ignoreBOM"}
    encoding = "utf-8"
    fatal = False
    ignoreBOM = False

    @classmethod
    def js_new(cls, label: object = UNDEFINED, options: object = UNDEFINED) -> TextDecoderStream:
        """Do `new TextDecoderStream(label, {fatal, ignoreBOM})`."""
        given = "utf-8" if label is UNDEFINED else idl.string(label)
        name = _NAMES.get(given.strip().lower(), given.strip().lower())
        chosen = idl.options(options)
        fatal, keeps = bool(chosen.get("fatal", False)), bool(chosen.get("ignoreBOM", False))
        try:
            decoder = codecs.getincrementaldecoder(name)("strict" if fatal else "replace")
        except LookupError:
            raise JsException("RangeError", f'"{given}" is not a valid encoding.') from None
        began = keeps

        def decode(data: bytes, controller: TransformController, *, final: bool) -> None:
            nonlocal began
            try:
                text = decoder.decode(data, final)
            except UnicodeDecodeError:
                raise JsException("TypeError", "Failed to decode input.") from None
            if text and not began:
                text, began = text.removeprefix(_BOM), True
            if text:
                controller.enqueue(text)

        def transform(chunk: object, controller: TransformController) -> None:
            data = idl.buffer(chunk)
            if data is None:
                raise JsException("TypeError", NOT_BYTES)
            decode(data, controller, final=False)

        stream = cls(
            {
                "transform": transform,
                "flush": lambda controller: decode(b"", controller, final=True),
            }
        )
        stream.encoding, stream.fatal, stream.ignoreBOM = name, fatal, keeps
        return stream


class TextEncoderStream(TransformStream):
    """Text to UTF-8, chunk by chunk; a surrogate waits for its other half."""

    js_class = "TextEncoderStream"
    js_members = TransformStream.js_members | {"encoding"}
    encoding = "utf-8"

    @classmethod
    def js_new(cls, ignored: object = UNDEFINED) -> TextEncoderStream:
        """Do `new TextEncoderStream()`; an argument is ignored."""
        waiting = ""

        def transform(chunk: object, controller: TransformController) -> None:
            nonlocal waiting
            text = waiting + display(chunk)
            waiting = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
            _encode(text[: len(text) - len(waiting)], controller)

        return cls(
            {"transform": transform, "flush": lambda controller: _encode(waiting, controller)}
        )


def _encode(text: str, controller: TransformController) -> None:
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if whole:
        controller.enqueue(whole.encode())
