"""Pull consumers: leases in the broker, rule by rule. Times are checked from both sides."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from emulator.errors import StateError
from emulator.queues.broker import Broker
from emulator.queues.leases import DeliveryPausedError, NoPullConsumerError, PullRefusedError
from emulator.queues.model import (
    MILLISECOND,
    SECOND,
    Answered,
    Backlog,
    ConsumerRules,
    Counts,
    Outgoing,
    Pulled,
    PullRules,
    QueueRules,
    Result,
    Settled,
)
from emulator.store.records import decode, encode
from tests.queues.test_broker import at, eager, labels, lines_run, outcomes, send, take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.queues.model import Duration, Instant

EVERYTHING = 100


def make(*others: QueueRules, profile: Any = "production", **settings: Any) -> Broker:
    """A broker with queue `q`; settings are its pull consumer's, and `retention` and the like."""
    own = {"delivery_delay", "retention", "paused"}
    queue = {name: settings.pop(name) for name in own & set(settings)}
    return Broker([QueueRules("q", pull=PullRules(**settings), **queue), *others], profile)


def pulled(broker: Broker, now: Instant, queue: str = "q", **options: Any) -> dict[str, str]:
    """The leases of a pull, by `a#2` for the second delivery of `a`."""
    messages = broker.lease(queue, now, **options).messages
    return {f"{item.message.id}#{item.message.attempts}": item.lease for item in messages}


def returns(broker: Broker, ends: Instant, *expected: str) -> dict[str, str]:
    """The next lease runs out at `ends`, not a microsecond earlier; what can be pulled then."""
    assert broker.lease_ends_at("q") == ends
    assert broker.end_leases("q", ends - 1) == []
    assert broker.end_leases("q", ends) != []
    leases = pulled(broker, ends, size=EVERYTHING)
    assert list(leases) == list(expected)
    return leases


# 3.1, 4.8, 5.1: settings


def test_defaults_are_those_of_production() -> None:
    """3.1, 5.2."""
    assert PullRules() == PullRules(5, 3, 0, None, 30_000 * MILLISECOND)
    assert QueueRules("q").pull is None


def test_queue_has_one_consumer() -> None:
    """4.8."""
    with pytest.raises(ValueError, match=r"queue 'q' has a push consumer and a pull consumer"):
        QueueRules("q", consumer=ConsumerRules(), pull=PullRules())


def test_queue_that_is_pulled_is_not_pushed() -> None:
    broker = make()
    send(broker, "a", at(0))
    assert broker.wake_at("q", at(0)) is None
    assert broker.next_batch("q", at(60)) is None
    assert list(pulled(broker, at(60))) == ["a#1"]


def test_pull_consumer_counts_as_a_consumer_in_either_profile() -> None:
    """3.10: Miniflare drops what nobody consumes, and has no pull consumers of its own."""
    broker = make(QueueRules("idle"), profile="miniflare")
    send(broker, "a", at(0))
    send(broker, "a", at(0), queue="idle")
    assert list(pulled(broker, at(0))) == ["a#1"]
    assert broker.pending("idle") == []


# 5.2, 5.3, 5.5: pulling


def test_pull_takes_five_and_then_what_is_left() -> None:
    """5.2, 5.5. Scenario 49."""
    broker = make()
    send(broker, "abcdefg", at(0))
    first, second = pulled(broker, at(0)), pulled(broker, at(0))
    assert list(first) == ["a#1", "b#1", "c#1", "d#1", "e#1"]
    assert list(second) == ["f#1", "g#1"]
    assert len({*first.values(), *second.values()}) == 7
    assert broker.lease("q", at(0)) == Pulled((), Backlog(0, 0, None), [])


def test_pull_tells_all_about_each_message_and_what_remains() -> None:
    """5.3."""
    broker = make()
    for second, id in enumerate("abcdefgh"):
        send(broker, id, at(second))
    send(broker, "z", at(8), delay=60 * SECOND)
    got = broker.lease("q", at(9))
    assert got.backlog == Backlog(3, 3 * len(b"body of f"), at(5))
    first = got.messages[0]
    assert first.until == at(39)
    assert first.message[:6] == (1, "a", b"body of a", "text", at(0), 1)
    assert got.ran_out == []


def test_pull_of_an_empty_queue_returns_at_once_and_changes_nothing() -> None:
    """5.2: short polling."""
    broker = make()
    before = broker.snapshot()
    assert broker.lease("q", at(0)).messages == ()
    assert broker.snapshot() == before
    assert broker.take_records() == []
    assert broker.lease_ends_at("q") is None


def test_pull_does_not_wait_for_a_full_batch_nor_for_delayed_messages() -> None:
    """3.6, 5.2."""
    broker = make()
    send(broker, "a", at(0), delay=10 * SECOND)
    send(broker, "b", at(0))
    assert list(pulled(broker, at(10) - 1)) == ["b#1"]
    assert list(pulled(broker, at(10))) == ["a#1"]


def test_size_and_timeout_of_the_consumer_hold_unless_the_pull_says_otherwise() -> None:
    """5.2."""
    broker = make(batch_size=2, visibility_timeout=10 * SECOND)
    send(broker, "abcd", at(0))
    assert list(pulled(broker, at(0))) == ["a#1", "b#1"]
    assert list(pulled(broker, at(0), size=1, visibility_timeout=3 * SECOND)) == ["c#1"]
    assert [(item.message.id, item.until) for item in broker.leases("q")] == [
        ("c", at(3)),
        ("a", at(10)),
        ("b", at(10)),
    ]


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("timeout", [0, 43_200_000 * MILLISECOND])
def test_limits_of_a_pull_are_allowed(size: int, timeout: Duration) -> None:
    """5.2."""
    broker = make()
    send(broker, [str(number) for number in range(101)], at(0))
    got = broker.lease("q", at(0), size=size, visibility_timeout=timeout)
    assert len(got.messages) == size
    assert broker.lease_ends_at("q") == at(0) + timeout


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"size": 0}, "a pull takes between 1 and 100 messages, not 0"),
        ({"size": 101}, "a pull takes between 1 and 100 messages, not 101"),
        (
            {"visibility_timeout": -MILLISECOND},
            "a visibility timeout is between 0 and 43200000 ms, not -1 ms",
        ),
        (
            {"visibility_timeout": 43_200_001 * MILLISECOND},
            "a visibility timeout is between 0 and 43200000 ms, not 43200001 ms",
        ),
    ],
)
def test_pull_past_a_limit_is_refused(options: dict[str, int], text: str) -> None:
    """5.2."""
    broker = make()
    send(broker, "a", at(0))
    with pytest.raises(ValueError, match=text):
        broker.lease("q", at(0), **options)
    assert list(pulled(broker, at(0))) == ["a#1"]


def test_pull_without_a_pull_consumer_is_refused() -> None:
    """5.8: status 405. Scenario 53."""
    broker = Broker([eager("pushed"), QueueRules("idle")])
    for queue in broker.queues:
        with pytest.raises(NoPullConsumerError, match=f"queue '{queue}' has no pull consumer"):
            broker.lease(queue, at(0))
    assert issubclass(NoPullConsumerError, PullRefusedError)


def test_pull_of_a_paused_queue_is_refused_and_answers_are_not() -> None:
    """5.8: status 409; 6.1: what is in flight finishes. Scenario 47."""
    broker = make()
    send(broker, "ab", at(0))
    leases = pulled(broker, at(0))
    broker.pause("q", at(1))
    send(broker, "c", at(1))
    with pytest.raises(DeliveryPausedError, match="the deliveries of queue 'q' are paused"):
        broker.lease("q", at(2))
    answered = broker.acknowledge("q", at(2), acks=[leases["a#1"]])
    assert answered.ack_count == 1
    assert outcomes(broker.end_leases("q", at(30))) == {"b": "lost"}
    assert [message.id for message in broker.pending("q")] == ["c", "b"]
    broker.resume("q", at(31))
    assert list(pulled(broker, at(31))) == ["c#1", "b#2"]


def test_pullers_at_one_time_get_different_messages() -> None:
    """5.6."""
    broker = make()
    send(broker, "abcdef", at(0))
    first, second, third = (pulled(broker, at(0), size=2) for _ in range(3))
    assert [*first, *second, *third] == [f"{id}#1" for id in "abcdef"]
    assert broker.acknowledge("q", at(1), acks=second.values()).ack_count == 2
    assert [item.message.id for item in broker.leases("q")] == ["a", "b", "e", "f"]


def test_copies_of_a_message_do_not_meet_in_one_pull() -> None:
    broker = make()
    send(broker, "ab", at(0))
    assert broker.duplicate("q", "a", at(0))
    assert list(pulled(broker, at(0))) == ["a#1", "b#1"]
    assert list(pulled(broker, at(0))) == ["a#1"]


def test_copy_of_a_leased_message_comes_at_once_and_starts_where_it_stood() -> None:
    broker = make()
    send(broker, "a", at(0))
    pulled(broker, at(0), visibility_timeout=3600 * SECOND)
    assert broker.duplicate("q", "a", at(1))
    assert list(pulled(broker, at(1))) == ["a#1"]


# 5.6: leases that run out


def test_message_returns_after_its_visibility_timeout() -> None:
    """5.5, 5.6. Scenario 50."""
    broker = make()
    send(broker, "a", at(0))
    first = pulled(broker, at(0), visibility_timeout=1000 * MILLISECOND)
    assert pulled(broker, at(1) - 1) == {}
    second = pulled(broker, at(1))
    assert list(second) == ["a#2"]
    assert second["a#2"] != first["a#1"]


def test_lease_of_thirty_seconds_and_work_of_forty_five() -> None:
    """5.6: another puller gets the message; S-10."""
    broker = make()
    send(broker, "a", at(0))
    slow = pulled(broker, at(0))
    quick = returns(broker, at(30), "a#2")
    assert broker.acknowledge("q", at(45), acks=slow.values()).ack_count == 1
    assert broker.acknowledge("q", at(46), acks=quick.values()).ack_count == 1
    assert broker.counts("q") == Counts(1, 2, 1, 0, 0, 0, 0)


def test_message_that_returns_is_available_at_once_whatever_the_retry_delay() -> None:
    """5.6: the delay is that of a retry asked for."""
    broker = make(retry_delay=600 * SECOND)
    send(broker, "a", at(0))
    pulled(broker, at(0))
    (settled,) = broker.end_leases("q", at(30))
    assert settled == Settled(1, "a", 1, "lost", at(30), b"body of a", "text", at(0))
    assert list(pulled(broker, at(30))) == ["a#2"]


def test_message_that_returns_goes_behind_those_that_came_meanwhile() -> None:
    """3.4."""
    broker = make()
    send(broker, "a", at(0))
    pulled(broker, at(0))
    send(broker, "b", at(29))
    returns(broker, at(30), "b#1", "a#2")


def test_leases_run_out_each_at_its_time_and_ties_in_the_order_given() -> None:
    """5.6."""
    broker = make(batch_size=1)
    send(broker, "abc", at(0))
    for seconds in (9, 3, 9):
        pulled(broker, at(0), visibility_timeout=seconds * SECOND)
    assert broker.lease_ends_at("q") == at(3)
    assert outcomes(broker.end_leases("q", at(9) - 1)) == {"b": "lost"}
    assert broker.lease_ends_at("q") == at(9)
    assert list(outcomes(broker.end_leases("q", at(9)))) == ["a", "c"]
    assert broker.lease_ends_at("q") is None


def test_pull_ends_leases_that_nobody_noticed_and_tells_of_them() -> None:
    broker = make(batch_size=1, max_retries=0)
    send(broker, "ab", at(0))
    pulled(broker, at(0))
    got = broker.lease("q", at(99))
    assert outcomes(got.ran_out) == {"a": "dropped"}
    assert [item.message.id for item in got.messages] == ["b"]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_message_is_leased_once_more_than_max_retries(retries: int) -> None:
    """4.2, 4.4, 5.6."""
    broker = make(max_retries=retries)
    send(broker, "a", at(0))
    for attempt in range(1, retries + 2):
        assert list(pulled(broker, at(30 * (attempt - 1)))) == [f"a#{attempt}"]
    (settled,) = broker.end_leases("q", at(30 * (retries + 1)))
    assert (settled.outcome, settled.due) == ("dropped", None)
    assert pulled(broker, at(9999)) == {}
    assert broker.counts("q") == Counts(1, retries + 1, 0, 0, 1, 0, 0)


def test_last_lease_that_runs_out_leaves_a_dead_letter() -> None:
    """4.5, 5.6: with its own timing in its own queue, whose consumer may pull too."""
    grave = QueueRules("d", delivery_delay=7 * SECOND, pull=PullRules())
    broker = make(grave, max_retries=0, dead_letter_queue="d")
    send(broker, "a", at(0))
    pulled(broker, at(0))
    (settled,) = broker.end_leases("q", at(30))
    assert (settled.outcome, settled.due) == ("dead_letter", at(37))
    assert pulled(broker, at(37) - 1, "d") == {}
    got = broker.lease("d", at(37)).messages[0].message
    assert (got.id, got.body, got.timestamp, got.attempts) == ("a", b"body of a", at(0), 1)
    assert broker.counts("q").dead_lettered == 1


def test_dead_letter_queue_of_a_pull_consumer_need_not_be_configured() -> None:
    """4.7."""
    assert make(dead_letter_queue="d").queues == ("q", "d")


# 5.7: answers


def test_acknowledged_message_never_returns() -> None:
    """5.7."""
    broker = make()
    send(broker, "ab", at(0))
    leases = pulled(broker, at(0))
    answered = broker.acknowledge("q", at(1), acks=[leases["a#1"]])
    done = Settled(1, "a", 1, "ack", None, b"body of a", "text", at(0))
    assert answered == Answered(1, 0, {}, [done])
    returns(broker, at(30), "b#2")
    assert broker.counts("q") == Counts(2, 3, 1, 0, 0, 0, 0)


def test_answer_with_an_ack_and_a_retry() -> None:
    """5.7. Scenario 51."""
    broker = make()
    send(broker, "ab", at(0))
    leases = pulled(broker, at(0))
    answered = broker.acknowledge(
        "q", at(0), acks=[leases["a#1"]], retries={leases["b#1"]: 10 * SECOND}
    )
    assert answered[:3] == (1, 1, {})
    assert outcomes(answered.settled) == {"a": "ack", "b": "retry"}
    assert broker.backlog("q", at(10) - 1).count == 0
    assert pulled(broker, at(10) - 1) == {}
    assert list(pulled(broker, at(10))) == ["b#2"]


def test_three_pushed_two_pulled_one_acknowledged_and_one_put_off() -> None:
    """5.5 to 5.7; O-09."""
    broker = make()
    send(broker, "abc", at(0))
    leases = pulled(broker, at(0), size=2)
    broker.acknowledge("q", at(0), acks=[leases["a#1"]], retries={leases["b#1"]: 600 * SECOND})
    assert list(pulled(broker, at(0), size=2, visibility_timeout=3600 * SECOND)) == ["c#1"]
    assert pulled(broker, at(600) - 1) == {}
    assert list(pulled(broker, at(600))) == ["b#2"]


@pytest.mark.parametrize(
    ("delay", "seconds"), [(None, 20), (0, 0), (3 * SECOND, 3), (86_400 * SECOND, 86_400)]
)
def test_retry_comes_after_the_delay_asked_for_or_the_consumers(
    delay: Duration | None, seconds: int
) -> None:
    """5.7, 2.15: 0 overrides."""
    broker = make(retry_delay=20 * SECOND)
    send(broker, "a", at(0))
    leases = pulled(broker, at(0))
    (settled,) = broker.acknowledge("q", at(1), retries={leases["a#1"]: delay}).settled
    assert settled.due == at(1 + seconds)
    if seconds:
        assert pulled(broker, at(1 + seconds) - 1) == {}
    assert list(pulled(broker, at(1 + seconds))) == ["a#2"]


@pytest.mark.parametrize("delay", [-1, 86_401])
def test_retry_past_the_longest_delay_is_refused_with_all_else_in_the_answer(delay: int) -> None:
    """5.7."""
    broker = make()
    send(broker, "ab", at(0))
    leases = pulled(broker, at(0))
    with pytest.raises(ValueError, match=f"between 0 and 86400 s, not {delay} s"):
        broker.acknowledge(
            "q", at(1), acks=[leases["a#1"]], retries={leases["b#1"]: delay * SECOND}
        )
    assert len(broker.leases("q")) == 2


def test_retry_of_the_last_delivery_ends_the_message_whatever_the_delay() -> None:
    """4.3."""
    broker = make(max_retries=0, dead_letter_queue="d")
    send(broker, "a", at(0))
    leases = pulled(broker, at(0))
    answered = broker.acknowledge("q", at(1), retries={leases["a#1"]: 60 * SECOND})
    assert answered.retry_count == 1
    assert [(m.outcome, m.due) for m in answered.settled] == [("dead_letter", at(1))]
    assert [message.due for message in broker.pending("d")] == [at(1)]


def test_late_ack_is_accepted() -> None:
    """5.7. Scenario 52."""
    broker = make()
    send(broker, "a", at(0))
    leases = pulled(broker, at(0))
    broker.end_leases("q", at(30))
    assert broker.acknowledge("q", at(31), acks=leases.values())[:3] == (1, 0, {})
    assert pulled(broker, at(9999)) == {}
    assert broker.counts("q") == Counts(1, 1, 1, 0, 0, 0, 0)


def test_late_ack_is_accepted_although_another_puller_has_the_message_now() -> None:
    """5.7: and so is that puller's, as it is no error of its own."""
    broker = make()
    send(broker, "a", at(0))
    first = pulled(broker, at(0))
    second = returns(broker, at(30), "a#2")
    assert outcomes(broker.acknowledge("q", at(31), acks=first.values()).settled) == {"a": "ack"}
    assert broker.leases("q") == []
    assert broker.lease_ends_at("q") is None
    assert broker.acknowledge("q", at(32), acks=second.values()) == Answered(1, 0, {}, [])
    assert broker.counts("q") == Counts(1, 2, 1, 0, 0, 0, 0)


def test_late_ack_finds_its_message_in_the_middle_of_the_line_or_delayed() -> None:
    """5.7."""
    broker = make()
    send(broker, "abcd", at(0))
    leases = pulled(broker, at(0))
    broker.acknowledge("q", at(0), retries={leases["d#1"]: 90 * SECOND})
    broker.end_leases("q", at(30))
    answered = broker.acknowledge("q", at(31), acks=[leases["b#1"], leases["d#1"]])
    assert answered[:3] == (2, 0, {})
    assert broker.backlog("q", at(31)) == Backlog(2, 2 * len(b"body of a"), at(0))
    assert list(pulled(broker, at(99))) == ["a#2", "c#2"]


def test_ack_comes_before_a_retry_in_the_same_answer() -> None:
    broker = make()
    send(broker, "a", at(0))
    (lease,) = pulled(broker, at(0)).values()
    answered = broker.acknowledge("q", at(1), acks=[lease, lease], retries={lease: None})
    assert answered[:2] == (1, 0)
    assert answered.warnings == {lease: "the lease has ended, so there is nothing to retry"}
    assert outcomes(answered.settled) == {"a": "ack"}


def test_retry_of_a_lease_that_ended_does_nothing_and_says_so() -> None:
    """5.7 speaks of late acks only: the message is available already, or somebody has it."""
    broker = make(batch_size=1)
    send(broker, "ab", at(0))
    (returned, again) = (pulled(broker, at(0)), pulled(broker, at(0)))
    broker.acknowledge("q", at(1), retries=dict.fromkeys(again.values(), 0))
    assert list(pulled(broker, at(1))) == ["b#2"]
    broker.end_leases("q", at(30))
    leases = [*returned.values(), *again.values()]
    answered = broker.acknowledge("q", at(30), retries=dict.fromkeys(leases, 600 * SECOND))
    assert answered[:2] == (0, 0)
    assert list(answered.warnings) == leases
    assert answered.settled == []
    assert [message.due for message in broker.pending("q")] == [at(30)]
    assert [item.message.attempts for item in broker.leases("q")] == [2]


def test_ack_after_a_retry_of_ones_own_is_accepted() -> None:
    """5.7."""
    broker = make()
    send(broker, "a", at(0))
    (lease,) = pulled(broker, at(0)).values()
    broker.acknowledge("q", at(1), retries={lease: None})
    assert outcomes(broker.acknowledge("q", at(2), acks=[lease]).settled) == {"a": "ack"}
    assert broker.pending("q") == []


def test_late_ack_of_a_dead_letter_does_not_reach_into_its_queue() -> None:
    """5.7: the letter is a message of another queue."""
    broker = make(max_retries=0, dead_letter_queue="d")
    send(broker, "a", at(0))
    leases = pulled(broker, at(0))
    broker.end_leases("q", at(30))
    assert broker.acknowledge("q", at(31), acks=leases.values()) == Answered(1, 0, {}, [])
    assert [message.id for message in broker.pending("d")] == ["a"]


def _encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "lease",
    [
        "",
        "!",
        "no lease",
        "é",
        "AAAAA",
        "____",
        _encoded("nonsense"),
        _encoded("1.1.other.a"),
        _encoded("1.0.q.a"),
        _encoded("1.2.q.a"),
        _encoded("1.1.q.b"),
        _encoded("01.1.q.a"),
        _encoded("0.1.q.a"),
        _encoded("-1.1.q.a"),
        _encoded("2.1.q.a"),
        _encoded(f"{'9' * 5000}.1.q.a"),
    ],
)
def test_lease_that_was_never_given_is_a_warning(lease: str) -> None:
    """5.7."""
    broker = make()
    send(broker, "a", at(0))
    pulled(broker, at(0))
    text = "there is no such lease in this queue"
    assert broker.acknowledge("q", at(1), acks=[lease]) == Answered(0, 0, {lease: text}, [])
    answered = broker.acknowledge("q", at(1), retries={lease: None})
    assert answered == Answered(0, 0, {lease: text}, [])
    assert len(broker.leases("q")) == 1


def test_lease_is_worth_nothing_in_another_queue() -> None:
    """5.7: even where a message of the same number and id is."""
    broker = make(QueueRules("other", pull=PullRules()))
    for queue in ("q", "other"):
        send(broker, "a", at(0), queue=queue)
    mine, other = pulled(broker, at(0)), pulled(broker, at(0), "other")
    assert mine != other
    assert broker.acknowledge("other", at(1), acks=mine.values()).ack_count == 0
    assert len(broker.leases("other")) == 1


def test_answers_that_change_nothing_leave_no_record() -> None:
    broker = make()
    broker.take_records()
    broker.acknowledge("q", at(0), acks=["x"], retries={"y": None})
    broker.end_leases("q", at(0))
    assert broker.take_records() == []


def test_dead_letters_of_leases_may_be_held_back_or_lost_on_their_way() -> None:
    """Faults of `message.<queue>` where the message is a dead letter."""
    broker = make(max_retries=0, dead_letter_queue="d")
    send(broker, "abcd", at(0))
    leases = pulled(broker, at(0))

    def admit(queue: str, letters: Sequence[Outgoing]) -> Sequence[Outgoing]:
        assert queue == "d"
        return [letters[0]._replace(delay=30 * SECOND)]

    retries = {leases["a#1"]: None, leases["b#1"]: None}
    broker.acknowledge("q", at(1), retries=retries, admit=admit)
    ran_out = broker.end_leases("q", at(30), admit=admit)
    assert [message.due for message in ran_out] == [at(60), None]
    assert [(m.id, m.due) for m in broker.pending("d")] == [("a", at(31)), ("c", at(60))]
    assert broker.counts("d").dropped == 2


# 3.9, 6.2: expiry and purge


def test_leased_message_does_not_expire_before_it_returns_too_old() -> None:
    """3.9."""
    broker = make(retention=60 * SECOND)
    send(broker, "ab", at(0))
    pulled(broker, at(50))
    assert broker.expires_at("q") is None
    assert broker.expire("q", at(79)) == []
    assert outcomes(broker.end_leases("q", at(80))) == {"a": "lost", "b": "lost"}
    assert broker.expires_at("q") == at(60)
    assert pulled(broker, at(80)) == {}
    assert broker.counts("q") == Counts(2, 2, 0, 0, 0, 2, 0)


def test_pull_does_not_hand_out_what_returns_too_old_just_then() -> None:
    """3.9: whoever notices it."""
    broker = make(retention=60 * SECOND)
    send(broker, "a", at(0))
    pulled(broker, at(50))
    got = broker.lease("q", at(80))
    assert outcomes(got.ran_out) == {"a": "lost"}
    assert got.messages == ()
    assert broker.counts("q").expired == 1


def test_message_expires_however_often_it_was_leased() -> None:
    """3.9: also when retention looked over it each time."""
    broker = make(retention=60 * SECOND, max_retries=9)
    send(broker, "a", at(0))
    for now in (0, 10, 20):
        pulled(broker, at(now), visibility_timeout=10 * SECOND)
        assert broker.expires_at("q") is None
        broker.end_leases("q", at(now + 10))
        assert broker.expires_at("q") == at(60)
    send(broker, "b", at(31))
    assert broker.expire("q", at(60) - 1) == []
    assert [message.id for message in broker.expire("q", at(60))] == ["a"]


def test_leased_message_that_is_too_old_can_be_acknowledged() -> None:
    """3.9, 5.7."""
    broker = make(retention=60 * SECOND)
    send(broker, "a", at(0))
    leases = pulled(broker, at(50))
    broker.acknowledge("q", at(79), acks=leases.values())
    assert broker.counts("q") == Counts(1, 1, 1, 0, 0, 0, 0)


def test_messages_that_return_out_of_order_expire_in_order_of_entry() -> None:
    """3.9: whether or not they were passed over in the meantime."""
    broker = make(retention=60 * SECOND, batch_size=1)
    for second, id in enumerate("abcd"):
        send(broker, id, at(second))
    for timeout in (40, 20, 30):
        pulled(broker, at(3), visibility_timeout=timeout * SECOND)
    assert broker.expires_at("q") == at(63)
    for now, oldest in ((23, 61), (33, 61), (43, 60)):
        broker.end_leases("q", at(now))
        assert broker.expires_at("q") == at(oldest)
    assert [message.id for message in broker.expire("q", at(62))] == ["a", "b", "c"]
    assert broker.expires_at("q") == at(63)


def test_purge_leaves_what_is_leased() -> None:
    """6.2. Scenario 48."""
    broker = make(batch_size=2)
    send(broker, "abcde", at(0))
    leases = pulled(broker, at(0))
    broker.acknowledge("q", at(0), retries={leases["a#1"]: 60 * SECOND})
    assert [message.id for message in broker.purge("q", at(1))] == ["c", "d", "e", "a"]
    assert [item.message.id for item in broker.leases("q")] == ["b"]
    assert broker.acknowledge("q", at(2), acks=[leases["a#1"]]) == Answered(1, 0, {}, [])
    returns(broker, at(30), "b#2")
    assert broker.counts("q") == Counts(5, 3, 0, 0, 0, 0, 4)


# Consumers that change


def test_lease_outlasts_its_consumer_and_nothing_is_a_last_delivery_then() -> None:
    broker = make(max_retries=0)
    send(broker, "ab", at(0))
    leases = pulled(broker, at(0))
    broker.update([], at(1))
    assert broker.acknowledge("q", at(2), acks=[leases["a#1"]]).ack_count == 1
    assert outcomes(broker.end_leases("q", at(30))) == {"b": "lost"}
    assert [message.id for message in broker.pending("q")] == ["b"]


def test_consumer_may_change_from_pull_to_push_and_back() -> None:
    """5.1; attempts go on, and leases from before a push delivery count no more."""
    broker = make()
    send(broker, "a", at(0))
    leases = pulled(broker, at(0))
    rules = broker.rules("q")
    broker.update([eager("q")], at(1))
    assert broker.next_batch("q", at(29)) is None
    broker.end_leases("q", at(30))
    batch = take(broker, at(30))
    assert labels(batch) == ["a#2"]
    assert broker.acknowledge("q", at(31), acks=leases.values()).settled == []
    broker.update([rules], at(32))
    assert outcomes(broker.settle(batch, Result("exception"), at(33))) == {"a": "retry"}
    assert broker.acknowledge("q", at(34), acks=leases.values()).settled == []
    assert list(pulled(broker, at(34))) == ["a#3"]


# Records, snapshots, recovery


def busy() -> Broker:
    """A broker whose leases have been through everything at least once."""
    broker = make(
        QueueRules("d", pull=PullRules(max_retries=0)),
        max_retries=1,
        dead_letter_queue="d",
        retention=90 * SECOND,
    )
    send(broker, "abcdefghij", at(0))
    first = pulled(broker, at(0), visibility_timeout=3600 * SECOND)
    second = pulled(broker, at(1))
    answers = {second["f#1"]: 0, second["g#1"]: 50 * SECOND, second["h#1"]: None}
    broker.acknowledge("q", at(2), acks=[first["a#1"], second["i#1"]], retries=answers)
    pulled(broker, at(2), size=1, visibility_timeout=5 * SECOND)
    broker.end_leases("q", at(31))
    assert outcomes(broker.lease("q", at(31), size=1).ran_out) == {}
    broker.acknowledge("q", at(32), acks=[second["j#1"]])
    pulled(broker, at(33), "d")
    broker.end_leases("d", at(99))
    send(broker, "k", at(99), queue="d")
    pulled(broker, at(99), "d")
    return broker


def twin_of(broker: Broker) -> Broker:
    return Broker([broker.rules(name) for name in broker.queues])


def test_replaying_the_records_gives_an_equal_state() -> None:
    broker = busy()
    records = broker.take_records()
    assert {record[0] for record in records} >= {"lease", "release"}
    twin = twin_of(broker)
    twin.replay([decode(encode(record), "a test") for record in records])
    assert twin.snapshot() == broker.snapshot()
    assert twin.take_records() == []


def test_records_of_leases_replay_under_changed_settings() -> None:
    broker = busy()
    twin = Broker([QueueRules("q", paused=True)], "miniflare")
    twin.replay(broker.take_records())
    for queue in broker.queues:
        assert twin.pending(queue) == broker.pending(queue)
        assert twin.leases(queue) == broker.leases(queue)
        assert twin.counts(queue) == broker.counts(queue)


def test_leases_survive_a_restart_of_the_platform() -> None:
    """A lease is the platform's promise to a client elsewhere, who still has its name."""
    broker = make()
    send(broker, "abc", at(0))
    leases = pulled(broker, at(0))
    send(broker, "d", at(1))
    twin = twin_of(broker)
    twin.replay(broker.take_records())
    assert twin.recover(at(10)) == []
    assert twin.leases("q") == broker.leases("q")
    assert list(pulled(twin, at(10))) == ["d#1"]
    assert twin.acknowledge("q", at(11), acks=[leases["a#1"]]).ack_count == 1
    returns(twin, at(30), "b#2", "c#2")


def test_late_ack_is_accepted_after_a_restart_from_a_snapshot() -> None:
    """5.7: of a message that is leased, one that waits and one that is delayed."""
    broker = make()
    send(broker, "abc", at(0))
    leases = pulled(broker, at(0))
    broker.acknowledge("q", at(1), retries={leases["c#1"]: 600 * SECOND})
    broker.end_leases("q", at(30))
    pulled(broker, at(31), size=1)
    broker.take_records()
    snapshot = decode(encode(broker.snapshot()), "a test")
    twin = twin_of(broker)
    twin.restore(snapshot)
    assert twin.snapshot() == broker.snapshot()
    assert twin.lease_ends_at("q") == at(61)
    answered = twin.acknowledge("q", at(32), acks=leases.values())
    assert outcomes(answered.settled) == {"a": "ack", "b": "ack", "c": "ack"}
    assert twin.pending("q") == []
    assert twin.leases("q") == []
    assert twin.counts("q") == Counts(3, 4, 3, 0, 0, 0, 0)
    broker.acknowledge("q", at(32), acks=leases.values())
    assert twin.snapshot() == broker.snapshot()


def test_bodies_are_recorded_once() -> None:
    broker = make()
    send(broker, "a", at(0))
    leases = pulled(broker, at(0))
    broker.end_leases("q", at(30))
    broker.acknowledge("q", at(31), acks=leases.values())
    stored = b"".join(encode(record) for record in broker.take_records())
    assert stored.count(b"body of a") == 1


@pytest.mark.parametrize(
    "record",
    [
        ["lease", "q", at(0), at(30), [7]],
        ["release", "q", at(0), [1], [], None, 0],
        ["release", "q", at(0), [], [[1, "retry", at(0)]], None, 0],
        ["release", "q", at(0)],
    ],
    ids=repr,
)
def test_record_that_does_not_fit_is_a_state_error(record: list[Any]) -> None:
    broker = make()
    send(broker, "a", at(0))
    with pytest.raises(StateError, match=r"record 0 .*does not fit: the state is damaged"):
        broker.replay([record])


# Speed: the work per message does not depend on how many others are leased


@pytest.mark.parametrize(
    ("retention", "many"),
    [(3600 * SECOND, 100_000), (345_600 * SECOND, 20_000)],
    ids=["old", "young"],
)
def test_work_per_message_is_the_same_with_many_leased(retention: Duration, many: int) -> None:
    """Also when those leased are older than the queue keeps messages."""

    def cycles(leased: int) -> int:
        broker = make(retention=retention, batch_size=100)
        hours = [43_200 * SECOND - number for number in range(0, leased, 100)]
        for number, timeout in enumerate(hours):
            send(broker, [f"{number}-{i}" for i in range(100)], at(0))
            pulled(broker, at(0), visibility_timeout=timeout)
        assert broker.counts("q").delivered == leased
        broker.expires_at("q")

        def cycle() -> None:
            for now in range(at(7200), at(7200) + 20):
                send(broker, [f"new {now}-{i}" for i in range(100)], now)
                got = [item.lease for item in broker.lease("q", now).messages]
                broker.acknowledge("q", now, acks=got[:50], retries=dict.fromkeys(got[50:60], 0))
                broker.acknowledge("q", now, acks=got[50:])
                broker.end_leases("q", now)
                broker.lease_ends_at("q")
                broker.expires_at("q")

        return lines_run(cycle)

    assert cycles(many) <= cycles(100) * 1.1


def test_leases_that_run_out_cost_the_same_however_many_do_not() -> None:
    def cycles(leased: int) -> int:
        broker = make(batch_size=100, max_retries=100)
        for number in range(0, leased, 100):
            send(broker, [f"{number}-{i}" for i in range(100)], at(0))
            pulled(broker, at(0), visibility_timeout=43_200 * SECOND)
        send(broker, [f"new {i}" for i in range(100)], at(0))

        def cycle() -> None:
            for now in range(at(0), at(20), SECOND):
                assert len(pulled(broker, now, visibility_timeout=SECOND)) == 100
                assert broker.lease_ends_at("q") == now + SECOND
                assert len(broker.end_leases("q", now + SECOND)) == 100
                broker.expires_at("q")

        return lines_run(cycle)

    assert cycles(20_000) <= cycles(100) * 1.1


def test_memory_of_acknowledged_messages_is_let_go_while_one_stays_leased() -> None:
    broker = make(batch_size=100)
    send(broker, ["late"], at(0))
    pulled(broker, at(0), visibility_timeout=43_200 * SECOND)
    for now in range(at(1), at(1) + 200):
        send(broker, [f"{now}-{i}" for i in range(10)], now)
        leases = pulled(broker, now, visibility_timeout=43_200 * SECOND)
        broker.acknowledge("q", now, acks=leases.values())
    queue = broker._queues["q"]
    assert len(queue.ages) < 200
    assert len(queue.leases.lent) == 1
    assert len(queue.leases._ends) < 200


def test_settings_of_a_queue_can_be_replaced() -> None:
    """By whoever changes one setting of a queue that has a pull consumer."""
    rules = QueueRules("q", pull=PullRules())
    assert replace(rules, paused=True).pull == PullRules()
    with pytest.raises(ValueError, match="can have only one consumer"):
        replace(rules, consumer=ConsumerRules())
