"""How findings end a test: as its failure, as a warning, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

STRICT = """
    import pytest

    async def ask(emulator):
        await emulator.fetch("/ask")

    async def test_once(emulator):
        await ask(emulator)

    async def test_four_times(emulator):
        await emulator.fetch("/signup", method="POST", json={"email": "a@b.example"})
        await emulator.settle()

    async def test_expected_PASSES(emulator):
        emulator.findings.expect("outbound_unmocked")
        emulator.findings.expect("handler_exception")
        await ask(emulator)

    @pytest.mark.xfail(strict=True)
    async def test_xfail_XFAILS(emulator):
        await ask(emulator)

    @pytest.mark.xfail(raises=AssertionError)
    async def test_xfail_for_another_reason(emulator):
        await ask(emulator)

    async def test_skip_in_the_body_SKIPS(emulator):
        await ask(emulator)
        pytest.skip("enough seen")

    async def test_failure_of_its_own(emulator):
        await ask(emulator)
        assert False, "the test's own"

    async def test_fault_that_never_fires(emulator):
        emulator.faults.add("batch.emials#1:lose_ack")
"""
TOLERATED = """
    import pytest

    async def test_boom(emulator):
        await emulator.fetch("/boom")
        await emulator.fetch("/boom", method="PUT")

    @pytest.mark.xfail(strict=True)
    async def test_xpass(emulator):
        await emulator.fetch("/boom")
"""


def test_strict_findings_fail_the_test_as_one_item(project: Project) -> None:
    project.write("test_a.py", STRICT)
    result = project.pytest("-rA")
    result.assert_outcomes(passed=1, failed=5, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_four_times _*",
            "the emulator found outbound_unmocked",
            "  src/entry.py:*: outbound_unmocked: POST https://mail.example/send *: 4 times,"
            " the last at 2026-01-01T00:00:20.000000Z",
            'Mark one as intended with emulator.findings.expect("code").',
            "*_ test_failure_of_its_own _*",
            "E*the test's own*",
            "findings",
            "  src/entry.py:*: outbound_unmocked: *",
        ]
    )
    result.stdout.fnmatch_lines_random(
        [
            "FAILED test_a.py::test_once - *the emulator found outbound_unmocked",
            "FAILED test_a.py::test_fault_that_never_fires - *the emulator found fault_not_fired",
        ]
    )
    assert "All traceback entries are hidden" not in result.stdout.str()


def test_other_findings_are_warnings(project: Project) -> None:
    project.write("test_a.py", TOLERATED)
    result = project.pytest("-W", "error", "-W", "default::emulator.pytest_plugin.FindingWarning")
    result.assert_outcomes(passed=1, failed=1, warnings=2)
    result.stdout.fnmatch_lines(
        [
            "*XPASS(strict)*",
            "*FindingWarning: src/entry.py:*: handler_exception: *ValueError: boom*: 2 times,*",
        ]
    )


def test_warnings_made_errors_fail_the_test_as_findings_do(project: Project) -> None:
    project.write("test_a.py", TOLERATED)
    result = project.pytest("-W", "error")
    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "the emulator found handler_exception",
            "  src/entry.py:*: handler_exception: *2 times*",
            'handler_exception would be a warning*"default::*.FindingWarning"*',
        ]
    )


def test_ini_option_lists_the_codes_that_fail(project: Project) -> None:
    project.write(
        "test_a.py",
        """
        async def test_boom(emulator):
            await emulator.fetch("/boom")
        async def test_ask(emulator):
            await emulator.fetch("/ask")
        """,
    )
    result = project.pytest(
        "-o", "emulator_strict=handler_exception no_consumer", "-rfw", "-k", "boom"
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED test_a.py::test_boom - *handler_exception"])
    project.pytest("-o", "emulator_strict=").assert_outcomes(passed=2, warnings=3)


def test_respx_asks_for_all_calls_only_without_a_plan(project: Project) -> None:
    project.write(
        "test_a.py",
        """
        import pytest
        import respx

        async def sign_up(emulator):
            await emulator.fetch("/signup", method="POST", json={"email": "a@b.example"})
            await emulator.settle()

        @pytest.mark.respx(assert_all_called=True)
        async def test_fixture_before(respx_mock, emulator):
            respx_mock.post("https://mail.example/send").respond(202)
            await sign_up(emulator)

        @pytest.mark.respx(assert_all_called=True)
        async def test_fixture_after(emulator, respx_mock):
            respx_mock.post("https://mail.example/send").respond(202)
            await sign_up(emulator)

        @respx.mock(assert_all_called=True)
        async def test_decorator(emulator, respx_mock):
            respx_mock.post("https://mail.example/send").respond(202)
            await sign_up(emulator)

        @respx.mock(assert_all_called=True)
        async def test_plan_in_the_body(emulator, respx_mock):
            respx_mock.post("https://mail.example/send").respond(202)
            emulator.faults.add("fetch.POST.mail.example/send#*:fail")
            await sign_up(emulator)

        @respx.mock(assert_all_called=True)
        async def test_without_a_plan_FAILS(emulator, respx_mock):
            respx_mock.post("https://mail.example/send").respond(202)
            emulator.faults.clear()

        @pytest.mark.respx(assert_all_called=True)
        def test_without_emulator_FAILS(respx_mock):
            respx_mock.get("https://never.example/").respond(200)
        """,
    )
    plan = "fetch.POST.mail.example/send#*:fail"
    result = project.pytest("--emulator-faults", plan, "-rfE")
    result.assert_outcomes(passed=5, failed=1, errors=1)
    result.stdout.fnmatch_lines_random(
        ["FAILED *::test_without_a_plan_FAILS *", "ERROR *::test_without_emulator_FAILS *"]
    )
