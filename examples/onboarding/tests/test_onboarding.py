"""Tests of src/entry.py, the very file that is deployed, and of src/naive.py, which is not."""

from datetime import UTC, datetime, timedelta

import pytest
from services import Billing, Mail

from emulator import WorkflowFailed

START = datetime(2026, 1, 1, tzinfo=UTC)  # where virtual time begins
MAIL_TIME = timedelta(seconds=5)  # a lone message waits that long for company
ADA = {"id": "7", "email": "ada@example.com"}
CHARGES = [("setup", "account-1"), ("subscription", "account-1")]
SUBJECTS = ["Welcome", "How is it going?"]

# Not every test gets as far as every service.
pytestmark = pytest.mark.respx(assert_all_called=False)

naive = pytest.mark.emulator(config="../wrangler.naive.jsonc")


@pytest.fixture
def billing(respx_mock):
    billing = Billing()
    respx_mock.post(host="billing.example").mock(side_effect=billing)
    return billing


@pytest.fixture
def mail(respx_mock):
    mail = Mail()
    respx_mock.post("https://mail.example/send").mock(side_effect=mail)
    return mail


async def sign_up(emulator, customer=ADA, **options):
    return await emulator.fetch("/customers", method="POST", json=customer, **options)


def onboarding(emulator):
    (instance,) = emulator.workflows["onboarding"].instances
    return instance


# The path on which nothing goes wrong.


async def test_customer_gets_account_and_mail_at_once(emulator, billing, mail):
    response = await sign_up(emulator)
    assert response.status_code == 202
    assert response.json() == {"onboarding": "customer-7"}
    assert emulator.now == START  # the client waits for none of it

    await emulator.settle(sleeps=False)

    assert billing.charges == [("setup", "account-1")]
    assert mail.sent == [(START + MAIL_TIME, "ada@example.com", "Welcome")]
    assert emulator.now == START + MAIL_TIME
    assert onboarding(emulator).status == "waiting"


async def test_thirty_days_pass_in_milliseconds(emulator, billing, mail):
    await sign_up(emulator)
    await emulator.settle()

    assert onboarding(emulator).output == {"account": "account-1"}
    assert emulator.now == START + timedelta(days=30)
    assert billing.charges == CHARGES
    assert billing.calls == [START, START + timedelta(days=30)]
    assert mail.sent == [
        (START + MAIL_TIME, "ada@example.com", "Welcome"),
        (START + timedelta(days=3) + MAIL_TIME, "ada@example.com", "How is it going?"),
    ]
    assert [(step.kind, step.name) for step in onboarding(emulator).steps] == [
        ("do", "create-billing-account"),
        ("do", "welcome-mail"),
        ("sleep", "three-days"),
        ("do", "follow-up-mail"),
        ("sleep", "rest-of-the-trial"),
        ("do", "start-subscription"),
    ]


async def test_nothing_happens_before_its_day(emulator, billing, mail):
    await sign_up(emulator)
    await emulator.advance(timedelta(days=3) - timedelta(milliseconds=1))
    assert mail.subjects == ["Welcome"]

    await emulator.advance(timedelta(milliseconds=1) + MAIL_TIME)
    assert mail.subjects == SUBJECTS

    await emulator.advance(timedelta(days=27) - MAIL_TIME - timedelta(milliseconds=1))
    assert billing.charges == CHARGES[:1]

    await emulator.advance("1 ms")
    assert billing.charges == CHARGES


async def test_customer_who_comes_twice_is_onboarded_once(emulator, billing, mail):
    await sign_up(emulator)
    await emulator.advance("1 day")
    response = await sign_up(emulator)
    await emulator.settle()

    assert response.status_code == 202
    assert billing.charges == CHARGES
    assert mail.subjects == SUBJECTS


async def test_customers_do_not_meet(emulator, billing, mail):
    await sign_up(emulator)
    await emulator.advance("1 day")
    await sign_up(emulator, {"id": "8", "email": "bob@example.com"})
    await emulator.settle()

    assert emulator.now == START + timedelta(days=31)
    assert [charge for charge, _ in billing.charges] == ["setup"] * 2 + ["subscription"] * 2
    assert [to for _, to, _ in mail.sent] == ["ada@example.com", "bob@example.com"] * 2


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "[]",
        '{"id": "7"}',
        '{"id": 7, "email": "ada@example.com"}',
        '{"id": "a/b", "email": "ada@example.com"}',
        '{"id": "7", "email": "ada"}',
    ],
)
async def test_invalid_customer_is_refused(emulator, billing, content):
    response = await emulator.fetch("/customers", method="POST", content=content)

    assert response.status_code == 400
    assert emulator.workflows["onboarding"].instances == []


async def test_other_paths_and_methods_are_refused(emulator):
    assert (await emulator.fetch("/")).status_code == 404
    refused = await emulator.fetch("/customers")
    assert refused.status_code == 405
    assert refused.headers["Allow"] == "POST"


# What the platform may do to correct code, and what its neighbours do.

PLANS = [
    "step.onboarding.create-billing-account#1:crash_before",
    "step.onboarding.create-billing-account#1:crash_after",
    "step.onboarding.create-billing-account#1:crash_saved",
    "step.onboarding.create-billing-account#1:evict",
    "step.onboarding.create-billing-account#1:fail",
    "step.onboarding.create-billing-account#1:timeout",
    "step.onboarding.welcome-mail#1:crash_after",
    "step.onboarding.welcome-mail#1:timeout",
    "step.onboarding.follow-up-mail#1:crash_after",
    "step.onboarding.start-subscription#1:crash_after",
    "step.onboarding.start-subscription#1:timeout",
    "step.onboarding.*#*:evict",  # `run` starts over after every step
    "sleep.onboarding.three-days#1:evict",
    "sleep.onboarding.rest-of-the-trial#1:evict",
    "fetch.POST.billing.example/accounts#1:crash_before",
    "fetch.POST.billing.example/accounts#1:crash_after",
    "fetch.POST.billing.example/accounts#1:lose_reply",
    "fetch.POST.billing.example/accounts#1:lose_reply(504)",
    "fetch.POST.billing.example/accounts#1:status(503)",
    "fetch.POST.billing.example/accounts#1:timeout",
    "fetch.POST.billing.example/subscriptions#1:lose_reply",
    "send.mails#1:fail",
    "send.mails#1:lose_reply",
    "send.mails#1:crash_after",
    "message.mails#1:duplicate",
    "message.mails#1:duplicate(1 h)",
    "batch.mails#1:lose_ack",
    "batch.mails#1:crash_before",
    "fetch.POST.mail.example/send#1:lose_reply",
    # The client of /customers sends again what failed.
    "create.onboarding#1:fail",
    "create.onboarding#1:lose_reply",
    "create.onboarding#1:crash_before",
    "create.onboarding#1:crash_after",
    "request.POST./customers#1:lose_reply",
    "step.onboarding.create-billing-account#1:crash_after; sleep.onboarding.three-days#1:evict",
]


@pytest.mark.parametrize("plan", PLANS)
async def test_each_thing_is_done_once_whatever_happens(emulator, billing, mail, plan):
    emulator.faults.add(plan)
    response = await sign_up(emulator, retries=1)
    await emulator.settle()

    assert response.status_code == 202
    assert onboarding(emulator).output == {"account": "account-1"}
    assert billing.charges == CHARGES
    assert mail.subjects == SUBJECTS


async def test_trial_goes_on_after_a_restart_of_everything(emulator, billing, mail):
    await sign_up(emulator)
    await emulator.advance("10 days")
    await emulator.restart()
    await emulator.settle()

    assert billing.calls == [START, START + timedelta(days=30)]
    assert mail.subjects == SUBJECTS


async def test_crash_during_the_call_costs_an_attempt_and_no_time(emulator, billing, mail):
    gate = emulator.workflows["onboarding"].hold_step("create-billing-account")
    await sign_up(emulator)
    await gate.reached()
    await onboarding(emulator).crash()
    gate.open()
    await emulator.settle(sleeps=False)

    (step, *_) = onboarding(emulator).steps
    assert step.attempts == 2
    assert billing.calls == [START]
    assert billing.charges == CHARGES[:1]


# The billing service is down, or does not want this customer.


async def test_account_is_tried_again_until_billing_is_back(emulator, billing, mail):
    billing.down = True
    await sign_up(emulator)
    await emulator.advance("10 minutes")
    billing.down = False
    await emulator.settle(sleeps=False)

    waits = [(call - START).total_seconds() for call in billing.calls]
    assert waits == [0, 30, 90, 210, 450, 930]  # each wait is twice the last one
    assert billing.charges == CHARGES[:1]
    assert mail.subjects == ["Welcome"]


async def test_onboarding_fails_if_billing_stays_down(emulator, billing, mail):
    billing.down = True
    await sign_up(emulator)

    with pytest.raises(WorkflowFailed, match="the billing service answered 503"):
        await onboarding(emulator).result()

    assert len(billing.calls) == 10  # `limit` is of retries
    assert mail.sent == []
    assert emulator.now == START + timedelta(seconds=30 * (2**9 - 1))


async def test_refused_customer_is_not_tried_again(emulator, billing, mail):
    billing.refuses = True
    await sign_up(emulator)
    await emulator.settle()

    instance = onboarding(emulator)
    assert instance.status == "errored"
    assert instance.error == ("NonRetryableError", "the billing service refused: 422")
    assert len(billing.calls) == 1
    assert mail.sent == []
    assert emulator.now == START


async def test_failed_onboarding_can_be_restarted_by_hand(emulator, billing, mail):
    billing.refuses = True
    await sign_up(emulator)
    await emulator.settle()
    billing.refuses = False

    await onboarding(emulator).restart()
    await emulator.settle()

    assert onboarding(emulator).status == "complete"
    assert billing.charges == CHARGES


# One part at a time: the others are mocked.


async def test_subscription_is_for_the_account_that_was_opened(emulator, billing, mail):
    flow = emulator.workflows["onboarding"]
    flow.mock_step_result("create-billing-account", "account-of-the-test")
    flow.disable_sleeps()
    await sign_up(emulator)
    await emulator.settle()

    assert billing.charges == [("subscription", "account-of-the-test")]
    assert emulator.now == START + MAIL_TIME


# What the naive version makes of it.


@naive
async def test_naive_version_charges_once_as_long_as_nothing_fails(emulator, billing, mail):
    emulator.findings.expect("effect_outside_step")
    await sign_up(emulator)
    await emulator.settle()

    assert billing.charges == CHARGES


@naive
async def test_naive_version_sends_its_mails_again_after_each_sleep(emulator, billing, mail):
    emulator.findings.expect("effect_outside_step")
    await sign_up(emulator)
    await emulator.settle()

    assert mail.subjects == ["Welcome", "Welcome", "How is it going?", *SUBJECTS]
    told = {finding.message.partition(" outside a step")[0] for finding in emulator.findings}
    assert told == {"a message to the queue mails", "randomness is read"}


@naive
@pytest.mark.parametrize(
    "plan",
    [
        "step.onboarding.create-billing-account#1:crash_after",
        "step.onboarding.create-billing-account#1:timeout",
        "fetch.POST.billing.example/accounts#1:lose_reply",
    ],
)
async def test_naive_version_charges_the_setup_fee_twice(emulator, billing, mail, plan):
    emulator.findings.expect("effect_outside_step")
    emulator.faults.add(plan)
    await sign_up(emulator)
    await emulator.settle()

    setups = [account for charge, account in billing.charges if charge == "setup"]
    assert setups == ["account-1", "account-2"]
    assert onboarding(emulator).output == {"account": "account-2"}  # nobody knows of the first


@naive
@pytest.mark.emulator(faults="step.onboarding.create-billing-account#1:evict")
async def test_naive_version_keeps_what_a_step_returned(emulator, billing, mail):
    emulator.findings.expect("effect_outside_step")
    await sign_up(emulator)
    await emulator.settle()

    assert billing.charges == CHARGES
