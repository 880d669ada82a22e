"""A test marked `fault_sweep`: its runs, its fixtures, and the one report it ends with."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

# A Worker whose consumer sends mail again with every delivery.
SIGN_UP = """
    import pytest

    sweep = pytest.mark.fault_sweep

    async def sign_up(emulator, respx_mock):
        mail = respx_mock.post("https://mail.example/send").respond(202)
        await emulator.fetch("/signup", method="POST", json={"email": "a@b.example"})
        await emulator.settle()
        return mail
"""
# What strikes there at depth 1: 3 at the message, 4 at the batch, 6 at the request to the mailer.
SINGLE = 13
FAILING = 8
SMALLEST = "message.emails#1:duplicate"


def write(project: Project, body: str, name: str = "test_a.py") -> None:
    project.write(name, SIGN_UP + body)


def test_smallest_failing_plan_is_the_failure_of_the_item(project: Project) -> None:
    write(
        project,
        """
    @sweep
    async def test_once(emulator, respx_mock):
        print("in a run")
        assert (await sign_up(emulator, respx_mock)).call_count == 1
        """,
    )
    result = project.pytest("--junitxml=junit.xml", "--durations=1", "-rf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_a.py F *",
            "*_ test_once _*",
            "    async def test_once(emulator, respx_mock):",
            "E*AssertionError: assert 2 == 1",
            "*- fault sweep -*",
            f"*runs: {FAILING} failures of 1 cause",
            f'*--emulator-faults "{SMALLEST}"',
            "*also fails under:",
            "*message.emails#1:duplicate(1 h)",
            "*+0:00:00.000*message.emails*fault*",
            f"tried: {SINGLE} single faults at 3 sites; *",
            "not tried: 7 request faults",
            f'reproduce: pytest test_a.py::test_once --emulator-faults "{SMALLEST}"',
            "*- Captured stdout call -*",
            "in a run",
            f"FAILED test_a.py::test_once - under {SMALLEST}: AssertionError: assert 2 == 1",
        ]
    )
    # Of all the runs that printed this, one is shown, and one timeline.
    assert result.outlines.count("in a run") == 1
    assert sum("virtual time since" in line for line in result.outlines) == 1
    (case,) = ElementTree.parse(project.path / "junit.xml").iter("testcase")
    assert [child.tag for child in case] == ["failure"]
    assert case[0].get("message", "").startswith(f"under {SMALLEST}: AssertionError: assert 2 == 1")
    assert f'--emulator-faults "{SMALLEST}"' in (case[0].text or "")
    # The time of the whole sweep, of which the last run is a small part.
    (duration,) = [
        line for line in result.outlines if line.endswith("call     test_a.py::test_once")
    ]
    assert float(duration.split("s ")[0]) > 0.05


def test_line_of_the_report_runs_the_test_once_under_its_plan(project: Project) -> None:
    write(
        project,
        """
    @sweep
    async def test_once(emulator, respx_mock):
        with open("runs", "a") as runs:
            runs.write(f"{emulator.faults.plan}\\n")
        assert (await sign_up(emulator, respx_mock)).call_count == 1
        """,
    )
    first = project.pytest("--emulator-seed=3")
    (line,) = [line for line in first.outlines if line.startswith("reproduce: pytest ")]
    arguments = shlex.split(line.removeprefix("reproduce: pytest "))
    assert arguments[-2:] == ["--emulator-seed", "3"]
    runs = project.path / "runs"
    runs.unlink()
    again = project.pytest(*arguments)
    again.assert_outcomes(failed=1)
    assert len(runs.read_text().splitlines()) == 1
    again.stdout.fnmatch_lines(["E*AssertionError: assert 2 == 1", "*- workers-emulator -*"])
    again.stdout.no_fnmatch_line("*- fault sweep -*")


def test_sweep_that_finds_nothing_passes_and_says_what_it_tried(project: Project) -> None:
    write(
        project,
        """
    @sweep(only=["message.*", "batch.*#1:lose_ack"], limit=3)
    async def test_sent(emulator, respx_mock):
        emulator.sometimes("it rains", False)
        assert (await sign_up(emulator, respx_mock)).call_count >= 1
        """,
    )
    result = project.pytest("-rP", "-W", "error")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*- fault sweep -*",
            "tried: 3 single faults at *; left out by only and skip: *; cut off by the limit: "
            "1 single fault *; never true: it rains",
            "not tried: 7 request faults",
        ]
    )
    result.stdout.no_fnmatch_line("*- workers-emulator -*")


def test_option_off_runs_the_test_once_and_clean(project: Project) -> None:
    write(
        project,
        """
    runs = []

    @sweep
    async def test_once(emulator, respx_mock):
        runs.append(emulator.faults.plan)
        assert (await sign_up(emulator, respx_mock)).call_count == 1

    def test_one_run():
        assert runs == [()]
        """,
    )
    result = project.pytest("--fault-sweep=off", "-W", "error", "--strict-markers")
    result.assert_outcomes(passed=2)


FIXTURES = """
    import logging
    import os

    log = []

    @pytest.fixture(scope="module")
    def wide():
        log.append("wide up")
        yield
        log.append("wide down")

    @pytest.fixture(autouse=True)
    def narrow(wide, emulator, respx_mock, tmp_path, monkeypatch, caplog, capsys, request):
        assert not respx_mock.calls and not emulator.trace.to_jsonl()
        assert not list(tmp_path.iterdir()) and "SWEPT" not in os.environ
        assert not caplog.records and capsys.readouterr().out == ""
        assert request.node.user_properties == [] and request.instance.seen is None
        assert not request.node.get_closest_marker("mine")
        log.append(("up", emulator.faults.plan, id(emulator)))
        yield
        log.append(("down", request.node.rep_call.passed))

    class TestIt:
        seen = None

        @sweep(only=["message.*", "batch.*"])
        async def test_swept(
            self, emulator, respx_mock, tmp_path, monkeypatch, caplog, request, record_property
        ):
            monkeypatch.setenv("SWEPT", "1")
            (tmp_path / "file").write_text("x")
            caplog.set_level(logging.INFO)
            logging.getLogger("mine").info("a line")
            print("printed")
            record_property("key", "value")
            request.applymarker(pytest.mark.mine)
            self.seen = True
            assert (await sign_up(emulator, respx_mock)).call_count >= 1

        def test_afterwards(self):
            *earlier, (last, plan, _) = log
            assert (last, plan) == ("up", ())
            assert earlier.pop(0) == "wide up"
            ups, downs = earlier[::2], earlier[1::2]
            assert [up[0] for up in ups] == ["up"] * len(ups)
            assert downs == [("down", True)] * len(ups)
            # Clean, clean, once per fault, and once to be reported.
            plans = [up[1] for up in ups]
            assert plans[:2] == [(), ()] and plans[-1] == ()
            assert len(plans[2:-1]) == 7 == len(set(plans[2:-1])) and () not in plans[2:-1]
"""


def test_each_run_has_function_scoped_fixtures_of_its_own(project: Project) -> None:
    project.ini("markers = mine: a marker")
    project.write(
        "conftest.py",
        """
        import pytest

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item, call):  # as pytest's documentation has it
            report = yield
            setattr(item, "rep_" + report.when, report)
            return report
        """,
    )
    write(project, FIXTURES)
    result = project.pytest("--junitxml=junit.xml", "-p", "no:randomly")
    result.assert_outcomes(passed=2)
    cases = ElementTree.parse(project.path / "junit.xml").iter("testcase")
    assert [len(list(case.iter("property"))) for case in cases] == [1, 0]


def test_failing_set_up_and_teardown_of_a_run_are_failures_of_its_plan(project: Project) -> None:
    write(
        project,
        """
    @pytest.fixture
    def signed_up(emulator, respx_mock):
        mail = emulator.run(sign_up(emulator, respx_mock))
        assert mail.call_count == 1, "in the set-up"

    @pytest.fixture
    def checked(emulator):
        yield
        assert not emulator.faults.fired, "in the teardown"

    @sweep
    def test_set_up(signed_up): ...

    @sweep
    async def test_teardown(checked, emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    def test_next(): ...
        """,
    )
    result = project.pytest("-rfE")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*_ test_set_up _*",
            "E*AssertionError: in the set-up",
            f"*runs: {FAILING} failures of 1 cause",
            "*AssertionError: in the set-up",
            "*_ test_teardown _*",
            "E*AssertionError: in the teardown",
            f"*runs: {SINGLE} failures of 1 cause",
            f"FAILED *::test_set_up - under {SMALLEST}: AssertionError: in the set-up",
            f"FAILED *::test_teardown - under {SMALLEST}: AssertionError: in the teardown*",
        ]
    )
    result.stdout.no_fnmatch_line("*pytest_sweep*")  # no frame of ours


def test_findings_fail_a_run_as_they_fail_a_test(project: Project) -> None:
    write(
        project,
        """
    @sweep(only=["message.*"])
    @pytest.mark.emulator(config={"main": "lib.py", "queues": {"consumers": [{"queue": "q"}]}})
    async def test_it(emulator):
        await emulator.queues["q"].send("x")
        await emulator.settle()
        """,
    )
    project.write(
        "lib.py",
        """
        import asyncio
        from workers import WorkerEntrypoint

        seen = []

        class Default(WorkerEntrypoint):
            async def queue(self, batch, env, ctx):
                for message in batch.messages:
                    if message.id in seen:
                        asyncio.create_task(asyncio.sleep(60))  # nobody waits for it
                    seen.append(message.id)
        """,
    )
    result = project.pytest("-rf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*the emulator found floating_task",
            "*- fault sweep -*",
            "*--emulator-faults *message.q#1:duplicate*",
        ]
    )


def test_outcome_of_a_clean_run_that_does_not_pass_is_that_of_the_item(project: Project) -> None:
    write(
        project,
        """
    @sweep
    async def test_skip(emulator):
        pytest.skip("not today")

    @sweep
    @pytest.mark.skip(reason="marked")
    async def test_skip_mark(emulator): ...

    @sweep
    async def test_xfail_in_the_body(emulator):
        pytest.xfail("known")

    @sweep
    async def test_fails(emulator, respx_mock):
        assert (await sign_up(emulator, respx_mock)).call_count == 7

    @sweep
    async def test_pytest_fail(emulator):
        pytest.fail("on purpose")

    @pytest.fixture
    def broken():
        raise ValueError("in a fixture")

    @sweep
    async def test_set_up(emulator, broken): ...

    @sweep
    async def test_finding(emulator):
        await emulator.fetch("/ask")
        """,
    )
    result = project.pytest("-rA")
    result.assert_outcomes(failed=3, errors=1, skipped=2, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_set_up*",
            "E*ValueError: in a fixture",
            "*_ test_fails _*",
            "E*assert 1 == 7",
            "*- workers-emulator -*",
            "reproduce: pytest test_a.py::test_fails",
            "*- fault sweep -*",
            "The test fails without any fault, so no fault was tried.",
        ]
    )
    result.stdout.fnmatch_lines_random(
        [
            "SKIPPED [[]1] test_a.py:*: not today",
            "SKIPPED [[]1] test_a.py:*: marked",
            "XFAIL *::test_xfail_in_the_body *known",
            "FAILED *::test_pytest_fail - *on purpose",
            "FAILED *::test_finding - *the emulator found outbound_unmocked",
            "ERROR *::test_set_up - ValueError: in a fixture",
        ]
    )


def test_teardown_that_fails_without_a_fault_fails_once(project: Project) -> None:
    write(
        project,
        """
    @pytest.fixture
    def leaky():
        yield
        raise OSError("in the teardown")

    @sweep
    async def test_each_time(emulator, respx_mock, leaky):
        await sign_up(emulator, respx_mock)
        """,
    )
    result = project.pytest("-rE")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_each_time*",
            "E*OSError: in the teardown",
            "*- fault sweep -*",
            "The test fails without any fault, so no fault was tried.",
            "ERROR *::test_each_time - OSError: in the teardown",
        ]
    )


def test_sessions_end_with_what_passing_sweeps_tried(project: Project) -> None:
    write(
        project,
        """
    @sweep(only=["message.*#1:drop", "message.*#1:duplicate"], classes="all")
    @pytest.mark.parametrize("number", range(21))
    async def test_sent(emulator, respx_mock, number):
        await sign_up(emulator, respx_mock)

    @sweep(only=["message.*"])
    async def test_others_left(emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    def test_other(): ...
        """,
    )
    tried = "tried: 2 single faults at 1 site; left out by only and skip: * faults"
    result = project.pytest()
    result.assert_outcomes(passed=23)
    result.stdout.fnmatch_lines(
        [
            "*= fault sweeps that found nothing =*",
            f"test_a.py::test_sent[[]0]: {tried}",
            f"test_a.py::test_sent[[]19]: {tried}",
            "and 2 more; -rP shows what each tried",
            "*= 23 passed in *",
        ]
    )
    result = project.pytest("-k", "other")
    result.stdout.fnmatch_lines(
        ["test_a.py::test_others_left: tried: 3 single faults at *; not tried: 7 request faults"]
    )
    result.stdout.no_fnmatch_line("*test_other:*")
    for option in ("-q", "-rA"):
        project.pytest(option, "-k", "other").stdout.no_fnmatch_line("*sweeps that found nothing*")


def test_xfail_is_of_the_whole_item(project: Project) -> None:
    """api.md 4: `xfail` and `skip` apply to the whole item."""
    write(
        project,
        """
    @sweep
    @pytest.mark.xfail(strict=True, raises=AssertionError)
    async def test_fails_under_a_fault(emulator, respx_mock):
        assert (await sign_up(emulator, respx_mock)).call_count == 1

    @sweep(only=["message.*"])
    @pytest.mark.xfail(strict=True)
    async def test_passes_FAILS(emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    @sweep(only=["message.*"])
    @pytest.mark.xfail
    async def test_passes_XPASSES(emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    @sweep
    @pytest.mark.xfail(raises=ValueError)
    async def test_other_error_FAILS(emulator, respx_mock):
        assert (await sign_up(emulator, respx_mock)).call_count == 1
        """,
    )
    result = project.pytest("-rA")
    result.assert_outcomes(xfailed=1, xpassed=1, failed=2)
    result.stdout.fnmatch_lines_random(
        [
            "XFAIL *::test_fails_under_a_fault*",
            "XPASS *::test_passes_XPASSES*",
            "FAILED *::test_passes_FAILS*",
            f"FAILED *::test_other_error_FAILS - under {SMALLEST}: AssertionError: assert 2 == 1",
        ]
    )


def test_run_that_is_skipped_under_a_plan_only_counts_as_passed_and_is_told(
    project: Project,
) -> None:
    write(
        project,
        """
    @sweep
    async def test_it(emulator, respx_mock):
        if (await sign_up(emulator, respx_mock)).call_count != 1:
            pytest.skip("not of interest")
        """,
    )
    result = project.pytest("-rP")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            f"tried: {SINGLE} single faults at *",
            f"skipped by the test itself, counted as passed: {FAILING} runs, the first under "
            f"{SMALLEST}",
        ]
    )


def test_sweep_of_a_test_that_is_not_deterministic_fails(project: Project) -> None:
    write(
        project,
        """
    count = 0

    @sweep
    async def test_it(emulator, respx_mock):
        global count
        count += 1
        await emulator.fetch(f"/ok?{count}")
        await sign_up(emulator, respx_mock)

    @pytest.fixture(scope="session")
    def database():
        return []

    @sweep
    async def test_fails_from_then_on(emulator, respx_mock, database):
        database.append("row")
        await sign_up(emulator, respx_mock)
        assert len(database) == 1

    skipped = []

    @sweep
    async def test_skips_at_first(emulator):
        if not skipped:
            skipped.append(1)
            pytest.skip("at first")
        """,
    )
    result = project.pytest("-rfs")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "*nondeterministic: two runs without a fault differed*",
            '*first run: *"http://localhost/ok?1"',
            '*second run: *"http://localhost/ok?2"',
            "no fault was tried: without any the scenario must pass, and do the same each time",
            "*_ test_fails_from_then_on _*",
            "fault sweep: nondeterministic: two runs without a fault differed, only in how *",
            "*first run:  passed",
            "*second run: AssertionError: assert 2 == 1",
            "*left behind: in a module of the test, in a fixture of a wider scope, *",
            "*the test was skipped in its first run without faults and not in its second",
        ]
    )


def test_failure_that_does_not_come_again_fails_all_the_same(project: Project) -> None:
    write(
        project,
        """
    seen = []

    @sweep(only=["message.*#1:duplicate(1 h)"])
    async def test_it(emulator, respx_mock):
        mail = await sign_up(emulator, respx_mock)
        if mail.call_count == 2:
            seen.append(1)
            assert len(seen) > 1, "only once"
        """,
    )
    result = project.pytest("-rf")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: only once",
            "*not reproducible*",
            "FAILED *::test_it - under message.emails#1:duplicate(1 h): AssertionError: only once*",
        ]
    )
