"""A sweep in a session: async plugins, other plugins, what ends it early, what the cache keeps."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.test_plugin_sweep import FAILING, SINGLE, SMALLEST, write

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

LOOP_SCOPE = "asyncio_default_fixture_loop_scope = function"
BATCH_TIMEOUT = "batch.emails#1:timeout"
ONCE = """
    @sweep
    async def test_once(emulator, respx_mock):
        assert (await sign_up(emulator, respx_mock)).call_count == 1
"""
ASYNC_FIXTURES = """
    import asyncio

    log = []

    @pytest.fixture
    async def signed_up(emulator, respx_mock):
        mail = await sign_up(emulator, respx_mock)
        log.append(("up", id(asyncio.get_running_loop())))
        yield mail
        await emulator.settle()
        log.append(("down", id(asyncio.get_running_loop())))

    @sweep(only=["message.*"])
    async def test_swept(signed_up, emulator):
        log.append(("run", id(asyncio.get_running_loop())))
        assert signed_up.call_count >= 1

    @sweep(only=["message.*"])
    async def test_fails(signed_up):
        assert signed_up.call_count == 1

    def test_log():
        # Twice clean, thrice under a fault, once reported; of two failures twice, then clean.
        names = [name for name, _ in log]
        assert names == ["up", "run", "down"] * 6 + ["up", "down"] * (6 + 4 + 1)
        assert all(log[i][1] == log[i + 1][1] == log[i + 2][1] for i in range(0, 18, 3))
"""


def test_async_fixtures_of_pytest_asyncio_are_made_anew(project: Project) -> None:
    project.ini("asyncio_mode = auto", LOOP_SCOPE, "filterwarnings = error")
    write(project, ASYNC_FIXTURES)
    result = project.pytest("-rf", plugins=("asyncio", "respx"))
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"FAILED *::test_fails - under {SMALLEST}: *assert 2 == 1"])


def test_async_fixtures_in_strict_mode_and_in_one_loop_for_the_module(project: Project) -> None:
    project.ini("asyncio_mode = strict", LOOP_SCOPE, "filterwarnings = error")
    marked = ASYNC_FIXTURES.replace("@pytest.fixture", "@pytest_asyncio.fixture")
    marked = marked.replace("    @sweep", "    @pytest.mark.asyncio\n    @sweep")
    write(project, "    import pytest_asyncio\n" + marked)
    one_loop = marked.replace(".asyncio\n", '.asyncio(loop_scope="module")\n').replace(
        "_asyncio.fixture", '_asyncio.fixture(loop_scope="module")'
    )
    write(project, "    import pytest_asyncio\n" + one_loop, "test_b.py")
    write(project, ONCE, "test_c.py")  # run by our own plugin
    result = project.pytest("-rf", plugins=("asyncio", "respx"))
    result.assert_outcomes(passed=4, failed=3)
    result.stdout.fnmatch_lines([f"FAILED test_c.py::test_once - under {SMALLEST}: *"])


def test_async_fixtures_of_anyio_are_made_anew(project: Project) -> None:
    project.ini("filterwarnings = error")
    marked = ASYNC_FIXTURES.replace("    @sweep", "    @pytest.mark.anyio\n    @sweep")
    backend = """
    @pytest.fixture(params=["asyncio"])
    def anyio_backend(request):
        return request.param
    """
    write(project, backend + marked)
    result = project.pytest("-rf", plugins=("anyio", "respx"))
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"FAILED *::test_fails[[]asyncio] - under {SMALLEST}: *"])


def test_items_are_chosen_as_ever(project: Project) -> None:
    write(
        project,
        """
    @pytest.mark.parametrize("count", [1, 9])
    class TestIt:
        @sweep(only=["message.*"])
        async def test_most(self, emulator, respx_mock, count):
            assert (await sign_up(emulator, respx_mock)).call_count <= count

    @pytest.fixture(scope="module", autouse=True)
    def wide():
        yield
        print("torn down at the end")

    @sweep
    async def test_other(emulator): ...
        """,
    )
    for chosen in (["test_a.py::TestIt::test_most[1]"], ["-k", "most and 1"]):
        result = project.pytest(*chosen, "-rf")
        result.assert_outcomes(failed=1, deselected=2 if "-k" in chosen else 0)
        result.stdout.fnmatch_lines([f"FAILED *::test_most[[]1] - under {SMALLEST}: *2 <= 1"])
    result = project.pytest("-x", "-s")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*torn down at the end", "*stopping after 1 failures*"])
    result = project.pytest("test_a.py::TestIt::test_most[9]", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_a.py::TestIt::test_most[[]9] PASSED*"])


def test_debugger_stops_in_the_run_that_is_reported(project: Project) -> None:
    write(project, ONCE)
    commands = (
        b"p 'calls', respx_mock.calls.call_count\np 'plan', str(emulator.faults.plan[0])\nq\n"
    )
    result = project.pytest("--pdb", stdin=commands)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*('calls', 2)", f"*('plan', '{SMALLEST}')"])
    assert result.stdout.str().count("entering PDB") == 1


@pytest.mark.parametrize("ending", ["raise KeyboardInterrupt", 'pytest.exit("enough")'])
def test_sweep_that_is_interrupted_ends_the_session_and_keeps_what_it_found(
    project: Project, ending: str
) -> None:
    write(
        project,
        f"""
    @pytest.fixture
    def narrow():
        yield
        print("narrow is down")

    @sweep
    async def test_it(emulator, respx_mock, narrow):
        if str(emulator.faults.plan).count("lose_ack"):
            {ending}
        assert (await sign_up(emulator, respx_mock)).call_count == 1

    def test_next():
        raise AssertionError("must not run")
        """,
    )
    result = project.pytest("-p", "cacheprovider", "-s")
    assert result.ret == 2
    output = result.stdout.str()
    assert "must not run" not in output
    assert "failed" not in result.outlines[-1]
    # Clean twice, three faults at the message, four at the batch, the last of them interrupted.
    assert output.count("narrow is down") == 2 + 3 + 4
    assert plans_kept(project) == [SMALLEST, "message.emails#1:duplicate(1 h)", BATCH_TIMEOUT]


def plans_kept(project: Project, name: str = "*") -> list[str]:
    folder = project.path / ".pytest_cache" / "v" / "workers-emulator" / "sweep"
    return [
        plan for path in sorted(folder.glob(name)) for plan in json.loads(path.read_text())["plans"]
    ]


def test_plans_that_failed_are_tried_first_the_next_time(project: Project) -> None:
    write(
        project,
        """
    import os

    @sweep(skip=["message.*"])
    async def test_it(emulator, respx_mock):
        with open("plans", "a") as plans:
            plans.write(f"{'; '.join(map(str, emulator.faults.plan))}\\n")
        count = (await sign_up(emulator, respx_mock)).call_count
        assert count >= 1 if "FIXED" in os.environ else count == 1
        """,
    )
    cached = ("-p", "cacheprovider")
    project.pytest(*cached).assert_outcomes(failed=1)
    kept = plans_kept(project)
    assert len(kept) == FAILING - 2
    # One that cannot be read and one whose site is not met are passed over.
    (path,) = (project.path / ".pytest_cache/v/workers-emulator/sweep").iterdir()
    last = [kept[-1], "batch.emails#1:unknown", "batch.other#1:lose_ack", "; "]
    path.write_text(json.dumps({"test": "", "plans": last}))
    plans = project.path / "plans"
    plans.unlink()
    result = project.pytest(*cached)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["tried: *; failed before and not met any more: 1 (batch.other#1:lose_ack); *"]
    )
    assert plans.read_text().splitlines()[:4] == ["", "", kept[-1], "batch.emails#1:crash_before"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIXED", "1")
        result = project.pytest(*cached)
    # fetch...status(503) loses the mail for good, and is the one plan that still fails.
    result.assert_outcomes(failed=1)
    assert plans_kept(project) == ["fetch.POST.mail.example/send#1:status(503)"]


def test_processes_of_xdist_share_a_sweep(project: Project) -> None:
    pytest.importorskip("xdist")
    write(
        project,
        ONCE
        + """
    @sweep(only=["message.*"])
    @pytest.mark.parametrize("least", [1])
    async def test_least(emulator, respx_mock, least):
        assert (await sign_up(emulator, respx_mock)).call_count >= least

    async def test_not_marked(emulator): ...
        """,
    )
    plugins = ("xdist", "respx")
    result = project.pytest("-n", "2", "-v", "-rfP", plugins=plugins)
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines_random(
        [
            "*PASSED test_a.py::test_least[[]1-sweep-1/2] *",
            "*PASSED test_a.py::test_least[[]1-sweep-2/2] *",
            "*PASSED test_a.py::test_not_marked *",
            f"FAILED test_a.py::test_once[[]sweep-1/2] - under {SMALLEST}: *",
            "FAILED test_a.py::test_once[[]sweep-2/2] - under message.emails#1:duplicate(1 h): *",
            f'reproduce: pytest test_a.py::test_once --emulator-faults "{SMALLEST}"',
        ]
    )
    tried = [line for line in result.outlines if line.startswith("tried: ")]
    counts = sorted(int(line.split()[1]) for line in tried)
    assert counts == [1, 2, SINGLE // 2, SINGLE - SINGLE // 2]
    # The id of a shard, as it is printed, means the test.
    result = project.pytest("test_a.py::test_least[1-sweep-2/2]", "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_a.py::test_least[[]1] PASSED *"])
    result = project.pytest("-n", "2", "test_a.py::test_once[sweep-2/2]", plugins=plugins)
    result.assert_outcomes(failed=2)
    # A plan of the command line is run once, by one process.
    result = project.pytest("-n", "2", "--emulator-faults", SMALLEST, "-k", "once", plugins=plugins)
    result.assert_outcomes(failed=1)


def test_xfail_and_skip_are_of_the_whole_sweep_under_xdist(project: Project) -> None:
    """api.md 4: a share of the plans that finds nothing is no unexpected pass."""
    pytest.importorskip("xdist")
    write(
        project,
        """
    @sweep(only=["batch.emails#1:lose_ack"])
    @pytest.mark.xfail(strict=True)
    async def test_fails_under_one_plan(emulator, respx_mock):
        assert (await sign_up(emulator, respx_mock)).call_count == 1

    @sweep
    @pytest.mark.skip(reason="not today")
    async def test_skipped(emulator): ...

    @sweep(only=["batch.emails#1:lose_ack"])
    async def test_sent(emulator, respx_mock):
        await sign_up(emulator, respx_mock)
        """,
    )
    result = project.pytest("-n", "3", plugins=("xdist", "respx"))
    result.assert_outcomes(xfailed=1, skipped=1, passed=3)
    result.stdout.fnmatch_lines_random(
        [
            "test_a.py::test_sent[[]sweep-1/3]: tried: 1 single fault at 1 site, shard 1 of 3; *",
            "test_a.py::test_sent[[]sweep-2/3]: tried: nothing; there is no share for shard 2; *"
            "; not tried: 7 request faults",
        ]
    )


def test_last_failed_knows_a_test_and_its_shards(project: Project) -> None:
    pytest.importorskip("xdist")
    write(project, ONCE + "\n    def test_passes(): ...\n")
    cached, plugins = ("-p", "cacheprovider"), ("xdist", "respx")
    failed = project.path / ".pytest_cache" / "v" / "cache" / "lastfailed"

    project.pytest(*cached, "-n", "2", plugins=plugins).assert_outcomes(passed=1, failed=2)
    assert len(json.loads(failed.read_text())) == 2
    project.pytest(*cached, "--lf").assert_outcomes(failed=1, deselected=1)
    assert list(json.loads(failed.read_text())) == ["test_a.py::test_once"]
    result = project.pytest(*cached, "--lf", "-n", "2", plugins=plugins)
    result.assert_outcomes(failed=2)
    assert len(json.loads(failed.read_text())) == 2
    write(project, ONCE.replace("== 1", ">= 0") + "\n    def test_passes(): ...\n")
    project.pytest(*cached, "--lf").assert_outcomes(passed=1, deselected=1)
    assert not failed.exists() or not json.loads(failed.read_text())


def test_time_out_is_of_each_run(project: Project) -> None:
    write(
        project,
        """
    import time
    import emulator.emulator, emulator.sweeping.search  # takes its time, too

    @sweep
    @pytest.mark.timeout(1)
    async def test_long(emulator, respx_mock):
        await sign_up(emulator, respx_mock)
        time.sleep(0.2)

    @sweep(only=["message.*"])
    @pytest.mark.timeout(0.5, method="signal")
    async def test_hangs(emulator, respx_mock):
        if (await sign_up(emulator, respx_mock)).call_count == 2:
            while True: pass
        """,
    )
    result = project.pytest("-rf", plugins=("respx", "timeout"))
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"FAILED *::test_hangs - under {SMALLEST}: *Timeout*0.5*"])


def test_warnings_are_those_of_one_run(project: Project) -> None:
    write(
        project,
        """
    import warnings

    @sweep(only=["message.*"])
    async def test_warns(emulator, respx_mock):
        warnings.warn("once", DeprecationWarning)
        await sign_up(emulator, respx_mock)

    @sweep
    async def test_finding(emulator, respx_mock):
        await emulator.fetch("/boom")
        await sign_up(emulator, respx_mock)
        """,
    )
    result = project.pytest()
    result.assert_outcomes(passed=2, warnings=2)
    result = project.pytest("-W", "error::emulator.pytest_plugin.FindingWarning", "-k", "finding")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*the emulator found handler_exception", "The test fails without any fault, *"]
    )


def test_progress_is_shown_on_a_terminal(project: Project) -> None:
    pytest.importorskip("pty")
    write(project, ONCE)
    spawn = "import pty, sys; sys.exit(pty.spawn([sys.executable, '-m', 'pytest', *sys.argv[1:]]))"
    plugins = ("-p", "workers-emulator", "-p", "respx", "-p", "no:cacheprovider")
    for options, shown in (((), True), (("-q",), False)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            patch.setenv("TERM", "xterm")
            result = project.pytester.run(sys.executable, "-c", spawn, *plugins, *options)
        assert ("pytest_sweep: 9/" in result.stdout.str()) is shown
        assert "test_once" in result.stdout.str()
    # A file, or a pipe, holds none of it.
    assert "pytest_sweep" not in project.pytest().stdout.str()


def test_memory_does_not_grow_with_the_runs(project: Project) -> None:
    write(
        project,
        """
    import gc
    import sys
    import weakref

    alive = weakref.WeakSet()
    blocks, most = [], []

    # Not the crashes inside a call, which keep what they froze.
    @sweep(depth=5, only=["message.*", "batch.*#*:lose_ack", "batch.*#*:crash_before"])
    async def test_many(emulator, respx_mock, tmp_path, caplog, request):
        print("x" * 5_000)
        alive.add(emulator)
        most.append(len(alive))
        assert len(request.node._report_sections) < 5
        if len(most) % 60 == 0:
            gc.collect()
            blocks.append(sys.getallocatedblocks())
        await sign_up(emulator, respx_mock)

    def test_little():
        assert len(most) > 180 and max(most) < 40
        assert (blocks[2] - blocks[1]) / 60 < 200, blocks  # of memory, for each run
        """,
    )
    project.pytest().assert_outcomes(passed=2)
