"""The outside world of the tests: the company's chat, ledger and bank."""

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
        self.done = []  # what was asked of it, each once
        self._answers = {}

    def __call__(self, request):
        self.calls.append(datetime.now(UTC))
        if self.down or self.refuses:
            return httpx.Response(503 if self.down else 422)
        key = request.headers["Idempotency-Key"]
        if key not in self._answers:
            self.done.append(json.loads(request.content))
            self._answers[key] = {"number": len(self.done)}
        return httpx.Response(200, json=self._answers[key])


class Chat(Service):
    """Brings messages to people."""

    @property
    def said(self):
        return [(message["to"], message["text"]) for message in self.done]


class Company:
    """All services of it."""

    def __init__(self):
        self.chat = Chat()
        self.bookings = Service()
        self.reversals = Service()
        self.bank = Service()

    @property
    def balance(self):
        """What the ledger says was spent."""
        reversed_ones = [reversal["booking"] for reversal in self.reversals.done]
        amounts = [booking["amount"] for booking in self.bookings.done]
        return sum(amounts) - sum(amounts[number - 1] for number in reversed_ones)

    @property
    def paid(self):
        """What the bank paid."""
        return sum(payment["amount"] for payment in self.bank.done)
