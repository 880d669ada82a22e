"""Some of the planted bugs of fixtures/bugs, swept by pytest as a user would have it."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[1] / "fixtures" / "bugs"
# Of queues, of pairs, of Workflows, of the order of invocations, of another class, of two causes.
SOME = [
    "naive-consumer",
    "dead-letter-lost",
    "step-name-from-clock",
    "race-in-one-order",
    "retry-after-lost-reply",
    "two-bugs-in-one-handler",
]
TEST = """
    import pytest
    from scenario import scenario

    @pytest.mark.fault_sweep(depth={depth}, classes={classes})
    async def test_{name}(emulator):
        await scenario(emulator)
"""
_SEED = re.compile(r"schedule:\d+")


@pytest.mark.parametrize("name", SOME)
def test_planted_bug_fails_its_test_and_again_by_the_line_of_the_report(
    project: Project, name: str
) -> None:
    bug = tomllib.loads((ROOT / name / "bug.toml").read_text("utf-8"))
    for main, depth in ("buggy", bug["size"]), ("fixed", 1):
        shutil.copytree(ROOT / name, project.path / main)
        config = project.path / main / "wrangler.jsonc"
        config.write_text(config.read_text("utf-8").replace("buggy.py", f"{main}.py"), "utf-8")
        test = TEST.format(name=main, depth=depth, classes=bug["classes"])
        project.write(f"{main}/test_{main}.py", test)

    first = project.pytest("buggy", "fixed")
    first.assert_outcomes(failed=1, passed=1)
    first.stdout.fnmatch_lines(["*- fault sweep -*"])
    causes = len(bug.get("causes", ["the one"]))
    assert re.search(rf"\d+ failures? of {causes} cause", first.stdout.str())
    # Five plans of a cause are listed besides the first; the known one is among those.
    assert _SEED.sub("schedule:any", bug["plan"]) in _SEED.sub("schedule:any", first.stdout.str())

    (line,) = [line for line in first.outlines if line.startswith("reproduce: pytest ")]
    assert "buggy/test_buggy.py::test_buggy --emulator-faults" in line
    again = project.pytest(*shlex.split(line.removeprefix("reproduce: pytest ")))
    again.assert_outcomes(failed=1)
    again.stdout.no_fnmatch_line("*- fault sweep -*")
    assert _assertions(again.outlines) == _assertions(first.outlines)
    assert _assertions(again.outlines)


def _assertions(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("E  ")]
