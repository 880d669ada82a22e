"""Consumers that send to their own queue at one instant, with an end and without."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from workbench import clock, deliveries, worker

from emulator import Emulator, Stuck
from emulator.queues.chain import Chain
from emulator.queues.model import Backlog, Batch, Delivery, Outgoing

AT_ONCE = {"max_batch_timeout": 0}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.queues.chain._MOST", 20)


def batch(*ids: str) -> Batch:
    messages = (Delivery(number, id, b"", "text", 0, 1) for number, id in enumerate(ids))
    return Batch(1, "q", tuple(messages), 0, Backlog(0, 0, None))


def outgoing(*ids: str) -> list[Outgoing]:
    return [Outgoing(id, b"", "text") for id in ids]


def test_a_batch_is_one_link_further_than_its_furthest_message() -> None:
    chain = Chain()
    chain.sent(outgoing("a"), 3, now=7)
    chain.sent(outgoing("b"), 5, now=7)
    chain.sent(outgoing("c"), 0, now=7)
    assert chain.link(batch("a", "b", "c"), now=7) == 6
    assert chain.link(batch("c"), now=7) == 1


def test_another_instant_begins_anew() -> None:
    chain = Chain()
    chain.sent(outgoing("a"), 20, now=7)
    assert chain.link(batch("a"), now=8) == 1
    chain.sent(outgoing("b"), 1, now=8)
    assert chain.link(batch("a"), now=8) == 1
    assert chain.link(batch("b"), now=8) == 2


def sent(emulator: Emulator) -> list[Any]:
    """The bodies of all deliveries."""
    return [body for _, body, _, _ in deliveries(emulator)]


def again(sends: int, **options: Any) -> Any:
    """A consumer that passes a message on so many times."""

    async def consume(batch: Any, worker: Any) -> None:
        for message in batch.messages:
            if message.body < sends:
                await worker.env.Q.send(message.body + 1, **options)

    return consume


@pytest.mark.asyncio
@pytest.mark.parametrize("call", ["send", "fetch", "settle", "advance"])
async def test_a_chain_without_an_end_is_an_error_of_whichever_call_waits(call: str) -> None:
    async def produce(worker: Any) -> None:
        await worker.env.Q.send(0)

    config = worker(produce, again(10**9), consumer=AT_ONCE)
    async with Emulator(config) as emulator:
        with emulator.hold():
            queue = emulator.queues["q"]
            queue.pause()
            await queue.send(0)
            queue.resume()
        calls = {
            "send": lambda: queue.send(0),
            "fetch": lambda: emulator.fetch("/"),
            "settle": emulator.settle,
            "advance": lambda: emulator.advance(0),
        }
        with pytest.raises(Stuck, match="20 batches in a row, the last of the queue q") as raised:
            await calls[call]()
        assert "delaySeconds" in str(raised.value)
        assert clock(emulator) == 0


@pytest.mark.asyncio
async def test_a_chain_that_ends_is_none_and_nor_is_one_in_which_time_passes() -> None:
    async with Emulator(worker(None, again(19), consumer=AT_ONCE)) as emulator:
        await emulator.queues["q"].send(0)
        assert sent(emulator) == list(range(20))
    async with Emulator(worker(None, again(99, delaySeconds=1), consumer=AT_ONCE)) as emulator:
        await emulator.queues["q"].send(0)
        await emulator.settle()
        assert (sent(emulator), clock(emulator)) == (list(range(100)), 99)


@pytest.mark.asyncio
async def test_messages_that_others_send_at_one_instant_are_no_chain() -> None:
    async def produce(worker: Any) -> None:
        for number in range(100):
            await worker.env.Q.send(number)
            await asyncio.sleep(0)

    consumed: list[Any] = []

    async def consume(batch: Any, worker: Any) -> None:
        consumed.extend(message.body for message in batch.messages)

    async with Emulator(worker(produce, consume, consumer=AT_ONCE)) as emulator:
        await emulator.fetch("/")
        for number in range(100, 200):
            await emulator.queues["q"].send(number)
        assert (consumed, clock(emulator)) == (list(range(200)), 0)
