"""Secrets of `.dev.vars` in what each command prints and writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Cli

KEY = "sk-live-0123456789"
ENTRY = """
from workers import Response, WorkerEntrypoint, env

print("imported with", env.API_KEY)


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        print("the key is", self.env.API_KEY)
        await self.env.EMAILS.send(self.env.API_KEY)
        return Response(self.env.API_KEY)

    async def queue(self, batch, env, ctx):
        batch.ackAll()
"""
LEAKS = """
import sys

print("at import", KEY)


async def scenario(emulator):
    print("in the scenario", KEY)
    print("aside", KEY, file=sys.stderr)
    sys.stdout.buffer.write(KEY.encode() + b"\\n")
    answer = await emulator.fetch(f"/?key={KEY}")
    await emulator.settle()
    assert answer.text == "x"
"""


@pytest.fixture
def leaky(cli: Cli) -> Cli:
    cli.write(".dev.vars", f"API_KEY={KEY}\n")
    cli.write("src/entry.py", ENTRY)
    cli.write("leaks.py", f'KEY = "{KEY}"\n{LEAKS}')
    return cli


def test_run_masks_all_it_prints_and_writes(leaky: Cli) -> None:
    plan = f"request.GET./{KEY}#1:crash_before"
    files = ("--trace", "t.jsonl", "--html", "t.html")
    result = leaky("run", "leaks.py", "--faults", plan, *files, code=1)
    assert result.output.count("[secret API_KEY]") > 10
    assert KEY not in result.output
    assert "assert '[secret API_KEY]' == 'x'" in result.stdout
    assert (
        'reproduce: workers-emulator run leaks.py --faults "request.GET./[secret' in result.output
    )
    for name in ("t.jsonl", "t.html"):
        assert KEY not in (leaky.path / name).read_text("utf-8")

    result = leaky("run", "leaks.py", "--json", "--faults", plan, code=1)
    assert KEY not in result.output
    assert json.loads(result.stdout)["plan"] == ["request.GET./[secret API_KEY]#1:crash_before"]


def test_sweep_masks_all_it_prints_and_writes(leaky: Cli) -> None:
    files = ("--json", "s.json", "--html", "s.html", "--junit", "s.xml")
    result = leaky("sweep", "leaks.py", *files, code=1)
    assert KEY not in result.output
    for name in ("s.json", "s.html", "s.xml"):
        text = (leaky.path / name).read_text("utf-8")
        assert KEY not in text
        assert "[secret API_KEY]" in text


def test_what_keeps_a_command_from_running_is_masked(leaky: Cli) -> None:
    leaky.write("raises.py", f'raise ValueError("{KEY}")\n')
    leaky.write("lacks.py", f'print("{KEY}")\n')
    for name in ("raises.py", "lacks.py"):
        for command in ("run", "sweep"):
            result = leaky(command, name, code=2)
            assert "[secret API_KEY]" in result.output
            assert KEY not in result.output

    failing = "from workers import env\nprint(env.API_KEY)\nraise ValueError(env.API_KEY)\n"
    leaky.write("src/entry.py", failing)
    for arguments in (["run", "leaks.py"], ["sweep", "leaks.py"], ["check"]):
        result = leaky(*arguments)
        assert result.exit_code == (1 if arguments == ["check"] else 2)
        assert "ValueError: [secret API_KEY]" in result.output
        assert KEY not in result.output


def test_two_workers_may_have_a_secret_of_one_name(leaky: Cli) -> None:
    other = "sk-live-of-the-other"
    flags = '"compatibility_date": "2026-09-01", "compatibility_flags": ["python_workers"]'
    leaky.write("other/wrangler.jsonc", f'{{"main": "entry.py", "name": "other", {flags}}}')
    leaky.write("other/entry.py", ENTRY.replace("await self.env.EMAILS", "'' # "))
    leaky.write("other/.dev.vars", f"API_KEY={other}\n")
    text = """
    async def scenario(emulator):
        for worker in emulator.envs:
            print(emulator.envs[worker].API_KEY)
            await emulator.fetch("/", worker=worker)
    """
    leaky.write("both.py", text)
    for configs in (["wrangler.jsonc", "other"], ["other", "wrangler.jsonc"]):
        given = [part for config in configs for part in ("-c", config)]
        result = leaky("run", "both.py", *given, code=0)
        assert KEY not in result.output
        assert other not in result.output
        assert result.output.count("[secret API_KEY]") > 6
