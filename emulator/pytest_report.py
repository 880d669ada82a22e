"""What a failing test's report says: the findings, the timeline, a line that reproduces it.

The line holds what is not in the test's code: the plan and the seed of the command line. Faults
that a marker, a fixture or the test itself plans are not pasted, because running the test again
plans them again, at the same moment; a pasted one would be planned from the start, also after
`reset()`. They are shown beside the line, for other tests. (Pasting them does no harm to the run:
of equal faults on one occurrence one strikes.)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from emulator.faults import format_plan, parse_plan
from emulator.findings import grouped
from emulator.pytest_arguments import marked
from emulator.pytest_sweep_shards import whole_id
from emulator.shell import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from emulator import Emulator
    from emulator.findings import Group

# More of the timeline than this hides the failure; `emulator.trace.render()` has it all.
_SHOWN_EVENTS = 200


def failure(strict: list[Group], warnings: list[Group]) -> str:
    """Return the text with which findings fail a test.

    `warnings` are those that only filterwarnings turned into failures.
    """
    groups = [*strict, *warnings]
    text = [f"the emulator found {_codes(groups)}", *(f"  {group.text}" for group in groups)]
    text.append('Mark one as intended with emulator.findings.expect("code").')
    if strict:
        text.append("The ini option emulator_strict lists the codes that fail a test.")
    if warnings:
        text.append(
            f"{_codes(warnings)} would be a warning, which filterwarnings makes an error; the "
            'filter "default::emulator.pytest_plugin.FindingWarning" keeps such warnings.'
        )
    return "\n".join(text)


def _codes(groups: list[Group]) -> str:
    return ", ".join(dict.fromkeys(group.code for group in groups))


def add_section(report: pytest.TestReport, title: str, text: str) -> None:
    """Add a section where JUnit files have it too, and --show-capture=no leaves it."""
    add = getattr(report.longrepr, "addsection", None)
    if add is None:
        report.sections.append((title, text))
    else:
        add(title, text)


def describe(item: pytest.Item, emulator: Emulator, *, findings: bool) -> str:
    """Return the section of a failing test.

    `findings` says whether to list them, which a test that failed because of them has done.
    """
    parts = [emulator.trace.render(last=_SHOWN_EVENTS).rstrip()]
    parts.append("\n".join(_reproduction(item, emulator)))
    unexpected = [*emulator.findings.unexpected(), *emulator.findings.tolerated()]
    found = grouped(unexpected) if findings else []
    if found:
        parts.insert(0, "\n".join(("findings", *(f"  {group.text}" for group in found))))
    return "\n\n".join(parts)


def reproduction(item: pytest.Item, plan: str) -> str:
    """Return the line that runs a test again under a plan."""
    parts = ["pytest", quoted(_node(item))]
    if plan:
        parts.append(f"--emulator-faults {quoted(plan)}")
    seed = item.config.getoption("--emulator-seed")
    if seed is not None and seed != marked(item).get("seed", 0):
        parts.append(f"--emulator-seed {seed}")
    return f"reproduce: {' '.join(parts)}"


def _reproduction(item: pytest.Item, emulator: Emulator) -> Iterator[str]:
    given = parse_plan(item.config.getoption("--emulator-faults"))
    yield reproduction(item, format_plan(given))
    own = [fault for fault in dict.fromkeys(emulator.faults.plan) if fault not in given]
    if own:
        plan = quoted(emulator.trace.masker(format_plan(own)))
        yield f"The test plans its faults itself; for other tests: --emulator-faults {plan}"


def _node(item: pytest.Item) -> str:
    """The test's id from where pytest was started, which need not be rootdir."""
    start = item.config.invocation_params.dir
    nodeid = whole_id(item)
    _, separator, name = nodeid.partition("::")
    if start == item.config.rootpath:
        return nodeid
    return os.path.relpath(item.path, start).replace(os.sep, "/") + separator + name
