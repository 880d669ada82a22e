"""A trace as what its chart needs: lanes in the order they are shown, events and spans.

    {"start": "2026-01-01T00:00:00.000000Z",
     "lanes": [[name, group, depth]],
     "events": [[microseconds since the start, lane, kind, tone, label, data]],
     "spans": [[event that begins it, event that ends it or the lane's last, state]]}

`state` is 0 for a span that ended, 1 for one that was cut, 2 for one whose end is not in the trace.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from emulator.trace.kinds import brief, tone
from emulator.trace.spans import spans
from emulator.trace.written import Json, write_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from emulator.trace.timeline import Row

# Groups of lanes from top to bottom, by the first word of a subject.
_GROUPS: Final[Mapping[str, str]] = {
    "fault": "Faults",
    "request": "Requests",
    "scheduled": "Requests",
    "service": "Requests",
    "tail": "Requests",
    "queue": "Queues",
    "workflow": "Workflows",
    "d1": "Storage",
    "kv": "Storage",
    "cache": "Storage",
    "assets": "Storage",
    "ratelimit": "Storage",
    "analytics": "Storage",
    "email": "Outside",
    "r2": "Storage",
    "worker": "Workers",
    "platform": "Workers",
}
_ORDER: Final = (*dict.fromkeys(_GROUPS.values()), "Other")
_BATCH: Final = re.compile(r"(queue .+) #\d+")
_LONGEST_LABEL: Final = 60
_SAFE_INTEGER: Final = 2**53 - 1
_HASH: Final = re.compile(r"[0-9a-f]{32}")
_SCHEME: Final = re.compile(r"^\w+://")


def chart(start: int, rows: Sequence[Row]) -> dict[str, Json]:
    """Return the chart of a trace that starts at `start`, in microseconds since the epoch."""
    lanes = _lanes(rows)
    places = {name: place for place, (name, _, _) in enumerate(lanes)}
    last: dict[str, int] = {row.subject: index for index, row in enumerate(rows)}
    events: list[Json] = [
        [
            row.offset,
            places[row.subject],
            row.kind,
            tone(row.kind, row.data),
            _label(row),
            _exact({**row.data, **row.carried}),
        ]
        for row in rows
    ]
    lasting: list[Json] = [
        [span.start, last[rows[span.start].subject], 2]
        if span.end is None
        else [span.start, span.end, int(span.is_cut)]
        for span in spans(rows)
    ]
    return {
        "start": write_time(start),
        "lanes": [list(lane) for lane in lanes],
        "events": events,
        "spans": lasting,
    }


def _lanes(rows: Iterable[Row]) -> list[tuple[str, str, int]]:
    """Return name, group and depth of each subject, in the order of groups and appearance."""
    groups: dict[str, dict[str, None]] = {group: {} for group in _ORDER}
    batches: dict[str, list[str]] = {}
    for name, group in _subjects(rows).items():
        batch = _BATCH.fullmatch(name) if group == "Queues" else None
        if batch is None:
            groups[group][name] = None
        else:
            groups[group].setdefault(batch[1])
            batches.setdefault(batch[1], []).append(name)
    return [
        lane
        for group, names in groups.items()
        for name in names
        for lane in ((name, group, 0), *((batch, group, 1) for batch in batches.get(name, ())))
    ]


def _subjects(rows: Iterable[Row]) -> dict[str, str]:
    """Return the group of each subject; one that a fault struck first is a site."""
    found: dict[str, str] = {}
    for row in rows:
        word = "fault" if row.kind == "fault" else row.subject.partition(" ")[0]
        found.setdefault(row.subject, _GROUPS.get(word, "Other"))
    return found


def _exact(value: Json) -> Json:
    """Return a value without integers that JavaScript would round."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if type(value) is int and abs(value) > _SAFE_INTEGER:
        return {"$number": str(value)}
    return value


# -- labels --------------------------------------------------------------------------------------


def _label(row: Row) -> str:
    """Return what names an event where there is little room."""
    parts = [_short(key, row.data[key]) for key in brief(row.kind) if key in row.data]
    return " ".join(parts)[:_LONGEST_LABEL]


def _short(key: str, value: Any) -> str:
    if key == "messages":
        count = len(value) if isinstance(value, list) else value
        return f"{count} message{'' if count == 1 else 's'}"
    if key == "attempt":
        return f"#{value}"
    text = _SCHEME.sub("", str(value)[: 4 * _LONGEST_LABEL])
    return text[:6] if _HASH.fullmatch(text) else text
