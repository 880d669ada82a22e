"""A Worker with a queue, a store and variables, for tests of what user code sees."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from emulator.scope import SCOPE
from emulator.values import UNDEFINED, BigInt, HostObject, JsException, encode_body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.location import Location
    from emulator.scope import Scope

GENERATIONS = {
    26: frozenset[str](),
    28: frozenset({"python_workers_20250116"}),
    314: frozenset({"python_workers_20250116", "python_workers_314"}),
}
MODERN = "enable_python_external_sdk"


class QueueMessage(HostObject):
    js_class = "QueueMessage"
    js_members = frozenset({"ack", "attempts", "body", "id", "retry", "timestamp"})

    def __init__(self, body: Any = UNDEFINED) -> None:
        self._body = {"key": 1, "none": None, "items": [1]} if body is UNDEFINED else body
        self.id = "0" * 32
        self.attempts = 1
        self.timestamp = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
        self.retried_with: list[Any] = []

    @property
    def body(self) -> Any:
        return self._body

    def ack(self) -> Any:
        return UNDEFINED

    def retry(self, options: Any = UNDEFINED) -> Any:
        self.retried_with.append(options)
        return UNDEFINED


class QueueController(HostObject):
    js_class = "QueueController"
    js_members = frozenset({"ackAll", "messages", "metadata", "queue", "retryAll"})
    queue = "orders"

    def __init__(self, *messages: QueueMessage) -> None:
        self.messages = list(messages) or [QueueMessage(), QueueMessage()]
        self.metadata: dict[str, Any] = {"metrics": {"backlogCount": 0}}

    def ackAll(self) -> Any:
        return UNDEFINED


class WorkerQueue(HostObject):
    js_class = "WorkerQueue"
    js_members = frozenset({"send", "sendBatch", "sendNow", "fail", "reject"})

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    async def send(self, body: Any = UNDEFINED, options: Any = UNDEFINED) -> Any:
        self.calls.append((body, options))
        encode_body(body)
        return {"metadata": {"metrics": {"backlogCount": 0, "oldestMessageTimestamp": UNDEFINED}}}

    async def sendBatch(self, messages: Any, options: Any = UNDEFINED) -> Any:
        self.calls.append((messages, options))
        for message in messages:
            encode_body(message.get("body", UNDEFINED))
        return UNDEFINED

    def sendNow(self, *args: Any) -> Any:
        self.calls.append(args)
        return args[0] if args else UNDEFINED

    def fail(self) -> Any:
        raise JsException("TypeError", "no")

    async def reject(self) -> Any:
        raise JsException("RangeError", "later")


class KvNamespace(HostObject):
    js_class = "KvNamespace"
    js_members = frozenset({"get", "stored"})

    def __init__(self) -> None:
        self.reads = 0
        self.value: Any = None

    async def get(self, key: str) -> Any:
        return self.value

    @property
    def stored(self) -> int:
        self.reads += 1
        return self.reads


class Headers(HostObject):
    js_class = "Headers"
    js_members = frozenset({"delete", "get", "has", "keys", "set"})

    def __init__(self) -> None:
        self.pairs = {"a": "1"}

    def __iter__(self) -> Iterator[list[str]]:
        return iter([[key, value] for key, value in self.pairs.items()])

    def get(self, name: str) -> str | None:
        return self.pairs.get(name)

    def has(self, name: str) -> bool:
        return name in self.pairs

    def set(self, name: str, value: str) -> Any:
        self.pairs[name] = value
        return UNDEFINED

    def delete(self, name: str) -> Any:
        self.pairs.pop(name, None)
        return UNDEFINED

    def keys(self) -> list[str]:
        return list(self.pairs)


class FakeHost:
    """The least a host must be."""

    def __init__(self, flags: frozenset[str]) -> None:
        self.flags = flags
        self.found: list[tuple[str, str]] = []
        self.env: dict[str, Any] = {
            "QUEUE": WorkerQueue(),
            "KV": KvNamespace(),
            "TEXT": "hello",
            "NUMBER": 1.5,
            "BIG": BigInt(10),
            "OBJECT": {"a": [1, 2], "b": {"c": 1}},
            "NULL": None,
        }
        self.lines: list[tuple[str, str]] = []
        self.calls: list[Any] = []

    def log(self, level: str, text: str, arguments: Any = None) -> None:
        self.lines.append((level, text))

    def track(self, call: Any) -> None:
        self.calls.append(call)

    def find(self, code: str, message: str, location: Location | None) -> None:
        self.found.append((code, message))

    def missing_binding(self, name: str) -> str:
        return ""

    def forbid_in_global_scope(self) -> None:
        return None

    def urandom(self, size: int) -> bytes:
        return bytes(range(size))


@contextmanager
def worker(generation: int = 28, *, modern: bool = True) -> Iterator[FakeHost]:
    """Run the block as code of a Worker."""
    flags = GENERATIONS[generation] | ({MODERN} if modern else frozenset())
    fake = FakeHost(flags)
    token = SCOPE.set(cast("Scope", fake))
    try:
        yield fake
    finally:
        SCOPE.reset(token)
