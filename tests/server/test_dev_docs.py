"""docs/dev.md: its first example runs, and prints what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from wire import ServerProcess

from emulator.server import control, guard, options, state_folder
from emulator.server.desk import Desk

if TYPE_CHECKING:
    from served_project import Project

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "dev.md").read_text("utf-8")
FIRST_SCREEN = 45  # lines

_FILE = re.compile(r"^```\w+\n(?:#|//) file: (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_first_example_does_what_it_says(project: Project) -> None:
    for name, text in _FILE.findall(PAGE):
        project.write(name, text)
    (block,) = _CONSOLE.findall(PAGE)
    start, *requests = block.split("$ ")[1:]
    assert start.startswith("workers-emulator dev\n")
    with ServerProcess(project.path) as server:
        assert len(requests) == 2
        for request in requests:
            command, printed, *_ = request.splitlines()
            answer = _curl(server, command)
            expected = re.escape(printed).replace(r"\.\.\.", ".*")
            assert re.fullmatch(expected, answer.strip()), (command, answer)
        server.wait(lambda line: line.get("data", {}).get("text") == "batch of 1")


@pytest.mark.asyncio
async def test_the_examples_of_faults_do_what_they_say(project: Project) -> None:
    (section,) = re.findall(r"^## Faults\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    (block,) = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    async with project.served() as served:
        answers = []
        for command in block.splitlines():
            method, path, content = _request(command)
            answers.append(await served.client.request(method, path, content=content))
            await served.desk.emulator.advance(2)
    armed, sent, told, cleared = answers
    assert (armed.status_code, armed.json()) == (200, {"armed": ["batch.jobs#*:lose_ack"]})
    assert sent.status_code == 202
    assert told.json()["plan"] == [{"fault": "batch.jobs#*:lose_ack", "fired": True}]
    assert told.json()["fired"][0] == "batch.jobs#1:lose_ack"
    (site,) = [site for site in told.json()["sites"] if site["site"] == "send.jobs"]
    assert (site["met"], site["actions"][0]) == (1, "crash_before")
    assert (cleared.status_code, cleared.json()["plan"]) == (200, [])


def _curl(server: ServerProcess, command: str) -> str:
    method, path, content = _request(command)
    return server.client.request(method, path, content=content).text


def _request(command: str) -> tuple[str, str, str | None]:
    """The method, path and body of a `curl`."""
    words = shlex.split(command)
    assert words.pop(0) == "curl"
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    content = words[words.index("-d") + 1] if "-d" in words else None
    (url,) = [word for word in words if word.startswith("http://localhost:8787")]
    return method, url.removeprefix("http://localhost:8787"), content


def test_the_page_starts_with_its_example() -> None:
    assert "```console" in "\n".join(PAGE.splitlines()[:FIRST_SCREEN])


@pytest.mark.parametrize(
    "text",
    [
        *(path for path in control.TRIGGERS if "/handler/" in path),
        f"{guard.MOST_BYTES // 1_048_576} MiB",
        f"{options.HISTORY:,} events",
        f"at most {options.GRACE:g} s",
        f"`{state_folder.NAME}/`",
        "synchronous=NORMAL",
    ],
)
def test_figures_and_names_are_those_of_the_code(text: str) -> None:
    assert text in PAGE


def test_every_public_member_of_the_desk_is_documented() -> None:
    own = {"platform", "dispatch", "start", "close", "in_flight"}  # of the server itself
    names = [name for name in vars(Desk) if not name.startswith("_") and name not in own]
    assert [name for name in names if f"desk.{name}" not in PAGE] == []


def test_every_module_is_in_the_map_of_the_package() -> None:
    package = ROOT / "emulator" / "server"
    text = (package / "__init__.py").read_text()
    names = [path.name for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]
    assert [name for name in names if name not in text] == []
