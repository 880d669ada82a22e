"""What every store does, in memory or in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from emulator.queues.broker import Broker
from emulator.queues.model import ConsumerRules, Outgoing, QueueRules, Result
from emulator.store.memory import MemoryStore
from emulator.store.records import Record
from emulator.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from emulator.store import Store


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store = (
        MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "state.db")
    )
    yield opened
    opened.close()


def numbered(*numbers: int, product: str = "queues") -> list[Record]:
    return [Record(product, ["number", number, b"\x00\xff"]) for number in numbers]


def test_new_store_is_empty(store: Store) -> None:
    assert store.load() == (None, [])
    assert store.record_count == 0


def test_committed_records_come_back_in_order(store: Store) -> None:
    store.append(numbered(1, 2))
    store.append(numbered(3, product="workflows"))
    store.commit()
    store.append(numbered(4))
    store.commit()
    assert store.load() == (
        None,
        [*numbered(1, 2), *numbered(3, product="workflows"), *numbered(4)],
    )


def test_records_that_were_not_committed_are_forgotten(store: Store) -> None:
    store.append(numbered(1))
    store.commit()
    store.append(numbered(2))
    assert store.record_count == 2
    assert store.load().records == numbered(1)
    assert store.record_count == 1
    store.commit()
    assert store.load().records == numbered(1)


def test_snapshot_replaces_the_records_of_its_products(store: Store) -> None:
    store.append(numbered(1, 2))
    store.append(numbered(3, product="workflows"))
    store.commit()
    store.append(numbered(4))
    store.compact({"queues": ["state", 4]})
    assert store.load() == ({"queues": ["state", 4]}, numbered(3, product="workflows"))
    store.append(numbered(5))
    store.commit()
    assert store.record_count == 2
    store.compact({"queues": ["state", 5], "workflows": {"instances": []}})
    assert store.load() == ({"queues": ["state", 5], "workflows": {"instances": []}}, [])
    assert store.record_count == 0


def test_snapshot_of_one_product_keeps_that_of_another(store: Store) -> None:
    store.compact({"queues": ["a"]})
    store.compact({"workflows": ["b"]})
    assert store.load().snapshot == {"queues": ["a"], "workflows": ["b"]}


def test_closing_twice_does_nothing(store: Store) -> None:
    store.close()
    store.close()


def test_broker_goes_on_where_it_was(store: Store) -> None:
    rules = [QueueRules("q", consumer=ConsumerRules(max_batch_size=2, max_batch_timeout=0))]
    broker = Broker(rules)
    for now in range(1, 9):
        broker.send("q", [Outgoing(f"m{now}", b"\x00body", "bytes")], now)
        if now % 2:
            batch = broker.next_batch("q", now)
            assert batch is not None
            broker.settle(batch, Result("ok" if now == 1 else "exception"), now)
        store.append(Record("queues", record) for record in broker.take_records())
        store.commit()
        if now == 4:
            store.compact({"queues": broker.snapshot()})

    snapshot, records = store.load()
    assert snapshot is not None
    twin = Broker(rules)
    twin.restore(snapshot["queues"])
    twin.replay(record.payload for record in records)
    assert twin.snapshot() == broker.snapshot()
