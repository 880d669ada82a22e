"""Tests of src/entry.py, the very file that is deployed, and of src/naive.py, which is not."""

from datetime import UTC, datetime, timedelta

import pytest
from sink_service import Sink

START = datetime(2026, 1, 1, tzinfo=UTC)  # where virtual time begins
HOUR = "2026-01-01T00"
PRICES = (HOUR, "/prices")

# No version of the Worker uses both routes of the sink.
pytestmark = pytest.mark.respx(assert_all_called=False)

naive = pytest.mark.emulator(config="../wrangler.naive.jsonc")


@pytest.fixture
def sink(respx_mock):
    sink = Sink()
    respx_mock.post("https://sink.example/ids").mock(side_effect=sink.add_ids)
    respx_mock.post("https://sink.example/sums").mock(side_effect=sink.add_sums)
    return sink


async def view(emulator, name, page="/prices", at="2026-01-01T00:00:00Z", **options):
    event = {"id": name, "page": page, "at": at}
    return await emulator.fetch("/event", method="POST", json=event, **options)


async def view_many(emulator, count):
    for number in range(count):
        await view(emulator, f"view-{number}")


# The path on which nothing goes wrong: batches.


async def test_event_is_answered_at_once_and_flushed_later(emulator, sink):
    response = await view(emulator, "view-1")

    assert response.status_code == 202
    assert response.json() == {"accepted": "view-1"}
    assert emulator.now == START
    assert sink.flushes == []  # the answer does not wait for the sink

    await emulator.settle()

    assert sink.flushes == [[{"hour": HOUR, "page": "/prices", "ids": ["view-1"]}]]
    assert emulator.now == START + timedelta(seconds=30)  # max_batch_timeout


async def test_events_of_half_a_minute_are_one_flush(emulator, sink):
    for number in range(5):
        await view(emulator, f"view-{number}", page="/prices" if number else "/")
        await emulator.advance("5 seconds")
    await emulator.settle()

    assert len(sink.flushes) == 1
    assert sink.totals == {(HOUR, "/"): 1, PRICES: 4}
    assert emulator.now == START + timedelta(seconds=30)  # since the first of them


async def test_full_batch_does_not_wait(emulator, sink):
    await view_many(emulator, 20)
    await emulator.advance(0)  # what is due now

    assert len(sink.flushes) == 1
    assert sink.totals == {PRICES: 20}

    await view(emulator, "view-20")
    await emulator.advance("29 seconds")
    assert len(sink.flushes) == 1  # the next one waits again
    await emulator.settle()
    assert sink.totals == {PRICES: 21}


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "[]",
        '{"id": "a", "page": "/"}',
        '{"id": "", "page": "/", "at": "2026-01-01T00:00:00Z"}',
        '{"id": ["a"], "page": "/", "at": "2026-01-01T00:00:00Z"}',
        '{"id": "a", "page": "/", "at": "2026-01-01T00:00:00"}',  # in which time zone?
        '{"id": "a", "page": "/", "at": "yesterday"}',
    ],
)
async def test_invalid_event_is_refused(emulator, sink, content):
    response = await emulator.fetch("/event", method="POST", content=content)
    await emulator.settle()

    assert response.status_code == 400
    assert sink.flushes == []


async def test_other_paths_and_methods_are_refused(emulator):
    assert (await emulator.fetch("/")).status_code == 404
    refused = await emulator.fetch("/event")
    assert refused.status_code == 405
    assert refused.headers["Allow"] == "POST"


# Late events, and events that come twice.


async def test_event_counts_for_the_hour_in_which_it_happened(emulator, sink):
    await view(emulator, "of-now")
    await view(emulator, "of-yesterday", at="2025-12-31T23:30:00Z")
    await view(emulator, "of-elsewhere", at="2026-01-01T01:30:00+01:00")
    await emulator.settle()

    assert sink.totals == {PRICES: 2, ("2025-12-31T23", "/prices"): 1}


async def test_event_delayed_on_its_way_counts_for_its_own_hour(emulator, sink):
    emulator.faults.add("message.events#1:delay(2 h)")
    await view(emulator, "late")
    await view(emulator, "in-time")
    await emulator.settle()

    assert [groups[0]["ids"] for groups in sink.flushes] == [["in-time"], ["late"]]
    assert sink.totals == {PRICES: 2}
    assert emulator.now == START + timedelta(hours=2, seconds=30)


async def test_event_that_the_client_sends_twice_counts_once(emulator, sink):
    await view(emulator, "view-1")
    await view(emulator, "view-1")  # in the same batch
    await emulator.advance("1 hour")
    await view(emulator, "view-1")  # in another one
    await emulator.settle()

    assert sink.totals == {PRICES: 1}
    assert emulator.queues["events"].acked == 3


async def test_client_that_gets_no_answer_may_send_its_event_again(emulator, sink):
    emulator.faults.add("request.POST./event#1:lose_reply")
    response = await view(emulator, "view-1", retries=1)
    await emulator.settle()

    assert response.status_code == 202
    assert emulator.queues["events"].acked == 2
    assert sink.totals == {PRICES: 1}


# What the platform may do to correct code.

PLANS = [
    "batch.events#1:lose_ack",
    "batch.events#1:lose_ack; batch.events#2:shuffle",
    "batch.events#1:lose_ack; batch.events#2:split",
    "batch.events#1:shuffle",
    "batch.events#1:split",
    "batch.events#1:overlap; fetch.POST.sink.example/ids#1:timeout",
    "batch.events#1:crash_before",
    "batch.events#1:fail",
    "batch.events#1:timeout",
    "message.events#2:duplicate",
    "message.events#2:duplicate(1 h)",
    "message.events#2:delay(1 h)",
    "fetch.POST.sink.example/ids#1:crash_before",
    "fetch.POST.sink.example/ids#1:crash_after",
    "fetch.POST.sink.example/ids#1:lose_reply",
    "fetch.POST.sink.example/ids#1:status(503)",
    "fetch.POST.sink.example/ids#1:timeout",
    "send.events#1:fail",
    "send.events#2:lose_reply",
]


@pytest.mark.parametrize("plan", PLANS)
async def test_totals_are_right_whatever_happens(emulator, sink, plan):
    emulator.faults.add(plan)
    await view_many(emulator, 24)  # a batch and a bit
    await emulator.settle()

    assert sink.totals == {PRICES: 24}


async def test_repeated_flush_may_hold_new_events_too(emulator, sink):
    emulator.faults.add("batch.events#1:lose_ack")
    await view(emulator, "old")
    await emulator.advance("30 seconds")
    await view(emulator, "new")
    await emulator.settle()

    assert [groups[0]["ids"] for groups in sink.flushes] == [["old"], ["new", "old"]]
    assert sink.totals == {PRICES: 2}


# What the naive version makes of it.


@naive
@pytest.mark.emulator(faults="batch.events#1:lose_ack")
async def test_naive_version_is_right_if_the_very_same_batch_comes_again(emulator, sink):
    await view_many(emulator, 4)
    await emulator.settle()

    assert len(sink.flushes) == 2
    assert sink.totals == {PRICES: 4}  # the key did its work, and the author was content


@naive
@pytest.mark.emulator(faults="batch.events#1:lose_ack")
async def test_naive_version_doubles_what_comes_again_with_new_events(emulator, sink):
    await view(emulator, "old")
    await emulator.advance("30 seconds")
    await view(emulator, "new")
    await emulator.settle()

    assert sink.totals == {PRICES: 3}  # of 2


@naive
@pytest.mark.parametrize(
    ("plan", "total"),
    [
        ("batch.events#1:lose_ack; batch.events#2:shuffle", 8),
        ("batch.events#1:lose_ack; batch.events#2:split", 8),
        ("message.events#2:duplicate(1 h)", 5),
    ],
)
async def test_naive_version_doubles_what_comes_again_in_another_batch(emulator, sink, plan, total):
    emulator.faults.add(plan)
    await view_many(emulator, 4)
    await emulator.settle()

    assert sink.totals == {PRICES: total}  # of 4


@naive
async def test_naive_version_counts_what_the_client_sends_twice(emulator, sink):
    await view(emulator, "view-1")
    await view(emulator, "view-1")
    await emulator.settle()

    assert sink.totals == {PRICES: 2}  # of 1


# Background work: an answer of 202 is no promise.


@pytest.mark.parametrize("fault", ["wait_until.analytics#1:evict", "send.events#1:crash_before"])
async def test_event_is_lost_if_the_isolate_goes_after_the_answer(emulator, sink, fault):
    emulator.faults.add(fault)
    response = await view(emulator, "lost")
    await view(emulator, "kept")
    await emulator.settle()

    assert response.status_code == 202  # the client never learns of it
    assert [task.state for task in emulator.background] == ["lost", "done"]
    assert sink.flushes == [[{"hour": HOUR, "page": "/prices", "ids": ["kept"]}]]


@pytest.mark.emulator(faults="send.events#1:crash_after")
async def test_event_is_safe_as_soon_as_the_queue_has_it(emulator, sink):
    await view(emulator, "kept")
    await emulator.settle()

    assert [task.state for task in emulator.background] == ["lost"]
    assert sink.totals == {PRICES: 1}


@pytest.mark.emulator(faults="send.events#*:fail")
async def test_event_is_lost_if_the_queue_takes_nothing(emulator, sink):
    response = await view(emulator, "lost")
    await emulator.settle()

    assert response.status_code == 202
    assert [task.state for task in emulator.background] == ["failed"]
    assert len(emulator.faults.fired) == 3  # as many tries
    assert emulator.now == START + timedelta(seconds=1 + 5)
    assert "event lost is sent again in 1 s" in emulator.logs[0].text
    assert sink.flushes == []


# The sink is down.


async def test_flush_is_tried_again_with_back_off_until_it_works(emulator, sink):
    sink.down = True
    await view_many(emulator, 2)
    await emulator.advance("2 minutes")  # two attempts
    sink.down = False
    await emulator.settle()

    events = emulator.queues["events"]
    tries = [(d.attempt, (d.at - START).total_seconds(), d.outcome) for d in events.deliveries[::2]]
    # After its delay (30, 60 s) an event waits up to 30 s for company again.
    assert tries == [(1, 30.0, "retry"), (2, 90.0, "retry"), (3, 180.0, "ack")]
    assert sink.totals == {PRICES: 2}


@pytest.mark.parametrize("action", ["fail", "lose_reply", "status(503)"])
async def test_flush_without_an_answer_is_tried_again_later_too(emulator, sink, action):
    emulator.faults.add(f"fetch.POST.sink.example/ids#1:{action}")
    await view(emulator, "view-1")
    await emulator.settle()

    events = emulator.queues["events"]
    assert [(d.at - START).total_seconds() for d in events.deliveries] == [30, 90]
    assert sink.totals == {PRICES: 1}


async def test_events_end_in_the_dead_letter_queue_if_the_sink_never_works(emulator, sink):
    sink.down = True
    await view_many(emulator, 2)
    await emulator.settle()

    events = emulator.queues["events"]
    tries = [(d.attempt, (d.at - START).total_seconds()) for d in events.deliveries[::2]]
    assert tries == [(1, 30.0), (2, 90.0), (3, 180.0), (4, 330.0), (5, 600.0), (6, 1110.0)]
    assert events.dead_lettered == 2
    waiting = emulator.queues["events-dlq"].backlog
    assert [message.body["id"] for message in waiting] == ["view-0", "view-1"]
    assert sink.totals == {}
