"""The sink, the service that keeps the totals, as this Worker calls it."""

import json

from workers import fetch

IDS = "https://sink.example/ids"
SUMS = "https://sink.example/sums"


class SinkError(Exception):
    """The sink did not take a flush, or did not say that it did."""


async def add_ids(groups):
    """Add ids to the sets of the sink, whose sizes are the totals.

    An id that is in its set already changes nothing, so any part of a flush may come again, in any
    company. No key is needed for the request as a whole.
    """
    await _post(IDS, groups)


async def add_sums(sums, key):
    """Add numbers to the totals of the sink; once for all requests with the same `key`."""
    await _post(SUMS, sums, {"Idempotency-Key": key})


async def _post(url, body, headers=None):
    headers = {"Content-Type": "application/json", **(headers or {})}
    try:
        response = await fetch(url, method="POST", headers=headers, body=json.dumps(body))
    except OSError as error:
        raise SinkError(f"no answer from the sink: {error}") from error
    if not response.ok:
        raise SinkError(f"the sink answered {response.status}")
