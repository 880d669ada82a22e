"""Tests of src/entry.py, the very file that is deployed."""

from datetime import UTC, datetime, timedelta

import pytest
from mail_service import MailService

START = datetime(2026, 1, 1, tzinfo=UTC)  # where virtual time begins

# Not every test gets as far as every service.
pytestmark = pytest.mark.respx(assert_all_called=False)

without_keys = pytest.mark.emulator(bindings={"IDEMPOTENCY_KEYS": "off"})


@pytest.fixture
def mail_service(respx_mock):
    service = MailService()
    respx_mock.post("https://mail.example/send").mock(side_effect=service)
    return service


@pytest.fixture
def audit(respx_mock):
    return respx_mock.post("https://audit.example/lines").respond(204)


@pytest.fixture
def reports(respx_mock):
    return respx_mock.put(path__startswith="/undelivered/").respond(204)


async def sign_up(emulator, body=None):
    return await emulator.fetch("/signup", method="POST", json=body or {"email": "ada@example.com"})


# The path on which nothing goes wrong.


async def test_signup_sends_one_welcome_mail(emulator, mail_service, audit):
    response = await sign_up(emulator)

    assert response.status_code == 202
    assert response.json() == {"queued": True}
    assert mail_service.mails == []  # the answer does not wait for the mail

    await emulator.settle()

    assert mail_service.mails == [{"to": "ada@example.com", "subject": "Welcome"}]
    assert emulator.now == START + timedelta(seconds=5)  # max_batch_timeout


async def test_ten_signups_are_one_batch_and_do_not_wait(emulator, mail_service, audit):
    for number in range(10):
        await sign_up(emulator, {"email": f"user{number}@example.com"})
    await emulator.settle()

    assert len(mail_service.mails) == 10
    assert {delivery.batch for delivery in emulator.queues["emails"].deliveries} == {1}
    assert emulator.now == START


@pytest.mark.parametrize(
    "content",
    ["", "no json", "[]", "{}", '{"email": 1}', '{"email": "ada"}', '{"email": "a b@example.com"}'],
)
async def test_invalid_input_is_refused_and_queues_nothing(emulator, content):
    response = await emulator.fetch("/signup", method="POST", content=content)
    await emulator.settle()

    assert response.status_code == 400
    assert emulator.queues["emails"].backlog == []


async def test_other_paths_and_methods_are_refused(emulator):
    assert (await emulator.fetch("/")).status_code == 404
    refused = await emulator.fetch("/signup")
    assert refused.status_code == 405
    assert refused.headers["Allow"] == "POST"


# The mail service is down.


async def test_mail_is_tried_again_with_back_off_and_then_reported(
    emulator, mail_service, audit, reports
):
    mail_service.down = True
    await sign_up(emulator)
    await emulator.settle()

    emails = emulator.queues["emails"]
    tries = [(d.attempt, (d.at - START).total_seconds(), d.outcome) for d in emails.deliveries]
    # Each delay (10, 20, 40 s) is followed by the 5 s a lone message waits for company.
    assert tries == [
        (1, 5.0, "retry"),
        (2, 20.0, "retry"),
        (3, 45.0, "retry"),
        (4, 90.0, "dead_letter"),
    ]
    assert mail_service.mails == []
    assert reports.call_count == 1
    assert emulator.queues["emails-dlq"].acked == 1
    assert emulator.now == START + timedelta(seconds=95)


async def test_mail_goes_out_once_when_the_service_comes_back(emulator, mail_service, audit):
    mail_service.down = True
    await sign_up(emulator)
    await emulator.advance("30 seconds")  # two attempts
    mail_service.down = False
    await emulator.settle()

    assert len(mail_service.mails) == 1
    assert emulator.now == START + timedelta(seconds=45)


# What the platform may do to correct code: deliver a message again.


@without_keys
@pytest.mark.emulator(faults=["batch.emails#1:lose_ack"])
async def test_without_keys_a_lost_ack_means_a_second_mail(emulator, mail_service, audit):
    await sign_up(emulator)
    await emulator.settle()

    assert len(mail_service.mails) == 2  # the bug that the keys are there for


@pytest.mark.parametrize(
    "fault",
    [
        "batch.emails#1:lose_ack",
        "batch.emails#1:crash_before",
        "fetch.POST.mail.example/send#1:crash_after",
        "fetch.POST.mail.example/send#1:lose_reply",
        "message.emails#1:duplicate",
        "message.emails#1:duplicate(1 h)",
    ],
)
async def test_with_keys_one_mail_goes_out_whatever_happens(emulator, mail_service, audit, fault):
    emulator.faults.add(fault)
    await sign_up(emulator)
    await emulator.settle()

    assert len(mail_service.mails) == 1


# Background work.


async def test_failing_audit_does_not_fail_the_request(emulator, mail_service, respx_mock):
    respx_mock.post("https://audit.example/lines").respond(500)
    emulator.findings.expect("background_error")  # any other test fails of it

    response = await sign_up(emulator)
    await emulator.settle()

    assert response.status_code == 202
    assert [finding.code for finding in emulator.findings] == ["background_error"]
    assert [task.state for task in emulator.background] == ["failed"]
