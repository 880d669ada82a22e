"""Events: what clients send, and how a batch of them is put together for the sink."""

import json
from datetime import UTC, datetime


async def read_event(request):
    """Return the event in a request's body, None if there is none.

    Its id and time are the client's: an event that comes twice, or late, stays the same.
    """
    try:
        body = json.loads(await request.text())
        at = datetime.fromisoformat(body["at"])
        event = {"id": body["id"], "page": body["page"], "at": at.astimezone(UTC).isoformat()}
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    named = all(isinstance(event[key], str) and event[key] for key in ("id", "page"))
    return event if named and at.tzinfo else None


def group_ids(events):
    """Group events by hour and page, each group as the ids of its events."""
    groups = {}
    for event in events:
        groups.setdefault(hour_and_page(event), set()).add(event["id"])
    return [
        {"hour": hour, "page": page, "ids": sorted(ids)} for (hour, page), ids in groups.items()
    ]


def hour_and_page(event):
    """Return what an event counts for: the hour in which it happened, wherever it was since."""
    return event["at"][: len("2026-01-01T00")], event["page"]
