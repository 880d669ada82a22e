"""The table of kinds of events: the code records no other, and docs/trace.md has the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from emulator.queues.model import Outcome
from emulator.trace import Trace
from emulator.trace.kinds import KINDS, misfit, tone
from emulator.workflows import traced

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
# Who records events whose kind is not written where they are recorded, and which kinds.
COMPUTED = {
    "kernel.py": (),  # hands on what it is given
    "queues/outcomes.py": get_args(Outcome),
    "objects/alarm_clock.py": ("alarm_done", "alarm_failed", "alarm_lost", "alarm_retry"),
    "workflows/service.py": (
        *(kind for kind, _ in traced._STEPS.values()),
        *traced._INSTANCE.values(),
        *("workflow_created", "workflow_ended", "event"),
    ),
}
_ROW = re.compile(r"^\| (?P<kinds>`\w+`(?:, `\w+`)*) \|(?P<subject>[^|]+)\|(?P<data>[^|]*)\|")


def recorded() -> Iterator[tuple[str, ast.Call]]:
    """The calls that record an event, each with its module."""
    package = ROOT / "emulator"
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.startswith(("trace/", "sweeping/")):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("record", "record_dict", "record_each")
                # Other things have a `record` of their own, too.
                and (name == "kernel.py" or ast.unparse(node.func.value).endswith("kernel"))
            ):
                yield name, node


def literal_kinds() -> dict[str, list[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for _, call in recorded():
        if call.args and isinstance(call.args[0], ast.Constant):
            found.setdefault(call.args[0].value, []).append(call)
    return found


def test_code_records_no_kind_that_is_not_in_the_table() -> None:
    kinds = literal_kinds()
    assert len(kinds) > 20
    assert [kind for kind in kinds if kind not in KINDS] == []
    assert [kind for kinds in COMPUTED.values() for kind in kinds if kind not in KINDS] == []
    others = {name for name, call in recorded() if not isinstance(call.args[0], ast.Constant)}
    assert others == set(COMPUTED)


def test_table_has_no_kind_that_nothing_records() -> None:
    made = {*literal_kinds(), *(kind for kinds in COMPUTED.values() for kind in kinds)}
    assert [kind for kind in KINDS if kind not in made] == []


def test_code_records_no_data_that_is_not_in_the_table() -> None:
    for kind, calls in literal_kinds().items():
        for call in calls:
            names = [each.arg for each in call.keywords if each.arg is not None]
            allowed = (*KINDS[kind].keys, *KINDS[kind].optional, *KINDS[kind].payloads)
            assert [name for name in names if name not in allowed] == [], f"{kind}: {names}"


@pytest.mark.parametrize(
    ("kind", "names", "problem"),
    [
        ("ack", ["id", "attempt"], ""),
        ("request_out", ["method", "url"], ""),
        ("request_out", ["method", "url", "key", "body"], ""),
        ("ack", ["id"], "ack has [] and lacks ['attempt']"),
        ("ack", ["id", "attempt", "by"], "ack has ['by'] and lacks []"),
        ("acked", [], "acked is no kind of event"),
    ],
)
def test_what_does_not_fit_is_named(kind: str, names: list[str], problem: str) -> None:
    """The suite's own check (conftest.py), which looks at every event of every test."""
    assert misfit(kind, names) == problem


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("fault", {"fault": "a"}, "fault"),
        ("crash", {}, "lost"),
        ("dropped", {"id": "a", "attempt": 4}, "lost"),
        ("settled", {"outcome": "lost"}, "lost"),
        ("settled", {"state": "lost"}, "lost"),
        ("ack", {}, "done"),
        ("response", {"status": 200}, "done"),
        ("response", {"status": 500}, "bad"),
        ("response_in", {"status": 499}, ""),
        ("response_in", {"status": 503}, "bad"),
        ("workflow_ended", {"status": "complete"}, "done"),
        ("workflow_ended", {"status": "terminated"}, "bad"),
        ("workflow_ended", {"status": "errored", "error": "E: no"}, "bad"),
        ("log", {"level": "log"}, ""),
        ("log", {"level": "error"}, "bad"),
        ("send", {}, ""),
        ("a kind of one's own", {}, ""),
    ],
)
def test_what_an_event_means(kind: str, data: dict[str, object], expected: str) -> None:
    assert tone(kind, data) == expected


def test_timeline_marks_faults_and_what_was_lost() -> None:
    for kind, row in KINDS.items():
        trace = Trace(0)
        trace.record(0, kind, "s")
        mark = {"fault": "!", "lost": "x"}.get(row.tone, " ")
        assert trace.render().splitlines()[1].startswith(f"+0:00:00.000  {mark}  s  {kind}")


# docs/trace.md.


def documented() -> dict[str, tuple[list[str], list[str], list[str]]]:
    """The kinds of docs/trace.md with their keys, optional keys (`[key]`) and payloads (italic)."""
    found = {}
    for line in (ROOT / "docs" / "trace.md").read_text("utf-8").splitlines():
        row = _ROW.match(line)
        if row is None:
            continue
        payloads = re.findall(r"\*`(\w+)`\*", row["data"])
        optional = re.findall(r"\[`(\w+)`\]", row["data"])
        rest = re.sub(r"\*`\w+`\*|\[`\w+`\]", "", row["data"])
        for kind in re.findall(r"`(\w+)`", row["kinds"]):
            assert kind not in found, f"{kind} has two rows"
            found[kind] = (re.findall(r"`(\w+)`", rest), optional, payloads)
    return found


def test_documentation_has_every_kind_with_its_data() -> None:
    table = {
        kind: (list(row.keys), list(row.optional), list(row.payloads))
        for kind, row in KINDS.items()
    }
    assert documented() == table
