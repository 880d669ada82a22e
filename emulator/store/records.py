"""Records, and their bytes.

A payload consists of None, bool, int (64 bits), float, str, bytes, lists and dicts with str keys;
tuples come back as lists. Its bytes are a CRC-32 (four bytes, big endian) and then, as MessagePack,
the pair of `FORMAT` and the payload. `FORMAT` grows when an older release could misread a payload;
bytes with a higher one are refused, never guessed at.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import msgspec

from emulator.errors import DamagedState, StateError

FORMAT: Final = 1

Payload: TypeAlias = Any
"""What the module's docstring allows; only the product that wrote it knows its shape."""

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder()


class Record(NamedTuple):
    """One durable change of one product (`"queues"`, `"workflows"`)."""

    product: str
    payload: Payload


def encode(payload: Payload) -> bytes:
    """The bytes of a payload; `TypeError` or `OverflowError` for what has none.

    >>> decode(encode(["send", b"hello"]), "an example")
    ['send', b'hello']
    """
    packed = _encoder.encode((FORMAT, payload))
    return crc32(packed).to_bytes(4) + packed


def decode(data: bytes, source: str) -> Payload:
    """The payload of some bytes; `StateError`, naming `source`, if they are damaged or newer."""
    packed = data[4:]
    if crc32(packed).to_bytes(4) != data[:4]:
        raise DamagedState(f"{source} is damaged: restore a copy, or start with a new state file")
    match _decoder.decode(packed):
        case [int(version), *_] if version > FORMAT:
            raise StateError(
                f"{source} has format {version}, this release reads up to {FORMAT}: use the"
                " release that wrote it, or start with a new state file"
            )
        case [int(), list() | dict() as payload]:
            return payload
        case _:
            raise DamagedState(f"{source} is not a record: start with a new state file")
