"""What crosses between entrypoints, and how, compared with the runtime (workerd 1.20260730)."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.rpc.carriage import carry, carry_all
from emulator.rpc.stub import RpcStub
from emulator.runtime.pyproxy import PyProxy, python_function
from emulator.runtime.web.blob import Blob, File
from emulator.runtime.web.headers import Headers
from emulator.runtime.web.request import Request
from emulator.runtime.web.response import Response
from emulator.runtime.web.streams import ReadableStream
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    LiteralMap,
    ProxiedDict,
    RegExp,
    Symbol,
    TypedArray,
)

ENHANCED = frozenset({"enhanced_error_serialization"})
PROXY = "Proxy could not be serialized because it is not a valid RPC receiver type. "


class DurableObjectId(HostObject):
    js_class = "DurableObjectId"


def sender(flags: frozenset[str] = ENHANCED) -> Any:
    made = SimpleNamespace(flags=flags, gone=False, dead=False)
    made.lasting = made
    return made


@pytest.mark.parametrize(
    "value",
    [
        *(None, UNDEFINED, True, 1, 1.5, "text", b"bytes", BigInt(2**70), RegExp("a+", "g")),
        datetime(2026, 1, 1, tzinfo=UTC),
        {"a": [1, {"b": None}], "": UNDEFINED},
        [],
        JsMap([("a", 1), (2, [3])]),
        JsSet([1, "a"]),
        ArrayBuffer(b"abc"),
        TypedArray("Int16Array", ArrayBuffer(b"abcd")),
    ],
    ids=repr,
)
def test_plain_data_arrives_as_it_is(value: Any) -> None:
    arrived = carry(value, sender())
    assert type(arrived) is type(value)
    if isinstance(value, JsSet):
        assert list(arrived) == list(value)
    else:
        assert arrived == value


def test_nothing_is_shared_with_the_other_side() -> None:
    inner = [1]
    value = {"list": inner, "map": JsMap([("k", inner)]), "buffer": ArrayBuffer(b"ab")}
    arrived = carry(value, sender())

    assert arrived["list"] is not inner
    assert arrived["map"].get("k") is arrived["list"], "one object stays one object"
    assert arrived["buffer"].data is not value["buffer"].data  # type: ignore[union-attr]
    inner.append(2)
    assert arrived["list"] == [1]


def test_value_inside_itself_arrives_inside_itself() -> None:
    value: dict[str, Any] = {}
    value["self"] = value
    arrived = carry(value, sender())
    assert arrived["self"] is arrived
    assert arrived is not value


def test_set_of_python_s_arrives_in_one_order() -> None:
    assert list(carry({"b", "a", "c"}, sender())) == ["a", "b", "c"]


def test_function_arrives_as_a_stub() -> None:
    arrived = carry({"add": python_function(lambda a: a)}, sender())
    assert type(arrived["add"]) is RpcStub
    assert arrived["add"].js_class == "RpcStub"


@pytest.mark.parametrize(
    ("value", "text", "path"),
    [
        (Symbol("x"), "Symbol(x) could not be cloned.", "$"),
        (
            {"id": [DurableObjectId()]},
            'Could not serialize object of type "DurableObjectId". '
            "This type does not support serialization.",
            "$.id[0]",
        ),
        ({"a": PyProxy(object())}, PROXY, "$.a"),
        (ProxiedDict(a=1), PROXY, "$"),
        (LiteralMap([("a", 1)]), PROXY, "$"),
    ],
    ids=["symbol", "class", "python object", "python dict", "map of to_js"],
)
def test_what_cannot_cross_is_refused_with_the_runtime_s_text(
    value: Any, text: str, path: str
) -> None:
    with pytest.raises(JsException) as caught:
        carry(value, sender())
    assert caught.value.name == "DataCloneError"
    assert caught.value.message.startswith(text)
    assert caught.value.path == path


def test_response_gives_its_body_away() -> None:
    response = Response(b"hello", status=201, status_text="Made", headers=(("a", "b"),))
    arrived = carry(response, sender())
    assert (arrived.status, arrived.statusText, arrived.headers.pairs) == (
        *(201, "Made"),
        (("a", "b"),),
    )
    assert arrived.take() == b"hello"
    assert response.bodyUsed


def test_request_headers_and_blobs_are_copied() -> None:
    request = Request("http://a/", method="POST", headers=(("x", "1"),), content=b"in")
    headers = Headers((("x", "1"),))
    arrived = carry([request, headers, Blob(b"b", "text/plain"), File(b"f", "f.txt")], sender())

    assert (arrived[0].url, arrived[0].method, arrived[0].take()) == ("http://a/", "POST", b"in")
    assert arrived[1].pairs == headers.pairs
    assert arrived[1] is not headers
    assert (arrived[2].data, arrived[2].type) == (b"b", "text/plain")
    assert (arrived[3].data, arrived[3].name) == (b"f", "f.txt")


def test_body_that_was_read_cannot_cross() -> None:
    response = Response(b"hello")
    response.take()
    with pytest.raises(JsException, match="Body has already been used"):
        carry(response, sender())


def test_stream_with_a_reader_cannot_cross() -> None:
    stream = ReadableStream.of_bytes(b"hello")
    stream.getReader()
    with pytest.raises(JsException, match="locked to a reader"):
        carry(stream, sender())


@pytest.mark.parametrize(
    ("flags", "name", "own"), [(ENHANCED, "Custom", 42), (frozenset(), "Error", None)]
)
def test_error_in_a_value_keeps_what_the_date_lets_it(
    flags: frozenset[str], name: str, own: int | None
) -> None:
    error = JsException("Custom", "text")
    error.__dict__["code"] = 42
    arrived = carry({"error": error}, sender(flags))["error"]
    assert arrived is not error
    assert (arrived.name, arrived.message, getattr(arrived, "code", None)) == (name, "text", own)


def test_message_above_32_mib_is_refused_with_its_size() -> None:
    text = "x" * (33 * 1024 * 1024)
    with pytest.raises(JsException) as caught:
        carry_all([text], sender())
    assert str(caught.value) == (
        "Error: Serialized RPC arguments or return values are limited to 32MiB, but the size of "
        "this value was: 34603020 bytes."
    )
    with pytest.raises(JsException, match="was: 34603015 bytes"):
        carry(text, sender())
    assert carry("x" * (31 * 1024 * 1024), sender())


def test_arguments_without_objects_are_not_copied() -> None:
    arguments = [1, "a", None]
    assert carry_all(arguments, sender()) is arguments
