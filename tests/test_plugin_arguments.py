"""What the fixture's emulator is made of: markers, ini options, the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

# Worker "near" lies beside the tests, "signup" above; each test says what must be true.
MARKERS = """
    import sys
    from datetime import datetime, timezone
    from pathlib import Path

    import hello
    import pytest
    from workers import Response, WorkerEntrypoint

    pytestmark = pytest.mark.emulator(seed=1, plan="free")
    START = datetime(2030, 5, 1, tzinfo=timezone.utc)

    class Hello(WorkerEntrypoint):
        async def fetch(self, request):
            return Response(f"hello from {self.env.NAME}")

    def name(emulator):
        return ", ".join(emulator.envs)

    def test_nearest_config_above_the_test_file(emulator):
        assert name(emulator) == "signup"

    @pytest.mark.emulator(start=START)
    class TestClass:
        def test_arguments_of_class_and_module_are_merged(self, emulator):
            assert emulator.now == START
            assert emulator._kernel.seed == (4 if type(self) is TestSubclass else 1)

        @pytest.mark.emulator(seed=2)
        def test_closest_wins_argument_by_argument(self, emulator):
            assert emulator.now == START and emulator._kernel.seed == 2

        @pytest.mark.parametrize(
            "seed", [pytest.param(3, marks=pytest.mark.emulator(seed=3)), 2]
        )
        @pytest.mark.emulator(seed=2)
        def test_parameter_set_is_closer_than_the_test(self, emulator, seed):
            assert emulator._kernel.seed == seed

    @pytest.mark.emulator(seed=4)
    class TestSubclass(TestClass):
        def test_class_is_closer_than_its_base(self, emulator):
            assert emulator.now == START and emulator._kernel.seed == 4

    @pytest.mark.emulator(config="near/wrangler.toml")
    def test_config_relative_to_the_test_file(emulator):
        assert name(emulator) == "near"
        assert emulator.run(emulator.fetch("/ok")).text == "ok"

    @pytest.mark.emulator(config={"main": "near/worker.py", "vars": {"NAME": "a mapping"}})
    def test_main_relative_to_the_test_file(emulator):
        assert name(emulator) == "worker"
        assert emulator.run(emulator.fetch("/ok")).text == "ok"

    @pytest.mark.parametrize("main", [
        pytest.param(0, marks=pytest.mark.emulator(config={"main": Hello, "vars": {"NAME": "x"}})),
        pytest.param(1, marks=pytest.mark.emulator(config={"main": hello, "vars": {"NAME": "x"}})),
    ])
    def test_main_may_be_a_class_or_a_module(emulator, main):
        assert emulator.run(emulator.fetch("/")).text == "hello from x"

    @pytest.mark.emulator(
        config=[
            {"name": "first", "main": Hello, "vars": {"NAME": "first"}},
            Path("near/wrangler.toml"),
        ]
    )
    def test_config_may_be_a_list(emulator):
        assert name(emulator) == "first, near"
        assert emulator.run(emulator.fetch("/ok", worker="near")).text == "ok"

    @pytest.mark.emulator(state="durable.sqlite")
    def test_state_relative_to_the_test_file(emulator):
        emulator.close()
        assert (Path(__file__).parent / "durable.sqlite").exists()

    @pytest.mark.emulator(faults=["message.emails#1:delay(30 s)", "batch.emails#1:lose_ack"])
    def test_faults_of_marker_and_command_line_are_one_plan(emulator):
        plan = ["message.emails#1:delay(30 s)", "batch.emails#1:lose_ack"]
        if emulator.faults.plan[2:]:
            plan.append("batch.emails#2:split")
        assert [str(fault) for fault in emulator.faults.plan] == plan
        emulator.faults.clear()

    @pytest.mark.emulator(sede=1)
    def test_unknown_argument_ERRS(emulator): ...

    @pytest.mark.emulator("wrangler.jsonc")
    def test_positional_argument_ERRS(emulator): ...

    @pytest.mark.emulator(config="nowhere.toml")
    def test_missing_config_ERRS(emulator): ...

    @pytest.mark.emulator(faults="batch.emails#1:lose_akc")
    def test_wrong_plan_ERRS(emulator): ...

    @pytest.mark.emulator(config={"main": "near/broken.py"})
    def test_broken_worker_ERRS(emulator): ...
"""
ERRORS = [
    "the emulator marker has no argument 'sede'; it takes those of Emulator: config, start, *",
    "the emulator marker takes keyword arguments only, and was given 'wrangler.jsonc' *",
    "ConfigError: *nowhere.toml: there is no such file*",
    "PlanError: *lose_akc*",
    "WorkerLoadError: *near/broken.py*",
    '  File "deep/tests/near/broken.py", line 1, in <module>',
]


def write_near(project: Project) -> None:
    project.write(
        "deep/tests/near/wrangler.toml",
        """
        name = "near"
        main = "worker.py"
        compatibility_date = "2026-09-01"
        compatibility_flags = ["python_workers"]
        """,
    )
    project.write("deep/tests/near/worker.py", (project.path / "src/entry.py").read_text())
    project.write("deep/tests/near/broken.py", "import nowhere\n")
    project.write(
        "deep/tests/hello.py",
        """
        from workers import Response, WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                return Response(f"hello from {self.env.NAME}")
        """,
    )


def test_markers_give_the_arguments_closest_first(project: Project) -> None:
    project.ini("filterwarnings = error", "addopts = --strict-markers")
    write_near(project)
    project.write("deep/tests/test_markers.py", MARKERS)
    result = project.pytest()
    result.assert_outcomes(passed=17, errors=5)
    result.stdout.fnmatch_lines_random(ERRORS)
    assert "pytest_plugin.py" not in result.stdout.str()


def test_command_line_adds_faults_and_decides_the_seed(project: Project) -> None:
    write_near(project)
    project.write("deep/tests/test_markers.py", MARKERS)
    project.write(
        "test_seed.py",
        """
        import pytest

        @pytest.mark.emulator(seed=5)
        def test_seed(emulator):
            assert emulator._kernel.seed == 7
            emulator.faults.clear()
        """,
    )
    plan = "batch.emails#1:lose_ack; batch.emails#2:split"
    result = project.pytest(
        *("--emulator-seed=7", f"--emulator-faults={plan}", "test_seed.py"),
        "deep/tests/test_markers.py::test_faults_of_marker_and_command_line_are_one_plan",
    )
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"emulator faults: {plan}", "emulator seed: 7"])


def test_ini_option_names_the_config_relative_to_rootdir(project: Project) -> None:
    write_near(project)
    project.ini("emulator_config = deep/tests/near/wrangler.toml")
    project.write(
        "some/test_ini.py", 'def test_a(emulator): assert list(emulator.envs) == ["near"]\n'
    )
    project.pytest("some").assert_outcomes(passed=1)


def test_project_without_a_config_is_told_what_to_set(project: Project) -> None:
    (project.path / "wrangler.jsonc").unlink()
    project.write("test_a.py", "def test_a(emulator): ...\n")
    result = project.pytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "there is no wrangler.jsonc, wrangler.json or wrangler.toml at or above "
            f"{project.path}; set the ini option emulator_config*"
        ]
    )


def test_invalid_plan_is_a_usage_error_before_any_test_runs(project: Project) -> None:
    project.write("test_a.py", "raise SystemExit('collected')\n")
    result = project.pytest("--emulator-faults", "batch.emails#1:lose_akc")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        [
            "ERROR: --emulator-faults: *lose_akc*",
            "    batch.emails#1:lose_akc",
            "*^^^^*",
            "*lose_ack*",
        ]
    )


@pytest.mark.parametrize(
    ("ini", "message"),
    [
        (
            "emulator_strict = floating_tsak",
            "emulator_strict: *floating_tsak*did you mean 'floating_task'*",
        ),
        (
            "emulator_wall_clock = both",
            "emulator_wall_clock is 'both'; it may be 'test' or 'worker'",
        ),
    ],
)
def test_invalid_ini_option_is_a_usage_error(project: Project, ini: str, message: str) -> None:
    project.ini(ini)
    result = project.pytest()
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: {message}"])
