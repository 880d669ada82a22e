"""Queues that are set up, changed and deleted at run time: the pure state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.queues.broker import Broker
from emulator.queues.model import (
    SECOND,
    Backlog,
    ConsumerRules,
    Outgoing,
    PullRules,
    QueueRules,
    Result,
)
from emulator.queues.setup import Attached, Change, Setup, attached_of
from emulator.store.records import decode, encode

CONFIGURED = QueueRules("q", consumer=ConsumerRules(max_batch_timeout=0))
PULLED = Setup(
    created=1,
    modified=2,
    purged=3,
    delivery_delay=4 * SECOND,
    retention=60 * SECOND,
    change=Change(
        Attached("shop", ConsumerRules(max_retries=9, dead_letter_queue="d")),
        Attached(None, PullRules(batch_size=7)),
        5,
    ),
)


def sent(broker: Broker, *ids: str, queue: str = "q", now: int = 10) -> None:
    broker.send(queue, [Outgoing(id, b"body", "text") for id in ids], now)


def again(broker: Broker) -> Broker:
    """What a restart makes of a broker: the same from its records, and from its snapshot."""
    records = broker.take_records()
    replayed, restored = Broker([CONFIGURED]), Broker([CONFIGURED])
    replayed.replay(decode(encode(records), "a test"))
    restored.restore(decode(encode(broker.snapshot()), "a test"))
    assert replayed.snapshot() == restored.snapshot() == broker.snapshot()
    return restored


@pytest.mark.parametrize(
    "setup",
    [
        Setup(),
        PULLED,
        replace(PULLED, change=Change(None, Attached("shop", ConsumerRules()), 5)),
        replace(PULLED, change=Change(Attached(None, PullRules()), None, 5)),
    ],
)
def test_a_setup_comes_back_from_its_record(setup: Setup) -> None:
    assert Setup.load(decode(encode(setup.dump()), "a test")) == setup


def test_what_is_not_set_up_is_the_configs() -> None:
    assert Setup().over(CONFIGURED, "shop") == (CONFIGURED, "shop")
    rules, worker = Setup(delivery_delay=0, retention=5).over(
        replace(CONFIGURED, delivery_delay=9), "shop"
    )
    assert (rules.delivery_delay, rules.retention, worker) == (0, 5, "shop")
    assert rules.consumer is CONFIGURED.consumer


def test_a_consumer_set_up_holds_until_the_config_says_something_else() -> None:
    change = Change(attached_of(CONFIGURED, "shop"), Attached(None, PullRules()), 5)
    setup = Setup(change=change)
    rules, worker = setup.over(CONFIGURED, "shop")
    assert (rules.consumer, rules.pull, worker) == (None, PullRules(), None)
    other = replace(CONFIGURED, consumer=ConsumerRules(max_retries=1))
    assert setup.over(other, "shop") == (other, "shop")
    assert setup.over(CONFIGURED, "else") == (CONFIGURED, "else")
    bare = QueueRules("q")
    assert setup.over(bare) == (bare, None)


def test_a_consumer_taken_away_is_none() -> None:
    setup = Setup(change=Change(attached_of(CONFIGURED, "shop"), None, 5))
    rules, worker = setup.over(CONFIGURED, "shop")
    assert (rules.consumer, rules.pull, worker) == (None, None, None)


def test_a_queue_made_at_run_time_is_there_after_a_restart() -> None:
    broker = Broker([CONFIGURED])
    broker.set_up("new", PULLED, 5)
    assert again(broker).setup("new") == PULLED
    assert broker.queues == ("q", "new")
    assert broker.setup("q") == Setup()


def test_a_deleted_queue_is_gone_with_all_its_messages() -> None:
    broker = Broker([CONFIGURED, QueueRules("new", pull=PullRules())])
    sent(broker, "a", "b", "c", queue="new")
    broker.lease("new", 11, size=1)
    assert sorted(broker.delete("new", 12)) == ["a", "b", "c"]
    assert broker.queues == ("q",)
    with pytest.raises(KeyError, match="there is no queue 'new'; there are: q"):
        broker.pending("new")


def test_the_next_queue_of_a_deleted_ones_name_begins_with_new_numbers() -> None:
    """A batch in flight of the old queue cannot be settled in the new one, after a restart too."""
    rules = QueueRules("new", consumer=ConsumerRules(max_batch_timeout=0))
    broker = Broker([CONFIGURED])
    broker.set_up("new", Setup(created=1), 5)
    broker.update([CONFIGURED, rules], 5)
    sent(broker, "a", queue="new")
    old = broker.next_batch("new", 11)
    assert old is not None
    assert broker.is_flying(old)
    broker.delete("new", 12)
    assert not broker.is_flying(old)
    broker = again(broker)
    broker.set_up("new", Setup(created=13), 13)
    broker.update([CONFIGURED, rules], 13)
    sent(broker, "a", queue="new", now=14)
    new = broker.next_batch("new", 15)
    assert new is not None
    assert (old.number, new.number) == (1, 2)
    assert (old.messages[0].seq, new.messages[0].seq) == (1, 2)
    assert not broker.is_flying(old)
    with pytest.raises(KeyError, match="batch 1 of queue 'new' is not in flight"):
        broker.settle(old, Result(), 16)
    assert broker.is_flying(new)


def test_a_lease_of_a_deleted_queue_is_none_of_the_next() -> None:
    broker = Broker([QueueRules("new", pull=PullRules())])
    sent(broker, "a", queue="new")
    (leased,) = broker.lease("new", 11).messages
    broker.delete("new", 12)
    broker.update([QueueRules("new", pull=PullRules())], 13)
    sent(broker, "a", queue="new", now=14)
    broker.lease("new", 15)
    broker.acknowledge("new", 16, acks=[leased.lease])
    assert broker.unacknowledged("new").count == 1


def test_what_is_not_acknowledged_is_counted_wherever_it_is() -> None:
    broker = Broker([QueueRules("q", pull=PullRules())])
    assert broker.unacknowledged("q") == Backlog(0, 0, None)
    sent(broker, "a", "b", now=10)
    broker.send("q", [Outgoing("late", b"1234567", "text", 60 * SECOND)], 20)
    broker.lease("q", 30, size=1)
    assert broker.unacknowledged("q") == Backlog(3, 15, 10)
    assert broker.backlog("q", 30) == Backlog(1, 4, 10)
