"""Cloudflare's own SDK on the emulator's JavaScript shows what it shows in real Pyodide."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import probe_emulated
import probe_real
import pytest
from probe_deviations import explained
from probe_families import HERE, SDK, SETTINGS, Setting, recorded

if TYPE_CHECKING:
    from pathlib import Path

EXTERNAL = [setting for setting in SETTINGS if not setting.frozen]


@pytest.mark.parametrize("setting", EXTERNAL, ids=[setting.name for setting in EXTERNAL])
def test_the_sdk_itself_runs_on_the_model_of_javascript(setting: Setting, tmp_path: Path) -> None:
    """python-api.md 6.1, the oracle (a)."""
    if not (probe_real.CACHE / f"sdk-{SDK}").is_dir():
        pytest.skip(f"workers-runtime-sdk {SDK} is not installed (see __main__.py)")
    results = tmp_path / "results.json"
    command = [sys.executable, str(HERE / "probe_wheel.py"), setting.name, str(results)]
    path = os.pathsep.join([str(probe_emulated.ROOT), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert results.exists(), ended.stderr[-2000:]
    unexplained = [
        f"{probe}\n  in Pyodide: {recorded(family)[probe][setting.name]}\n  here: {here}"
        for family, probes in json.loads(results.read_text(encoding="utf-8")).items()
        for probe, here in probes.items()
        if here != recorded(family)[probe][setting.name]
        and explained(setting.name, probe, recorded(family)[probe][setting.name]) is None
    ]
    assert not unexplained, "\n".join(unexplained)
