"""docs/cli.md: its commands print what it says, and no option is left out.

In a `console` block a line after `$ ` is a command; what follows is what it prints, where `...`
stands for lines left out. The files are those of the README's first project.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from emulator.cli.app import COMMANDS, app

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Cli

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "cli.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
FIRST_SCREEN = 45  # lines

_FILE = re.compile(r"^```\w+\n(?:#|//) file: (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield each command of the page with the lines it is to print."""
    for block in _CONSOLE.findall(PAGE):
        for part in block.split("$ ")[1:] if block.startswith("$ ") else ():
            command, *printed = part.splitlines()
            yield command, printed


def test_commands_print_what_the_page_says(cli: Cli) -> None:
    first = {}
    for name, text in _FILE.findall(README):
        first.setdefault(name, text)  # the first version is the one with the bug
    files = {**first, **dict(_FILE.findall(PAGE))}
    for name in ("wrangler.jsonc", "src/entry.py", "scenario.py"):
        cli.write(name, files[name])
    code = None
    done = list(commands())
    assert len(done) == 4
    for command, printed in done:
        if command == "echo $?":
            assert printed == [str(code)]
            continue
        program, *arguments = shlex.split(command)
        assert program == "workers-emulator"
        result = cli(*arguments)
        code = result.exit_code
        lines = iter(result.stdout.splitlines())
        for line in printed:
            assert line == "..." or line in lines, (command, line, result.stdout)


def test_the_page_starts_with_its_example() -> None:
    assert "```console" in "\n".join(PAGE.splitlines()[:FIRST_SCREEN])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    assert f"\n## `{name}`\n" in PAGE
    command = app.get_command(click.Context(app), name)
    assert command is not None
    options = [
        option
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
    ]
    assert [option for option in options if f"`{option}" not in PAGE] == []


def test_every_module_is_in_the_map_of_the_package() -> None:
    package = ROOT / "emulator" / "cli"
    text = (package / "__init__.py").read_text()
    names = [path.name for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]
    assert [name for name in names if name not in text] == []
