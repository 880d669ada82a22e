"""The page on Workflows names all that a test or a Worker can see of them."""

from __future__ import annotations

import dataclasses
import inspect
import re
from itertools import takewhile
from pathlib import Path

import pytest

from emulator.faults import KINDS
from emulator.workflows import traced
from emulator.workflows.control import HistoryRecord, Instance, StepRecord, Workflow
from emulator.workflows.gates import Gate
from emulator.workflows.grammar import DEFAULTS
from emulator.workflows.model import InstanceEvent, Status
from emulator.workflows.retries import retry_delay

PAGE = Path(__file__).parent.parent.parent / "docs" / "workflows.md"
SECOND = 1_000_000
# What the emulator's own parts call.
INTERNAL = {"arrive", "close", "leave"}

_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r'^\| `"(?P<backoff>\w+)"`.*\| (?P<times>[\d, ]+) s \|$', re.MULTILINE)


def text() -> str:
    return PAGE.read_text("utf-8")


def inline_code() -> str:
    """What is written as code outside of the examples."""
    return "\n".join(code for code in _CODE.findall(text()) if not code.startswith("```"))


def missing(names: list[str]) -> list[str]:
    words = set(re.findall(r"\w+", inline_code()))
    return [name for name in names if name not in words]


def public(cls: type) -> list[str]:
    return [name for name in dir(cls) if not name.startswith("_") and name not in INTERNAL]


@pytest.mark.parametrize("cls", [Workflow, Instance, Gate])
def test_every_member_is_documented(cls: type) -> None:
    assert len(public(cls)) >= 2
    assert missing(public(cls)) == []


@pytest.mark.parametrize("cls", [StepRecord, HistoryRecord])
def test_every_attribute_of_a_record_is_documented(cls: type) -> None:
    names = [field.name for field in dataclasses.fields(cls)]
    assert len(names) >= 5
    assert missing(names) == []


def test_every_status_is_documented() -> None:
    rows = set(re.findall(r"^\| `(\w+)` \|", text(), re.MULTILINE))
    assert {status.value for status in Status} <= rows


def test_every_event_of_the_history_is_documented() -> None:
    assert missing([event.name for event in InstanceEvent]) == []


@pytest.mark.parametrize("cls", [Workflow, Instance])
def test_arguments_are_documented_with_their_defaults(cls: type) -> None:
    code = inline_code()
    for name in public(cls):
        function = getattr(cls, name)
        if not callable(function):
            continue
        parameters = list(inspect.signature(function).parameters.values())[1:]
        shown = ", ".join(_shown(parameter) for parameter in parameters)
        assert f"{name}({shown})" in code


def _shown(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    default = repr(parameter.default).replace("'", '"')
    return f"{parameter.name}={default}"


def test_table_of_delays_is_right() -> None:
    """R1, R2: the attempts of a step that always fails, with production's default delay."""
    defaults = DEFAULTS["production"]
    assert (defaults.limit, defaults.delay, defaults.backoff) == (5, 10_000, "exponential")
    rows = list(_ROW.finditer(text()))
    assert [row["backoff"] for row in rows] == ["constant", "linear", "exponential"]
    for row in rows:
        config = defaults._replace(backoff=row["backoff"])
        at, times = 0, [0]
        for attempt in range(1, 6):
            at += retry_delay(config, attempt, 10_000) // SECOND
            times.append(at)
        assert row["times"] == ", ".join(map(str, times))


@pytest.mark.parametrize("kind", ["step", "sleep", "wait", "create", "event"])
def test_every_action_of_a_site_is_documented(kind: str) -> None:
    """The rows of a site in docs/faults.md: the first one has its name, the others follow it."""
    site = KINDS[kind].form
    page = (PAGE.parent / "faults.md").read_text("utf-8")
    assert page.count(f"| `{site}`: ") == 1
    first, *others = page.partition(f"| `{site}`: ")[2].splitlines()
    rows = [first, *takewhile(lambda row: row.startswith("| | `"), others)]
    shown = {name for row in rows for name in re.findall(r"`(\w+)(?:\([\w ]+\))?`", row)}
    assert {action.name for action in KINDS[kind].actions} <= shown


def test_every_kind_of_event_of_an_instance_is_in_the_page_on_the_trace() -> None:
    kinds = {*traced._INSTANCE.values(), *(kind for kind, _ in traced._STEPS.values())}
    page = (PAGE.parent / "trace.md").read_text("utf-8")
    assert len(kinds) > 15
    assert sorted(kind for kind in kinds if f"`{kind}`" not in page) == []
