"""Emulators that share what they were made of, and what makes them read it again."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import write

from emulator import ConfigError, ConfigWarning, Emulator, sweep
from emulator import config as settings
from emulator.deployment import Deployments, deploy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENTRY = """
import parts
from workers import Response, WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        self.env.STATE.count += 1
        return Response(f"{parts.TEXT} {self.env.STATE.count}")
"""
CONFIG = {
    "name": "w",
    "main": "src/entry.py",
    "compatibility_date": "2026-09-01",
    "compatibility_flags": ["python_workers"],
    "vars": {"STATE": {"count": 0}},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A Worker whose configured variable is an object, which its code changes."""
    write(tmp_path, {"src/entry.py": ENTRY, "src/parts.py": 'TEXT = "one"'})
    (tmp_path / "wrangler.json").write_text(json.dumps(CONFIG))
    return tmp_path


async def answers(config: Any) -> list[str]:
    async with Emulator(config) as emulator:
        return [(await emulator.fetch("/")).text for _ in range(2)]


@pytest.mark.asyncio
async def test_nothing_of_a_run_stays_in_a_deployment(project: Path) -> None:
    deployment = deploy(project / "wrangler.json")
    assert await answers(deployment) == ["one 1", "one 2"]
    assert await answers(deployment) == ["one 1", "one 2"]
    assert deployment.settings.workers[0].vars == {"STATE": {"count": 0}}


@pytest.mark.asyncio
async def test_what_has_not_changed_is_not_read_again(project: Path) -> None:
    deployments = Deployments()
    first = deployments.get(project / "wrangler.json")
    await answers(first)
    assert deployments.get(project / "wrangler.json") is first
    await answers(first)
    assert deployments.get(project / "wrangler.json") is first


def rewrite(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        text = (project / name).read_text()
        assert old in text
        (project / name).write_text(text.replace(old, new))

    return change


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (rewrite("wrangler.json", '"count": 0', '"count": 5'), ["one 6", "one 7"]),
        (rewrite("src/parts.py", "one", "two"), ["two 1", "two 2"]),
        (rewrite("src/entry.py", "+= 1", "+= 2"), ["one 2", "one 4"]),
        (lambda project: (project / ".env").write_text("STATE=x"), None),
        (lambda project: (project / ".dev.vars").write_text("A=1"), ["one 1", "one 2"]),
        (lambda project: (project / "src" / "more.py").touch(), ["one 1", "one 2"]),
        (lambda project: (project / "src" / "folder").mkdir(), ["one 1", "one 2"]),
        (lambda project: (project / "src" / "parts.py").unlink(), None),
    ],
)
async def test_what_has_changed_is_read_again(
    project: Path, change: Callable[[Path], None], expected: list[str] | None
) -> None:
    deployments = Deployments()
    first = deployments.get(project / "wrangler.json")
    await answers(first)
    change(project)
    second = deployments.get(project / "wrangler.json")
    assert second is not first
    if expected is not None:
        assert await answers(second) == expected


def test_a_folder_that_becomes_a_package_is_seen(project: Path) -> None:
    (project / "src" / "folder").mkdir()
    deployments = Deployments()
    with Emulator(first := deployments.get(project / "wrangler.json")):
        (project / "src" / "folder" / "__init__.py").touch()
    assert deployments.get(project / "wrangler.json") is not first


def test_other_arguments_make_another_deployment(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployments = Deployments()
    config: Any = {**deepcopy(CONFIG), "main": str(project / "src" / "entry.py")}
    first = deployments.get(config, profile="production")
    assert deployments.get(dict(config), profile="production") is first
    assert deployments.get(config, profile="miniflare") is not first
    monkeypatch.chdir(project)
    again = deployments.get(config, profile="production")
    assert deployments.get(config, profile="production") is again
    config["vars"]["STATE"]["count"] = 3
    changed = deployments.get(config, profile="production")
    assert changed is not again
    assert changed.settings.workers[0].vars == {"STATE": {"count": 3}}


def test_a_config_that_has_become_wrong_is_told(project: Path) -> None:
    deployments = Deployments()
    first = deployments.get(project / "wrangler.json")
    good = (project / "wrangler.json").read_bytes()
    (project / "wrangler.json").write_text("{")
    with pytest.raises(ConfigError):
        deployments.get(project / "wrangler.json")
    (project / "wrangler.json").write_bytes(good)
    assert deployments.get(project / "wrangler.json").settings == first.settings


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The configs that were read."""
    read: list[Any] = []
    load = settings.load

    def counted(config: Any, **options: Any) -> Any:
        read.append(config)
        return load(config, **options)

    monkeypatch.setattr(settings, "load", counted)
    return read


@pytest.mark.asyncio
async def test_a_sweep_reads_its_config_once(project: Path, loads: list[Any]) -> None:
    async def scenario(emulator: Emulator) -> None:
        assert (await emulator.fetch("/", retries=1)).text == "one 1"

    config = project / "wrangler.json"
    (project / "wrangler.json").write_text(json.dumps({**CONFIG, "misspelt": 1}))
    with pytest.warns(ConfigWarning, match="misspelt") as warned:
        report = await sweep(scenario, config, classes="all", only=["*#*:crash_before"])
    assert (report.runs, loads) == (3, [config])
    assert len(warned) == 1


@pytest.mark.asyncio
async def test_a_sweep_sees_what_its_scenario_does_to_the_files(
    project: Path, loads: list[Any]
) -> None:
    texts = []

    async def scenario(emulator: Emulator) -> None:
        texts.append((await emulator.fetch("/", retries=1)).text)
        (project / "src" / "parts.py").write_text(f"TEXT = 'edit {len(texts)}'")

    config = project / "wrangler.json"
    report = await sweep(scenario, config, classes="all", only=["*#*:crash_before"])
    assert texts == ["one 1", "edit 1 1", "edit 2 1"]
    assert report.passed
    assert len(loads) == 3
