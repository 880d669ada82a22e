"""Bodies of queue messages: what `contentType` makes of a value, and what the consumer gets.

Numbers such as 1.6 are rules of the queue reference; the texts are the platform's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.values.buffers import TypedArray
from emulator.values.clone import from_v8, to_v8
from emulator.values.json import from_json, plain_json, to_json_bytes, written_json
from emulator.values.json_losses import losses
from emulator.values.kinds import class_of, type_of
from emulator.values.types import UNDEFINED, JsException

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.values.json_losses import Loss

CONTENT_TYPES: Final = ("text", "bytes", "json", "v8")


def encode_body(
    value: Any, content_type: Any = "json", *, on_losses: Callable[[list[Loss]], None] | None = None
) -> bytes:
    """Return the body as it is stored; its length is what limits count (1.12).

    Raises `JsException` with the platform's text (1.6): an undefined body, an unknown content type
    (which must be lower-case here, 1.5), a value that the type cannot carry. What JSON changes in
    the value, if anything, is told to `on_losses`; data that JSON has a form for costs nothing.
    """
    if value is UNDEFINED:
        raise JsException("TypeError", "Message body cannot be undefined")
    encode = _ENCODERS.get(content_type) if type(content_type) is str else None
    if encode is None:
        raise JsException(
            "TypeError", f"Unsupported queue message content type: {_display(content_type)}"
        )
    if content_type == "json" and on_losses is not None:
        return _encode_json(value, on_losses)
    return encode(value)


def decode_body(data: bytes, content_type: str) -> Any:
    """Return the value that a consumer sees in `message.body` (2.6)."""
    return _DECODERS[content_type](data)


def body_size(value: Any, content_type: str = "json") -> int:
    """Return the size of the serialized body in bytes."""
    return len(encode_body(value, content_type))


def _encode_json(value: Any, on_losses: Callable[[list[Loss]], None]) -> bytes:
    data = plain_json(value)
    if data is not None:
        return data
    data = written_json(value)
    lost = losses(value)
    if lost:
        on_losses(lost)
    return data


def _encode_text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _wrong_type("text", "string", value)
    return value.encode("utf-8", "replace")


def _encode_bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, TypedArray)):
        raise _wrong_type("bytes", "ArrayBufferView", value)
    return bytes(value)


def _wrong_type(content_type: str, wanted: str, value: Any) -> JsException:
    return JsException(
        "TypeError",
        f'Content Type "{content_type}" requires a value of type {wanted}, '
        f"but received: {type_of(value)}",
    )


def _display(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    return f"[object {class_of(value)}]"


_ENCODERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "text": _encode_text,
    "bytes": _encode_bytes,
    "json": to_json_bytes,
    "v8": to_v8,
}
_DECODERS: Final[dict[str, Callable[[bytes], Any]]] = {
    "text": lambda data: data.decode("utf-8"),
    "bytes": bytes,
    "json": from_json,
    "v8": from_v8,
}
