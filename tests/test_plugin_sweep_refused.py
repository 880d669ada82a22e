"""Marked tests that cannot be swept: each says why, and what to do; none passes silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.test_plugin_sweep import write

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)


def test_wrong_arguments_of_the_marker_say_what_is_allowed(project: Project) -> None:
    write(
        project,
        """
    ran = []

    @sweep(clases="all")
    async def test_name(emulator): ran.append(1)

    @sweep(2)
    async def test_positional(emulator): ran.append(1)

    @sweep(classes=["platfrom"])
    async def test_class(emulator): ran.append(1)

    @sweep(only=["bacth.emails"])
    async def test_kind(emulator): ran.append(1)

    @sweep(skip=["batch.emails#1:loose_ack"])
    async def test_action(emulator): ran.append(1)

    @sweep(depth=0)
    async def test_depth(emulator): ran.append(1)

    @sweep(limit="3")
    async def test_limit(emulator): ran.append(1)

    @sweep(only=3)
    async def test_type(emulator): ran.append(1)

    def test_none_has_run():
        assert not ran
        """,
    )
    result = project.pytest("-rE")
    result.assert_outcomes(errors=8, passed=1)
    result.stdout.fnmatch_lines_random(
        [
            "fault_sweep has no argument 'clases'; it takes depth, classes, only, skip, limit",
            "fault_sweep takes keyword arguments only, and was given 2 *fault_sweep(depth=2)",
            "fault_sweep: no class of faults is called 'platfrom'; give * 'platform', *",
            'fault_sweep: no kind of site is called "bacth"; did you mean "batch"?',
            'fault_sweep: no action is called "loose_ack" at batch.emails; *"lose_ack"?',
            "fault_sweep: depth is 0; give a whole number from 1",
            "fault_sweep: limit is '3'; give a whole number from 1",
            "ERROR *::test_type - *fault_sweep: *",
        ]
    )


def test_test_without_the_fixture_is_told_to_use_it(project: Project) -> None:
    write(
        project,
        """
    from emulator import Emulator
    import unittest

    @sweep
    def test_nothing(): ...

    @sweep
    def test_own_emulator():
        with Emulator("wrangler.jsonc") as emulator:
            emulator.run(emulator.fetch("/ok"))

    @pytest.fixture(scope="module")
    def shared():
        with Emulator("wrangler.jsonc") as emulator:
            yield emulator

    @sweep
    async def test_shared(shared):
        await shared.fetch("/ok")

    @sweep
    class TestOfUnittest(unittest.TestCase):
        def test_method(self): ...

    class TestWider:
        @pytest.fixture(scope="class")
        def emulator(self):
            with Emulator("wrangler.jsonc") as emulator:
                yield emulator

        @sweep
        def test_wider(self, emulator): ...

    @pytest.fixture
    def client(request):
        return request.getfixturevalue("emulator").client

    @sweep(classes=["request"])
    async def test_asked_for_PASSES(client):
        await client.get("/ok")
        """,
    )
    result = project.pytest("-rEf")
    result.assert_outcomes(errors=5, failed=1)
    told = "fault_sweep: the test does not use the fixture `emulator` of this plugin, *"
    result.stdout.fnmatch_lines(
        [
            *("*ERROR at setup of test_nothing*", told),
            *("*ERROR at setup of test_own_emulator*", told),
            *("*ERROR at setup of test_shared*", told),
            "*ERROR at setup of TestOfUnittest.test_method*",
            "fault_sweep: a test of unittest.TestCase cannot use the fixture `emulator`, *",
            "*ERROR at setup of TestWider.test_wider*",
            "fault_sweep: the fixture `emulator` has the scope 'class' here, *function-scoped*",
            # It was swept, and is not made for a crash of the Worker.
            "*_ test_asked_for_PASSES _*",
            "E*WorkerCrashed*",
        ]
    )


def test_sweep_with_nothing_to_sweep_fails(project: Project) -> None:
    write(
        project,
        """
    @sweep
    async def test_no_site(emulator):
        await emulator.settle()

    @sweep
    async def test_no_class(emulator):
        await emulator.fetch("/ok")

    @sweep(skip=["message.emails", "batch.*", "fetch.*.*"])
    async def test_all_skipped(emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    @sweep(only=["batch.emial"])
    async def test_only_nothing(emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    @sweep(only=["batch.*"], skip=["batch.*#2:lose_ack", "step.*.charge"])
    async def test_a_pattern_that_means_nothing(emulator, respx_mock):
        await sign_up(emulator, respx_mock)
        """,
    )
    result = project.pytest("-rf")
    result.assert_outcomes(failed=5)
    result.stdout.fnmatch_lines(
        [
            "*_ test_no_site _*",
            "fault sweep: nothing to sweep: the scenario met no site *Drop the marker*",
            "*_ test_no_class _*",
            "fault sweep: nothing to sweep: *classes=('platform',)*3 request faults*all*",
            "*_ test_all_skipped _*",
            "fault sweep: nothing to sweep: *",
            "*_ test_only_nothing _*",
            "fault sweep: only='batch.emial' of the marker means no site *, which meets "
            "request.POST./signup, send.emails, message.emails, batch.emails, fetch.POST.*",
            "*_ test_a_pattern_that_means_nothing _*",
            "fault sweep: *skip='step.*.charge' of the marker means no site *",
        ]
    )
    assert "All traceback entries are hidden" not in result.stdout.str()


def test_fixture_that_cannot_be_set_up_again_is_named(project: Project) -> None:
    write(
        project,
        """
    taken = []

    @pytest.fixture
    def port():
        if taken:
            raise OSError("port 8080 is taken")
        taken.append(8080)

    @pytest.fixture
    def server(port, emulator): ...

    @sweep
    async def test_second_time(server, emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    @pytest.fixture(scope="module")
    def licences():
        return [1, 2, 3, 4, 5]

    @pytest.fixture
    def licence(licences):
        return licences.pop()

    @sweep
    async def test_some_time_later(licence, emulator, respx_mock):
        await sign_up(emulator, respx_mock)

    class TestMethod:
        count = 0

        def setup_method(self):
            type(self).count += 1
            assert self.count == 1, "only once"

        @sweep
        async def test_method(self, emulator, respx_mock):
            await sign_up(emulator, respx_mock)

    @pytest.fixture
    def broken():
        raise OSError("never")

    @sweep
    async def test_never(broken, emulator): ...
        """,
    )
    result = project.pytest("-rE")
    result.assert_outcomes(errors=4)
    again = "was set up for a run before, and cannot be set up again at test_a.py:*"
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of test_second_time*",
            f"fault_sweep: the fixture 'port' {again}let the teardown undo what the set-up did*",
            "OSError: port 8080 is taken",
            "*ERROR at setup of test_some_time_later*",
            f"fault_sweep: the fixture 'licence' {again}",
            "IndexError: pop from empty list",
            "*- fault sweep -*",
            "*ERROR at setup of TestMethod.test_method*",
            f"fault_sweep: the fixture '*setup_method*' {again}",
            "*ERROR at setup of test_never*",
            "E*OSError: never",
            "The test fails without any fault, so no fault was tried.",
        ]
    )
