"""Tests of src/entry.py, the very file that is deployed, and of src/naive.py, which is not."""

from datetime import UTC, datetime, timedelta

import pytest
from renderer import Renderer

START = datetime(2026, 1, 1, tzinfo=UTC)  # where virtual time begins
KEY = "order-of-ada"
DONE = {
    "id": KEY,
    "title": "Sales",
    "state": "done",
    "url": f"https://reports.example/{KEY}",
    "made": START.isoformat(),
}

# Not every test gets as far as the service.
pytestmark = pytest.mark.respx(assert_all_called=False)

naive = pytest.mark.emulator(config="../wrangler.naive.jsonc")


@pytest.fixture
def renderer(respx_mock):
    renderer = Renderer()
    respx_mock.post("https://render.example/reports").mock(side_effect=renderer)
    return renderer


async def order(emulator, title="Sales", key=KEY, **options):
    headers = {"Idempotency-Key": key}
    return await emulator.fetch(
        "/jobs", method="POST", json={"title": title}, headers=headers, **options
    )


async def job(emulator, key=KEY):
    return (await emulator.fetch(f"/jobs/{key}")).json()


def rows(emulator):
    return emulator.d1["DB"].execute("SELECT * FROM jobs")


# The path on which nothing goes wrong.


async def test_report_is_made_after_the_answer(emulator, renderer):
    response = await order(emulator)

    assert (response.status_code, response.json()) == (202, {"job": KEY})
    assert emulator.now == START  # the client waits for none of it
    assert (await job(emulator))["state"] == "queued"

    await emulator.settle()

    assert await job(emulator) == DONE
    assert emulator.now == START + timedelta(seconds=5 + 10)  # of the batch, of the service
    assert renderer.reports == {KEY: "Sales"}


async def test_the_same_order_again_is_the_same_job(emulator, renderer):
    await order(emulator)
    await order(emulator)
    await emulator.settle()
    await order(emulator)
    await emulator.settle()

    assert await job(emulator) == DONE
    assert renderer.calls == 1


async def test_orders_do_not_meet(emulator, renderer):
    await order(emulator)
    await order(emulator, "Stock", "order-of-bob")
    await emulator.settle()

    assert renderer.reports == {KEY: "Sales", "order-of-bob": "Stock"}


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ({"title": "Sales"}, {}),
        ({"title": "Sales"}, {"Idempotency-Key": "short"}),
        ({"name": "Sales"}, {"Idempotency-Key": KEY}),
    ],
)
async def test_invalid_order_is_refused(emulator, body, headers):
    response = await emulator.fetch("/jobs", method="POST", json=body, headers=headers)

    assert response.status_code == 422
    assert rows(emulator) == []


async def test_unknown_job_is_not_found(emulator):
    response = await emulator.fetch("/jobs/nobody")

    assert (response.status_code, response.json()) == (404, {"detail": "no such job"})


# The service is down.


async def test_report_is_tried_again_until_the_service_is_back(emulator, renderer):
    renderer.down = True
    await order(emulator)
    await emulator.advance("2 minutes")
    renderer.down = False
    await emulator.settle()

    assert await job(emulator) == DONE
    assert renderer.calls == 3


async def test_job_fails_if_the_service_stays_down(emulator, renderer):
    renderer.down = True
    await order(emulator)
    await emulator.settle()

    assert (await job(emulator))["state"] == "failed"
    assert renderer.calls == 6  # `max_retries` is of retries
    assert [log.text for log in emulator.logs] == [f"report {KEY}: HTTPStatusError"] * 6


# The nightly clean-up.


async def test_old_reports_are_forgotten(emulator, renderer):
    await order(emulator)
    await emulator.settle()
    await emulator.advance("7 days")
    assert (await job(emulator))["state"] == "done"

    await emulator.advance("1 day")

    assert rows(emulator) == []


async def test_a_job_without_a_message_is_found_at_night(emulator, renderer):
    emulator.faults.add("send.reports#1:fail")
    emulator.findings.expect("handler_exception")
    assert (await order(emulator)).status_code == 500
    await emulator.advance("1 day")

    # Too young in the first night, at three; it has waited for a day in the second.
    assert (await job(emulator))["state"] == "queued"
    await emulator.advance("4 hours")
    assert (await job(emulator))["state"] == "done"


# What the platform may do to correct code, and what its neighbours do.

PLANS = [
    "d1.DB.run#1:crash_before",
    "d1.DB.run#1:crash_after",
    "d1.DB.run#1:lose_reply",
    "d1.DB.run#2:crash_after",
    "send.reports#1:crash_before",
    "send.reports#1:crash_after",
    "send.reports#1:fail",
    "send.reports#1:lose_reply",
    "request.POST./jobs#1:lose_reply",
    "request.POST./jobs#1:crash_before",
    "request.POST./jobs#1:crash_after",
    "message.reports#1:duplicate",
    "message.reports#1:duplicate(1 h)",
    "batch.reports#1:crash_before",
    "batch.reports#1:lose_ack",
    "fetch.POST.render.example/reports#1:crash_after",
    "fetch.POST.render.example/reports#1:lose_reply",
    "fetch.POST.render.example/reports#1:timeout",
    "fetch.POST.render.example/reports#1:status(503)",
    "send.reports#1:lose_reply; batch.reports#1:lose_ack",
]


@pytest.mark.parametrize("plan", PLANS)
async def test_one_order_is_one_report_whatever_happens(emulator, renderer, plan):
    emulator.faults.add(plan)
    response = await order(emulator, retries=1)
    await emulator.settle()

    assert response.status_code == 202
    assert [(row["id"], row["state"]) for row in rows(emulator)] == [(KEY, "done")]
    assert renderer.reports == {KEY: "Sales"}


@pytest.mark.fault_sweep(classes=("platform", "request"))
async def test_one_order_is_one_report_under_every_fault(emulator, renderer):
    await order(emulator, retries=1)
    await emulator.settle()

    assert [(row["id"], row["state"]) for row in rows(emulator)] == [(KEY, "done")]
    assert renderer.reports == {KEY: "Sales"}


async def test_report_is_made_after_a_restart_of_everything(emulator, renderer):
    await order(emulator)
    await emulator.restart()
    await emulator.settle()

    assert await job(emulator) == DONE


# What the naive version makes of it.


@naive
async def test_naive_version_keeps_the_client_waiting(emulator, renderer):
    response = await order(emulator)

    assert response.status_code == 202
    assert emulator.now == START + timedelta(seconds=10)
    assert [row["state"] for row in rows(emulator)] == ["done"]


@naive
@pytest.mark.parametrize(
    "plan",
    [
        "fetch.POST.render.example/reports#1:crash_after",
        "request.POST./jobs#1:lose_reply",
    ],
)
async def test_naive_version_makes_two_reports_of_one_order(emulator, renderer, plan):
    emulator.faults.add(plan)
    await order(emulator, retries=1)
    await emulator.settle()

    assert len(renderer.reports) == 2
    assert len(rows(emulator)) == 2


@naive
async def test_naive_version_forgets_a_job_when_the_service_fails(emulator, renderer):
    renderer.down = True
    response = await order(emulator)
    renderer.down = False
    await emulator.settle()

    assert response.status_code == 202
    assert renderer.reports == {}
    assert (await job(emulator, response.json()["job"]))["state"] == "queued"
