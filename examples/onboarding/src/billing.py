"""The billing service, as this Worker calls it."""

import json

from workers import fetch
from workers.workflows import NonRetryableError

URL = "https://billing.example"


class BillingError(Exception):
    """The service did not do it, or did not say that it did."""


async def create_account(customer, key):
    """Open an account, which costs the setup fee, and return its id.

    For all requests with the same `key` there is one account and one fee.
    """
    answer = await _post("/accounts", {"email": customer["email"]}, key)
    return answer["id"]


async def start_subscription(account, key):
    """Charge the first month; once for all requests with the same `key`."""
    await _post("/subscriptions", {"account": account}, key)


async def _post(path, body, key):
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    try:
        response = await fetch(URL + path, method="POST", headers=headers, body=json.dumps(body))
    except OSError as error:
        raise BillingError(f"no answer from the billing service: {error}") from error
    if 400 <= response.status < 500:
        # It will say the same next time.
        raise NonRetryableError(f"the billing service refused: {response.status}")
    if not response.ok:
        raise BillingError(f"the billing service answered {response.status}")
    return await response.json()
