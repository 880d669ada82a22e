"""Runs probes in real Pyodide under Node, where both are installed; see `__main__.py`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from probe_families import HERE, SDK, SETTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_families import Family, Setting

# The folder the packages are in, outside the repository.
CACHE: Final = Path(
    os.environ.get("WORKERS_EMULATOR_PYODIDE")
    or Path.home() / ".cache" / "workers-emulator" / "pyodide"
)
# Optimised code of some versions of Node ends in a fatal error of V8's.
_NODE: Final = ("node", "--no-opt")


def missing(setting: Setting) -> str:
    """Say what is not installed for a setting; empty if all is."""
    if shutil.which("node") is None:
        return "Node is not installed"
    if not (_package(setting) / "pyodide.mjs").exists():
        return f"pyodide@{setting.package} is not installed in {CACHE.name}/ (see __main__.py)"
    if not (_sdk(setting) / "workers").is_dir():
        return "the SDK frozen in the runtime is not here" if setting.frozen else "no SDK"
    return ""


def run(setting: Setting, families: Sequence[Family]) -> dict[str, dict[str, str]]:
    """Return what each probe of each family shows."""
    with tempfile.TemporaryDirectory() as folder:
        job, results = Path(folder, "job.json"), Path(folder, "results.json")
        told = {
            "pyodide": str(_package(setting)),
            "sdk": str(_sdk(setting)),
            "version": setting.version,
            "flags": setting.flags,
            "showing": str(HERE / "probe_showing.py"),
            "results": str(results),
            "families": [
                {"family": one.name, "setup": one.setup, "probes": list(one.probes)}
                for one in families
            ],
        }
        job.write_text(json.dumps(told), encoding="utf-8")
        command = [*_NODE, str(HERE / "harness.mjs"), str(job)]
        ended = subprocess.run(
            command,
            env={**os.environ, "TZ": "UTC"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if not results.exists():
            raise RuntimeError(f"the harness failed: {ended.stderr[-2000:]}")
        found: dict[str, dict[str, str]] = json.loads(results.read_text(encoding="utf-8"))
        return found


def _package(setting: Setting) -> Path:
    return CACHE / setting.package / "node_modules" / "pyodide"


def _sdk(setting: Setting) -> Path:
    return CACHE / ("frozen" if setting.frozen else f"sdk-{SDK}")


def install(frozen: str | None) -> None:
    """Install all that the probes need: packages of npm's, and the SDK by pip.

    The SDK that is frozen in the runtime is no package: `frozen` names a folder with its sources,
    `src/pyodide/internal/workers-api/src` of workerd.
    """
    for version in sorted({setting.package for setting in SETTINGS}):
        options = ["--no-audit", "--no-fund", "--ignore-scripts"]
        place = CACHE / version
        place.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", str(place), *options, f"pyodide@{version}"]
        subprocess.run(command, check=True)
    with tempfile.TemporaryDirectory() as folder:
        what = ["--no-deps", "--python-version", "3.13", "--only-binary", ":all:"]
        name = f"workers-runtime-sdk=={SDK}"
        command = [sys.executable, "-m", "pip", "download", "-q", *what, name, "-d", folder]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        zipfile.ZipFile(wheel).extractall(CACHE / f"sdk-{SDK}")
    if frozen:
        shutil.copytree(frozen, CACHE / "frozen", dirs_exist_ok=True)
