"""Tests of src/entry.py, the very file that is deployed, and of src/naive.py, which is not."""

from datetime import UTC, datetime, timedelta

import pytest
from company_services import Company

from emulator import WorkflowFailed

START = datetime(2026, 1, 1, tzinfo=UTC)  # where virtual time begins
LUNCH = {"id": "lunch", "employee": "ada", "amount": 40}
LAPTOP = {"id": "laptop", "employee": "ada", "amount": 2000}

# Not every test gets as far as every service.
pytestmark = pytest.mark.respx(assert_all_called=False)

naive = pytest.mark.emulator(config="../wrangler.naive.jsonc")


@pytest.fixture
def company(respx_mock):
    company = Company()
    respx_mock.post("https://chat.example/messages").mock(side_effect=company.chat)
    respx_mock.post("https://ledger.example/bookings").mock(side_effect=company.bookings)
    respx_mock.post("https://ledger.example/reversals").mock(side_effect=company.reversals)
    respx_mock.post("https://bank.example/payments").mock(side_effect=company.bank)
    return company


async def submit(emulator, expense, **options):
    """Submit an expense, and let all happen until somebody is waited for."""
    response = await emulator.fetch("/expenses", method="POST", json=expense, **options)
    assert response.status_code == 202
    await emulator.settle()
    return await emulator.workflows["approval"].get(expense["id"])


async def decide(emulator, expense, role, approved=True, **options):
    path = f"/expenses/{expense['id']}/{role}"
    response = await emulator.fetch(path, method="POST", json={"approved": approved}, **options)
    await emulator.settle()
    return response


# The path on which nothing goes wrong.


async def test_small_expense_is_paid_when_the_manager_approves(emulator, company):
    instance = await submit(emulator, LUNCH)
    assert instance.status == "waiting"
    assert company.chat.said == [("manager", "lunch?")]

    await emulator.advance("2 days")
    response = await decide(emulator, LUNCH, "manager")

    assert response.status_code == 202
    assert instance.output == {"outcome": "paid"}
    assert company.chat.said[1:] == [("ada", "lunch: paid")]
    assert (company.balance, company.paid) == (40, 40)
    assert emulator.now == START + timedelta(days=2)


async def test_large_expense_needs_two(emulator, company):
    instance = await submit(emulator, LAPTOP)
    await decide(emulator, LAPTOP, "manager")

    assert instance.status == "waiting"
    assert company.chat.said == [("manager", "laptop?"), ("finance", "laptop?")]
    assert company.bookings.calls == []

    await decide(emulator, LAPTOP, "finance")

    assert instance.output == {"outcome": "paid"}
    assert company.paid == 2000


@pytest.mark.parametrize("role", ["manager", "finance"])
async def test_one_no_is_enough(emulator, company, role):
    instance = await submit(emulator, LAPTOP)
    if role == "finance":
        await decide(emulator, LAPTOP, "manager")
    await decide(emulator, LAPTOP, role, approved=False)

    assert instance.output == {"outcome": "rejected", "by": role}
    assert company.chat.said[-1] == ("ada", "laptop: rejected")
    assert (company.balance, company.paid) == (0, 0)


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "[]",
        '{"id": "a", "employee": "ada"}',
        '{"id": "a b", "employee": "ada", "amount": 1}',
        '{"id": "a", "employee": "", "amount": 1}',
        '{"id": "a", "employee": "ada", "amount": true}',
        '{"id": "a", "employee": "ada", "amount": -1}',
        '{"id": "a", "employee": "ada", "amount": NaN}',
    ],
)
async def test_invalid_expense_is_refused(emulator, content):
    response = await emulator.fetch("/expenses", method="POST", content=content)

    assert response.status_code == 400
    assert emulator.workflows["approval"].instances == []


async def test_other_paths_methods_and_decisions_are_refused(emulator, company):
    await submit(emulator, LUNCH)

    assert (await emulator.fetch("/expenses")).status_code == 405
    assert (await emulator.fetch("/", method="POST")).status_code == 404
    assert (await decide(emulator, LUNCH, "ada")).status_code == 404
    assert (await decide(emulator, LUNCH, "manager", approved="yes")).status_code == 400
    assert (await decide(emulator, LAPTOP, "manager")).status_code == 404


# Time: a reminder, then a no.


async def test_manager_is_reminded_after_three_days(emulator, company):
    instance = await submit(emulator, LUNCH)
    await emulator.advance(timedelta(days=3) - timedelta(milliseconds=1))
    assert company.chat.said == [("manager", "lunch?")]

    await emulator.advance("1 ms")
    assert company.chat.said == [("manager", "lunch?"), ("manager", "lunch!")]

    await decide(emulator, LUNCH, "manager")
    assert instance.output == {"outcome": "paid"}


async def test_silence_is_a_no_after_seven_days(emulator, company):
    instance = await submit(emulator, LUNCH)
    assert instance.status == "waiting"  # `settle` passes no time-out of a wait: `result` does

    assert await instance.result() == {"outcome": "rejected", "by": "manager"}

    assert emulator.now == START + timedelta(days=7)
    assert company.chat.said[-1] == ("ada", "lunch: rejected")
    assert company.bookings.calls == []


@pytest.mark.emulator(profile="miniflare")
async def test_local_texts_of_a_time_out_are_understood_too(emulator, company):
    instance = await submit(emulator, LUNCH)

    assert await instance.result() == {"outcome": "rejected", "by": "manager"}
    assert emulator.now == START + timedelta(days=7)


async def test_decision_after_the_end_is_too_late(emulator, company):
    instance = await submit(emulator, LUNCH)
    await instance.result()
    response = await decide(emulator, LUNCH, "manager")

    assert response.status_code == 409
    assert instance.output == {"outcome": "rejected", "by": "manager"}


async def test_pause_stops_the_time_of_a_wait(emulator, company):
    instance = await submit(emulator, LUNCH)
    await emulator.advance("1 day")
    await instance.pause()
    await emulator.advance("30 days")
    assert company.chat.said == [("manager", "lunch?")]
    await instance.resume()

    await emulator.advance(timedelta(days=2) - timedelta(milliseconds=1))
    assert company.chat.said == [("manager", "lunch?")]
    await emulator.advance("1 ms")
    assert company.chat.said[1:] == [("manager", "lunch!")]


# Events: early, late, twice.


async def test_event_may_come_before_anybody_waits_for_it(emulator, company):
    instance = await submit(emulator, LAPTOP)
    await decide(emulator, LAPTOP, "finance")  # it is the manager who is waited for
    assert instance.status == "waiting"

    await emulator.advance("1 day")
    await decide(emulator, LAPTOP, "manager")

    assert instance.output == {"outcome": "paid"}
    (_, _, _, finance) = instance.steps[:4]
    assert finance.name == "finance-decides"
    assert finance.output["timestamp"] == START  # when it was sent
    assert finance.started == finance.ended == START + timedelta(days=1)


async def test_event_may_come_before_the_first_step_is_done(emulator, company):
    gate = emulator.workflows["approval"].hold_step("ask-manager")
    await emulator.fetch("/expenses", method="POST", json=LUNCH)
    await gate.reached()
    response = await emulator.fetch(
        "/expenses/lunch/manager", method="POST", json={"approved": True}
    )
    assert response.status_code == 202
    gate.open()
    await emulator.settle()

    (instance,) = emulator.workflows["approval"].instances
    assert instance.output == {"outcome": "paid"}


@pytest.mark.emulator(faults="event.approval.manager-decision#1:delay(5 d)")
async def test_event_that_is_late_finds_the_second_wait(emulator, company):
    instance = await submit(emulator, LUNCH)
    await decide(emulator, LUNCH, "manager")

    assert instance.output == {"outcome": "paid"}
    assert company.chat.said[1:] == [("manager", "lunch!"), ("ada", "lunch: paid")]
    assert emulator.now == START + timedelta(days=5)


@pytest.mark.emulator(faults="event.approval.manager-decision#1:duplicate")
async def test_event_that_comes_twice_counts_for_one(emulator, company):
    instance = await submit(emulator, LAPTOP)
    await decide(emulator, LAPTOP, "manager")

    assert instance.status == "waiting"
    assert await instance.result() == {"outcome": "rejected", "by": "finance"}


async def test_manager_who_clicks_twice_counts_for_one(emulator, company):
    instance = await submit(emulator, LAPTOP)
    await decide(emulator, LAPTOP, "manager")
    await decide(emulator, LAPTOP, "manager")

    assert instance.status == "waiting"
    assert company.bookings.calls == []


async def test_first_decision_counts(emulator, company):
    instance = await submit(emulator, LAPTOP)
    await decide(emulator, LAPTOP, "manager", approved=True)
    await decide(emulator, LAPTOP, "manager", approved=False)
    await decide(emulator, LAPTOP, "finance")

    assert instance.output == {"outcome": "paid"}


# A late failure: the bank refuses what is booked.


async def test_refused_payment_is_booked_back(emulator, company):
    company.bank.refuses = True
    instance = await submit(emulator, LUNCH)
    await decide(emulator, LUNCH, "manager")

    assert instance.output == {"outcome": "not paid"}
    assert len(company.bank.calls) == 1
    assert (company.balance, company.paid) == (0, 0)
    assert company.reversals.done == [{"booking": 1}]
    assert company.chat.said[-1] == ("ada", "lunch: not paid")


BACK = [
    "step.approval.book-back#1:crash_before",
    "step.approval.book-back#1:crash_after",
    "step.approval.book-back#1:crash_saved",
    "step.approval.book-back#1:timeout",
    "step.approval.tell-employee#1:crash_after",
    "step.approval.tell-employee#1:crash_saved",
    "step.approval.pay#1:crash_saved",
    "step.approval.*#*:evict",  # `run` starts over after every step
    "fetch.POST.ledger.example/reversals#1:lose_reply",
    "fetch.POST.ledger.example/reversals#1:status(503)",
]


@pytest.mark.parametrize("plan", BACK)
async def test_booking_is_undone_once_whatever_happens(emulator, company, plan):
    company.bank.refuses = True
    emulator.faults.add(plan)
    instance = await submit(emulator, LUNCH)
    await decide(emulator, LUNCH, "manager")

    assert instance.output == {"outcome": "not paid"}
    assert company.reversals.done == [{"booking": 1}]
    assert company.balance == 0
    assert company.chat.said == [("manager", "lunch?"), ("ada", "lunch: not paid")]


async def test_bank_without_an_answer_undoes_nothing(emulator, company):
    company.bank.down = True
    instance = await submit(emulator, LUNCH)
    await decide(emulator, LUNCH, "manager")

    with pytest.raises(WorkflowFailed, match=r"bank\.example/payments answered 503"):
        await instance.result()
    assert len(company.bank.calls) == 8
    assert emulator.now == START + timedelta(minutes=2**7 - 1)
    assert company.reversals.done == []

    # A person looks into it, and has it go on from there.
    company.bank.down = False
    await instance.restart("pay")
    await emulator.settle()

    assert instance.output == {"outcome": "paid"}
    assert (company.balance, company.paid) == (40, 40)
    assert len(company.bookings.calls) == 1


# What the platform may do to correct code, and what its neighbours do.

PLANS = [
    "step.approval.ask-manager#1:crash_after",
    "step.approval.ask-manager#1:fail",
    "step.approval.book#1:crash_before",
    "step.approval.book#1:crash_after",
    "step.approval.book#1:crash_saved",
    "step.approval.book#1:timeout",
    "step.approval.pay#1:crash_after",
    "step.approval.pay#1:timeout",
    "step.approval.tell-employee#1:crash_after",
    "step.approval.*#*:evict",
    "wait.approval.manager-decides#1:evict",
    "wait.approval.finance-decides#1:evict",
    "wait.approval.manager-decides#1:timeout",  # the event finds the second wait
    "event.approval.manager-decision#1:duplicate",
    "event.approval.manager-decision#1:duplicate(1 d)",
    "event.approval.finance-decision#1:delay(1 d)",
    "event.approval.finance-decision#1:lose_reply",
    "fetch.POST.ledger.example/bookings#1:lose_reply",
    "fetch.POST.bank.example/payments#1:lose_reply",
    "fetch.POST.bank.example/payments#1:crash_after",
    "fetch.POST.chat.example/messages#1:status(503)",
    # The client sends again what failed.
    "create.approval#1:lose_reply",
    "create.approval#1:crash_after",
    "event.approval.manager-decision#1:fail",
    "event.approval.manager-decision#1:crash_before",
    "event.approval.manager-decision#1:crash_after",
    "request.POST./expenses/laptop/manager#1:lose_reply",
]


@pytest.mark.parametrize("plan", PLANS)
async def test_expense_is_paid_once_whatever_happens(emulator, company, plan):
    emulator.faults.add(plan)
    instance = await submit(emulator, LAPTOP, retries=1)
    await decide(emulator, LAPTOP, "manager", retries=1)
    await decide(emulator, LAPTOP, "finance", retries=1)

    assert instance.output == {"outcome": "paid"}
    assert company.bookings.done == [{"expense": "laptop", "amount": 2000}]
    assert company.bank.done == [{"to": "ada", "amount": 2000}]
    assert company.reversals.calls == []
    questions = [message for message in company.chat.said if message[1] == "laptop?"]
    assert questions == [("manager", "laptop?"), ("finance", "laptop?")]
    assert company.chat.said[-1] == ("ada", "laptop: paid")


# What the naive version makes of it.


@naive
async def test_naive_version_works_as_long_as_each_thing_happens_once(emulator, company):
    instance = await submit(emulator, LAPTOP)
    await decide(emulator, LAPTOP, "manager")
    await decide(emulator, LAPTOP, "finance")

    assert instance.output == {"outcome": "paid"}
    assert (company.balance, company.paid) == (2000, 2000)


@naive
@pytest.mark.emulator(faults="event.approval.decision#1:duplicate")
async def test_naive_version_takes_the_managers_yes_for_two(emulator, company):
    instance = await submit(emulator, LAPTOP)
    await decide(emulator, LAPTOP, "manager")

    assert instance.output == {"outcome": "paid"}  # finance never said a word
    assert company.paid == 2000


@naive
async def test_naive_version_books_back_once_if_nothing_else_happens(emulator, company):
    emulator.findings.expect("effect_outside_step")
    company.bank.refuses = True
    await submit(emulator, LUNCH)
    await decide(emulator, LUNCH, "manager")

    assert company.balance == 0
    told = [finding.message for finding in emulator.findings]  # all the same
    assert any("https://ledger.example/reversals outside a step" in message for message in told)


@naive
@pytest.mark.parametrize(
    "plan",
    ["step.approval.tell-employee#1:crash_saved", "step.approval.tell-employee#1:evict"],
)
async def test_naive_version_books_back_again_at_a_replay(emulator, company, plan):
    emulator.findings.expect("effect_outside_step")
    company.bank.refuses = True
    emulator.faults.add(plan)
    await submit(emulator, LUNCH)
    await decide(emulator, LUNCH, "manager")

    assert company.balance == -40


@naive
@pytest.mark.emulator(faults="fetch.POST.bank.example/payments#*:lose_reply")
async def test_naive_version_books_back_what_the_bank_has_paid(emulator, company):
    instance = await submit(emulator, LUNCH)
    await decide(emulator, LUNCH, "manager")

    assert instance.output == {"outcome": "not paid"}
    assert (company.balance, company.paid) == (0, 40)
