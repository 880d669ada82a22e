"""The bytes of records."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import StateError
from emulator.store.records import FORMAT, decode, encode

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
)
payloads = st.lists(
    st.recursive(
        scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
    )
)


def framed(content: object) -> bytes:
    """Bytes with a right checksum, whatever they hold."""
    packed = msgspec.msgpack.encode(content)
    return crc32(packed).to_bytes(4) + packed


@given(payloads)
def test_payload_comes_back_as_it_was(payload: list[Any]) -> None:
    assert decode(encode(payload), "a test") == payload


def test_tuples_come_back_as_lists() -> None:
    assert decode(encode(("send", ("a", b"b"))), "a test") == ["send", ["a", b"b"]]


@pytest.mark.parametrize(
    "value", [object(), 2**64, lambda: None], ids=["object", "int", "function"]
)
def test_what_has_no_bytes_is_refused_when_written(value: object) -> None:
    with pytest.raises((TypeError, OverflowError)):
        encode([value])


@given(payloads, st.data())
def test_every_damaged_byte_is_noticed(payload: list[Any], data: st.DataObject) -> None:
    whole = bytearray(encode(payload))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StateError, match="record 7 is damaged: restore a copy"):
        decode(bytes(whole), "record 7")


@pytest.mark.parametrize("data", [b"", b"abc", encode(["send"])[:-1]], ids=["none", "few", "cut"])
def test_missing_bytes_are_noticed(data: bytes) -> None:
    with pytest.raises(StateError, match="is damaged"):
        decode(data, "record 7")


def test_newer_format_is_refused() -> None:
    with pytest.raises(StateError, match=rf"record 7 has format {FORMAT + 1}, this release reads"):
        decode(framed([FORMAT + 1, "something", "new"]), "record 7")


@pytest.mark.parametrize("content", [None, [], [FORMAT], [FORMAT, 5], {"a": 1}], ids=repr)
def test_what_is_no_record_is_refused(content: object) -> None:
    with pytest.raises(StateError, match="record 7 is not a record"):
        decode(framed(content), "record 7")
