"""One POST to one subscriber: signed, and with an id by which it knows repetitions."""

import asyncio
import hashlib
import hmac
import json
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from workers import fetch

PATIENCE = 10  # seconds for an answer


async def post(webhook_id, subscriber, event, secret):
    """Post an event to a subscriber and return the response.

    Raises `OSError` if there is none in time. A subscriber that gets the same `webhook_id` twice
    handles one event.
    """
    timestamp = str(int(time.time()))
    body = json.dumps(event)
    # With one key for all, a subscriber could forge what the others get.
    key = sign(secret, subscriber["id"])
    headers = {
        "Content-Type": "application/json",
        "Webhook-Id": webhook_id,
        "Webhook-Timestamp": timestamp,  # signed too, so that an old webhook can be refused
        "Webhook-Signature": sign(key, f"{webhook_id}.{timestamp}.{body}"),
    }
    async with asyncio.timeout(PATIENCE):
        return await fetch(subscriber["url"], method="POST", headers=headers, body=body)


def sign(key, text):
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def retry_after(response):
    """Return the seconds that a `Retry-After` asks for, a number or a date; 0 without one."""
    value = response.headers.get("Retry-After", "")
    try:
        if value.isdecimal():
            return int(value)
        at = parsedate_to_datetime(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return 0
    return int((at - datetime.now(UTC)).total_seconds())
