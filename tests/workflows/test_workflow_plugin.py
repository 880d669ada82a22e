"""Workflows in a project's own tests: fixture, marker, options, findings, reports."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.pytester import RunResult

    from tests.conftest import Project

pytest_plugins = ("pytester",)

CONFIG = """
{
  "name": "signup", "main": "src/entry.py", "compatibility_date": "2026-09-01",
  "compatibility_flags": ["python_workers"],
  "workflows": [
    {"binding": "ONBOARDING", "name": "onboarding", "class_name": "Onboarding"},
  ],
}
"""
WORKER = """
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint, fetch


class Onboarding(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do("create account")
        async def create_account(ctx):
            return await post("accounts")

        @step.do("welcome mail")
        async def welcome(ctx):
            return await post("mails")

        await create_account()
        await step.sleep("trial", "30 days")
        await welcome()
        approval = await step.wait_for_event("approval", "approved", timeout="1 week")
        return approval["payload"]


async def post(what):
    response = await fetch(f"https://api.example/{what}", method="POST")
    if response.status >= 400:
        raise RuntimeError(f"{what}: {response.status}")
    return response.status


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        instance = await self.env.ONBOARDING.create({"id": "ada"})
        return Response.json({"id": instance.id}, status=202)
"""


@pytest.fixture
def onboarding(project: Project) -> Project:
    """A project whose Worker has the Workflow `onboarding`."""
    project.write("wrangler.jsonc", CONFIG)
    project.write("src/entry.py", WORKER)
    return project


def lines(result: RunResult, start: str) -> list[str]:
    """Lines of the output that begin so; those of a timeline are indented."""
    return [line for line in result.outlines if line.lstrip().startswith(start)]


TESTS = """
    import pytest
    from emulator import WorkflowFailed

    @pytest.fixture
    def api(respx_mock):
        respx_mock.post("https://api.example/accounts").respond(201)
        respx_mock.post("https://api.example/mails").respond(202)
        return respx_mock

    async def test_thirty_days(emulator, api):
        response = await emulator.fetch("/", method="POST")
        assert response.status_code == 202
        await emulator.settle()
        (instance,) = emulator.workflows["onboarding"].instances
        assert (emulator.now.month, emulator.now.day) == (1, 31)
        await instance.send_event("approved", "yes")
        assert instance.output == "yes"

    def test_in_a_test_without_async(emulator, api):
        instance = emulator.run(emulator.workflows["onboarding"].create("eve"))
        # Each test has its own: that of the one before is not there.
        assert [one.id for one in emulator.workflows["onboarding"].instances] == ["eve"]
        instance.mock_event("approved", "mocked")
        assert emulator.run(instance.result()) == "mocked"

    @pytest.mark.emulator(faults="step.onboarding.create account#1:crash_after")
    async def test_under_a_fault(emulator, api):
        await emulator.workflows["onboarding"].create("ada")
        await emulator.settle()
        accounts = [call for call in api.calls if call.request.url.path == "/accounts"]
        assert len(accounts) == 2

    async def test_failure_of_a_step(emulator, respx_mock):
        respx_mock.post("https://api.example/accounts").respond(500)
        instance = await emulator.workflows["onboarding"].create("ada")
        with pytest.raises(WorkflowFailed, match="accounts: 500"):
            await instance.result()
        assert instance.steps[0].attempts == 6
"""


def test_a_project_s_tests(onboarding: Project) -> None:
    onboarding.write("test_a.py", TESTS)
    onboarding.pytest("-rA").assert_outcomes(passed=4)


@pytest.mark.parametrize("options", [("-p", "no:asyncio"), ("-o", "asyncio_mode=auto")])
def test_in_other_set_ups(onboarding: Project, options: tuple[str, ...]) -> None:
    """Without an async plugin ours runs the coroutines."""
    onboarding.write("test_a.py", TESTS)
    onboarding.pytest(*options, plugins=None).assert_outcomes(passed=4)


FAILING = """
    async def test_one_mail(emulator, respx_mock):
        respx_mock.post("https://api.example/accounts").respond(201)
        mails = respx_mock.post("https://api.example/mails").respond(202)
        await emulator.fetch("/", method="POST")
        await emulator.settle()
        (instance,) = emulator.workflows["onboarding"].instances
        assert instance.status == "waiting"
        assert mails.call_count == 1
"""


def test_a_failing_test_is_reproduced_by_the_line_it_prints(onboarding: Project) -> None:
    """With the timeline, in which the instance and its steps are to be seen."""
    onboarding.write("test_a.py", FAILING)
    onboarding.pytest().assert_outcomes(passed=1)
    plan = "step.onboarding.welcome mail#1:crash_after"
    first = onboarding.pytest("--emulator-faults", plan)
    first.assert_outcomes(failed=1)
    (line,) = lines(first, "reproduce: pytest ")
    arguments = shlex.split(line.removeprefix("reproduce: pytest "))
    assert arguments[arguments.index("--emulator-faults") + 1] == plan
    shown = "\n".join(lines(first, "+"))
    for part in ("onboarding", "ada", "create account", "welcome mail", "trial", plan):
        assert part in shown
    again = onboarding.pytest(*arguments)
    again.assert_outcomes(failed=1)
    assert lines(again, "+") == lines(first, "+")


def test_respx_does_not_insist_on_calls_under_a_plan(onboarding: Project) -> None:
    """The fault keeps the step from its call; `assert_all_called` is not enforced then."""
    onboarding.write(
        "test_a.py",
        """
        async def test_fails(emulator, respx_mock):
            respx_mock.post("https://api.example/accounts").respond(201)
            await emulator.workflows["onboarding"].create("ada")
            await emulator.settle()
        """,
    )
    onboarding.pytest().assert_outcomes(failed=1)  # the mail is not mocked
    plan = "step.onboarding.create account#*:fail"
    onboarding.pytest("--emulator-faults", plan).assert_outcomes(passed=1)


STRICT = """
    import pytest

    async def test_typo_in_a_plan(emulator, respx_mock):
        respx_mock.route().respond(202)
        emulator.faults.add("step.onboarding.create acount#1:fail")
        await emulator.workflows["onboarding"].create("ada")
        await emulator.settle()

    async def test_typo_in_a_mock(emulator, respx_mock):
        respx_mock.route().respond(202)
        emulator.workflows["onboarding"].mock_step_result("create acount", 1)
        await emulator.workflows["onboarding"].create("ada")
        await emulator.settle()

    async def test_denied_request(emulator):
        await emulator.workflows["onboarding"].create("ada")
        await emulator.settle()

    async def test_instance_that_fails_PASSES(emulator, respx_mock):
        respx_mock.route().respond(500)
        await emulator.workflows["onboarding"].create("ada")
        await emulator.settle()
        assert emulator.workflows["onboarding"].instances[0].status == "errored"
"""


def test_findings_end_a_test_or_warn(onboarding: Project) -> None:
    """`fault_not_fired` and `outbound_unmocked` fail; `mock_not_reached` warns, or fails by ini."""
    onboarding.write("test_a.py", STRICT)
    result = onboarding.pytest("-rA")
    result.assert_outcomes(passed=2, failed=2, warnings=1)
    result.stdout.fnmatch_lines_random(
        [
            "*fault_not_fired*step.onboarding.create account (met once)*",
            "*outbound_unmocked*https://api.example/accounts*",
            "*mock_not_reached*create acount*",
        ]
    )
    onboarding.ini("emulator_strict = mock_not_reached")
    again = onboarding.pytest("-rA")
    again.assert_outcomes(passed=3, failed=1, warnings=2)
