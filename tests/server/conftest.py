"""A Worker project to serve."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from served_project import Project

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture(
    params=[
        pytest.param("asyncio"),
        pytest.param(
            "uvloop",
            marks=pytest.mark.skipif(sys.platform == "win32", reason="uvloop has no Windows build"),
        ),
    ],
)
def event_loop_library(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """What the servers run on: uvloop, or asyncio's own loop where that is not installed."""
    library: str = request.param
    if library == "asyncio":
        folder = tmp_path_factory.mktemp("without_uvloop")
        (folder / "uvloop.py").write_text("raise ImportError('it is not to be found')\n")
        path = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    return library
