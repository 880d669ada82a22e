"""What a failing test's report says, and that its one line reproduces the failure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from _pytest.pytester import RunResult

    from tests.conftest import Project

pytest_plugins = ("pytester",)

FAILING = """
    import pytest

    async def sign_up(emulator, respx_mock):
        mail = respx_mock.post("https://mail.example/send").respond(202)
        await emulator.fetch("/signup", method="POST", json={"email": "a@b.example"})
        await emulator.settle()
        assert mail.call_count == 1

    async def test_clean(emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    @pytest.mark.parametrize("who", ["a friend's $HOME", "b"])
    async def test_in_body(emulator, respx_mock, who):
        emulator.faults.add("batch.emails#1:lose_ack")
        await sign_up(emulator, respx_mock)

    @pytest.mark.emulator(faults="batch.emails#1:lose_ack", seed=3)
    async def test_in_marker(emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    async def test_worker(emulator):
        await emulator.fetch("/log")
        assert (await emulator.fetch("/boom")).text == "ok"

    @pytest.fixture
    def broken(emulator):
        emulator.run(emulator.fetch("/log"))
        raise ValueError("in a fixture")

    async def test_set_up(broken): ...
"""


def lines(result: RunResult, start: str) -> list[str]:
    return [line for line in result.outlines if line.startswith(start)]


def reproduction(result: RunResult) -> list[str]:
    (line,) = lines(result, "reproduce: pytest ")
    return shlex.split(line.removeprefix("reproduce: pytest "))


def timeline(result: RunResult) -> list[str]:
    return lines(result, "+")


def test_line_of_a_fault_from_the_command_line_reproduces_the_failure(project: Project) -> None:
    project.write("tests/test_a.py", FAILING)
    plan = "batch.emails#1:lose_ack"
    first = project.pytest(
        "--emulator-faults", plan, "--emulator-seed=4", "tests/test_a.py::test_clean"
    )
    first.assert_outcomes(failed=1)
    arguments = reproduction(first)
    assert arguments == [
        "tests/test_a.py::test_clean",
        "--emulator-faults",
        plan,
        "--emulator-seed",
        "4",
    ]
    first.stdout.fnmatch_lines(['reproduce: *--emulator-faults "batch.emails#1:lose_ack"*'])
    again = project.pytest(*arguments)
    assert timeline(again) == timeline(first)
    assert lines(again, "E ") == lines(first, "E ")


def test_line_of_a_fault_that_the_test_plans_names_the_test_only(project: Project) -> None:
    project.write("tests/test_a.py", FAILING)
    first = project.pytest("--emulator-seed=3", "tests", "-k", "test_in_body and friend")
    first.assert_outcomes(failed=1)
    arguments = reproduction(first)
    assert arguments == ["tests/test_a.py::test_in_body[a friend's $HOME]", "--emulator-seed", "3"]
    hint = '*for other tests: --emulator-faults "batch.emails#1:lose_ack"'
    first.stdout.fnmatch_lines([hint])
    again = project.pytest(*arguments)
    again.assert_outcomes(failed=1)
    assert timeline(again) == timeline(first)
    # Who pastes the plan all the same gets the same run.
    doubled = project.pytest(*arguments, "--emulator-faults=batch.emails#1:lose_ack")
    assert timeline(doubled) == timeline(first)


def test_traceback_of_a_call_that_raises_ends_at_the_line_of_the_test(project: Project) -> None:
    project.write(
        "tests/test_a.py",
        """
        from emulator import Emulator
        from workers import WorkerEntrypoint
        import asyncio

        class Hangs(WorkerEntrypoint):
            async def fetch(self, request):
                await asyncio.Event().wait()

        def test_hangs():
            with Emulator({"main": Hangs}) as emulator:
                emulator.run(hang(emulator))

        async def hang(emulator):
            await emulator.fetch("/")
        """,
    )
    result = project.pytest("tests/test_a.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([">*await emulator.fetch(*", "E*Stuck*", "*test_a.py:*: Stuck"])
    result.stdout.no_fnmatch_line("*client.py*")


def test_plan_and_seed_of_a_marker_are_not_pasted(project: Project) -> None:
    project.write("tests/test_a.py", FAILING)
    result = project.pytest("tests", "-k", "test_in_marker", "--emulator-seed=3")
    assert reproduction(result) == ["tests/test_a.py::test_in_marker"]


def test_test_is_named_from_where_pytest_was_started(project: Project) -> None:
    project.write("tests/test_a.py", FAILING)
    project.write("elsewhere/keep", "")
    project.pytester.chdir()
    import os

    os.chdir(project.path / "elsewhere")
    result = project.pytest("--rootdir=..", "../tests", "-k", "test_in_marker")
    assert reproduction(result) == ["../tests/test_a.py::test_in_marker"]


def test_report_has_timeline_tracebacks_and_log_lines(project: Project) -> None:
    project.write("tests/test_a.py", FAILING)
    result = project.pytest(
        "-k",
        "test_worker or set_up",
        "--junitxml=junit.xml",
        "--show-capture=no",
    )
    result.assert_outcomes(failed=1, errors=1)
    section = [
        "*- workers-emulator -*",
        "findings",
        "  src/entry.py:*: handler_exception: *ValueError: boom*",
        "virtual time since 2026-01-01T00:00:00.000000Z",
        "+0:00:00.000 *request GET /log *log *a line of the Worker*",
        "*Traceback (most recent call last):",
        '*File "src/entry.py", line *, in fetch',
        '*raise ValueError("boom")',
        "*ValueError: boom",
        "reproduce: pytest tests/test_a.py::test_worker",
    ]
    result.stdout.fnmatch_lines(section)
    result.stdout.fnmatch_lines(["*in a fixture*", *section[:1], "reproduce: *::test_set_up"])
    cases = ElementTree.parse(project.path / "junit.xml").iter("testcase")
    texts = {case.get("name"): case[0].text or "" for case in cases}
    assert "raise ValueError" in texts["test_worker"]
    assert "reproduce: pytest tests/test_a.py::test_worker" in texts["test_worker"]


def test_captured_output_of_the_worker_holds_no_secret(project: Project) -> None:
    project.write(".dev.vars", "API_KEY=sk-live-12345")
    project.write(
        "src/entry.py",
        """
        import logging
        import sys

        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                print("key", self.env.API_KEY)
                print(request.headers["authorization"], file=sys.stderr)
                logging.getLogger("mail").error("log %s", self.env.API_KEY)
                return Response("ok")

            async def queue(self, batch, env, ctx): ...
        """,
    )
    project.write(
        "test_a.py",
        """
        async def test_it(emulator):
            await emulator.fetch("/", headers={"Authorization": "Bearer token-67890"})
            raise AssertionError
        """,
    )
    result = project.pytest("--junitxml=junit.xml", "-o", "junit_logging=all")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Captured stdout call*", "key [[]secret API_KEY]"])
    result.stdout.fnmatch_lines(["*Captured stderr call*", "[[]secret Authorization]"])
    result.stdout.fnmatch_lines(["*Captured log call*", "ERROR*log [[]secret API_KEY]"])
    for text in (result.stdout.str(), (project.path / "junit.xml").read_text("utf-8")):
        assert "sk-live-12345" not in text
        assert "token-67890" not in text.replace('"Bearer token-67890"})', "")


def test_debugger_has_the_emulator_at_hand(project: Project) -> None:
    project.write(
        "test_a.py",
        """
        async def test_finding(emulator):
            await emulator.fetch("/ask")
        def test_not_run(emulator): ...
        """,
    )
    commands = b"p 'code', emulator.findings[0].code\np 'now', emulator.now.year\nq\n"
    result = project.pytest("-x", "--pdb", stdin=commands)
    result.stdout.fnmatch_lines(["*('code', 'outbound_unmocked')", "*('now', 2026)"])
    result.assert_outcomes(failed=1)
