"""Typed arrays, ArrayBuffer, TextEncoder and TextDecoder of the `js` module."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from emulator.runtime.js_prototypes import Constructor, to_element
from emulator.runtime.js_text import display
from emulator.runtime.pyproxy import PyProxy, iterate
from emulator.values import (
    SAFE,
    UNDEFINED,
    VIEW_KINDS,
    ArrayBuffer,
    Function,
    HostObject,
    JsException,
    TypedArray,
    to_number,
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


def _construct(kind: str, source: Any = 0, offset: Any = 0, length: Any = UNDEFINED) -> TypedArray:
    size = VIEW_KINDS[kind][1]
    if isinstance(source, ArrayBuffer):
        start = int(to_number(offset))
        if start % size:
            raise JsException(
                "RangeError", f"start offset of {kind} should be a multiple of {size}"
            )
        count = len(source) - start if length is UNDEFINED else int(to_number(length)) * size
        if start + count > len(source) or count < 0:
            raise JsException("RangeError", f"Invalid typed array length: {display(length)}")
        return TypedArray(kind, source, start, count)
    if isinstance(source, (int, float, str)) or source is UNDEFINED or source is None:
        count = _index(source, f"Invalid typed array length: {display(source)}")
        return TypedArray(kind, _zeros(count * size))
    return from_elements(kind, source)


def _index(value: Any, refusal: str) -> int:
    """Return a length (ECMAScript's `ToIndex`); 0 for what is no number."""
    number = to_number(value)
    if number != number:
        return 0
    if not -1 < number <= SAFE:
        raise JsException("RangeError", refusal)
    return int(number)


def _zeros(count: int) -> ArrayBuffer:
    if count > _LARGEST_BUFFER:
        raise JsException("RangeError", "Array buffer allocation failed")
    return ArrayBuffer(count)


def _new_buffer(size: Any = 0, *_: Any) -> ArrayBuffer:
    return _zeros(_index(size, "Invalid array buffer length"))


def from_elements(kind: str, source: Any) -> TypedArray:
    """Return a typed array with the elements of an iterable."""
    items = [to_element(kind, item) for item in iterate(source)]
    made = TypedArray(kind, ArrayBuffer(len(items) * VIEW_KINDS[kind][1]))
    made.view()[:] = memoryview(_pack(kind, items))
    return made


def _pack(kind: str, items: list[Any]) -> Any:
    import array

    return array.array(VIEW_KINDS[kind][0], items)


def _view_constructor(kind: str) -> Constructor:
    def construct(*args: Any) -> TypedArray:
        if kind == "DataView" and not (args and isinstance(args[0], ArrayBuffer)):
            raise JsException(
                "TypeError", "First argument to DataView constructor must be an ArrayBuffer"
            )
        return _construct(kind, *args)

    statics: dict[str, Any] = {
        "from": Function(lambda source, *rest: from_elements(kind, source), "from", raw=True),
        "of": Function(lambda *items: from_elements(kind, list(items)), "of", raw=True),
        "BYTES_PER_ELEMENT": VIEW_KINDS[kind][1],
    }
    return Constructor(kind, construct, statics={} if kind == "DataView" else statics)


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
            "isView": Function(lambda v: isinstance(v, (bytes, TypedArray)), "isView", raw=True)
        },
    ),
    "TextEncoder": TextEncoder,
    "TextDecoder": TextDecoder,
    "atob": Function(_atob, "atob", raw=True),
    "btoa": Function(_btoa, "btoa", raw=True),
}
