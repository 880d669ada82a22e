"""Recordings of the real local runtime, what we observe instead, and how the two are compared.

An observation has the shape of a recording's `observed`: `events` (each with its time `t`),
`result` and `runtime_logs`. Both sides are normalised alike, then compared field by field:

1. Ids are named `ID1`, `ID2`, … by first sight, in the order events, result, log lines. The
   recordings name them from the log lines on, whose order against the events is another; a new
   name for each id loses nothing.
2. An instant of the run is `{"rel_s": …}`, seconds since its start. A Date of the run, whose start
   the recordings do not keep, is named `T1`, `T2`, … by first sight.
3. Of an error's `ctor` only what its name does not say is kept; Python is told the name only.
4. An answer is its status, type and body, an error text is without its stack. An exception that
   Python code raised is the last line of its traceback, with `Exception` for JavaScript's `Error`.
5. Of our log lines those of the local simulator's broker count, 60 of them at most, as recorded.
   Production logs none of them (queues 3.11, 4.4).
6. A Workflow instance's status has in production `rollback` and no `__LOCAL_DEV_STEP_OUTPUTS`, and
   neither an output nor an error that there is not (workflows I4). An error of the platform's own
   classes, whose name the local runtime has in the text, has its name (workflows E3).

Times may differ from the recorded ones by `NOISE`; apart from that each of ours has to be exactly
its ideal, which the twin states.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.logs import Log

Profile = Literal["production", "miniflare"]

FIXTURES: Final = Path(__file__).parent.parent.parent / "fixtures"
RECORDINGS: Final = FIXTURES / "recordings"
BOTH: Final[tuple[Profile, ...]] = ("production", "miniflare")
# Recorded times are real ones.
NOISE: Final = 0.3
# 2026-01-01, when an emulator's clock starts.
START: Final = 1_767_225_600
# What the recordings keep of the log.
_LINES: Final = 60
_BROKER: Final = re.compile(r"Retrying message |Moving message |Dropped message |QUEUE ")
_UUID: Final = "-".join(f"[0-9a-f]{{{length}}}" for length in (8, 4, 4, 4, 12))
_ID: Final = re.compile(rf"[0-9a-f]{{32}}|{_UUID}|\bID\d+\b")
# The platform's own classes of errors of Workflows.
_CLASS: Final = re.compile(r"(Workflow\w*Error|NonRetryable\w*Error): ")
# Python's classes whose names are JavaScript's, or stand for it.
_STANDARD: Final = ("Exception", "TypeError")
_TIMES: Final = frozenset({"t", "rel_s", "response_at", "resumed"})


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""Stands for a field that one side does not have."""


@dataclass(frozen=True)
class Difference:
    """Where the emulator is not as recorded: `ours` instead, in these profiles, for a reason.

    `where` is the path of a field, or of all that lies below it.
    """

    where: str
    ours: Any
    reason: str
    profiles: tuple[Profile, ...] = BOTH


@dataclass(frozen=True)
class Joined:
    """Consecutive batches, at these indices of `events`, that are one batch in virtual time.

    Timers that fall due in one instant do so in different milliseconds of real time, so that the
    recorded broker took their messages apart.
    """

    events: tuple[int, int]
    reason: str
    profiles: tuple[Profile, ...] = BOTH


@dataclass(frozen=True)
class NotApplicable:
    """A recorded field that a Python Worker cannot have."""

    where: str
    reason: str
    profiles: tuple[Profile, ...] = BOTH


Deviation = Difference | Joined | NotApplicable


@dataclass
class Observation:
    """What was seen of a twin."""

    events: list[dict[str, Any]] = field(default_factory=list)
    result: Any = ABSENT
    logs: list[str] = field(default_factory=list)

    def as_recorded(self) -> dict[str, Any]:
        """The shape of a recording's `observed`."""
        found: dict[str, Any] = {"events": self.events, "runtime_logs": self.logs}
        return found if self.result is ABSENT else {**found, "result": self.result}


def recording(name: str) -> dict[str, Any]:
    """A recording, by its name."""
    found: dict[str, Any] = json.loads((RECORDINGS / f"{name}.json").read_text("utf-8"))
    return found


def names(pattern: str = "*") -> list[str]:
    """The names of the recordings that match."""
    return sorted(path.stem for path in RECORDINGS.glob(f"{pattern}.json"))


def broker_lines(logs: Iterable[Log]) -> list[str]:
    """The lines that the local simulator itself logs, as the recordings have them."""
    return [
        f"[{log.level.upper()}] {re.sub(r'[(][0-9]+ms[)]', '(Nms)', log.text)}"
        for log in logs
        if _BROKER.match(log.text)
    ][:_LINES]


# -- normalising -----------------------------------------------------------------------------------


class _Names:
    """A name for each thing, by first sight."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._names: dict[str, str] = {}

    def __call__(self, found: re.Match[str] | str) -> str:
        text = found if isinstance(found, str) else found[0]
        return self._names.setdefault(text, f"{self._prefix}{len(self._names) + 1}")


def normalised(observed: Mapping[str, Any]) -> dict[str, Any]:
    """An observation without what depends on the machine, the tool or the language."""
    ids, dates = _Names("ID"), _Names("T")
    order = ("events", "result", "runtime_logs")
    return {key: _normal(observed[key], ids, dates) for key in order if key in observed}


def _normal(value: Any, ids: _Names, dates: _Names) -> Any:
    if isinstance(value, str):
        return _ID.sub(ids, value)
    if isinstance(value, list):
        return [_normal(item, ids, dates) for item in value]
    if isinstance(value, dict):
        return _normal_object(value, ids, dates)
    if isinstance(value, (int, float)) and 1.6e12 < value < 2.2e12:
        return {"rel_s": round(value / 1000 - START, 6)}
    return value


def _normal_object(value: dict[str, Any], ids: _Names, dates: _Names) -> Any:
    if "headers" in value and "body" in value:
        value = answer(value["status"], value["headers"]["content-type"], value["body"])
    elif "ct" in value:
        value = answer(value["status"], value["ct"], value["body"])
    elif "text" in value and "status" in value:
        value = {**value, "text": _first_line(value["text"])}
    elif isinstance(value.get("message"), str) and isinstance(value.get("name"), str):
        value = {**value, **_error(value["name"], value["message"])}
    if value.get("$") == "Date" and value["v"] > "2020":
        return {"$": "Date", "v": dates(value["v"])}
    if "ctor" in value and value["ctor"] == value.get("name"):
        value = {key: item for key, item in value.items() if key != "ctor"}
    return {key: _normal(item, ids, dates) for key, item in value.items()}


def answer(status: int, kind: str, body: str) -> dict[str, Any]:
    """What is compared of an HTTP answer."""
    content = json.loads(body) if kind == "application/json" else _first_line(body)
    return {"status": status, "type": kind, "body": content}


def _error(name: str, text: str) -> dict[str, str]:
    """An error; a class of the user's own is in its text, as RPC leaves it."""
    if "Traceback (most recent call last):" in text:
        name, _, text = text.rpartition("\n")[2].partition(": ")
        name = name.rpartition(".")[2]
        if name not in _STANDARD:
            name, text = "Error", f"{name}: {text}"
    # The SDK makes an exception of a traceback's last line (workflows P12).
    text = text.removeprefix(f"{name}: ")
    return {"name": "Error" if name == "Exception" else name, "message": text}


def _first_line(text: str) -> str:
    """An error text without its stack, of JavaScript or of Python."""
    lines = text.split("\n")
    if lines[0].endswith("Traceback (most recent call last):"):
        return f"{lines[0].removesuffix(' (most recent call last):')}\n{lines[-1]}"
    return lines[0]


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """A nested value as one level: `result.response.status` → 200."""
    if isinstance(value, dict) and value:
        items: Any = value.items()
    elif isinstance(value, list) and value:
        items = enumerate(value)
    else:
        return {path: value}
    found = {}
    for key, item in items:
        found.update(flat(item, f"{path}.{key}" if path else str(key)))
    return found


def below(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields at a path and below it."""
    return {
        key: value for key, value in values.items() if key == where or key.startswith(f"{where}.")
    }


# -- what is expected, and whether it is so --------------------------------------------------------


def expected(
    recorded: Mapping[str, Any], profile: Profile, deviations: Iterable[Deviation]
) -> dict[str, Any]:
    """What the emulator has to show: the recorded fields, but for the deviations."""
    here = [deviation for deviation in deviations if profile in deviation.profiles]
    observed = dict(recorded["observed"])
    for joined in sorted(
        (deviation for deviation in here if isinstance(deviation, Joined)),
        key=lambda joined: joined.events,
        reverse=True,
    ):
        observed = _joined(observed, joined.events)
    if profile == "production":
        observed = {**_in_production(observed), "runtime_logs": []}
    values = flat(normalised({"runtime_logs": [], **observed}))
    for deviation in here:
        if not isinstance(deviation, Joined):
            _apply(values, deviation)
    return values


def _in_production(value: Any) -> Any:
    """What was recorded of Workflows, in the shape that production gives it."""
    if isinstance(value, list):
        return [_in_production(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _in_production(item) for key, item in value.items()}
    if found.pop("__LOCAL_DEV_STEP_OUTPUTS", None) is not None:
        nothing = (None, {"$": "undefined"})
        found = {key: item for key, item in found.items() if item not in nothing}
        return {**found, "rollback": None}
    named = _CLASS.match(str(found.get("message")))
    if named and found.get("name") == "Error":
        found |= {"name": named[1], "message": found["message"][named.end() :]}
        found.pop("ctor", None)
    return found


def _apply(values: dict[str, Any], deviation: Difference | NotApplicable) -> None:
    known = below(values, deviation.where)
    ours = deviation.ours if isinstance(deviation, Difference) else ABSENT
    assert known, f"{deviation.where} is not in the recording"
    now = {} if ours is ABSENT else flat(ours, deviation.where)
    assert known != now, f"{deviation.where} is as recorded: declare no difference"
    for key in known:
        del values[key]
    values.update(now)


def _joined(observed: dict[str, Any], pair: tuple[int, int]) -> dict[str, Any]:
    """Two recorded batches as one: of both their messages, with one log line."""
    first, second = (observed["events"][index] for index in pair)
    both = {**first, "messages": first["messages"] + second["messages"]}
    both["n"] = len(both["messages"])
    assert pair[1] == pair[0] + 1
    assert (first["kind"], first["queue"]) == (second["kind"], second["queue"])
    assert abs(first["t"] - second["t"]) <= NOISE, "these were no race"
    events, lines = observed["events"], observed["runtime_logs"]
    # Each batch has its log line, in the same order; both were acknowledged altogether.
    order = [index for index, line in enumerate(lines) if f" QUEUE {first['queue']} " in line]
    at = order[pair[0]]
    assert lines[at : at + 2] == [_whole(first), _whole(second)]
    return {
        **observed,
        "events": [*events[: pair[0]], both, *events[pair[1] + 1 :]],
        "runtime_logs": [*lines[:at], _whole(both), *lines[at + 2 :]],
    }


def _whole(event: Mapping[str, Any]) -> str:
    return f"[INFO] QUEUE {event['queue']} {event['n']}/{event['n']} (Nms)"


def mismatches(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Compare field by field; returns a line per field that differs."""
    found = []
    for key in [*theirs, *(key for key in ours if key not in theirs)]:
        our, their = ours.get(key, ABSENT), theirs.get(key, ABSENT)
        if not _same(key, our, their):
            found.append(f"{key}: ours {our!r}, recorded {their!r}")
    return found


def _same(key: str, ours: Any, theirs: Any) -> bool:
    is_time = key.rpartition(".")[2] in _TIMES
    if is_time and isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        return bool(abs(ours - theirs) <= NOISE + 1e-9)
    # 1, 1.0 and true are three values.
    return type(ours) is type(theirs) and bool(ours == theirs)


def sent_times(observed: Mapping[str, Any]) -> dict[str, float]:
    """When each message was sent, by what is its body (as JSON, if it is no text)."""
    return {
        body if isinstance(body := message["body"], str) else json.dumps(body): message["ts"][
            "rel_s"
        ]
        for event in observed["events"]
        for message in event.get("messages", ())
    }
