"""`workers.rpc`: tables 1.3 to 1.6 and 1.13 of python-api.md."""

from __future__ import annotations

import asyncio
import collections
import decimal
import enum
import inspect
import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from ffi_worker import QueueController, QueueMessage, WorkerQueue, worker

from emulator.runtime import ffi, js
from emulator.runtime.promises import BindingCall
from emulator.runtime.proxies import JsProxy, wrap
from emulator.runtime.pyproxy import JsNull, PyProxy, jsnull, unwrap
from emulator.runtime.rpc import (
    JsDict,
    _BindingWrapper,
    _EnvWrapper,
    _RpcStubWrapper,
    python_from_rpc,
    python_to_rpc,
    raw_env,
    register_class,
    to_canonical,
)
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    Function,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    ProxiedList,
    RegExp,
    TypedArray,
    class_of,
)


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    HI = "hi"


class Stand:
    """Has a JavaScript object, as `workers.Request` has."""

    def __init__(self, value: Any) -> None:
        self.js_object = wrap(value)


Point = collections.namedtuple("Point", "x y")

TO_JAVASCRIPT: list[tuple[Any, Any]] = [
    (None, None),
    ({"a": None, "l": [None]}, {"a": None, "l": [None]}),
    (True, True),
    ("x", "x"),
    (Word.HI, "hi"),
    (Level.LOW, 1),
    (2**53 - 2, 2**53 - 2),
    (2**53 - 1, BigInt(2**53 - 1)),
    (-(2**60), BigInt(-(2**60))),
    (1.0, 1),
    ({1: 2, 1.5: 3, None: 5}, {"1": 2, "1.5": 3, "undefined": 5}),
    ({True: 4}, {"true": 4}),
    (JsDict(a=1), {"a": 1}),
    (collections.OrderedDict(a=[1]), {"a": [1]}),
    ([{"a": [1]}], [{"a": [1]}]),
    ({1, 2}, JsSet([1, 2])),
    (b"ab", b"ab"),
    (memoryview(b"ab"), b"ab"),
    (datetime(2026, 1, 1, 0, 0, 0, 123999), datetime(2026, 1, 1, 0, 0, 0, 123000, UTC)),
    (
        datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 1, 1, tzinfo=UTC),
    ),
    (Stand({"k": 1}), {"k": 1}),
    ([Stand([1])], [[1]]),
    (jsnull, None),
]


@pytest.mark.parametrize(("value", "canonical"), TO_JAVASCRIPT)
def test_values_go_to_javascript(value: Any, canonical: Any) -> None:
    """Table 1.5 of python-api.md, first half; limits of numbers from a run of Pyodide 0.28.2."""
    with worker():
        assert to_canonical(value) == canonical


def test_none_is_undefined_on_026() -> None:
    with worker(26):
        assert to_canonical({"a": None}) == {"a": UNDEFINED}
        assert python_to_rpc(None) is None
    with worker(28):
        assert python_to_rpc(None) is jsnull


@pytest.mark.parametrize(
    "value", [Colour.RED, date(2026, 1, 1), decimal.Decimal(1), range(2), object(), frozenset({1})]
)
def test_other_objects_become_proxies_that_nothing_can_clone(value: Any) -> None:
    with worker():
        found = to_canonical([value])[0]
        assert isinstance(found, PyProxy)
        assert found.obj is value
        with pytest.raises(JsException, match="could not be cloned"):
            js.structuredClone(python_to_rpc([value]))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((1, 2), "<class 'tuple'> cannot be sent over RPC."),
        ({"a": [(1,)]}, "<class 'tuple'> cannot be sent over RPC."),
        ({(1,)}, "<class 'tuple'> cannot be sent over RPC."),
        (bytearray(b"a"), "<class 'bytearray'> cannot be sent over RPC."),
        (Point(1, 2), f"<class '{__name__}.Point'> cannot be sent over RPC."),
        (collections.deque([(1,)]), "<class 'tuple'> cannot be sent over RPC."),
        ({"a": 1}.items(), "<class 'tuple'> cannot be sent over RPC."),
    ],
)
def test_tuples_and_bytearrays_are_refused(value: Any, text: str) -> None:
    with worker(), pytest.raises(TypeError) as caught:
        python_to_rpc(value)
    assert str(caught.value) == text


def test_awaitables_and_regular_expressions_are_refused() -> None:
    async def handler() -> None:
        with worker():
            work = asyncio.sleep(0)
            with pytest.raises(TypeError, match=r"^Awaitable <class 'coroutine'> cannot be sent"):
                python_to_rpc({"a": work})
            work.close()
            with pytest.raises(
                TypeError, match=r"^Awaitable <class 'pyodide.webloop.PyodideFuture'>"
            ):
                python_to_rpc(js.Promise.resolve(1))
            with pytest.raises(TypeError, match=r"^RegExp cannot be sent over RPC"):
                python_to_rpc([js.RegExp.new("x")])

    asyncio.run(handler())


def test_a_key_that_is_no_property_name_is_a_conversion_error() -> None:
    with worker(), pytest.raises(ffi.ConversionError, match="as a key for a Javascript Map"):
        python_to_rpc({(1, 2): 3})


def test_a_cycle_recurses_as_in_the_sdk() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with worker(), pytest.raises(RecursionError):
        python_to_rpc(ring)


def test_exceptions_become_errors_and_functions_functions() -> None:
    with worker():
        error = to_canonical(ValueError("x"))
        assert (class_of(error), error.message) == ("Error", "x")
        function = to_canonical(lambda proxy: proxy.a)
        assert isinstance(function, Function)
        assert function({"a": 1}) == 1


def test_proxies_pass_through() -> None:
    with worker():
        proxy = wrap({"a": 1})
        assert python_to_rpc(proxy) is proxy
        wrapper = _BindingWrapper(wrap(WorkerQueue()))
        assert python_to_rpc(wrapper) is wrapper._binding
        assert to_canonical({"q": wrapper})["q"] is unwrap(wrapper._binding)


FROM_JAVASCRIPT: list[tuple[Any, Any]] = [
    (None, None),
    (UNDEFINED, None),
    (1.0, 1),
    (BigInt(2**70), 2**70),
    ({"a": {"b": None}}, {"a": {"b": None}}),
    (JsMap([(1, {"a": 1})]), {1: {"a": 1}}),
    ([1, [UNDEFINED]], [1, [None]]),
    (JsSet([1, "x"]), {1, "x"}),
    (datetime(2026, 1, 1, 0, 0, 0, 5000, UTC), datetime(2026, 1, 1, 0, 0, 0, 5000)),
]


@pytest.mark.parametrize(("value", "seen"), FROM_JAVASCRIPT)
def test_values_come_from_javascript(value: Any, seen: Any) -> None:
    """Table 1.5 of python-api.md, second half."""
    with worker():
        found = python_from_rpc(wrap(value))
        assert found == seen
        assert type(found) is (JsDict if isinstance(seen, dict) else type(seen))


def test_objects_are_dicts_with_attributes_all_the_way_down() -> None:
    with worker():
        found = python_from_rpc(wrap({"a": {"items": 1}}))
        assert type(found.a) is JsDict
        assert found.a["items"] == 1
        assert callable(found.a.items)
        assert json.dumps(found) == '{"a": {"items": 1}}'
        found.b = 2
        assert found["b"] == 2
        with pytest.raises(AttributeError, match=r"^nope$"):
            found.nope  # noqa: B018
        assert not hasattr(found, "to_py")


def test_wrappers_have_what_a_proxy_has_in_python() -> None:
    """Recorded in real Pyodide: the SDK reads attributes of the proxy, its own included."""
    with worker():
        message = _BindingWrapper(wrap(QueueMessage({"a": 1})))
        again = message.to_py()
        assert type(again) is _BindingWrapper
        assert again is not message
        assert again.body == {"a": 1}
        assert message.typeof == "object"
        assert isinstance(message.js_id, int)
        with pytest.raises(TypeError, match=r"^to_py\(\) takes no positional arguments$"):
            message.to_py(1)
        assert not hasattr(message, "to_bytes")


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (b"ab", "B"),
        (ArrayBuffer(b"ab"), "B"),
        (TypedArray("Uint16Array", ArrayBuffer(b"ab")), "H"),
        (TypedArray("DataView", ArrayBuffer(b"ab")), "B"),
    ],
)
def test_buffers_come_as_memoryviews(value: Any, form: str) -> None:
    with worker():
        found = python_from_rpc(wrap(value))
        assert isinstance(found, memoryview)
        assert (found.tobytes(), found.format) == (b"ab", form)


def test_only_plain_errors_come_as_exceptions() -> None:
    with worker():
        found = python_from_rpc(JsException("Error", "x"))
        assert (type(found), str(found)) == (Exception, "Error: x")
        assert isinstance(python_from_rpc(JsException("TypeError", "x")), JsException)


def test_sets_of_objects_cannot_come() -> None:
    with worker(), pytest.raises(JsException, match="Cannot use key of type Object as a key to a"):
        python_from_rpc(wrap(JsSet([{}])))


def test_python_values_are_left_alone() -> None:
    with worker():
        assert python_from_rpc([1]) == [1]
        assert python_from_rpc({"a": jsnull}) == {"a": jsnull}
        assert python_from_rpc(jsnull) is None


def test_registered_classes_are_made_of_instances() -> None:
    class Ticket(HostObject):
        js_class = "Ticket"

    register_class("Ticket", lambda proxy: ("ticket", proxy.constructor.name))
    with worker():
        assert python_from_rpc(wrap({"t": Ticket()})) == {"t": ("ticket", "Ticket")}


def test_a_class_registered_after_a_first_result_is_made_of_the_next() -> None:
    class Seat(HostObject):
        js_class = "Seat"

    class Hall(HostObject):
        js_class = "R2Bucket"
        js_members = frozenset({"seat"})

        def seat(self) -> Seat:
            return Seat()

    with worker():
        hall = _BindingWrapper(wrap(Hall()))
        assert isinstance(hall.seat(), _BindingWrapper)
        register_class("Seat", lambda _: "a seat")
        assert hall.seat() == "a seat"


# The wrappers of the env and of its bindings


def test_an_env_of_python_s_own_is_kept_as_it_is() -> None:
    class Env:
        A = (1,)

    wrapped = _EnvWrapper(Env)
    assert _EnvWrapper(wrapped) is wrapped
    assert wrapped._env is Env
    assert wrapped.A is Env.A


def test_attributes_are_read_once_and_subscripts_every_time() -> None:
    """Rule 1.4 of python-api.md."""
    with worker() as host:
        kv = _EnvWrapper(raw_env()).KV
        assert [kv.stored, kv.stored, kv["stored"], kv["stored"]] == [1, 1, 2, 3]
        assert host.env["KV"].reads == 3
        assert kv.get is kv.get


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (len, TypeError, "'KvNamespace' object has no len()"),
        (list, TypeError, "'KvNamespace' object is not iterable"),
        (lambda kv: "a" in kv, TypeError, "'KvNamespace' object is not iterable"),
        (lambda kv: kv.nope, AttributeError, "nope"),
        (lambda kv: kv["nope"], AttributeError, "nope"),
        (lambda kv: kv[0], TypeError, "'pyodide.ffi.JsProxy' object is not iterable"),
        (lambda kv: kv.send_batch, AttributeError, "send_batch"),
    ],
)
def test_wrapper_errors_name_the_javascript_class(
    use: Any, error: type[Exception], text: str
) -> None:
    with worker(), pytest.raises(error) as caught:
        use(_EnvWrapper(raw_env()).KV)
    assert str(caught.value) == text


def test_wrapper_is_true_and_idempotent() -> None:
    with worker():
        queue = _EnvWrapper(raw_env()).QUEUE
        assert queue
        assert _BindingWrapper(queue) is queue


def test_objects_in_a_list_are_wrapped_and_inside_an_object_raw() -> None:
    class Bucket(HostObject):
        js_class = "R2Bucket"
        js_members = frozenset({"found", "listed", "proxied"})

        def found(self) -> Any:
            return [QueueMessage()]

        def proxied(self) -> Any:
            return ProxiedList([QueueMessage()])

        def listed(self) -> Any:
            return {"objects": [QueueMessage()]}

    with worker():
        bucket = _BindingWrapper(wrap(Bucket()))
        assert isinstance(bucket.found()[0], _BindingWrapper)
        assert isinstance(bucket.proxied()[0], _BindingWrapper)
        raw = bucket.listed().objects[0]
        assert isinstance(raw, JsProxy)
        assert raw.attempts == 1
        with pytest.raises(TypeError, match="not subscriptable"):
            raw["attempts"]  # type: ignore[index]


def test_methods_by_subscript_are_callable_stubs() -> None:
    with worker() as host:
        send = _EnvWrapper(raw_env()).QUEUE["sendNow"]
        assert isinstance(send, _RpcStubWrapper)
        assert send({"a": None}) == {"a": None}
        assert host.env["QUEUE"].calls == [({"a": None},)]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (({"a": 1},), {"contentType": "json", "delaySeconds": 3}),
        (({"a": 1}, {"contentType": "json", "delaySeconds": 3}), {}),
    ],
)
def test_options_go_as_keywords_or_as_a_dict(args: Any, kwargs: Any) -> None:
    """Rule 1.6 of python-api.md."""
    with worker() as host:
        _EnvWrapper(raw_env()).QUEUE.sendNow(*args, **kwargs)
        assert host.env["QUEUE"].calls == [({"a": 1}, {"contentType": "json", "delaySeconds": 3})]


def test_a_binding_call_is_a_coroutine_that_knows_where_it_was_made() -> None:
    async def handler() -> None:
        with worker() as host:
            queue = _EnvWrapper(raw_env()).QUEUE
            frame = inspect.currentframe()
            assert frame is not None
            call, made_at = queue.send({"a": 1}), frame.f_lineno
            assert isinstance(call, BindingCall)
            assert asyncio.iscoroutine(call)
            assert inspect.isawaitable(call)
            assert host.calls == [call]
            assert (call.awaited, call.js_class, call.method) == (False, "WorkerQueue", "send")
            assert call.created == (__file__, made_at)
            assert f"WorkerQueue.send called at {__file__}:" in repr(call)
            result = await call
            assert call.awaited
            assert result.metadata.metrics.backlogCount == 0
            assert result.metadata.metrics.oldestMessageTimestamp is None
            with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
                await call

    asyncio.run(handler())


@pytest.mark.parametrize(
    "run",
    [
        asyncio.create_task,
        asyncio.ensure_future,
        asyncio.gather,
        lambda call: asyncio.wait_for(call, 1),
    ],
)
def test_asyncio_takes_a_binding_call_for_a_coroutine(run: Any) -> None:
    async def handler() -> None:
        with worker():
            call = _EnvWrapper(raw_env()).QUEUE.send("x")
            await run(call)
            assert call.awaited

    asyncio.run(handler())


def test_a_call_that_nobody_awaits_is_made_all_the_same() -> None:
    async def handler() -> None:
        with worker() as host:
            _EnvWrapper(raw_env()).QUEUE.send("x")
            await asyncio.sleep(0)
            assert host.env["QUEUE"].calls == [("x", UNDEFINED)]
            assert [call.awaited for call in host.calls] == [False]

    asyncio.run(handler())


def test_wrong_arguments_raise_at_the_call_and_nothing_is_sent() -> None:
    with worker() as host:
        with pytest.raises(TypeError, match="tuple"):
            _EnvWrapper(raw_env()).QUEUE.send((1, 2))
        assert host.env["QUEUE"].calls == []
        assert host.calls == []


def test_errors_of_the_platform_come_as_js_exception() -> None:
    async def handler() -> None:
        with worker():
            queue = _EnvWrapper(raw_env()).QUEUE
            with pytest.raises(JsException, match=r"^TypeError: no"):
                queue.fail()
            with pytest.raises(JsException, match=r"^RangeError: later"):
                await queue.reject()

    asyncio.run(handler())


# Queues


def test_a_modern_batch_is_python() -> None:
    """Rule 1.6 and table 1.13 of python-api.md."""
    with worker():
        first = QueueMessage()
        batch = _BindingWrapper(wrap(QueueController(first)))
        assert type(batch.messages) is list
        assert batch.messages is batch.messages
        message = batch.messages[0]
        assert isinstance(message, _BindingWrapper)
        assert (batch.queue, batch.metadata.metrics.backlogCount) == ("orders", 0)
        assert message.body == {"key": 1, "none": None, "items": [1]}
        assert message.body.key == message.body["key"] == 1
        assert message.timestamp == datetime(2026, 1, 2, 3, 4, 5, 678000)
        assert (message["attempts"], message.id) == (1, "0" * 32)
        assert message.ack() is None
        for attribute in ("nope", "ack_all"):
            with pytest.raises(AttributeError, match=attribute):
                getattr(message, attribute)


def test_retry_options_pass_through_as_written() -> None:
    with worker():
        message = QueueMessage()
        wrapped = _BindingWrapper(wrap(message))
        wrapped.retry()
        wrapped.retry(delaySeconds=5)
        wrapped.retry({"delaySeconds": 5})
        wrapped.retry(delay_seconds=5)
        wrapped.retry(5)
        wrapped.retry(ffi.to_js({"delaySeconds": 5}, dict_converter=js.Object.fromEntries))
        assert message.retried_with == [
            UNDEFINED,
            {"delaySeconds": 5},
            {"delaySeconds": 5},
            {"delay_seconds": 5},
            5,
            {"delaySeconds": 5},
        ]


@pytest.mark.parametrize("body", [None, "", 0, 1.5, True, [1, None], {"a": {"b": []}}, math.inf])
def test_bodies_arrive_as_python(body: Any) -> None:
    with worker():
        assert _BindingWrapper(wrap(QueueMessage(body))).body == body


# The env


def test_env_gives_what_production_gives() -> None:
    """Table 1.3 of python-api.md."""
    with worker():
        env = _EnvWrapper(raw_env())
        assert isinstance(env.QUEUE, _BindingWrapper)
        assert env.QUEUE is env.QUEUE
        assert (env.TEXT, env.NUMBER, env.BIG) == ("hello", 1.5, 10)
        assert isinstance(env.OBJECT, JsProxy)
        assert env.OBJECT.b.c == 1
        assert isinstance(env.NULL, JsNull)
        assert getattr(env, "MISSING", "default") == "default"
        with pytest.raises(AttributeError, match=r"^MISSING\n"):
            env.MISSING  # noqa: B018
        with pytest.raises(TypeError, match="'_EnvWrapper' object is not subscriptable"):
            env["QUEUE"]  # type: ignore[index]
        with pytest.raises(TypeError, match="not subscriptable"):
            env.OBJECT["b"]  # type: ignore[index]
        assert _EnvWrapper(env) is env


def test_a_kept_env_follows_the_worker_that_runs() -> None:
    with worker() as host:
        env = _EnvWrapper(raw_env())
        first = env.QUEUE
        host.env["TEXT"] = "other"
        assert env.TEXT == "other"
    with worker():
        assert env.QUEUE is not first
        assert env.TEXT == "hello"


def test_raw_env_is_a_proxy() -> None:
    with worker(modern=False):
        env = raw_env()
        assert (type(env).__name__, str(env)) == ("JsProxy", "[object Object]")
        assert str(env.QUEUE) == "[object WorkerQueue]"
        assert getattr(env, "MISSING", None) is None
        assert env.OBJECT.to_py() == {"a": [1, 2], "b": {"c": 1}}


def test_env_values_that_are_other_objects_stay_raw() -> None:
    class Hyperdrive(HostObject):
        js_class = "Hyperdrive"
        js_members = frozenset({"host"})
        host = "db"

    with worker() as host:
        host.env["DB"] = Hyperdrive()
        found = _EnvWrapper(raw_env()).DB
        assert isinstance(found, JsProxy)
        assert found.host == "db"


def test_regexp_results_are_wrapped() -> None:
    class Odd(HostObject):
        js_class = "Odd"
        js_members = frozenset({"pattern"})
        pattern = RegExp("x", "g")

    with worker():
        assert _BindingWrapper(wrap(Odd())).pattern.source == "x"
