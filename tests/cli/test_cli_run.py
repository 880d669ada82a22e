"""`workers-emulator run`: what it prints, what it writes, how it exits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Cli

LOST = "batch.emails#1:lose_ack"


def test_a_run_that_passes_prints_its_timeline(cli: Cli) -> None:
    result = cli("run", "scenario.py", code=0)
    lines = result.stdout.splitlines()
    assert lines[0] == "virtual time since 2026-01-01T00:00:00.000000Z"
    assert [line for line in lines if " request_out " in line and "+0:00:05.000" in line]
    assert lines[-2:] == ["", "passed: 7 events, 5 s of virtual time"]
    assert result.stderr == ""


def test_a_run_that_fails_shows_the_users_line_the_plan_and_how_to_run_it_again(cli: Cli) -> None:
    result = cli("run", "scenario.py", "--faults", LOST, "--seed", "3", code=1)
    end = result.stdout[result.stdout.index("Traceback") :].splitlines()
    assert end == [
        "Traceback (most recent call last):",
        '  File "scenario.py", line 10, in scenario',
        "    assert mail.call_count == 1",
        "AssertionError: assert 2 == 1",
        "",
        "failed: AssertionError at scenario.py:10; 12 events, 10 s of virtual time",
        f"plan: {LOST}",
        f"fired: {LOST}",
        f'reproduce: workers-emulator run scenario.py --seed 3 --faults "{LOST}"',
    ]


def test_the_line_that_reproduces_reproduces(cli: Cli) -> None:
    import shlex

    cli.write("folder/other name.py", "from scenario import scenario\n")
    arguments = ("folder/other name.py", "-c", "wrangler.jsonc", "--profile", "miniflare")
    cli.write("folder/scenario.py", (cli.path / "scenario.py").read_text())
    first = cli("run", *arguments, "--faults", LOST, "--scenario", "scenario", code=1)
    line = first.stdout.splitlines()[-1].removeprefix("reproduce: ")
    again = cli(*shlex.split(line)[1:], code=1)
    assert again.stdout == first.stdout


def test_a_plan_of_several_faults_and_options_is_one_plan(cli: Cli) -> None:
    plan = "send.emails#1:crash_before"
    result = cli("run", "scenario.py", "--faults", f"{LOST}; {plan}", "--faults", LOST, code=1)
    assert f"plan: {LOST}; {plan}\n" in result.stdout
    assert f"fired: {plan}\n" in result.stdout
    assert "emulator.errors.WorkerCrashed" in result.stdout


def test_a_fault_that_never_fires_fails_the_run(cli: Cli) -> None:
    result = cli("run", "scenario.py", "--faults", "batch.emials#1:lose_ack", code=1)
    assert "  x fault_not_fired: batch.emials#1:lose_ack never fired" in result.stdout
    assert "\nfailed: the emulator found fault_not_fired; 7 events" in result.stdout
    assert "fired: nothing\n" in result.stdout
    assert "Traceback" not in result.stdout


def test_respx_is_not_asked_for_all_calls_under_a_plan(cli: Cli) -> None:
    text = """
    import respx
    async def scenario(emulator):
        with respx.mock() as outside:
            outside.post("https://mail.example/send").respond(202)
            await emulator.fetch("/ok")
    """
    cli.write("unasked.py", text)
    assert "some routes were not called" in cli("run", "unasked.py", code=1).stdout
    faults = "request.GET./ok#1:lose_reply"
    result = cli("run", "unasked.py", "--faults", faults, code=1)
    assert "emulator.ingress.ReplyLost" in result.stdout
    assert "some routes" not in result.stdout


def test_strict_findings_fail_and_the_others_are_shown(cli: Cli) -> None:
    cli.write("boom.py", "async def scenario(emulator):\n    await emulator.fetch('/boom')\n")
    result = cli("run", "boom.py", code=0)
    assert "\nfindings\n    src/entry.py:11: handler_exception: " in result.stdout

    cli.write("ask.py", "async def scenario(emulator):\n    await emulator.fetch('/ask')\n")
    result = cli("run", "ask.py", code=1)
    assert "\n  x src/entry.py:15: outbound_unmocked: " in result.stdout
    assert 'emulator.findings.expect("code")' in result.stdout

    expect = "    emulator.findings.expect('outbound_unmocked')\n"
    cli.write(
        "ask.py", f"async def scenario(emulator):\n{expect}    await emulator.fetch('/ask')\n"
    )
    assert "outbound_unmocked: " not in cli("run", "ask.py", code=0).stdout


def test_logs_are_whole_and_what_a_worker_prints_is_not_printed_twice(cli: Cli) -> None:
    cli.write("log.py", "async def scenario(emulator):\n    await emulator.fetch('/log')\n")
    out = cli("run", "log.py", code=0).stdout
    assert "\nlogs\n  +0:00:00.000  signup  log  a line of the Worker\n" in out
    assert out.count("a line of the Worker") == 2  # in the timeline, and here
    assert out.startswith("virtual time since")


def test_what_a_scenario_prints_comes_first(cli: Cli) -> None:
    text = """
    import sys
    print("at import")
    async def scenario(emulator):
        print("hello")
        print("no end", end="")
        print("aside", file=sys.stderr)
        sys.stdout.buffer.write("bytes é\\n".encode())
    """
    cli.write("printing.py", text)
    result = cli("run", "printing.py", code=0)
    assert result.stdout.startswith("at import\nhello\nno endbytes é\nvirtual time since")
    assert result.stderr == "aside\n"

    result = cli("run", "printing.py", "--json", code=0)
    assert json.loads(result.stdout)["ending"] == "passed"
    assert result.stderr == "at import\nhello\naside\nno endbytes é\n"


def test_streams_can_be_kept_and_closed(cli: Cli) -> None:
    text = """
    import logging, sys
    logging.getLogger("kept").addHandler(logging.StreamHandler())
    async def scenario(emulator):
        logging.getLogger("kept").warning("logged")
        print("closed", end="")
        sys.stdout.close()
    """
    cli.write("keeps.py", text)
    result = cli("run", "keeps.py", code=0)
    assert result.stderr == "logged\n"
    assert result.stdout.startswith("closedvirtual time since")


def test_json_has_it_all(cli: Cli) -> None:
    result = cli("run", "scenario.py", "--faults", f"{LOST}; batch.x#1:fail", "--json", code=1)
    value = json.loads(result.stdout)
    trace = value.pop("trace")
    (finding,) = value.pop("findings")
    assert value == {
        "schema": 1,
        "ending": "failed",
        "scenario": "scenario",
        "file": "scenario.py",
        "plan": [LOST, "batch.x#1:fail"],
        "fired": [LOST],
        "error": {
            "type": "AssertionError",
            "text": "AssertionError: assert 2 == 1",
            "traceback": 'Traceback (most recent call last):\n  File "scenario.py", line 10, in '
            "scenario\n    assert mail.call_count == 1\nAssertionError: assert 2 == 1",
        },
        "logs": [],
        "now": "2026-01-01T00:00:10.000000Z",
        "reproduce": f'workers-emulator run scenario.py --faults "{LOST}; batch.x#1:fail"',
    }
    assert (finding["code"], finding["fails"]) == ("fault_not_fired", True)
    assert [event["kind"] for event in trace].count("fault") == 1
    assert result.stdout.isascii()


def test_trace_and_page_are_written(cli: Cli) -> None:
    cli("run", "scenario.py", "--trace", "t.jsonl", "--html", "t.html", "--faults", LOST, code=1)
    events = [json.loads(line) for line in (cli.path / "t.jsonl").read_text().splitlines()]
    assert {"at", "kind", "subject", "data"} == set(events[0])
    assert len(events) == 12
    assert "lose_ack" in (cli.path / "t.html").read_text("utf-8")


def test_the_config_is_that_of_the_option_then_the_file_then_the_nearest(cli: Cli) -> None:
    entry = """
    from workers import Response, WorkerEntrypoint
    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            return Response(self.env.WHO)
    """
    cli.write("who/entry.py", entry)
    flags = '"compatibility_date": "2026-09-01", "compatibility_flags": ["python_workers"]'
    for name in ("nearest", "given"):
        text = f'{{"main": "../who/entry.py", "name": "w", "vars": {{"WHO": "{name}"}}, {flags}}}'
        cli.write(f"{name}/wrangler.jsonc", text)
    ask = "async def scenario(emulator):\n    print((await emulator.fetch('/')).text)\n"
    cli.write("nearest/deep/down/ask.py", ask)
    config = 'CONFIG = {"main": "../who/entry.py", "vars": {"WHO": "of the file"}}\n'
    cli.write("nearest/own.py", config + ask)

    def who(*arguments: str) -> str:
        return cli("run", *arguments, code=0).stdout.splitlines()[0]

    assert who("nearest/deep/down/ask.py") == "nearest"
    assert who("nearest/own.py") == "of the file"
    assert who("nearest/own.py", "-c", "given/wrangler.jsonc") == "given"
    assert who("nearest/own.py", "-c", "given") == "given"


def test_several_configs_are_several_workers(cli: Cli) -> None:
    flags = '"compatibility_date": "2026-09-01", "compatibility_flags": ["python_workers"]'
    cli.write("other.jsonc", f'{{"main": "src/entry.py", "name": "other", {flags}}}')
    text = "async def scenario(emulator):\n    print(*emulator.envs)\n"
    cli.write("names.py", text)
    result = cli("run", "names.py", "-c", "other.jsonc", "-c", "wrangler.jsonc", code=0)
    assert result.stdout.startswith("other signup\n")


def test_options_win_over_the_file_and_plans_are_joined(cli: Cli) -> None:
    text = (cli.path / "scenario.py").read_text()
    cli.write("own.py", f'EMULATOR = {{"seed": 5, "faults": ["{LOST}"]}}\n{text}')
    plan = "message.emails#1:delay(30 s)"
    result = cli("run", "own.py", "--faults", f"{plan}; {LOST}", "--json", code=1)
    assert json.loads(result.stdout)["plan"] == [LOST, plan]

    def first_id(*options: str) -> str:
        value = json.loads(cli("run", "own.py", "--json", *options).stdout)
        return next(e["data"]["id"] for e in value["trace"] if e["kind"] == "send")

    assert first_id() == first_id("--seed", "5")
    assert first_id() != first_id("--seed", "6")


def test_state_lies_beside_the_file_and_time_is_virtual_in_the_scenario(cli: Cli) -> None:
    text = """
    import time
    EMULATOR = {"state": "kept.db"}
    async def scenario(emulator):
        assert time.time() == 1767225600
        await emulator.queues["emails"].send("x")
    """
    cli.write("folder/stateful.py", text)
    cli("run", "folder/stateful.py", code=0)
    assert (cli.path / "folder" / "kept.db").exists()


def test_an_environment_is_chosen(cli: Cli) -> None:
    flags = '"compatibility_date": "2026-09-01", "compatibility_flags": ["python_workers"]'
    environments = '"env": {"staging": {"vars": {"WHO": "staging"}}}'
    cli.write("env.jsonc", f'{{"main": "src/entry.py", "name": "w", {flags}, {environments}}}')
    cli.write("who.py", "async def scenario(emulator):\n    print(emulator.env.WHO)\n")
    result = cli("run", "who.py", "-c", "env.jsonc", "--env", "staging", code=0)
    assert result.stdout.startswith("staging\n")
    result = cli("run", "who.py", "-c", "env.jsonc", "-e", "prod", code=2)
    assert "env.prod is not there; those of this config are staging" in result.stderr


def test_config_warnings_are_told_once(cli: Cli) -> None:
    cli.write("odd.jsonc", '{"main": "src/entry.py", "name": "w", "mian": 1}')
    cli.write("ok.py", "async def scenario(emulator): ...\n")
    result = cli("run", "ok.py", "-c", "odd.jsonc", code=0)
    lines = result.stderr.splitlines()
    assert all(line.startswith("Warning: ") for line in lines)
    assert sum("mian is not a known key" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "the scenario file none.py is not there"),
        (["scenario.py", "--faults", "batch.emails#1:lose_akc"], 'did you mean "lose_ack"?'),
        (["scenario.py", "--faults", "batch.emails"], "--faults: which occurrence is missing"),
        (["scenario.py", "-c", "none.jsonc"], "--config: there is no file "),
        (["scenario.py", "-c", "src"], "--config: there is no wrangler config in "),
        (["scenario.py", "--trace", "none/t.jsonl"], "cannot be written: there is no folder none"),
        (["scenario.py", "--html", "src"], "--html: src is a folder; give a file"),
        (["scenario.py", "--html", "-"], "--html: - is no file; give a path"),
        (["scenario.py", "--trace", "scenario.py"], "is the scenario itself"),
        (["scenario.py", "--trace", "a", "--html", "./a"], "--html: ./a is the file of --trace"),
        (["scenario.py", "--scenario", "none"], "has no 'none'"),
        (["scenario.py", "--seed", "x"], "Invalid value for '--seed'"),
        (["scenario.py", "--timeout", "0"], "Invalid value for '--timeout'"),
        (["scenario.py", "--profile", "x"], "Invalid value for '--profile'"),
        (["scenario.py", "--none"], "No such option"),
        ([], "Missing argument 'SCENARIO.py'"),
    ],
)
def test_wrong_usage_exits_with_2_and_runs_nothing(
    cli: Cli, arguments: list[str], message: str
) -> None:
    before = sorted(cli.path.rglob("*"))
    result = cli("run", *arguments, code=2)
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert sorted(cli.path.rglob("*")) == before


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("CONFIG = 5", "config is 5, but must be a path of a wrangler config"),
        ('CONFIG = {"main": "none.py"}', "there is no file "),
        ('EMULATOR = {"start": 5}', "start is 5; give an aware datetime"),
        ('EMULATOR = {"seed": "x"}', "seed is 'x'; give a whole number"),
        ('EMULATOR = {"bindings": 5}', "an argument of Emulator is wrong: TypeError"),
        ('EMULATOR = {"faults": ["x"]}', 'the faults of EMULATOR: no kind of site is called "x"'),
        ('EMULATOR = {"faults": 5}', "the faults of EMULATOR: "),
        ('EMULATOR = {"state": "."}', "cannot be opened: it must be a file"),
    ],
)
def test_what_keeps_an_emulator_from_being_made_exits_with_2(
    cli: Cli, head: str, message: str
) -> None:
    cli.write("bad.py", f"{head}\nasync def scenario(emulator): ...\n")
    result = cli("run", "bad.py", code=2)
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_worker_that_cannot_be_imported_shows_its_line_and_its_output(cli: Cli) -> None:
    cli.write("src/entry.py", "print('so far')\nimport nowhere_at_all\n")
    result = cli("run", "scenario.py", code=2)
    assert result.stdout == "so far\n"
    assert '  File "src/entry.py", line 2, in <module>\n    import nowhere_at_all' in result.stderr
    assert "emulator/" not in result.stderr

    cli.write("src/entry.py", "def x(:\n")
    result = cli("run", "scenario.py", code=2)
    assert "SyntaxError: invalid syntax" in result.stderr
    assert "    def x(:\n" in result.stderr


def test_without_any_config_it_says_where_it_looked(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("alone")
    (folder / "alone.py").write_text("async def scenario(emulator): ...\n")
    result = cli("run", str(folder / "alone.py"), code=2)
    assert f"at or above {folder}; give one with --config" in result.stderr


@pytest.mark.parametrize(
    ("body", "ending"),
    [
        ("raise SystemExit(3)", "SystemExit"),
        ("raise BaseException('x')", "BaseException"),
        ("import pytest; pytest.fail('no')", "Failed"),
        ("import pytest; pytest.skip('no')", "Skipped"),
        ("import asyncio; asyncio.current_task().cancel(); await asyncio.sleep(0)", "Cancelled"),
    ],
)
def test_whatever_a_scenario_raises_fails_the_run(cli: Cli, body: str, ending: str) -> None:
    cli.write("bad.py", f"async def scenario(emulator):\n    {body}\n")
    result = cli("run", "bad.py", code=1)
    assert f"\nfailed: {ending}" in result.stdout
    assert 'File "bad.py", line 2, in scenario' in result.stdout


def test_a_file_that_cannot_be_written_after_all_loses_no_result(cli: Cli) -> None:
    text = """
    from pathlib import Path
    async def scenario(emulator):
        Path("out").rmdir()
    """
    cli.write("removes.py", text)
    (cli.path / "out").mkdir()
    files = ("--trace", "out/t.jsonl", "--html", "t.html")
    result = cli("run", "removes.py", *files, code=2)
    assert "passed: 0 events" in result.stdout
    assert (
        result.stderr
        == "Error: --trace: out/t.jsonl cannot be written: No such file or directory\n"
    )
    assert (cli.path / "t.html").exists()


def test_escape_sequences_do_not_reach_the_terminal(cli: Cli) -> None:
    cli.write("bad.py", "async def scenario(emulator):\n    raise ValueError('\\x1b[31m\\u202e')\n")
    result = cli("run", "bad.py", code=1)
    assert "ValueError: \\x1b[31m\\u202e" in result.stdout
    assert "\x1b" not in result.stdout


def test_what_still_goes_on_at_the_end_is_not_lost_in_the_report(cli: Cli) -> None:
    entry = """
    import asyncio
    from workers import Response, WorkerEntrypoint
    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            self.ctx.waitUntil(asyncio.sleep(20))
            return Response("ok")
    """
    cli.write("src/entry.py", entry)
    cli.write("early.py", "async def scenario(emulator):\n    await emulator.fetch('/')\n")
    result = cli("run", "early.py", "--trace", "t.jsonl", code=0)
    assert "wait_until" in result.stdout
    assert " lost " not in result.stdout
    assert '"lost"' not in (cli.path / "t.jsonl").read_text()


def test_a_worker_may_be_a_class_of_the_scenario_file(cli: Cli) -> None:
    text = """
    from workers import Response, WorkerEntrypoint

    class Worker(WorkerEntrypoint):
        async def fetch(self, request):
            return Response("hello")

    CONFIG = {"main": Worker}

    async def scenario(emulator):
        assert (await emulator.fetch("/")).text == "hello"
    """
    cli.write("whole.py", text)
    assert "passed: 2 events" in cli("run", "whole.py", code=0).stdout


def test_groups_and_causes_are_shown_with_the_users_lines(cli: Cli) -> None:
    text = """
    import asyncio
    async def fails():
        raise ValueError("inner")
    async def scenario(emulator):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
        except ExceptionGroup as error:
            raise RuntimeError("outer") from error
    """
    cli.write("groups.py", text)
    out = cli("run", "groups.py", code=1).stdout
    assert "  | ValueError: inner" in out
    assert "RuntimeError: outer" in out
    assert "/asyncio/" not in out


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_recording_in_the_place_of_a_scenario_is_told_how_to_repeat(
    cli: Cli, command: str
) -> None:
    path = cli.write("desk.jsonl", '{"recording": 1, "plan": null}\n{"at": null}\n')
    result = cli(command, str(path), code=2)
    assert "desk.jsonl is a recording, not a scenario" in result.output
    assert "run --replay" in result.output
