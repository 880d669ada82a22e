"""The company's own services, as this Worker calls them: chat, ledger, bank.

Each does a thing once for all requests with the same `key`.
"""

import json

from workers import fetch
from workers.workflows import NonRetryableError

CHAT = "https://chat.example/messages"
BOOKINGS = "https://ledger.example/bookings"
REVERSALS = "https://ledger.example/reversals"
PAYMENTS = "https://bank.example/payments"


class ServiceError(Exception):
    """A service did not do it, or did not say that it did."""


async def say(to, text, key):
    await _post(CHAT, {"to": to, "text": text}, key)


async def book(expense, key):
    """Book an expense, and return the booking's number."""
    booking = {"expense": expense["id"], "amount": expense["amount"]}
    return (await _post(BOOKINGS, booking, key))["number"]


async def reverse(booking, key):
    """Undo a booking by a second one: a ledger deletes nothing."""
    await _post(REVERSALS, {"booking": booking}, key)


async def pay(expense, key):
    """Pay an expense; raises `NonRetryableError` if the bank refuses."""
    await _post(PAYMENTS, {"to": expense["employee"], "amount": expense["amount"]}, key)


async def _post(url, body, key):
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    try:
        response = await fetch(url, method="POST", headers=headers, body=json.dumps(body))
    except OSError as error:
        raise ServiceError(f"no answer from {url}: {error}") from error
    if 400 <= response.status < 500:
        # It will say the same next time.
        raise NonRetryableError(f"{url} refused: {response.status}")
    if not response.ok:
        raise ServiceError(f"{url} answered {response.status}")
    return await response.json()
