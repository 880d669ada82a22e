"""The JavaScript classes `CompressionStream` and `DecompressionStream`."""

from __future__ import annotations

import zlib
from typing import Any, Final

from emulator.runtime.web import idl
from emulator.runtime.web.transform import TransformController, TransformStream
from emulator.values import UNDEFINED, JsException

# By format: zlib's number of bits.
_FORMATS: Final = {"gzip": 31, "deflate": 15, "deflate-raw": -15}
_BAD_FORMAT: Final = "The compression format must be either 'deflate', 'deflate-raw' or 'gzip'."
NOT_BYTES: Final = (
    "This TransformStream is being used as a byte stream, but received a value that is not a "
    "BufferSource."
)


def bytes_of(chunk: object) -> bytes:
    """Return the bytes of a chunk; a text is UTF-8. Raises the runtime's `TypeError`."""
    data = chunk.encode() if isinstance(chunk, str) else idl.buffer(chunk)
    if data is None:
        raise JsException("TypeError", NOT_BYTES)
    return data


def _bits(cls: type[Any], given: object) -> int:
    if given is UNDEFINED:
        raise idl.wrong_construction(cls.js_class, 1, "string")
    bits = _FORMATS.get(idl.string(given))
    if bits is None:
        raise JsException("TypeError", _BAD_FORMAT)
    return bits


class CompressionStream(TransformStream):
    """Compresses what is written."""

    js_class = "CompressionStream"

    @classmethod
    def js_new(cls, form: object = UNDEFINED) -> CompressionStream:
        """Do `new CompressionStream(format)`."""
        compressor = zlib.compressobj(wbits=_bits(cls, form))

        def transform(chunk: object, controller: TransformController) -> None:
            _emit(controller, compressor.compress(bytes_of(chunk)))

        return cls(
            {
                "transform": transform,
                "flush": lambda controller: _emit(controller, compressor.flush()),
            }
        )


class DecompressionStream(TransformStream):
    """Decompresses what is written."""

    js_class = "DecompressionStream"

    @classmethod
    def js_new(cls, form: object = UNDEFINED) -> DecompressionStream:
        """Do `new DecompressionStream(format)`."""
        decompressor = zlib.decompressobj(_bits(cls, form))

        def transform(chunk: object, controller: TransformController) -> None:
            data = bytes_of(chunk)
            if decompressor.eof and data:
                raise _failed("Trailing bytes after end of compressed data")
            try:
                _emit(controller, decompressor.decompress(data))
            except zlib.error:
                raise _failed("Decompression failed.") from None
            if decompressor.unused_data:
                raise _failed("Trailing bytes after end of compressed data")

        def flush(controller: TransformController) -> None:
            if not decompressor.eof:
                raise _failed("Called close() on a decompression stream with incomplete data")
            _emit(controller, decompressor.flush())

        return cls({"transform": transform, "flush": flush})


def _failed(text: str) -> JsException:
    return JsException("TypeError", text)


def _emit(controller: TransformController, data: bytes) -> None:
    if data:
        controller.enqueue(data)
