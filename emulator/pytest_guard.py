"""What the pytest11 entry point names: the plugin, once it is sure that `emulator` is ours.

A project may have a package `emulator` of its own. Where its folder comes first in `sys.path`, as
in `python -m pytest`, the plugin cannot be imported, and Python would only say that there is no
`emulator.pytest_plugin`. The wheel therefore installs this file beside the package, as the module
`_workers_emulator_pytest` (see pyproject.toml), which nothing hides and which says what is wrong.
It must not import anything of `emulator` before it has looked.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

_OURS = "pytest_plugin.py"


def _check() -> None:
    """Raise `pytest.UsageError` if `emulator` is not the package of this distribution."""
    found = _found()
    if found is not None and (found / _OURS).is_file():
        return
    ours = next(
        (folder for folder in _importable() if (folder / _OURS).is_file()),
        "not installed any more",
    )
    if found is None:
        raise pytest.UsageError(
            f"workers-emulator: its package `emulator` ({ours}) cannot be imported. Install the "
            "distribution again, or run pytest without its plugin: -p no:workers-emulator"
        )
    raise pytest.UsageError(
        f"workers-emulator: its package `emulator` ({ours}) is hidden by {found}, so the pytest "
        "plugin cannot be loaded. Rename yours, or run pytest without the plugin: "
        "-p no:workers-emulator. If the tests do not import yours, it is enough to run `pytest`: "
        "`python -m pytest` and PYTHONPATH put a folder at the head of sys.path"
    )


def _found() -> Path | None:
    """The folder, or the file, that `import emulator` means."""
    try:
        spec = find_spec("emulator")
    except ValueError:  # Somebody's stand-in in sys.modules, which has no spec.
        return Path(getattr(sys.modules["emulator"], "__file__", None) or "a module without a file")
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0] if folders else spec.origin or "a module without a file")


def _importable() -> list[Path]:
    return [Path(entry or ".").absolute() / "emulator" for entry in sys.path]


_check()
plugin = import_module("emulator.pytest_plugin")
