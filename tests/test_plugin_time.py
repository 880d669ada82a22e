"""Virtual time in tests, and what must stay real: pytest's own times, time-outs, start-up."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from emulator.door import RuntimeDoor
from emulator.runtime import modules

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

CLOCKS = """
    import asyncio
    import time
    from datetime import UTC, datetime

    import pytest

    VIRTUAL = 1767225600.0
    REAL = time.time()

    def check(emulator, *, virtual, after=0.0):
        assert emulator.now.timestamp() == VIRTUAL + after
        assert float(emulator.run(emulator.fetch("/time")).text) == VIRTUAL + after
        for now in (time.time(), datetime.now(UTC).timestamp(), datetime.now().timestamp()):
            assert now == VIRTUAL + after if virtual else REAL <= now < REAL + 600

    def test_clock(emulator, request):
        virtual = request.config.getini("emulator_wall_clock") == "test"
        check(emulator, virtual=virtual)
        emulator.run(emulator.advance(2.5))
        check(emulator, virtual=virtual, after=2.5)

    def test_real_time_again():
        assert REAL <= time.time() < REAL + 600

    async def test_frozen_inside_the_body(emulator):
        freezegun = pytest.importorskip("freezegun")
        with freezegun.freeze_time("2020-02-02"):
            assert (await emulator.fetch("/ok")).text == "ok"
            await emulator.advance("1 hour")
            assert datetime.now().year == 2020

    @pytest.fixture
    def frozen():
        freezegun = pytest.importorskip("freezegun")
        with freezegun.freeze_time("2020-02-02"):
            yield

    async def test_frozen_before_the_emulator(frozen, emulator):
        assert (await emulator.fetch("/ok")).text == "ok"
        await emulator.advance("1 hour")
        await emulator.settle()
        assert datetime.now().year == 2020
"""


@pytest.mark.parametrize("mode", ["test", "worker"])
def test_wall_clock_is_virtual_where_the_ini_option_says(project: Project, mode: str) -> None:
    project.ini(f"emulator_wall_clock = {mode}", "filterwarnings = error")
    project.write("test_a.py", CLOCKS)
    project.pytest().assert_outcomes(passed=4)


def test_times_that_pytest_reports_are_real(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import json

        stamps = []

        def pytest_runtest_logreport(report):
            stamps.append([report.when, report.start, report.stop, report.duration])

        def pytest_sessionfinish():
            with open("stamps.json", "w") as file:
                json.dump(stamps, file)
        """,
    )
    project.write(
        "test_a.py",
        """
        async def test_years(emulator):
            await emulator.fetch("/ok")
            await emulator.advance("1000 days")
        """,
    )
    before = time.time()
    result = project.pytest("--durations=0", "-vv", "--junitxml=junit.xml")
    after = time.time()
    result.assert_outcomes(passed=1)
    result.stdout.re_match_lines([r"0\.\d\ds call +test_a.py::test_years"])
    stamps = json.loads((project.path / "stamps.json").read_text())
    assert [when for when, *_ in stamps] == ["setup", "call", "teardown"]
    last = before
    for _, start, stop, duration in stamps:
        assert last <= start <= stop <= after
        assert stop - start == pytest.approx(duration, abs=0.001)
        last = start
    suite = next(ElementTree.parse(project.path / "junit.xml").iter("testsuite"))
    assert 0 < float(suite.attrib["time"]) < after - before
    assert 0 <= float(suite[0].attrib["time"]) < after - before


def test_timeout_reaches_the_test_and_leaves_the_next_one_clean(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    project.write(
        "test_a.py",
        """
        import asyncio, os, sys, time
        import pytest

        before = (os.urandom, time.monotonic, time.perf_counter)

        @pytest.mark.timeout(0.3, method="signal", func_only=True)
        async def test_spin_TIMES_OUT(emulator):
            await emulator.fetch("/spin")

        @pytest.mark.timeout(0.3, method="signal", func_only=True)
        async def test_wait_TIMES_OUT(emulator):
            with emulator.hold():
                await asyncio.Event().wait()

        async def test_next(emulator):
            assert (os.urandom, time.monotonic, time.perf_counter) == before
            assert (await emulator.fetch("/log")).text == "logged"
            await emulator.advance(5)

        def test_output_is_ours_again(capsys):
            print("mine")
            assert capsys.readouterr().out == "mine\\n"
        """,
    )
    result = project.pytest("-rf", plugins=("timeout",))
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines_random(
        ["FAILED *::test_spin_TIMES_OUT - *Timeout*", "FAILED *::test_wait_TIMES_OUT - *Timeout*"]
    )


START_UP = """
    import sys
    import pytest
    before = set(sys.modules)
    import _workers_emulator_pytest as entry
    entry.plugin.pytest_load_initial_conftests()
    print(*(sys.modules.keys() - before))
    import workers
    assert workers.Response and "emulator.runtime.workers" in sys.modules
"""


def test_start_of_pytest_imports_the_plugin_only(project: Project) -> None:
    script = project.write("start.py", START_UP)
    result = project.pytester.run(sys.executable, script)
    assert result.ret == 0
    assert set(result.stdout.str().split()) == {
        "_workers_emulator_pytest",
        "emulator",
        "emulator.door",
        "emulator.pytest_plugin",
    }


def test_names_that_wait_for_their_import_are_those_that_are_served() -> None:
    assert RuntimeDoor.names == modules._SERVED
