"""ArrayBuffer and the views on it."""

from __future__ import annotations

from typing import Final


class ArrayBuffer:
    """An ArrayBuffer: bytes that views share."""

    __slots__ = ("data",)

    def __init__(self, data: bytes | bytearray | int = 0) -> None:
        self.data = data if isinstance(data, bytearray) else bytearray(data)

    def __bytes__(self) -> bytes:
        return bytes(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __eq__(self, other: object) -> bool:
        return self.data == other.data if isinstance(other, ArrayBuffer) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ArrayBuffer({bytes(self.data)!r})"


# Constructor → (format of `memoryview.cast`, bytes per element).
VIEW_KINDS: Final[dict[str, tuple[str, int]]] = {
    "Int8Array": ("b", 1),
    "Uint8Array": ("B", 1),
    "Uint8ClampedArray": ("B", 1),
    "Int16Array": ("h", 2),
    "Uint16Array": ("H", 2),
    "Int32Array": ("i", 4),
    "Uint32Array": ("I", 4),
    "Float32Array": ("f", 4),
    "Float64Array": ("d", 8),
    "BigInt64Array": ("q", 8),
    "BigUint64Array": ("Q", 8),
    "DataView": ("B", 1),
}


class TypedArray:
    """A typed array or DataView over an `ArrayBuffer`; offset and size are in bytes.

    Canonical data uses plain `bytes` for a Uint8Array; this class is for the other kinds, and for
    a Uint8Array whose identity matters because user code writes into it.
    """

    __slots__ = ("buffer", "kind", "nbytes", "offset")

    def __init__(
        self, kind: str, buffer: ArrayBuffer, offset: int = 0, nbytes: int | None = None
    ) -> None:
        self.kind = kind
        self.buffer = buffer
        self.offset = offset
        self.nbytes = len(buffer.data) - offset if nbytes is None else nbytes

    def view(self) -> memoryview:
        """Return the elements as a writable memoryview over the shared buffer."""
        part = memoryview(self.buffer.data)[self.offset : self.offset + self.nbytes]
        form = VIEW_KINDS[self.kind][0]
        return part if form == "B" else part.cast(form)  # type: ignore[call-overload]

    def __bytes__(self) -> bytes:
        return bytes(self.buffer.data[self.offset : self.offset + self.nbytes])

    def __len__(self) -> int:
        return self.nbytes // VIEW_KINDS[self.kind][1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypedArray):
            return NotImplemented
        return self.kind == other.kind and bytes(self) == bytes(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.kind}({self.view().tolist()!r})"
