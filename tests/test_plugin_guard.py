"""A project's own package `emulator` gives a clear error, not one of Python's import system."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parents[1]
OURS = ROOT / "emulator"


def test_entry_point_is_a_module_that_the_wheel_puts_beside_the_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    module = settings["project"]["entry-points"]["pytest11"]["workers-emulator"].partition(":")[0]
    files = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    source = {target: source for source, target in files.items()}[f"{module}.py"]
    assert (ROOT / source).is_file()
    (entry,) = metadata.entry_points(group="pytest11", name="workers-emulator")
    assert entry.module == module


def test_package_that_hides_ours_is_named_with_what_to_do(project: Project) -> None:
    project.write("emulator/__init__.py", "raise RuntimeError('must not be imported')")
    result = project.pytest(plugins=None)
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        [
            f"ERROR: workers-emulator: its package `emulator` ({OURS}) is hidden by "
            f"{project.path / 'emulator'}, so the pytest plugin cannot be loaded.*"
            "-p no:workers-emulator*"
        ]
    )
    assert "Traceback" not in result.stderr.str()


def test_project_with_such_a_package_runs_without_the_plugin(project: Project) -> None:
    project.write("emulator/__init__.py", "WHOSE = 'mine'")
    project.write(
        "test_mine.py", "import emulator\ndef test_mine(): assert emulator.WHOSE == 'mine'\n"
    )
    project.pytest("-p", "no:workers-emulator", plugins=None).assert_outcomes(passed=1)


def test_import_of_a_hidden_package_of_the_project_is_explained(project: Project) -> None:
    project.write("lib/emulator/core.py", "")
    project.write("test_mine.py", "import emulator.core\n")
    result = project.pytest("-o", "pythonpath=lib")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [f"`emulator` is the package of workers-emulator here ({OURS / '__init__.py'}).*"]
    )
