"""The team's own service, which knows the subscribers and keeps what could not be delivered.

Each call may come twice: PUT and DELETE change nothing the second time.
"""

import json

from workers import fetch

URL = "https://backoffice.example"


async def subscribers():
    """Return the subscribers, each with `id` and `url`."""
    return await (await _call("GET", "/subscribers")).json()


async def unsubscribe(subscriber_id):
    await _call("DELETE", f"/subscribers/{subscriber_id}")


async def park(letter_id, delivery):
    """Keep a dead letter; under the message's id, so that one of a later replay is another one."""
    await _call("PUT", f"/parked/{letter_id}", json.dumps({"delivery": delivery}))


async def parked():
    """Return the dead letters, each with `id` and `delivery`."""
    return await (await _call("GET", "/parked")).json()


async def unpark(letter_id):
    await _call("DELETE", f"/parked/{letter_id}")


async def _call(method, path, body=None):
    response = await fetch(URL + path, method=method, body=body)
    response.raise_for_status()
    return response
