"""What the runs of a marked test share, and that nothing else is left of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

# A Worker with a crash in the middle of a batch, and one that hangs, among its faults.
SWEPT = """
    import gc
    import pytest

    def alive(name):
        return sum(type(one).__name__ == name for one in gc.get_objects())

    runs = []

    @pytest.mark.fault_sweep(classes="all", depth=2, limit=60)
    async def test_signup(emulator, respx_mock):
        runs.append((alive("Kernel"), alive("ConsumerRun"), alive("coroutine")))
        respx_mock.post("https://mail.example/send").respond(202)
        await emulator.fetch("/signup", method="POST", json={"email": "a@b.c"}, retries=2)
        await emulator.settle()

    def test_afterwards():
        # The runs that are reported come last, and are no part of the sweep.
        kernels, consumers, coroutines = zip(*runs[:62], strict=True)
        assert set(kernels) == {1}
        # What was frozen goes every few runs; the coroutine that is left is the test's own.
        assert max(coroutines) > 20
        assert (max(consumers), min(consumers[-8:]), min(coroutines[-8:])) == (3, 0, 1)
"""
COUNTS_LOADS = """
    import pytest
    from emulator import config

    loads = []

    @pytest.fixture(autouse=True)
    def counted(monkeypatch):
        load = config.load
        monkeypatch.setattr(config, "load", lambda *a, **o: loads.append(1) or load(*a, **o))

    def pytest_unconfigure():
        print("loads:", len(loads))
"""


def test_nothing_of_a_run_is_alive_in_the_next(project: Project) -> None:
    project.write("test_a.py", SWEPT)
    project.pytest().assert_outcomes(passed=2)


def test_runs_share_a_config_and_the_last_one_reads_it_itself(project: Project) -> None:
    project.write("conftest.py", COUNTS_LOADS)
    project.write("test_a.py", SWEPT)
    result = project.pytest("-k", "test_signup")
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(["loads: 2"])


def test_secrets_that_a_fixture_writes_anew_are_read_anew(project: Project) -> None:
    project.write(
        "test_a.py",
        """
        from pathlib import Path
        import pytest

        marks = []

        @pytest.fixture
        def mark():
            marks.append(f"mark {len(marks)}")
            Path(__file__).with_name(".dev.vars").write_text(f"MARK={marks[-1]}")
            return marks[-1]

        @pytest.mark.fault_sweep(classes="all", limit=5)
        async def test_vars(mark, emulator, respx_mock):
            respx_mock.post("https://mail.example/send").respond(202)
            assert emulator.env.MARK == mark
            await emulator.fetch("/signup", method="POST", json={"email": "a@b.c"}, retries=2)
            await emulator.settle()

        def test_afterwards():
            assert marks == [f"mark {number}" for number in range(8)]
        """,
    )
    project.pytest().assert_outcomes(passed=2)
