"""JavaScript's side of the probes for the emulator: `fakes.mjs`, in the platform's own terms."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from emulator.runtime.js import GLOBALS, host_class
from emulator.runtime.js_text import display, own_names
from emulator.runtime.profile import is_modern
from emulator.runtime.proxies import wrap
from emulator.runtime.pyproxy import PyProxy, call_value
from emulator.runtime.sdk.workflow_errors import folded, step_error
from emulator.runtime.sdk.workflows import call_step_function
from emulator.runtime.web.promises import Resolved
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    Boxed,
    Function,
    HostObject,
    JsException,
    JsMap,
    JsSet,
    RegExp,
    Symbol,
    TypedArray,
    class_of,
    format_number,
    from_milliseconds,
    iso_format,
    stringify,
    to_number,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_MOMENT = 1767323045678


def describe(value: Any) -> str:
    """Tell what JavaScript has: `describe` of fakes.mjs."""
    if value is UNDEFINED:
        return "undefined"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return format_number(value)
    if isinstance(value, str):
        return str(stringify(value))
    if isinstance(value, BigInt):
        return f"{value.value}n"
    if isinstance(value, Symbol):
        return str(value)
    return _describe_object(value)


def _describe_object(value: Any) -> str:
    python = _python_behind(value)
    if python is not UNDEFINED:
        return f"PyProxy({type(python).__name__})"
    if isinstance(value, Function):
        return f"function {value.name}"
    if asyncio.isfuture(value) or hasattr(value, "__await__"):
        return "Promise"
    for kind, tell in _KINDS:
        if isinstance(value, kind):
            return tell(value)
    name = class_of(value)
    pairs = ", ".join(f"{key}: {describe(item)}" for key, item in _entries(value))
    return f"{'' if name == 'Object' else name}{{{pairs}}}"


def _python_behind(value: Any) -> Any:
    if isinstance(value, PyProxy):
        return value.live()
    if isinstance(value, Function) and value.python is not None:
        return value.python
    return getattr(value, "obj", UNDEFINED)


def _entries(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Boxed):
        if value.kind == "Date":  # an invalid one, of which `toISOString` fails there
            raise JsException("RangeError", "Invalid time value")
        return list(zip(own_names(value), value.value, strict=True)) if own_names(value) else []
    if isinstance(value, dict):
        return [(name, value[name]) for name in own_names(value)]
    if isinstance(value, HostObject):
        return [(name, value.js_lookup(name)) for name in value.js_keys()]
    return []


def _list(items: Any) -> str:
    return ", ".join(map(describe, items))


def _view(value: TypedArray) -> str:
    if value.kind == "DataView":
        return f"DataView({len(value)})"
    items = value.view().tolist()
    bigs = value.kind.startswith("Big")
    return f"{value.kind}({_list(BigInt(item) if bigs else item for item in items)})"


def _map(value: JsMap) -> str:
    pairs = ", ".join(f"{describe(key)}: {describe(item)}" for key, item in value.items())
    return f"{value.js_class}{{{pairs}}}"


_KINDS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (list, lambda value: f"[{_list(value)}]"),
    (JsMap, _map),
    ((set, frozenset, JsSet), lambda value: f"Set{{{_list(value)}}}"),
    (JsException, lambda value: f"{value.name}({value.message.split(chr(10))[0]})"),
    (RegExp, str),
    (ArrayBuffer, lambda value: f"ArrayBuffer({_list(bytes(value))})"),
    (bytes, lambda value: f"Uint8Array({_list(value)})"),
    (TypedArray, _view),
    (type(from_milliseconds(0)), lambda value: f"Date({iso_format(value)})"),
)


def told(*args: Any) -> str:
    return " | ".join(map(describe, args))


def _function(name: str, call: Callable[..., Any]) -> Function:
    return Function(call, name, raw=True)


class _Fake(HostObject):
    """Its public attributes are its members."""

    own: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        cls.js_class = cls.__name__
        names = {name for name in dir(cls) if not name.startswith(("_", "js_"))}
        cls.js_members = frozenset({*(names - {"own"}), *cls.own})

    def js_keys(self) -> tuple[str, ...]:
        return self.own


class Thing(_Fake):
    own = ("n", "label")
    js_statics = frozenset({"make"})

    def __init__(self, n: Any = 1) -> None:
        self._n = 1 if n is UNDEFINED else n
        self.label = "thing"

    @property
    def n(self) -> Any:
        return self._n

    @n.setter
    def n(self, value: Any) -> None:
        self._n = value

    @property
    def half(self) -> Any:
        return self.n / 2

    def twice(self, x: Any = UNDEFINED) -> Any:
        return (self.n if x is UNDEFINED else x) * 2

    def self(self) -> Any:
        return self


Thing.make = staticmethod(lambda n=UNDEFINED: Thing(n))  # type: ignore[attr-defined]


class WorkerQueue(_Fake):
    async def send(self, *args: Any) -> Any:
        return told(*args)

    async def sendBatch(self, *args: Any) -> Any:
        return told(*args)

    async def metrics(self) -> Any:
        return {"backlogCount": 1, "oldestMessageTimestamp": None}


class KvNamespace(_Fake):
    def __init__(self) -> None:
        self._reads = 0

    @property
    def reads(self) -> Any:
        self._reads += 1
        return self._reads

    async def get(self, key: Any = UNDEFINED, *options: Any) -> Any:
        return None if key == "missing" else told(key, *options)

    async def put(self, *args: Any) -> Any:
        return UNDEFINED

    async def list(self) -> Any:
        return {
            "keys": [{"name": "k", "metadata": None}],
            "list_complete": True,
            "cacheStatus": None,
        }

    async def getWithMetadata(self) -> Any:
        return {"value": None, "metadata": {"a": [1]}, "cacheStatus": None}

    async def buffer(self) -> Any:
        return ArrayBuffer(b"\1\2")

    async def map(self) -> Any:
        return JsMap([("a", {"b": 1}), ("c", None)])

    def date(self) -> Any:
        return from_milliseconds(_MOMENT)

    def echo(self, value: Any = UNDEFINED) -> Any:
        return value

    def tell(self, *args: Any) -> Any:
        return told(*args)

    def fail(self) -> Any:
        raise JsException("TypeError", "no such key")

    async def reject(self) -> Any:
        raise JsException("RangeError", "too far")

    def strange(self) -> Any:
        return _raise("a text")

    async def func(self) -> Any:
        return _function("", told)

    def thing(self) -> Any:
        return Thing(3)

    def things(self) -> Any:
        return [Thing(1), Thing(2)]

    async def objects(self) -> Any:
        return {"objects": [Thing(1)], "truncated": False}


class D1PreparedStatement(_Fake):
    def __init__(self, bound: str) -> None:
        self._bound = bound

    def bind(self, *args: Any) -> Any:
        return D1PreparedStatement(told(*args))

    async def first(self, *args: Any) -> Any:
        return told(*args) if args else None

    async def all(self) -> Any:
        return {
            "success": True,
            "results": [{"id": 1, "name": None, "bound": self._bound}],
            "meta": {"duration": 0.5, "rows_read": 1},
        }

    async def raw(self) -> Any:
        return [[1, None], [2, "x"]]


class D1Database(_Fake):
    def prepare(self, query: Any) -> Any:
        return D1PreparedStatement(query)

    async def batch(self, statements: Any) -> Any:
        return [class_of(one) for one in statements]

    async def exec(self, *args: Any) -> Any:
        return {"count": 1, "duration": 0}


class DurableObjectId(_Fake):
    def __init__(self, name: Any) -> None:
        self._name = name

    @property
    def name(self) -> Any:
        return self._name

    def toString(self) -> Any:
        return "00ff"

    def equals(self, other: Any) -> Any:
        return self._name == other.name


class Fetcher(_Fake):
    name = "stub"

    async def echo(self, value: Any = UNDEFINED) -> Any:
        return value

    async def tell(self, *args: Any) -> Any:
        return told(*args)

    async def fail(self) -> Any:
        raise JsException("Error", "remote")

    async def fetch(self, url: Any, init: Any = UNDEFINED) -> Any:
        asked = url if isinstance(url, str) else url.url
        return _response_class().js_new(asked, {"status": 201, "headers": {"x-a": "1"}})


class DurableObjectNamespace(_Fake):
    def idFromName(self, name: Any) -> Any:
        return DurableObjectId(name)

    def newUniqueId(self) -> Any:
        return DurableObjectId(UNDEFINED)

    def get(self, id: Any = UNDEFINED) -> Any:
        return Fetcher()

    def getByName(self, name: Any = UNDEFINED) -> Any:
        return Fetcher()

    def jurisdiction(self, name: Any = UNDEFINED) -> Any:
        return DurableObjectNamespace()


class WorkflowInstance(_Fake):
    id = "wf-1"

    async def status(self) -> Any:
        return {"status": "running", "output": None, "error": None}

    async def pause(self) -> Any:
        return UNDEFINED

    async def sendEvent(self, *args: Any) -> Any:
        return told(*args)


class WorkflowImpl(_Fake):
    async def get(self, id: Any = UNDEFINED) -> Any:
        return WorkflowInstance()

    async def create(self, *args: Any) -> Any:
        return WorkflowInstance()

    async def createBatch(self, items: Any = UNDEFINED) -> Any:
        return [WorkflowInstance()]


class QueueMessage(_Fake):
    id = "m1"
    attempts = 1

    def __init__(self, body: Any) -> None:
        self._body = body

    @property
    def timestamp(self) -> Any:
        return from_milliseconds(_MOMENT)

    @property
    def body(self) -> Any:
        return self._body

    def ack(self) -> Any:
        return UNDEFINED

    def retry(self, *args: Any) -> Any:
        return _refuse(*args)


class QueueController(_Fake):
    queue = "orders"

    def __init__(self) -> None:
        self._messages = [
            QueueMessage({"key": 1, "none": None, "items": [1]}),
            QueueMessage(None),
        ]

    @property
    def messages(self) -> Any:
        return self._messages

    @property
    def metadata(self) -> Any:
        return {"metrics": {"backlogCount": 0}}

    def ackAll(self) -> Any:
        return UNDEFINED

    def retryAll(self, *args: Any) -> Any:
        return _refuse(*args)


def _refuse(*args: Any) -> Any:
    if args:
        raise JsException("Error", told(*args))
    return UNDEFINED


class Hyperdrive(_Fake):
    host = "db"

    def connect(self, *args: Any) -> Any:
        return told(*args)


class TestController(_Fake):
    __test__ = False


class SqlStorageCursor(_Fake):
    columnNames = ["id", "val"]  # noqa: RUF012 - read only
    rowsRead = 2

    def __init__(self) -> None:
        self._rows = [{"id": 1, "val": None}, {"id": 2, "val": "x"}]

    def toArray(self) -> Any:
        return self._rows

    def one(self) -> Any:
        return self._rows[0]

    def __iter__(self) -> Any:
        return iter(self._rows)


class SqlStorage(_Fake):
    def exec(self, *args: Any) -> Any:
        return SqlStorageCursor()


class DurableObjectStorage(_Fake):
    @property
    def sql(self) -> Any:
        return SqlStorage()

    async def get(self, key: Any) -> Any:
        return UNDEFINED if key == "missing" else told(key)

    async def put(self, *args: Any) -> Any:
        return told(*args)

    async def list(self) -> Any:
        return JsMap([("a", 1), ("b", {"c": None})])

    async def setAlarm(self, *args: Any) -> Any:
        return told(*args)

    async def transaction(self, closure: Any) -> Any:
        from emulator.runtime.pyproxy import await_given

        return await await_given(closure, DurableObjectStorage())


class DurableObjectState(_Fake):
    @property
    def storage(self) -> Any:
        return DurableObjectStorage()

    @property
    def id(self) -> Any:
        return DurableObjectId("n")

    async def blockConcurrencyWhile(self, closure: Any) -> Any:
        from emulator.runtime.pyproxy import await_given

        return await await_given(closure)

    def waitUntil(self, promise: Any = UNDEFINED) -> Any:
        return told(promise)


class WorkflowStep(_Fake):
    async def do(self, name: Any, *rest: Any) -> Any:
        context = {
            "step": {"name": name, "count": 1},
            "attempt": 1,
            "config": rest[0] if len(rest) > 1 else {},
        }
        try:
            return await call_step_function(rest[-1], context)
        except Exception as error:
            raise folded(step_error(error, modern=is_modern())) from None

    async def sleep(self, *args: Any) -> Any:
        return told(*args)

    async def sleepUntil(self, *args: Any) -> Any:
        return told(*args)

    async def waitForEvent(self, *args: Any) -> Any:
        return {"payload": told(*args), "type": "t"}


def values() -> dict[str, Any]:
    """One value of each kind."""
    return {
        "undefined": UNDEFINED,
        "null": None,
        "yes": True,
        "no": False,
        "int": 5,
        "negative": -1,
        "float": 1.5,
        "whole": 2,
        "large": float(2**53),
        "safe": 2**53 - 1,
        "huge": 1e300,
        "nan": float("nan"),
        "infinity": float("inf"),
        "minus_zero": -0.0,
        "bigint": BigInt(5),
        "bigger": BigInt(2**70),
        "text": "héllo",
        "empty": "",
        "symbol": Symbol("s"),
        "object": {"a": 1, "b": "x"},
        "nested": {"a": [1, {"b": None}], "c": {"d": UNDEFINED}},
        "keys": {"items": 1, "get": 2, "keys": 3, "from": 4, "a-b": 5, "0": 6},
        "blank": {},
        "array": [1, "x", None, UNDEFINED],
        "none": [],
        "deep": [[1, [2, [3]]]],
        "map": JsMap([("a", 1), ("b", {"c": None})]),
        "numbered": JsMap([(1, "one"), (2, "two")]),
        "keyed": JsMap([({"k": 1}, "v")]),  # type: ignore[list-item]
        "set": JsSet([1, "x", 2]),
        "objects": JsSet([{"a": 1}]),
        "date": from_milliseconds(_MOMENT),
        "error": JsException("Error", "bad"),
        "range": JsException("RangeError", "far"),
        "type_error": JsException("TypeError", "no"),
        "regexp": RegExp("ab+", "gi"),
        "buffer": ArrayBuffer(b"\1\2\3"),
        "bytes": TypedArray("Uint8Array", ArrayBuffer(b"\1\2\xff")),
        "ints": _array("Int32Array", 1, -2),
        "floats": _array("Float64Array", 1.5, 2.0),
        "bigs": _array("BigInt64Array", 5, -5),
        "shorts": _array("Uint16Array", 1, 65535),
        "clamped": _array("Uint8ClampedArray", 1, 2),
        "view": TypedArray("DataView", ArrayBuffer(2)),
        "thing": Thing(4),
        "Thing": host_class(Thing),
        "func": Function(
            lambda a=UNDEFINED, b=UNDEFINED, *_: _add(a, b),
            "add",
            raw=True,
            source="function add(a, b) { return a + b; }",
        ),
        "tell": _function("told", told),
        "resolved": Resolved(7),
        "list_of_objects": [{"a": 1}, {"a": 2}],
        "nothing": {},
    }


def _add(a: Any, b: Any) -> Any:
    if any(not isinstance(one, (int, float)) and one is not UNDEFINED for one in (a, b)):
        return display(a) + display(b)
    return to_number(a) + to_number(b)


def _array(kind: str, *items: Any) -> TypedArray:
    made = TypedArray(kind, ArrayBuffer(len(items) * {"I": 4, "F": 8, "B": 8}.get(kind[0], 2)))
    if kind == "Uint8ClampedArray":
        made = TypedArray(kind, ArrayBuffer(len(items)))
    view = made.view()
    for index, item in enumerate(items):
        view[index] = item
    return made


def env() -> dict[str, Any]:
    """The bindings and variables of the Worker."""
    return {
        "QUEUE": WorkerQueue(),
        "KV": KvNamespace(),
        "DB": D1Database(),
        "SERVICE": Fetcher(),
        "OBJECTS": DurableObjectNamespace(),
        "FLOW": WorkflowImpl(),
        "HYPER": Hyperdrive(),
        "TEXT": "hello",
        "NUMBER": 1.5,
        "WHOLE": 2,
        "FLAG": True,
        "NULL": None,
        "OBJECT": {"b": {"c": 1}},
        "LIST": [1, {"a": 1}],
    }


def _response_class() -> Any:
    from emulator.runtime.web.response import Response

    return Response


def _new(name: str, *args: Any) -> Any:
    return GLOBALS[name].construct(*args)


def _form() -> Any:
    form = _new("FormData")
    form.append("a", "1")
    form.append("a", "2")
    form.append("b", _new("Blob", ["xy"], {"type": "text/plain"}), "n.txt")
    return form


def _catches(function: Any) -> Any:
    try:
        call_value(function)
    except JsException as error:
        return describe(error)
    except Exception:  # JavaScript's PythonError
        return "PythonError(Traceback (most recent call last):)"
    return UNDEFINED


def _raise(value: Any) -> Any:
    raise value if isinstance(value, BaseException) else JsException("Error", display(value))


async def _reject(value: Any) -> Any:
    return _raise(value)


async def _awaited(value: Any) -> Any:
    if isinstance(value, PyProxy):
        value = value.obj
    if hasattr(value, "__await__"):
        from emulator.runtime.pyproxy import unwrap

        value = unwrap(await value)
    return describe(value)


def _get(value: Any, key: Any) -> Any:
    from emulator.runtime.js_objects import element as lookup_element

    return lookup_element(value, display(key))


def _has(value: Any, key: Any) -> Any:
    return _get(value, key) is not UNDEFINED


_RESPONSE = (
    "body",
    {
        "status": 404,
        "statusText": "Nope",
        "headers": [["a", "1"], ["set-cookie", "x=1"], ["set-cookie", "y=2"]],
    },
)
_REQUEST = ("http://h/p?q=1", {"headers": {"a": "1", "b": "2"}})

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "values": lambda *_: values(),
    "env": env,
    "describe": told,
    "same": lambda value=UNDEFINED: value,
    "batch": QueueController,
    "state": DurableObjectState,
    "step": WorkflowStep,
    "controller": TestController,
    "event": lambda: {
        "payload": {"a": 1, "none": None},
        "timestamp": from_milliseconds(_MOMENT),
        "instanceId": "i",
        "workflowName": "w",
    },
    "call": lambda f, *args: call_value(f, *args),
    "catches": _catches,
    "raise": _raise,
    "reject": _reject,
    "keep": lambda value: _function("", lambda: value),
    "json": lambda value: stringify(value),
    "keys": own_names,
    "get": _get,
    "has": _has,
    "type": type_of,
    "name": class_of,
    "awaited": _awaited,
    "error": lambda name, message: JsException(name, message),
    "response": lambda: _new("Response", *_RESPONSE),
    "request": lambda *args: _new("Request", *(args or _REQUEST)),
    "form": _form,
    "blob": lambda: _new("Blob", ["abc"], {"type": "text/plain"}),
    "headers": lambda: _new("Headers", {"a": "1", "b": "2"}),
}


def fakes() -> Any:
    """What a probe calls `fakes`."""
    return wrap({name: _function(name, call) for name, call in _FUNCTIONS.items()})


def describer() -> Any:
    """What a probe calls `describe`."""
    return wrap(_function("describe", describe))
