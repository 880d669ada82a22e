"""The finding `lossy_body`, and the notes that say which part of a body is refused.

Numbers such as 1.4 are rules of the reference on Cloudflare Queues.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyodide.ffi import JsException, to_js
from workbench import PROFILES, bodies, worker

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator import Finding

pytestmark = pytest.mark.asyncio

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
V8 = ', or the body with contentType="v8", which keeps it as it is'
STRING = "$.at (datetime) arrives as a string; send isoformat() instead"


@dataclass
class Invoice:
    number: int


def lossy(emulator: Emulator) -> list[Finding]:
    return [finding for finding in emulator.findings if finding.code == "lossy_body"]


async def found(call: Any, **config: Any) -> list[Finding]:
    """The findings of a Worker that makes this call on its queue."""

    async def produce(worker: Any) -> None:
        await call(worker.env.Q)

    async with Emulator(worker(produce, **config)) as emulator:
        assert (await emulator.fetch("/")).status_code == 200
        return lossy(emulator)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_body_that_json_changes_is_sent_all_the_same_and_a_finding(profile: str) -> None:
    """1.4; python-api.md 1.6; O-10"""

    async def produce(worker: Any) -> None:
        await worker.env.Q.send({"at": MOMENT, "raw": b"\x00", "tags": {"a"}})

    line = inspect.getsourcelines(produce)[1] + 1
    config = worker(produce, lambda batch, _: None)
    async with Emulator(config, profile=profile) as emulator:
        assert (await emulator.fetch("/")).status_code == 200
        assert bodies(emulator) == [
            {"at": "2026-01-02T00:00:00.000Z", "raw": {"0": 0}, "tags": {}},
        ]
        (finding,) = lossy(emulator)
        assert finding.message == (
            "JSON changes this body: $.at (datetime) arrives as a string, $.raw (bytes) arrives "
            'as an object {"0": ...}, $.tags (set) arrives as {}; send isoformat(), base64 text, '
            f"a list instead{V8}"
        )
        assert str(finding.location).endswith(f"test_lossy_body.py:{line}")
        assert (finding.worker, finding.subject) == ("worker", "request GET /")
        assert finding not in emulator.findings.unexpected()
        assert finding in emulator.findings.tolerated()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"at": MOMENT}, f"{STRING}{V8}"),
        ([[float("nan")]], f"$[0][0] (float nan) arrives as null; send None instead{V8}"),
        (
            {"items": [{}, {}, {"raw": b"x"}]},
            '$.items[2].raw (bytes) arrives as an object {"0": ...}; send base64 text instead' + V8,
        ),
        # Structured clone refuses what is Python's own.
        (
            {"price": Decimal("1.5")},
            "$.price (Decimal) arrives as {}; send a str, dict or list made of it instead",
        ),
        (
            {"at": MOMENT, "invoice": Invoice(1)},
            "$.at (datetime) arrives as a string, $.invoice (Invoice) arrives as {}; send "
            "isoformat(), a str, dict or list made of it instead",
        ),
        (
            {"ok": 1, "done": len},
            "$.done (function) arrives as nothing; send a str, dict or list made of it instead",
        ),
        (
            {"error": ValueError("x")},
            f"$.error (exception) arrives as {{}}; send str() instead{V8}",
        ),
        (
            {str(number): {1} for number in range(9)},
            "$.0 (set) arrives as {}, $.1 (set) arrives as {}, $.2 (set) arrives as {} and more; "
            f"send a list instead{V8}",
        ),
    ],
)
async def test_the_finding_says_where_what_arrives_and_what_to_do(body: Any, text: str) -> None:
    """python-api.md 1.5, 1.6"""
    messages = [finding.message for finding in await found(lambda q: q.send(body))]
    assert messages == [f"JSON changes this body: {text}"]


@pytest.mark.parametrize(
    "send",
    [
        lambda q: q.send({"at": MOMENT}, contentType="json"),
        lambda q: q.send({"at": MOMENT}, contentType="JSON"),
        lambda q: q.send({"at": MOMENT}, {"contentType": "json"}),
        lambda q: q.sendBatch([{"body": 1}, {"body": {"at": MOMENT}}]),
        lambda q: q.sendBatch([{"body": {"at": MOMENT}, "contentType": "json"}] * 3),
    ],
)
async def test_every_way_to_send_json_is_looked_at(send: Any) -> None:
    messages = [finding.message for finding in await found(send)]
    assert messages == [f"JSON changes this body: {STRING}{V8}"]


@pytest.mark.parametrize(
    "send",
    [
        lambda q: q.send({"a": [1, 1.5, 2.0, None, True, "x"], "9": {}}),
        lambda q: q.send({"at": MOMENT, "tags": {1}, "nan": float("nan")}, contentType="v8"),
        lambda q: q.send(b"\x00", contentType="bytes"),
        lambda q: q.send("x", contentType="text"),
        lambda q: q.sendBatch([{"body": {"at": MOMENT}, "contentType": "v8"}, {"body": "x"}]),
        lambda q: q.send(to_js({"a": 1})),
    ],
)
async def test_what_arrives_as_it_was_is_no_finding(send: Any) -> None:
    assert await found(send) == []


@pytest.mark.parametrize(
    ("date", "count"), [("2024-03-17", 0), ("2024-03-18", 1)], ids=["v8 by default", "json"]
)
async def test_the_default_content_type_is_that_of_the_date(date: str, count: int) -> None:
    """1.4"""
    flags = ["python_workers", "python_no_global_handlers"]

    async def send(q: Any) -> None:
        from js import Date

        await q.send(Date.new(0))

    findings = await found(send, compatibility_date=date, compatibility_flags=flags)
    assert [finding.message.split(";")[0] for finding in findings] == [
        "JSON changes this body: $ (datetime) arrives as a string"
    ] * count


async def test_none_that_old_dates_make_undefined_is_left_out() -> None:
    """python-api.md 1.5"""

    def send(q: Any) -> Any:
        from js import Object

        return q.send(to_js({"a": None, "b": [None]}, dict_converter=Object.fromEntries))

    flags = ["python_workers"]
    (finding,) = await found(send, compatibility_date="2026-04-20", compatibility_flags=flags)
    assert finding.message == (
        "JSON changes this body: $.a (undefined) arrives as nothing, $.b[0] (undefined) arrives "
        f"as null; send JavaScript's null instead{V8}"
    )


async def test_the_same_line_is_told_once_for_each_of_its_events() -> None:
    async def produce(worker: Any) -> None:
        for _ in range(5):
            await worker.env.Q.send({"at": MOMENT})

    async with Emulator(worker(produce)) as emulator:
        await emulator.fetch("/")
        assert len(lossy(emulator)) == 1
        assert len(bodies(emulator)) == 5


async def test_a_tests_own_send_is_told_too() -> None:
    async with Emulator(worker(consume=lambda batch, _: None)) as emulator:
        await emulator.queues["q"].send({"at": MOMENT})
        await emulator.queues["q"].send({"at": MOMENT}, contentType="v8")
        assert [finding.location for finding in lossy(emulator)] == [None]
        # Bodies for `dispatch` are cloned unless the test says otherwise.
        await emulator.queues["q"].dispatch([{"at": MOMENT}])
        assert len(lossy(emulator)) == 1


async def test_a_body_that_is_refused_is_no_finding_of_this_kind() -> None:
    async def produce(worker: Any) -> str:
        with pytest.raises(JsException) as info:
            await worker.env.Q.send({"at": MOMENT, "n": 2**60})
        return str(info.value)

    async with Emulator(worker(produce)) as emulator:
        text = (await emulator.fetch("/")).json()
        assert text == "TypeError: Do not know how to serialize a BigInt"
        assert lossy(emulator) == []
        assert bodies(emulator) == []


async def test_nothing_is_told_of_an_invocation_that_a_fault_struck() -> None:
    async def produce(worker: Any) -> None:
        with pytest.raises(JsException):
            await worker.env.Q.send(1)
        await worker.env.Q.send({"at": MOMENT})

    async with Emulator(worker(produce), faults="send.q#1:fail") as emulator:
        assert (await emulator.fetch("/")).status_code == 200
        assert lossy(emulator) == []


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("send", "text", "path"),
    [
        (
            lambda q: q.send({"rows": [{}, {"id": 2**60}]}),
            "TypeError: Do not know how to serialize a BigInt",
            "$.rows[1].id",
        ),
        (
            lambda q: q.send({"a": [1, len]}, contentType="v8"),
            "DataCloneError: function(){} could not be cloned.",
            "$.a[1]",
        ),
        (
            lambda q: q.sendBatch([{"body": 1}, {"body": {"p": Decimal(1)}, "contentType": "v8"}]),
            "DataCloneError: [object Object] could not be cloned.",
            "$.p",
        ),
        (
            lambda q: q.send(len),
            "TypeError: A value of type function cannot be serialized to JSON",
            "$",
        ),
    ],
)
async def test_a_note_says_which_part_of_a_body_is_refused(send: Any, text: str, path: str) -> None:
    """O-10; the text is the platform's own (1.6)"""

    async def produce(worker: Any) -> list[Any]:
        with pytest.raises(JsException) as info:
            await send(worker.env.Q)
        return [str(info.value), info.value.message, *info.value.__notes__]

    async with Emulator(worker(produce)) as emulator:
        answer = (await emulator.fetch("/")).json()
        note = f"emulator: the value at {path} is the cause"
        assert answer == [text, text.partition(": ")[2], note]
        assert bodies(emulator) == []


class Later:
    """An awaitable."""

    def __await__(self) -> Iterator[None]:
        yield


NO_TUPLE = "<class 'tuple'> cannot be sent over RPC."


@pytest.mark.parametrize(
    ("send", "text", "path"),
    [
        (lambda q: q.send({"a": [1, (2,)]}), NO_TUPLE, "$.a[1]"),
        (lambda q: q.send((1, 2)), NO_TUPLE, "$"),
        (
            lambda q: q.send([{}, {"raw": bytearray(b"x")}], contentType="v8"),
            "<class 'bytearray'> cannot be sent over RPC.",
            "$[1].raw",
        ),
        (
            lambda q: q.sendBatch([{"body": 1}, {"body": {"rows": [{(1,)}]}}]),
            NO_TUPLE,
            "$[1].body.rows[0]",
        ),
        (
            lambda q: q.send({"result": Later()}),
            "Awaitable <class 'test_lossy_body.Later'> cannot be sent over RPC.",
            "$.result",
        ),
        (
            lambda q: q.send("x", {"delaySeconds": (1,)}),
            NO_TUPLE,
            "$.delaySeconds",
        ),
    ],
)
async def test_a_note_says_which_part_the_sdk_refuses(send: Any, text: str, path: str) -> None:
    """10.2; the text is the SDK's own, and it is raised at the call"""

    async def produce(worker: Any) -> list[Any]:
        with pytest.raises(TypeError) as info:
            send(worker.env.Q)
        return [str(info.value), *info.value.__notes__]

    async with Emulator(worker(produce)) as emulator:
        answer = (await emulator.fetch("/")).json()
        assert answer == [text, f"emulator: the value at {path} is the cause"]
        assert bodies(emulator) == []
        assert lossy(emulator) == []


async def test_the_note_is_in_the_finding_and_the_log_of_a_worker_that_fails() -> None:
    text = "TypeError: Do not know how to serialize a BigInt"
    note = "emulator: the value at $.rows[0].id is the cause"

    async def produce(worker: Any) -> None:
        await worker.env.Q.send({"rows": [{"id": 2**60}]})

    async def consume(batch: Any, worker: Any) -> None:
        await produce(worker)

    async with Emulator(worker(produce, consume, consumer={"max_retries": 0})) as emulator:
        # The client of the real runtime gets the platform's text, and so does this one.
        response = await emulator.fetch("/")
        assert (response.status_code, response.text) == (500, text)
        (finding,) = [f for f in emulator.findings if f.code == "handler_exception"]
        assert finding.message.endswith(f"{text}\n{note}")

        await emulator.queues["q"].send(1)
        await emulator.settle()
        (record,) = emulator.queues["q"].deliveries
        assert str(record.error) == text
        assert emulator.logs[-1].text.endswith(f"pyodide.ffi.JsException: {text}\n{note}")


async def test_a_cycle_is_placed() -> None:
    """1.6"""

    async def produce(worker: Any) -> list[str]:
        from js import Object

        inner = Object.new()
        outer = Object.new()
        outer.items = to_js([inner])
        inner.parent = outer
        with pytest.raises(JsException, match="Converting circular structure to JSON") as info:
            await worker.env.Q.send(outer)
        return list(info.value.__notes__)

    async with Emulator(worker(produce)) as emulator:
        notes = (await emulator.fetch("/")).json()
        assert notes == ["emulator: the value at $.items[0].parent is the cause"]
