"""docs/recording.md: its first example runs, and prints what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from wire import ServerProcess

from emulator.cli.app import app
from emulator.recording import as_test, mocks, recorder, seeding, start_state

if TYPE_CHECKING:
    from recorded_project import Recorded

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "recording.md").read_text("utf-8")

_FILE = re.compile(r"^```\w+\n(?:#|//) file: (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _appear(printed: list[str], output: str) -> None:
    """Each line is in the output, in order; `...` stands for anything."""
    lines = iter(output.splitlines())
    for line in printed:
        if line != "...":
            pattern = re.escape(line).replace(r"\.\.\.", ".*")
            assert any(re.fullmatch(pattern, found) for found in lines), (line, output)


def test_the_first_example_does_what_it_says(recorded: Recorded) -> None:
    for name, text in _FILE.findall(PAGE):
        recorded.write(name, text)
    start, after = _CONSOLE.findall(PAGE)
    begin, *requests = start.split("$ ")[1:]
    _, *options = shlex.split(begin.splitlines()[0])
    assert options == ["dev", "--record", "desk.jsonl"]
    with ServerProcess(recorded.path, *options[1:]) as server:
        server.said("recording into desk.jsonl")
        assert len(requests) == 2
        for request in requests:
            command, *printed = request.splitlines()
            content, host = shlex.split(command)[-1], {"host": "localhost:8787"}
            _appear(printed, server.client.post("/", content=content, headers=host).text)
        server.stop()
    commands = after.split("$ ")[1:]
    assert len(commands) == 2
    for text in commands:
        command, *printed = text.splitlines()
        _appear(printed, CliRunner().invoke(app, shlex.split(command)[1:]).stdout)


@pytest.mark.parametrize(
    "text",
    [
        f"more than {recorder.MOST_BODY >> 20} MiB",
        f"more than {start_state.MOST_BYTES >> 20} MiB",
        f"more than {mocks.MOST_BODY >> 10} KiB",
        f"at most {as_test.MOST_ASSERTED >> 10} KiB",
        f"at most {seeding.MOST_CODE >> 10} KiB of code",
    ],
)
def test_figures_are_those_of_the_code(text: str) -> None:
    assert text in PAGE


def test_every_module_is_in_the_map_of_the_package() -> None:
    package = ROOT / "emulator" / "recording"
    text = (package / "__init__.py").read_text()
    names = [path.name for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]
    assert [name for name in names if name not in text] == []
