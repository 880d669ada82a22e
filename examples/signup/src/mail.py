"""The mail service, as this Worker calls it."""

import json

from workers import fetch

SEND = "https://mail.example/send"


class MailError(Exception):
    """The service did not take the mail, or did not say that it did."""


async def send(to, subject, key=None):
    """Send one mail.

    A service that gets the same `key` twice sends one mail. Without a key it cannot tell a
    repetition from a second mail.
    """
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = key
    try:
        response = await fetch(
            SEND, method="POST", headers=headers, body=json.dumps({"to": to, "subject": subject})
        )
    except OSError as error:
        raise MailError(f"no answer from the mail service: {error}") from error
    if not response.ok:
        raise MailError(f"the mail service answered {response.status}")
