"""Typed arrays, ArrayBuffer, TextEncoder and TextDecoder of the `js` module."""

from __future__ import annotations

import base64
import binascii
import functools
from typing import Any, Final

from emulator.runtime.js_arrays import elements, items_of
from emulator.runtime.js_basics import Constructor, functions
from emulator.runtime.js_text import display
from emulator.runtime.js_views import from_base64, from_hex, of_elements, place_of
from emulator.runtime.not_yet import not_yet
from emulator.runtime.pyproxy import PyProxy, call_value
from emulator.values import (
    UNDEFINED,
    VIEW_KINDS,
    ArrayBuffer,
    Function,
    HostObject,
    JsException,
    TypedArray,
)

# What an isolate has of memory, in bytes.
_LARGEST_BUFFER: Final = 128 * 1_048_576


def buffer_bytes(value: Any) -> bytes:
    """Return the bytes of a BufferSource; raises `TypeError` (as `JsException`) for others."""
    if isinstance(value, (bytes, TypedArray, ArrayBuffer)):
        return bytes(value)
    if isinstance(value, PyProxy) and isinstance(value.obj, (bytes, bytearray, memoryview)):
        return bytes(value.obj)
    from emulator.runtime.web.python_text import hinted

    text = "The provided value is not of type '(ArrayBuffer or ArrayBufferView)'."
    raise hinted(JsException("TypeError", text), value)


def _construct(
    kind: str, source: Any = UNDEFINED, offset: Any = UNDEFINED, length: Any = UNDEFINED, *_: Any
) -> TypedArray:
    size = VIEW_KINDS[kind][1]
    if isinstance(source, ArrayBuffer):
        start = place_of(offset, "Start offset is too large:")
        if start % size:
            raise JsException(
                "RangeError", f"start offset of {kind} should be a multiple of {size}"
            )
        if length is UNDEFINED and len(source) % size:
            text = f"byte length of {kind} should be a multiple of {size}"
            raise JsException("RangeError", text)
        if start > len(source):
            text = f"Start offset {start} is outside the bounds of the buffer"
            raise JsException("RangeError", text)
        refusal = f"Invalid typed array length: {display(length)}"
        count = len(source) - start if length is UNDEFINED else place_of(length, refusal) * size
        if start + count > len(source):
            raise JsException("RangeError", refusal)
        return TypedArray(kind, source, start, count)
    if isinstance(source, (int, float, str)) or source is UNDEFINED or source is None:
        count = place_of(source, f"Invalid typed array length: {display(source)}")
        return TypedArray(kind, _zeros(count * size))
    return from_elements(kind, source)


def _data_view(
    source: Any = UNDEFINED, offset: Any = UNDEFINED, length: Any = UNDEFINED, *_: Any
) -> TypedArray:
    if not isinstance(source, ArrayBuffer):
        raise JsException(
            "TypeError", "First argument to DataView constructor must be an ArrayBuffer"
        )
    outside = f"Start offset {display(offset)} is outside the bounds of the buffer"
    start = place_of(offset, outside)
    if start > len(source):
        raise JsException("RangeError", outside)
    refusal = f"Invalid DataView length {display(length)}"
    size = len(source) - start if length is UNDEFINED else place_of(length, refusal)
    if start + size > len(source):
        raise JsException("RangeError", refusal)
    return TypedArray("DataView", source, start, size)


def _zeros(count: int) -> ArrayBuffer:
    if count > _LARGEST_BUFFER:
        raise JsException("RangeError", "Array buffer allocation failed")
    return ArrayBuffer(count)


def _new_buffer(size: Any = UNDEFINED, options: Any = UNDEFINED, *_: Any) -> ArrayBuffer:
    if isinstance(options, dict) and options.get("maxByteLength", UNDEFINED) is not UNDEFINED:
        raise not_yet("ArrayBuffer with `maxByteLength`", imported=False)
    return _zeros(place_of(size, "Invalid array buffer length"))


def from_elements(kind: str, source: Any, given: Any = UNDEFINED, *_: Any) -> TypedArray:
    """Return a typed array with the elements of an iterable, or of an object with a length."""
    is_view = isinstance(source, (bytes, TypedArray))
    items = list(elements(source)) if is_view else items_of(source)
    if given is not UNDEFINED:
        items = [call_value(given, item, index) for index, item in enumerate(items)]
    return of_elements(kind, items)


def _view_constructor(kind: str) -> Constructor:
    if kind == "DataView":
        return Constructor(kind, _data_view)
    statics: dict[str, Any] = {
        **functions(
            from_=functools.partial(from_elements, kind),
            of=lambda *items: of_elements(kind, list(items)),
        ),
        "BYTES_PER_ELEMENT": VIEW_KINDS[kind][1],
    }
    if kind == "Uint8Array":
        statics.update(functions(fromBase64=from_base64, fromHex=from_hex))
    return Constructor(kind, functools.partial(_construct, kind), statics=statics)


class TextEncoder(HostObject):
    """Text to UTF-8."""

    js_class = "TextEncoder"
    js_members = frozenset({"encode", "encoding"})
    encoding = "utf-8"

    def encode(self, text: Any = "") -> bytes:
        """Return a Uint8Array."""
        return display("" if text is UNDEFINED else text).encode("utf-8", "replace")


class TextDecoder(HostObject):
    """Bytes to text; a byte order mark is dropped and bad bytes are replaced, unless told."""

    js_class = "TextDecoder"
    js_members = frozenset({"decode", "encoding", "fatal", "ignoreBOM"})

    def __init__(self, label: Any = "utf-8", options: Any = UNDEFINED) -> None:
        settings = options if isinstance(options, dict) else {}
        name = "utf-8" if label is UNDEFINED else str(label).strip().lower()
        self.encoding = {"utf8": "utf-8", "latin1": "windows-1252", "ascii": "windows-1252"}.get(
            name, name
        )
        self.fatal = bool(settings.get("fatal", False))
        self.ignoreBOM = bool(settings.get("ignoreBOM", False))
        try:
            # Python does not look for the codec of an empty text.
            b" ".decode(self.encoding, "replace")
        except LookupError:
            raise JsException("RangeError", f'The "{label}" encoding is not supported') from None

    def decode(self, data: Any = b"", options: Any = UNDEFINED) -> str:
        """Return the text."""
        raw = b"" if data is UNDEFINED else buffer_bytes(data)
        try:
            text = raw.decode(self.encoding, "strict" if self.fatal else "replace")
        except UnicodeDecodeError:
            raise JsException("TypeError", "Failed to decode input.") from None
        return text if self.ignoreBOM else text.removeprefix("\ufeff")


def _atob(text: Any = UNDEFINED) -> str:
    data = "".join(display(text).split())
    data += "=" * (-len(data) % 4)
    try:
        return base64.b64decode(data, validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        raise JsException(
            "InvalidCharacterError",
            "atob() called with invalid base64-encoded data. (Only whitespace, '+', '/', "
            "alphanumeric ASCII, and up to two terminal '=' signs when the input data length is "
            "divisible by 4 are allowed.)",
        ) from None


def _btoa(text: Any = UNDEFINED) -> str:
    try:
        return base64.b64encode(display(text).encode("latin-1")).decode()
    except UnicodeEncodeError:
        raise JsException(
            "InvalidCharacterError",
            "btoa() can only operate on characters in the Latin1 (ISO/IEC 8859-1) range.",
        ) from None


BINARY: Final[dict[str, Any]] = {
    **{kind: _view_constructor(kind) for kind in VIEW_KINDS},
    "ArrayBuffer": Constructor(
        "ArrayBuffer",
        _new_buffer,
        statics={
            "isView": Function(
                lambda v=UNDEFINED, *_: isinstance(v, (bytes, TypedArray)), "isView", raw=True
            )
        },
    ),
    "TextEncoder": TextEncoder,
    "TextDecoder": TextDecoder,
    "atob": Function(_atob, "atob", raw=True),
    "btoa": Function(_btoa, "btoa", raw=True),
}
