"""A Worker project that is recorded, with an outside world, and what repeats the recording."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# What the tests of the server and of the command line are made with.
for _folder in ("server", "cli"):
    sys.path.append(str(Path(__file__).parent.parent / _folder))

from recorded_project import Outside, Recorded  # noqa: E402 (found by the lines above)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def outside() -> Iterator[Outside]:
    """A real HTTP server outside."""
    with Outside() as server:
        yield server


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outside: Outside) -> Recorded:
    """The project, and the working directory in it."""
    monkeypatch.chdir(tmp_path)
    return Recorded(tmp_path, outside)
