"""`workers-emulator sweep`: what it finds, prints and writes, and how it exits."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from signup_project import IDEMPOTENT, IDEMPOTENT_WORKER

if TYPE_CHECKING:
    from conftest import Cli


def test_a_naive_consumer_is_found_and_the_plan_can_be_pasted(cli: Cli) -> None:
    result = cli("sweep", "scenario.py", code=1)
    assert result.stdout.startswith(
        "32 runs: 8 failures of 1 cause\n\n"
        "AssertionError at scenario.py:10\n"
        "    assert mail.call_count == 1\n"
        '  workers-emulator run scenario.py --faults "message.emails#1:duplicate"\n'
        "  AssertionError: assert 2 == 1\n"
        "  also fails under:\n"
    )
    assert result.stdout.endswith("(depth=2 tries them)\nnot tried: 7 request faults\n")
    assert result.stderr == ""
    line = result.stdout.splitlines()[4].strip()
    assert "AssertionError: assert 2 == 1" in cli(*shlex.split(line)[1:], code=1).stdout


def test_the_correct_twin_passes(cli: Cli) -> None:
    cli.write("src/entry.py", IDEMPOTENT_WORKER)
    cli.write("scenario.py", IDEMPOTENT)
    result = cli("sweep", "scenario.py", code=0)
    assert result.stdout.splitlines()[0].endswith(" runs: passed")


def test_the_report_is_written_in_each_form(cli: Cli) -> None:
    files = ("--json", "s.json", "--html", "s.html", "--junit", "s.xml")
    cli("sweep", "scenario.py", "--seed", "4", *files, code=1)
    value = json.loads((cli.path / "s.json").read_text())
    assert (value["passed"], value["complete"], value["seed"]) == (False, True, 4)
    command = "workers-emulator run scenario.py --seed 4 --faults"
    assert command in (cli.path / "s.html").read_text("utf-8")
    suite = ElementTree.parse(cli.path / "s.xml").getroot()
    assert command in "".join(suite.itertext())


def test_json_on_stdout_is_alone_there(cli: Cli) -> None:
    cli.write("talks.py", (cli.path / "scenario.py").read_text() + "\nprint('hello')\n")
    result = cli("sweep", "talks.py", "--json", "-", code=1)
    assert json.loads(result.stdout)["schema"] == 1
    assert result.stderr.startswith("hello\n32 runs: 8 failures of 1 cause\n")
    assert not (cli.path / "-").exists()


def test_what_runs_print_is_not_shown(cli: Cli) -> None:
    text = (cli.path / "scenario.py").read_text()
    cli.write("talks.py", text.replace("    with respx", "    print('in a run')\n    with respx"))
    assert "in a run" not in cli("sweep", "talks.py", code=1).output


def test_options_reach_the_search(cli: Cli) -> None:
    def report(*options: str) -> dict:
        cli("sweep", "scenario.py", "--json", "s.json", *options)
        return json.loads((cli.path / "s.json").read_text())

    assert report("--only", "batch.*#*:lose_ack")["tried"] == [{"faults": 1, "plans": 1}]
    both = report("--only", "batch.*", "--only", "send.*", "--classes", "platform, request")
    assert both["tried"] == [{"faults": 1, "plans": 8}]
    assert report("--limit", "2")["cut"] == [{"faults": 1, "plans": 11}]
    assert report("--skip", "*")["empty"]
    everything = report("--classes", "all")
    assert everything["not_tried"] == {}
    deep = report("--depth", "2", "--only", "batch.*", "--limit", "12")
    assert deep["depth"] == 2
    assert deep["tried"][1]["faults"] == 2


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("async def scenario(e): ...", [], "the scenario met no site where a fault can strike"),
        (None, ["--only", "batch.nix"], "none is left by"),
        (None, ["--skip", "*"], "none is left by"),
    ],
)
def test_an_empty_sweep_exits_with_1(
    cli: Cli, text: str | None, options: list[str], expected: str
) -> None:
    if text is not None:
        cli.write("scenario.py", text)
    result = cli("sweep", "scenario.py", *options, code=1)
    assert "2 runs: nothing to sweep\n" in result.stdout
    assert expected in result.stdout


def test_a_pattern_that_means_nothing_exits_with_1(cli: Cli) -> None:
    cli.write("src/entry.py", IDEMPOTENT_WORKER)
    cli.write("scenario.py", IDEMPOTENT)
    only = ("--only", "batch.emails#*:shuffle", "--only", "batch.emails#*:lose_ack")
    cli("sweep", "scenario.py", *only[2:], code=0)
    result = cli("sweep", "scenario.py", *only, code=1)
    assert result.stderr.startswith(
        "only='batch.emails#*:shuffle' on the command line means no site and no fault of this "
        "scenario, which meets request.POST./signup, "
    )


def test_a_clean_run_that_fails_is_the_one_failure(cli: Cli) -> None:
    cli.write("scenario.py", "async def scenario(e):\n    assert [1] == []\n")
    result = cli("sweep", "scenario.py", code=1)
    assert result.stdout.startswith(
        "2 runs: 1 failure of 1 cause\n\nAssertionError at scenario.py:2\n    assert [1] == []\n"
        "  fails without any fault\n  AssertionError: assert [1] == []\n"
    )
    assert not result.stdout.endswith("\n\n")


def test_runs_that_differ_are_told(cli: Cli) -> None:
    text = """
    from itertools import count
    numbers = count()
    async def scenario(emulator):
        await emulator.fetch(f"/ok?{next(numbers)}")
    """
    cli.write("scenario.py", text)
    assert "two runs without a fault differed" in cli("sweep", "scenario.py", code=1).stdout


def test_a_scenario_that_leaves_the_process_fails_its_run(cli: Cli) -> None:
    text = (cli.path / "scenario.py").read_text()
    cli.write("scenario.py", text.replace("assert", "if mail.call_count > 1: raise SystemExit #"))
    result = cli("sweep", "scenario.py", code=1)
    assert "\nSystemExit at scenario.py:10\n" in result.stdout
    assert " failures of 1 cause" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "the scenario file none.py is not there"),
        (["scenario.py", "--depth", "0"], "Invalid value for '--depth'"),
        (["scenario.py", "--limit", "0"], "Invalid value for '--limit'"),
        (["scenario.py", "--classes", "foo"], "no class of faults is called 'foo'"),
        (["scenario.py", "--classes", ""], "no class of faults is called ''"),
        (["scenario.py", "--only", "nix.x"], 'no kind of site is called "nix"'),
        (["scenario.py", "--skip", "batch.x#1:nix"], "no action is called"),
        (["scenario.py", "--json", "none/x.json"], "--json: none/x.json cannot be written"),
        (["scenario.py", "--junit", "src"], "--junit: src is a folder"),
        (["scenario.py", "--html", "a", "--json", "a"], "--html: a is the file of --json, too"),
        (["scenario.py", "--faults", "x"], "No such option"),
        (["scenario.py", "--env", "x"], "env.x is not there"),
    ],
)
def test_wrong_usage_exits_with_2(cli: Cli, arguments: list[str], message: str) -> None:
    result = cli("sweep", *arguments, code=2)
    assert message in result.stderr
    assert result.stdout == ""


def test_arguments_that_a_sweep_does_not_take_are_refused(cli: Cli) -> None:
    for name, why in (("faults", "the sweep plans the faults"), ("state", "with nothing stored")):
        cli.write("bad.py", f'EMULATOR = {{"{name}": []}}\nasync def scenario(e): ...\n')
        result = cli("sweep", "bad.py", code=2)
        assert f"EMULATOR in bad.py has '{name}', but " in result.stderr
        assert why in result.stderr


def test_wrong_options_are_told_before_anything_is_imported(cli: Cli) -> None:
    cli.write("loud.py", "print('imported')\nasync def scenario(e): ...\n")
    assert "imported" not in cli("sweep", "loud.py", "--classes", "x", code=2).output
    assert "imported" in cli("sweep", "loud.py", code=1).output


def test_a_worker_that_stops_loading_ends_the_sweep_with_what_was_found(cli: Cli) -> None:
    cli.write(".dev.vars", "API_KEY=sk-live-0123456789\n")
    entry = (cli.path / "src/entry.py").read_text()
    check = "    raise ValueError('sk-live-0123456789')\n"
    cli.write(
        "src/entry.py", f"from pathlib import Path\nif Path('spoilt').exists():\n{check}{entry}"
    )
    text = """
    from pathlib import Path
    async def scenario(emulator):
        emulator.findings.expect("outbound_unmocked")
        await emulator.fetch("/signup", method="POST")
        await emulator.settle()
        if emulator.faults.plan:
            Path("spoilt").touch()
    """
    cli.write("spoils.py", text)
    result = cli("sweep", "spoils.py", "--json", "s.json", code=2)
    assert "3 runs: no failure so far\n" in result.stdout
    assert "ValueError: [secret API_KEY]" in result.stderr
    assert "sk-live" not in result.output
    assert json.loads((cli.path / "s.json").read_text())["complete"] is False
