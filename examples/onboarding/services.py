"""The outside world of the tests: a billing service and a mail service."""

import json
from datetime import UTC, datetime

import httpx


class Service:
    """Stands behind a mocked route; does a thing once for all requests with one key.

    `down` makes it answer 503, `refuses` 422.
    """

    def __init__(self):
        self.down = self.refuses = False
        self.calls = []  # when they came
        self._answers = {}

    def __call__(self, request):
        self.calls.append(datetime.now(UTC))
        if self.down or self.refuses:
            return httpx.Response(503 if self.down else 422)
        key = request.headers["Idempotency-Key"]
        if key not in self._answers:
            self._answers[key] = self.answer(request.url.path, json.loads(request.content))
        return httpx.Response(200, json=self._answers[key])


class Billing(Service):
    """Charges a fee for an account, and one for a subscription."""

    def __init__(self):
        super().__init__()
        self.charges = []  # what was paid for, and by which account

    def answer(self, path, body):
        if path == "/accounts":
            account = f"account-{len(self.charges) + 1}"
            self.charges.append(("setup", account))
            return {"id": account}
        self.charges.append(("subscription", body["account"]))
        return {}


class Mail(Service):
    """Sends mails."""

    def __init__(self):
        super().__init__()
        self.sent = []  # when, to whom, and the subject

    def answer(self, path, body):
        self.sent.append((datetime.now(UTC), body["to"], body["subject"]))
        return {}

    @property
    def subjects(self):
        return [subject for _, _, subject in self.sent]
