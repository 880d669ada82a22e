"""Tests of src/entry.py, the very file that is deployed, and of src/naive.py, which is not."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
from outside import BackOffice, Subscriber

START = datetime(2026, 1, 1, tzinfo=UTC)  # where virtual time begins
EVENT = {"id": "order-7-paid", "amount": 1200}
DOWN = httpx.Response(503)
GONE = httpx.Response(410)

# Not every test gets as far as every service.
pytestmark = pytest.mark.respx(assert_all_called=False)

naive = pytest.mark.emulator(config="../wrangler.naive.jsonc")


@pytest.fixture
def backoffice(respx_mock):
    backoffice = BackOffice()
    respx_mock.route(host="backoffice.example").mock(side_effect=backoffice)
    return backoffice


@pytest.fixture
def subscribers(emulator, respx_mock, backoffice):
    """Three subscribers, in the order in which the back office lists them."""
    subscribers = [
        Subscriber(name, emulator.env.SIGNING_SECRET) for name in ("books", "crm", "depot")
    ]
    for subscriber in subscribers:
        respx_mock.post(subscriber.url).mock(side_effect=subscriber)
        backoffice.subscribers[subscriber.id] = {"url": subscriber.url}
    return subscribers


async def post(emulator, path, **options):
    headers = {"Authorization": f"Bearer {emulator.env.API_TOKEN}"}
    return await emulator.fetch(path, method="POST", headers=headers, **options)


async def order(emulator, event=EVENT, **options):
    response = await post(emulator, "/orders", json=event, **options)
    await emulator.settle()
    return response


def seconds(subscriber):
    """When a subscriber was called, since the start."""
    return [(call - START).total_seconds() for call in subscriber.calls]


# The path on which nothing goes wrong.


async def test_each_subscriber_gets_the_event_once(emulator, subscribers):
    response = await order(emulator)

    assert response.status_code == 202
    assert response.json() == {"deliveries": 3}
    assert [subscriber.handled for subscriber in subscribers] == [[EVENT]] * 3
    assert [seconds(subscriber) for subscriber in subscribers] == [[1.0]] * 3
    assert emulator.queues["deliveries"].acked == 3


async def test_event_without_subscribers_is_accepted(emulator, backoffice):
    response = await order(emulator)

    assert response.status_code == 202
    assert response.json() == {"deliveries": 0}
    assert emulator.queues["deliveries"].deliveries == []


async def test_hundreds_of_subscribers_are_more_than_one_send_batch(emulator, backoffice):
    for number in range(250):
        backoffice.subscribers[f"n{number}"] = {"url": f"https://n{number}.example/hook"}
    emulator.queues["deliveries"].pause()
    response = await order(emulator, {"id": "large", "text": "x" * 1900})

    assert response.json() == {"deliveries": 250}
    assert len(emulator.queues["deliveries"].backlog) == 250


@pytest.mark.parametrize(
    "content",
    [
        "",
        "no json",
        "[]",
        "{}",
        '{"id": 7}',
        '{"id": "a\\nb"}',
        '{"id": "a", "b": "%s"}' % ("x" * 2000),
    ],
)
async def test_invalid_event_is_refused(emulator, subscribers, content):
    response = await post(emulator, "/orders", content=content)
    await emulator.settle()

    assert response.status_code == 400
    assert [subscriber.calls for subscriber in subscribers] == [[], [], []]


@pytest.mark.parametrize("path", ["/orders", "/replay"])
async def test_strangers_are_refused(emulator, subscribers, path):
    wrong = {"Authorization": "Bearer of-bad-news"}
    for headers in ({}, wrong):
        response = await emulator.fetch(path, method="POST", headers=headers, json=EVENT)
        assert response.status_code == 401
    await emulator.settle()

    assert emulator.queues["deliveries"].deliveries == []


async def test_other_paths_and_methods_are_refused(emulator):
    assert (await emulator.fetch("/")).status_code == 404
    refused = await emulator.fetch("/orders")
    assert refused.status_code == 405
    assert refused.headers["Allow"] == "POST"


# A subscriber fails; the others do not notice.


async def test_failing_subscriber_is_tried_five_times_and_parked(emulator, subscribers, backoffice):
    books, crm, depot = subscribers
    crm.answer = DOWN
    await order(emulator)

    # Each delay (30, 60, 120, 240 s) is followed by the 1 s a lone message waits for company.
    assert seconds(crm) == [1, 32, 93, 214, 455]
    assert seconds(books) == seconds(depot) == [1]
    assert books.handled == depot.handled == [EVENT]
    assert [letter["delivery"]["event"] for letter in backoffice.parked.values()] == [EVENT]
    assert emulator.queues["deliveries"].dead_lettered == 1
    assert emulator.now == START + timedelta(seconds=455 + 5)  # the dead letter waits too


async def test_subscriber_gets_the_event_when_it_is_back(emulator, subscribers, backoffice):
    crm = subscribers[1]
    crm.answer = DOWN
    await post(emulator, "/orders", json=EVENT)
    await emulator.advance("1 minute")
    crm.answer = None
    await emulator.settle()

    assert seconds(crm) == [1, 32, 93]
    assert crm.handled == [EVENT]
    assert backoffice.parked == {}


@pytest.mark.parametrize(
    ("value", "second_call"),
    [
        ("100", 1 + 100 + 1),
        (format_datetime(START + timedelta(minutes=10), usegmt=True), 600 + 1),
        ("5", 1 + 30 + 1),  # not earlier than the back-off
        ("Thu, 01 Jan 1970 00:00:00 -0000", 1 + 30 + 1),
        ("soon", 1 + 30 + 1),
        ("9" * 12, 1 + 86_400 + 1),  # not later than a queue can
        ("9" * 5000, 1 + 30 + 1),
    ],
)
async def test_retry_after_is_honoured(emulator, subscribers, value, second_call):
    crm = subscribers[1]
    crm.answer = httpx.Response(429, headers={"Retry-After": value})
    await post(emulator, "/orders", json=EVENT)
    await emulator.run_until(lambda: len(crm.calls) == 2)

    assert seconds(crm) == [1, second_call]


async def test_slow_subscriber_is_given_ten_seconds(emulator, subscribers):
    books, crm, depot = subscribers
    emulator.faults.add("fetch.POST.books.example/hook#1:timeout")  # it has it and does not say so
    await order(emulator)

    assert seconds(books) == [1, 1 + 10 + 30 + 1]
    assert seconds(crm) == seconds(depot) == [1]  # called at the same time
    assert [subscriber.handled for subscriber in subscribers] == [[EVENT]] * 3


async def test_subscriber_that_is_gone_gets_no_more(emulator, subscribers, backoffice):
    books, crm, depot = subscribers
    crm.answer = GONE
    await order(emulator)
    await order(emulator, {"id": "order-8-paid"})

    assert list(backoffice.subscribers) == ["books", "depot"]
    assert len(crm.calls) == 1
    assert len(books.handled) == len(depot.handled) == 2
    assert backoffice.parked == {}


async def test_subscriber_that_is_gone_is_asked_again_if_nobody_noted_it(
    emulator, subscribers, backoffice
):
    crm = subscribers[1]
    crm.answer = GONE
    emulator.faults.add("fetch.DELETE.backoffice.example/subscribers/crm#1:status(503)")
    await order(emulator)

    assert seconds(crm) == [1, 32]
    assert list(backoffice.subscribers) == ["books", "depot"]


# What the platform may do to correct code, and what its neighbours do.


@pytest.mark.parametrize(
    "plan",
    [
        "batch.deliveries#1:lose_ack",
        "batch.deliveries#1:crash_before",
        "batch.deliveries#1:fail",
        "batch.deliveries#1:timeout",
        "batch.deliveries#1:shuffle",
        "batch.deliveries#1:split",
        "batch.deliveries#1:split; batch.deliveries#1:overlap",
        "message.deliveries#2:duplicate",
        "message.deliveries#2:duplicate(1 h)",
        "message.deliveries#2:delay(1 h)",
        "fetch.POST.*.example/hook#1:crash_before",
        "fetch.POST.crm.example/hook#1:crash_after",
        "fetch.POST.crm.example/hook#1:lose_reply",
        "fetch.POST.crm.example/hook#1:lose_reply(504)",
        "fetch.POST.*.example/hook#1:fail",
        # The client of /orders sends again what failed.
        "request.POST./orders#1:crash_before",
        "request.POST./orders#1:crash_after",
        "request.POST./orders#1:lose_reply",
        "send.deliveries#1:fail",
        "send.deliveries#1:lose_reply",
        "send.deliveries#1:crash_before",
        "send.deliveries#1:crash_after",
        "fetch.GET.backoffice.example/subscribers#1:fail",
    ],
)
async def test_each_subscriber_handles_the_event_once_whatever_happens(
    emulator, subscribers, backoffice, plan
):
    emulator.faults.add(plan)
    response = await order(emulator, retries=1)

    assert response.status_code == 202
    assert [subscriber.handled for subscriber in subscribers] == [[EVENT]] * 3
    assert backoffice.parked == {}


# Dead letters.


async def test_parked_deliveries_are_replayed(emulator, subscribers, backoffice):
    books, crm, _ = subscribers
    crm.answer = DOWN
    await order(emulator)
    await order(emulator, {"id": "order-8-paid"})
    crm.answer = None

    response = await post(emulator, "/replay")
    await emulator.settle()

    assert response.json() == {"deliveries": 2}
    assert [event["id"] for event in crm.handled] == ["order-7-paid", "order-8-paid"]
    assert len(books.calls) == 2  # the others are left alone
    assert backoffice.parked == {}


async def test_replay_that_fails_again_is_parked_again(emulator, subscribers, backoffice):
    crm = subscribers[1]
    crm.answer = DOWN
    await order(emulator)
    (first,) = backoffice.parked
    await post(emulator, "/replay")
    await emulator.settle()

    assert len(crm.calls) == 10
    (second,) = backoffice.parked
    assert second != first


@pytest.mark.parametrize(
    "fault",
    [
        "request.POST./replay#1:crash_after",
        "send.deliveries#2:crash_before",
        "send.deliveries#2:fail",
        "send.deliveries#2:crash_after",
        "fetch.DELETE.backoffice.example/parked/*#1:crash_before",
        "fetch.DELETE.backoffice.example/parked/*#1:status(503)",
    ],
)
async def test_replay_that_breaks_off_may_be_repeated(emulator, subscribers, backoffice, fault):
    crm = subscribers[1]
    crm.answer = DOWN
    await order(emulator)
    crm.answer = None
    emulator.faults.add(fault)
    response = await post(emulator, "/replay", retries=1)
    await emulator.settle()

    assert response.status_code == 202
    assert crm.handled == [EVENT]
    assert backoffice.parked == {}


async def test_dead_letter_waits_for_the_back_office(emulator, subscribers, backoffice):
    crm = subscribers[1]
    crm.answer = DOWN
    await post(emulator, "/orders", json=EVENT)
    await emulator.advance("5 minutes")
    backoffice.down = True
    await emulator.advance("10 hours")
    assert backoffice.parked == {}
    backoffice.down = False
    await emulator.settle()

    assert len(backoffice.parked) == 1
    assert emulator.queues["deliveries-dlq"].dropped == 0


@pytest.mark.parametrize(
    "fault",
    [
        "batch.deliveries-dlq#1:lose_ack",
        "message.deliveries-dlq#1:duplicate",
        "fetch.PUT.backoffice.example/parked/*#1:crash_after",
    ],
)
async def test_dead_letter_is_parked_once_whatever_happens(
    emulator, subscribers, backoffice, fault
):
    subscribers[1].answer = DOWN
    emulator.faults.add(fault)
    await order(emulator)

    assert len(backoffice.parked) == 1


# What the naive version makes of it.


@naive
async def test_naive_version_works_as_long_as_nothing_fails(emulator, subscribers):
    await order(emulator)

    assert [subscriber.handled for subscriber in subscribers] == [[EVENT]] * 3


@naive
@pytest.mark.emulator(faults="batch.deliveries#1:lose_ack")
async def test_naive_version_doubles_after_a_lost_ack(emulator, subscribers):
    await order(emulator)

    assert [subscriber.handled for subscriber in subscribers] == [[EVENT, EVENT]] * 3


@naive
async def test_naive_version_lets_all_suffer_from_one(emulator, subscribers, backoffice):
    books, crm, depot = subscribers
    crm.answer = DOWN
    await order(emulator)

    assert books.handled == [EVENT] * 5
    assert depot.handled == []
    assert seconds(crm) == [1, 2, 3, 4, 5]  # no back-off
    assert len(backoffice.parked) == 3

    crm.answer = None
    await post(emulator, "/replay")
    await emulator.settle()

    assert books.handled == [EVENT] * 6
