"""Cloudflare's REST API, v4, of what runs here: `/cdn-cgi/emulator/client/v4`.

    calls.py           a request as its operation gets it, and how operations become routes
    answers.py         Cloudflare's envelope around results and errors
    fields.py          JSON bodies and query parameters, checked
    queues.py          queues, their settings, purging
    consumers.py       push and pull consumers
    messages.py        pushing, pulling, acknowledging, peeking
    workflows.py       Workflows and their versions
    instances.py       their instances
    kv.py              what is in KV namespaces
    d1.py              SQL for D1 databases
    r2_events.py       event notifications of R2 buckets

Any account id will do. Operations are plain functions that run inside the simulation; what they did
is durable when the answer is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Mount, Route

from emulator.server.rest import (
    consumers,
    d1,
    instances,
    kv,
    messages,
    queues,
    r2_events,
    workflows,
)
from emulator.server.rest.calls import endpoint, no_route

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.server.desk import Desk

_PREFIX = "/client/v4"
_ALL = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_MODULES = (queues, consumers, messages, workflows, instances, kv, d1, r2_events)


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the API, behind the prefix of control pages."""
    known = [
        Route(f"/accounts/{{account}}{path}", endpoint(desk, operation), methods=[method])
        for module in _MODULES
        for method, path, operation in module.OPERATIONS
    ]
    rest = Route("/{path:path}", no_route(known), methods=_ALL)
    return [Mount(_PREFIX, routes=[*known, rest])]
