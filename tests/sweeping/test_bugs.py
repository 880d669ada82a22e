"""Each planted bug of fixtures/bugs is found, with its smallest plan, and nothing in its twin."""

from __future__ import annotations

import asyncio
import re
import tomllib
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyjson5
import pytest
from hypothesis import settings

from emulator import Fault, sweep
from emulator.faults import format_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator import SweepReport
    from emulator.sweeping.outcome import Failure

ROOT = Path(__file__).parents[2] / "fixtures" / "bugs"
FILES = {"bug.toml", "buggy.py", "fixed.py", "scenario.py", "wrangler.jsonc"}
KEYS = {"title", "source", "plan", "size", "classes"}
# So many single faults make few pairs.
FEW = 15
SOAK = settings.default.max_examples > 1_000
# Which seed orders the invocations so that a bug shows says nothing about the bug.
_SEED = re.compile(r"schedule:\d+")


@dataclass(frozen=True, slots=True)
class Bug:
    """A folder of the collection, and what its bug.toml says."""

    folder: Path
    plan: str
    size: int
    classes: tuple[str, ...]
    causes: tuple[str, ...]

    @property
    def scenario(self) -> Any:
        """What a user does, and says of the outcome."""
        name = f"scenario_of_{self.folder.name.replace('-', '_')}"
        spec = spec_from_file_location(name, self.folder / "scenario.py")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.scenario

    def sweep(self, main: str, **options: Any) -> SweepReport:
        """Sweep the scenario with one of the two Workers."""
        config = pyjson5.decode((self.folder / "wrangler.jsonc").read_text("utf-8"))
        assert config["main"] == "buggy.py"
        config["main"] = str(self.folder / main)
        return asyncio.run(sweep(self.scenario, config, **options))


def read(folder: Path) -> Bug:
    facts = tomllib.loads((folder / "bug.toml").read_text("utf-8"))
    causes = facts.get("causes", [facts["plan"]])
    return Bug(folder, facts["plan"], facts["size"], tuple(facts["classes"]), tuple(causes))


FOLDERS = sorted(path for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "_")
BUGS = [pytest.param(read(folder), id=folder.name) for folder in FOLDERS]


def plan_of(failure: Failure) -> str:
    return _SEED.sub("schedule:any", format_plan(failure.plan))


def any_seed(plans: tuple[str, ...]) -> list[str]:
    return [_SEED.sub("schedule:any", plan) for plan in plans]


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bug_is_found_with_its_smallest_plan(bug: Bug) -> None:
    report = bug.sweep("buggy.py", depth=bug.size, classes=bug.classes)

    assert report.complete
    assert report.failures, report.render()
    # The clean run, which has no faults, passes; no single fault does where it takes two.
    assert {len(failure.plan) for failure in report.failures} == {bug.size}
    assert any_seed((bug.plan,))[0] in map(plan_of, report.failures), report.render()
    assert not any(failure.flaky for failure in report.failures)
    # Each cause is found, and by its plan.
    groups = [{plan_of(failure) for failure in group} for group in report.groups.values()]
    found = [sum(cause in group for group in groups) for cause in any_seed(bug.causes)]
    assert found == [1] * len(groups), report.render()
    assert all(any(cause in group for cause in any_seed(bug.causes)) for group in groups)


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.values[0].size > 1])
def test_bug_that_takes_two_faults_does_not_show_under_one(bug: Bug) -> None:
    report = bug.sweep("buggy.py", depth=bug.size - 1, classes=bug.classes)
    assert report.passed, report.render()
    assert report.tried == {1: report.candidates}


@pytest.mark.parametrize("bug", BUGS)
def test_fixed_twin_bears_each_fault(bug: Bug) -> None:
    """Each two as well, where the bug takes two or they are few; `make soak` tries all pairs."""
    classes = tuple(dict.fromkeys(("platform", *bug.classes)))
    single = bug.sweep("fixed.py", classes=classes)
    assert single.passed, single.render()
    assert not single.empty
    assert single.tried == {1: single.candidates}, single.summary()

    if bug.size > 1 or single.candidates <= FEW or SOAK:
        double = bug.sweep("fixed.py", depth=2, classes=classes, limit=10_000)
        assert double.passed, double.render()
        assert double.tried.get(2, 0) > 0 or bug.plan.startswith("schedule")
        assert double.cut == {}


# The collection itself.


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_folder_is_complete(folder: Path) -> None:
    assert {path.name for path in folder.iterdir() if path.name[0] != "_"} == FILES
    facts = tomllib.loads((folder / "bug.toml").read_text("utf-8"))
    assert facts.keys() - {"causes"} == KEYS
    plan = [Fault.parse(text) for text in facts["plan"].split(";")]
    assert len(plan) == facts["size"]
    assert format_plan(plan) == facts["plan"]
    causes = facts.get("causes", [facts["plan"]])
    assert facts["plan"] in causes
    buggy, fixed = ((folder / name).read_text("utf-8") for name in ("buggy.py", "fixed.py"))
    assert buggy != fixed


def test_the_readme_has_each_bug() -> None:
    rows = list(_rows((ROOT / "README.md").read_text("utf-8")))
    assert [name for name, _, _ in rows] == [folder.name for folder in FOLDERS]
    kinds = [kind for _, kind, _ in rows]
    assert len(set(kinds)) == len(kinds)
    for name, kind, plan in rows:
        bug = read(ROOT / name)
        assert plan == bug.plan
        named = re.findall(r"\(class \*(\w+)\*\)", kind)
        assert tuple(named or ["platform"]) == bug.classes, name


def _rows(page: str) -> Iterator[tuple[str, str, str]]:
    for line in page.splitlines():
        row = re.fullmatch(r"\| \[([\w-]+)\]\(([\w-]+)\) \| (.+) \| `(.+)` \|", line)
        if row is not None:
            assert row[1] == row[2]
            yield row[1], row[3], row[4]
