"""What user code can do with a `JsProxy`, in the three generations of Pyodide.

Expectations come from runs in real Pyodide 0.26.0, 0.28.2 and 314.0.6.
"""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from ffi_worker import Headers, KvNamespace, QueueController, QueueMessage, WorkerQueue, worker

from emulator.runtime import js
from emulator.runtime.promises import PyodideFuture
from emulator.runtime.proxies import JsProxy, to_proxy, wrap
from emulator.runtime.pyproxy import jsnull, to_host, unwrap
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
    ProxiedList,
    TypedArray,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ALL = pytest.mark.parametrize("generation", [26, 28, 314])


def plain() -> Any:
    return wrap(
        {"a": 1, "none": None, "undef": UNDEFINED, "list": [1, 2], "fn": js.GLOBALS["atob"]}
    )


@pytest.mark.parametrize("value", [{}, [], JsMap(), b"", JsSet(), WorkerQueue()])
def test_every_proxy_presents_itself_as_pyodides(value: Any) -> None:
    proxy = wrap(value)
    assert type(proxy).__name__ == "JsProxy"
    assert repr(type(proxy)) == "<class 'pyodide.ffi.JsProxy'>"
    assert isinstance(proxy, JsProxy)


def test_a_proxy_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError, match=r"^JsProxy cannot be instantiated\.$"):
        JsProxy()


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("x", "x"),
        (True, True),
        (1, 1),
        (1.0, 1),
        (1.5, 1.5),
        (2.0**60, 2.0**60),
        (UNDEFINED, None),
        (BigInt(2**70), 2**70),
    ],
)
def test_immutable_values_convert(value: Any, seen: Any) -> None:
    with worker():
        assert wrap(value) == seen
        assert type(wrap(value)) is type(seen)


@pytest.mark.parametrize(("generation", "seen"), [(26, None), (28, jsnull), (314, jsnull)])
def test_null_is_none_before_pyodide_028(generation: int, seen: Any) -> None:
    with worker(generation):
        assert wrap(None) is seen
        assert plain().none is seen
        assert js.JSON.parse('{"a":[null]}').to_py() == {"a": [seen]}


def test_properties_are_attributes() -> None:
    with worker():
        assert plain().a == 1
        assert plain().undef is None
        assert plain().list.to_py() == [1, 2]
        assert not hasattr(plain(), "missing")


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda o: o["a"], TypeError, "'pyodide.ffi.JsProxy' object is not subscriptable"),
        (len, TypeError, "object of type 'pyodide.ffi.JsProxy' has no len()"),
        (iter, TypeError, "'pyodide.ffi.JsProxy' object is not iterable"),
        (lambda o: o(), TypeError, "'pyodide.ffi.JsProxy' object is not callable"),
        (hash, TypeError, "unhashable type: 'pyodide.ffi.JsProxy'"),
        (lambda o: o.missing, AttributeError, "missing"),
        (lambda o: o.get, AttributeError, "get"),
        (lambda o: o.items, AttributeError, "items"),
        (json.dumps, TypeError, "Object of type JsProxy is not JSON serializable"),
        (copy.deepcopy, TypeError, "cannot pickle 'pyodide.ffi.JsProxy' object"),
        (pickle.dumps, TypeError, "cannot pickle 'pyodide.ffi.JsProxy' object"),
    ],
)
def test_what_a_plain_object_cannot_do_fails_with_pyodides_text(
    use: Any, error: type[Exception], text: str
) -> None:
    with worker(), pytest.raises(error) as caught:
        use(plain())
    assert str(caught.value).startswith(text)


def test_membership_in_a_plain_object_is_an_error() -> None:
    with (
        worker(),
        pytest.raises(TypeError, match=r"argument of type 'pyodide\.ffi\.JsProxy' is not"),
    ):
        "a" in plain()  # noqa: B015


def test_empty_collections_are_false_and_objects_true() -> None:
    with worker():
        assert wrap({})
        assert not wrap([])
        assert not wrap(JsMap())
        assert not wrap(b"")
        assert wrap([0])
        assert wrap(WorkerQueue())


def test_equality_is_javascripts_identity() -> None:
    value: dict[str, Any] = {}
    assert wrap(value) == wrap(value)
    assert wrap(value) != wrap({})
    assert wrap(value).js_id == wrap(value).js_id
    assert wrap(b"ab") != b"ab"


@pytest.mark.parametrize(
    ("value", "kind", "name", "text"),
    [
        ({}, "object", "Object", "[object Object]"),
        ([1, None, [2]], "object", "Array", "1,,2"),
        (JsMap(), "object", "Map", "[object Map]"),
        (b"ab", "object", "Uint8Array", "97,98"),
        (WorkerQueue(), "object", "WorkerQueue", "[object WorkerQueue]"),
    ],
)
def test_type_class_and_text(value: Any, kind: str, name: str, text: str) -> None:
    proxy = wrap(value)
    assert (proxy.typeof, proxy.constructor.name, str(proxy)) == (kind, name, text)


def test_object_keys_values_and_entries_are_arrays() -> None:
    with worker():
        proxy = wrap({"b": 1, "1": 2})
        assert proxy.object_keys().to_py() == ["1", "b"]
        assert list(proxy.object_values()) == [2, 1]
        assert proxy.object_entries().to_py() == [["1", 2], ["b", 1]]


def test_attributes_can_be_set_and_deleted() -> None:
    with worker():
        proxy = wrap({})
        proxy.x = [1]
        assert proxy.x == [1]
        proxy.from_ = "f"
        assert proxy.object_keys().to_py() == ["x", "from"]
        del proxy.x
        assert not hasattr(proxy, "x")


def test_arrays_behave_like_lists() -> None:
    with worker():
        array = wrap([1, 2, 3])
        assert (len(array), array[0], array[-1], array[0:2].to_py()) == (3, 1, 3, [1, 2])
        assert 2 in array
        assert list(array) == [1, 2, 3]
        assert list(reversed(array)) == [3, 2, 1]
        array.append(4)
        assert (array.pop(), array.index(3), array.count(3), array.length) == (4, 2, 1, 3)
        assert (array + wrap([9])).to_py() == [1, 2, 3, 9]
        assert array.push(8) == 4


def test_array_errors_are_lists() -> None:
    with worker():
        with pytest.raises(IndexError, match="5"):
            wrap([1])[5]
        with pytest.raises(TypeError, match=r"^list indices must be integers or slices, not str$"):
            wrap([1])["0"]


def test_array_callbacks_get_javascripts_arguments() -> None:
    with worker():
        array = wrap([1, 2])
        assert array.map(lambda value, index, all_: value * 10 + index).to_py() == [10, 21]
        with pytest.raises(TypeError, match="takes 1 positional argument but 3 were given"):
            array.map(lambda value: value)
        with pytest.raises(ZeroDivisionError):
            array.map(lambda *args: 1 / 0)


def test_maps_can_be_subscripted() -> None:
    with worker():
        proxy = wrap(JsMap([("a", 1)]))
        assert (proxy["a"], proxy.get("a"), proxy.get("z"), proxy.get("z", 4)) == (1, 1, None, 4)
        assert "a" in proxy
        assert (list(proxy), dict(proxy), list(proxy.items())) == (["a"], {"a": 1}, [("a", 1)])
        assert (proxy.size, len(proxy)) == (1, 1)
        with pytest.raises(KeyError):
            proxy["z"]
        proxy["b"] = 2
        assert proxy.to_py() == {"a": 1, "b": 2}


def test_a_literal_map_has_attributes_too() -> None:
    with worker():
        assert wrap(LiteralMap([("a", 1)])).a == 1


def test_sets_know_their_members() -> None:
    with worker():
        proxy = wrap(JsSet([1, 2]))
        assert 1 in proxy
        assert (len(proxy), proxy.to_py(), proxy.has(2)) == (2, {1, 2}, True)


def test_headers_like_objects_can_be_subscripted() -> None:
    with worker():
        headers = wrap(Headers())
        assert headers["a"] == "1"
        assert "a" in headers
        assert dict(headers) == {"a": "1"}
        assert [list(pair) for pair in headers] == [["a", "1"]]
        assert headers.get("zz") is jsnull
        assert not hasattr(headers, "items")


def test_buffers_give_bytes_and_memoryviews() -> None:
    with worker():
        proxy = wrap(b"ab")
        assert (proxy.to_bytes(), proxy.to_string(), bytes(proxy.to_py())) == (b"ab", "ab", b"ab")
        assert isinstance(proxy.to_memoryview(), memoryview)
        assert (proxy[0], len(proxy), proxy.byteLength, list(proxy)) == (97, 2, 2, [97, 98])
        assert proxy.buffer.to_bytes() == b"ab"
        proxy[0] = 300
        assert proxy[0] == 44
        assert not hasattr(proxy, "tobytes")
        floats = wrap(TypedArray("Float64Array", ArrayBuffer(16)))
        assert floats.to_py().tolist() == [0.0, 0.0]


def test_array_buffer_has_no_len() -> None:
    with pytest.raises(TypeError, match=r"object of type 'pyodide\.ffi\.JsProxy' has no len"):
        len(wrap(ArrayBuffer(1)))


def test_host_members_are_visible_and_nothing_else() -> None:
    with worker():
        message = to_proxy(QueueMessage())
        assert message.attempts == 1
        assert message.body.key == 1
        assert message.timestamp.getTime() == 1767323045678
        assert message.ack() is None
        for hidden in ("retried_with", "js_class", "js_lookup", "nope"):
            with pytest.raises(AttributeError, match=hidden):
                getattr(message, hidden)


@pytest.mark.parametrize("name", ["body", "attempts", "ack"])
def test_read_only_member_refuses_assignment_with_the_platforms_text(name: str) -> None:
    """Recording queue_batch_object_shape."""
    with worker(), pytest.raises(JsException) as caught:
        setattr(wrap(QueueMessage()), name, 5)
    assert str(caught.value) == (
        f"TypeError: Cannot assign to read only property '{name}' of object '#<QueueMessage>'"
    )


def test_members_with_a_setter_and_new_properties_can_be_assigned() -> None:
    class Settable(HostObject):
        js_class = "Settable"
        js_members = frozenset({"level"})
        _level = 1

        @property
        def level(self) -> int:
            return self._level

        @level.setter
        def level(self, value: int) -> None:
            self._level = value

    with worker():
        proxy = wrap(Settable())
        proxy.level = 2
        proxy.note = "n"
        assert (proxy.level, proxy.note) == (2, "n")


def test_an_access_reads_a_member_once() -> None:
    """A getter may do something, such as lock a stream."""
    reads: list[str] = []

    class Getting(HostObject):
        js_class = "Getting"
        js_members = frozenset({"level", "rise"})

        @property
        def level(self) -> int:
            reads.append("level")
            return 1

        def rise(self) -> int:
            return 2

    with worker():
        proxy = wrap(Getting())
        assert (proxy.level, proxy.rise()) == (1, 2)
        assert reads == ["level"]
        assert not hasattr(proxy, "fall")
        assert {"level", "rise"} <= set(dir(proxy))


def test_messages_of_a_raw_batch_are_an_array() -> None:
    """Table 1.13 of python-api.md, frozen SDK."""
    with worker(modern=False):
        batch = wrap(QueueController())
        assert (len(batch.messages), batch.messages[0].id) == (2, "0" * 32)
        body = batch.messages[0].body
        assert body.key == 1
        with pytest.raises(TypeError, match="is not subscriptable"):
            body["key"]
        with pytest.raises(AttributeError, match="get"):
            body.get("key")
        assert body.to_py() == {"key": 1, "none": jsnull, "items": [1]}
        assert json.loads(js.JSON.stringify(body)) == {"key": 1, "none": None, "items": [1]}


def test_keyword_arguments_are_one_trailing_object() -> None:
    with worker() as host:
        raw = wrap(host.env["QUEUE"])
        raw.sendNow("x", contentType="text", delaySeconds=2)
        assert host.env["QUEUE"].calls == [("x", {"contentType": "text", "delaySeconds": 2})]


def test_asynchronous_iterables_are_iterated_and_their_items_wrapped() -> None:
    class Stream(HostObject):
        js_class = "ReadableStream"

        async def __aiter__(self) -> AsyncIterator[Any]:
            yield b"ab"

    async def handler() -> list[Any]:
        with worker():
            return [chunk.to_bytes() async for chunk in wrap(Stream())]

    assert asyncio.run(handler()) == [b"ab"]


def test_undefined_members_are_none_and_not_missing() -> None:
    class Response(HostObject):
        js_class = "Response"
        js_members = frozenset({"cf"})
        cf = UNDEFINED

    with worker():
        assert wrap(Response()).cf is None
        assert wrap(Response()).constructor.name == "Response"


def test_surplus_arguments_are_dropped() -> None:
    with worker():
        assert wrap(QueueMessage()).ack(1, 2, 3) is None


@pytest.mark.parametrize(
    ("generation", "seen"), [(26, {}), (28, {"a": {"b": 1}}), (314, {"a": {"b": 1}})]
)
def test_an_unconverted_dict_reaches_the_host_as_a_proxy(generation: int, seen: Any) -> None:
    """Recording py_ffi_probe_workerd2024: on 0.26 JavaScript sees nothing of it."""
    with worker(generation, modern=False) as host:
        wrap(host.env["QUEUE"]).sendNow({"a": {"b": 1}}, [1])
        body, values = host.env["QUEUE"].calls[0]
        assert isinstance(body, ProxiedDict)
        assert isinstance(values, ProxiedList)
        assert (body, list(values)) == (seen, [1])


def test_python_callables_reach_the_host_as_functions() -> None:
    with worker():
        function = to_host(unwrap(lambda proxy: proxy.a))
        assert function({"a": 5}) == 5


def test_raw_calls_return_promises_that_are_tracked() -> None:
    async def handler() -> None:
        with worker(modern=False) as host:
            call = wrap(host.env["QUEUE"]).send("x")
            assert isinstance(call, PyodideFuture)
            assert not isinstance(call, JsProxy)
            assert (host.calls, call.awaited) == ([call], False)
            assert (call.js_class, call.method) == ("WorkerQueue", "send")
            assert call.created[0] == __file__
            result = await call
            assert call.awaited
            assert result.metadata.metrics.backlogCount == 0
            assert await call is not None

    asyncio.run(handler())


def test_promises_chain() -> None:
    async def handler() -> None:
        with worker():
            queue = wrap(WorkerQueue())
            assert await js.Promise.resolve(5).then(lambda value: value + 1) == 6
            assert await js.Promise.resolve(5).finally_(lambda: 3) == 5
            assert await queue.reject().catch(lambda error: error.name) == "RangeError"
            with pytest.raises(JsException, match="RangeError: later"):
                await queue.reject()

    asyncio.run(handler())


def test_a_forgotten_promise_still_runs() -> None:
    async def handler() -> None:
        with worker() as host:
            wrap(host.env["QUEUE"]).send("x")
            await asyncio.sleep(0)
            assert host.env["QUEUE"].calls == [("x", UNDEFINED)]

    asyncio.run(handler())


def test_errors_of_the_host_are_raised_at_the_call() -> None:
    with worker(), pytest.raises(JsException, match="TypeError: no"):
        wrap(WorkerQueue()).fail()


@ALL
def test_missing_store_value(generation: int) -> None:
    """Table 1.13 of python-api.md: `kv.get(missing)` with the frozen SDK."""

    async def handler() -> Any:
        with worker(generation, modern=False):
            return await wrap(KvNamespace()).get("k")

    assert asyncio.run(handler()) is (None if generation == 26 else jsnull)


def test_to_py_stops_at_depth_and_asks_the_default_converter() -> None:
    with worker():
        deep = wrap({"a": {"b": QueueMessage()}})
        assert isinstance(deep.to_py(depth=1)["a"], JsProxy)
        found = deep.to_py(default_converter=lambda value, convert, cache: value.id)
        assert found == {"a": {"b": "0" * 32}}
        with pytest.raises(JsException, match="Cannot use key of type Object as a key to a Python"):
            wrap(JsSet([{}])).to_py()


def test_to_py_keeps_cycles() -> None:
    ring: dict[str, Any] = {}
    ring["self"] = ring
    found = wrap(ring).to_py()
    assert found["self"] is found
