"""A swept test is run once in another pytest, with another PYTHONHASHSEED."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from emulator.sweeping.process import ROLE

if TYPE_CHECKING:
    from tests.conftest import Project

pytest_plugins = ("pytester",)

WORKER = """
from workers import Response, WorkerEntrypoint

TAGS = {f"tag-{number}" for number in range(20)}


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        for tag in TAGS if "unsorted" in request.url else sorted(TAGS):
            print(tag)  # the line
        await self.env.JOBS.send("x")
        return Response("ok")

    async def queue(self, batch, env, ctx):
        pass
"""
HEAD = f"""
import os
import pytest

ELSEWHERE = {ROLE!r} in os.environ
CONFIG = {{
    "main": {{main!r}},
    "queues": {{
        "producers": [{{"binding": "JOBS", "queue": "jobs"}}], "consumers": [{{"queue": "jobs"}}]
    }},
}}
sweep = pytest.mark.fault_sweep(only=["batch.*"])
pytestmark = pytest.mark.emulator(config=CONFIG)


def note(what):
    with open({{log!r}}, "a") as file:
        file.write(f"{{os.getpid()}} {{what}}\\n")


async def go(emulator, path="/"):
    note("run")
    await emulator.fetch(path)
    await emulator.settle()
"""
ONLY = "*determinism was checked in this process only: "


@pytest.fixture(autouse=True)
def _elsewhere(project: Project) -> None:
    project.elsewhere = True


def write(project: Project, body: str, name: str = "test_a.py") -> None:
    project.write("lib.py", WORKER)
    log, main = str(project.path / "log"), str(project.path / "lib.py")
    # Not by `dedent`: a body may have lines of its own without indentation.
    project.path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
    head = HEAD.replace("{log!r}", repr(log)).replace("{main!r}", repr(main))
    head = head.replace("{{", "{").replace("}}", "}")
    project.write(name, head)
    with (project.path / name).open("a") as file:
        file.write(body)


class Log:
    """What the processes noted: which did what, the one that started the other first."""

    def __init__(self, project: Project) -> None:
        lines = (project.path / "log").read_text().splitlines()
        self.lines = [(int(pid), what) for pid, _, what in (line.partition(" ") for line in lines)]
        self.processes = list(dict.fromkeys(pid for pid, _ in self.lines))

    def of(self, index: int) -> list[str]:
        """What the process of this number did, counted from 0 in the order in which they began."""
        return [what for pid, what in self.lines if pid == self.processes[index]]


def test_order_of_a_set_is_found_with_its_line(project: Project) -> None:
    write(
        project,
        """
@sweep
async def test_set(emulator):
    await go(emulator, "/unsorted")

@sweep
async def test_sorted(emulator):
    await go(emulator)
""",
    )
    result = project.pytest("-rfP")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_set _*",
            "fault sweep: nondeterministic: two runs without a fault in processes with another "
            "PYTHONHASHSEED differed, first at event 2",
            "  PYTHONHASHSEED=1: +0:00:00.000 *request GET /unsorted *log *text=tag-*",
            "  PYTHONHASHSEED=2: +0:00:00.000 *request GET /unsorted *log *text=tag-*",
            "  at lib.py:*: print(tag)  # the line",
            "Likely cause: the order of a set, *",
            "*- fault sweep -*",
            "nondeterministic",
            "*_ test_sorted _*",
            "tried: *",
            "FAILED test_a.py::test_set - *nondeterministic*",
        ]
    )
    result.stdout.no_fnmatch_line(f"{ONLY}*")
    result = project.pytest("-o", "emulator_determinism=in-process", "-rP")
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line(f"{ONLY}*")


FIXTURES = """
import asyncio

@pytest.fixture(scope="session", autouse=True)
def wide(tmp_path_factory):
    note("session up")
    yield tmp_path_factory.mktemp("wide")
    note("session down")

@pytest.fixture(scope="module")
def middle(wide):
    note("module up")
    yield []
    note("module down")

@pytest.fixture
async def narrow(emulator, middle):
    await emulator.fetch("/narrow")
    yield emulator.env
    await emulator.fetch("/narrow/down")

@pytest.mark.parametrize("value", [1, "a/b::c[d] e"])
class TestIt:
    @sweep
    async def test_swept(self, emulator, narrow, value, wide, request, tmp_path, capsys, option):
        assert not list(tmp_path.iterdir())
        (tmp_path / "file").write_text("x")
        assert option == "chosen" and request.config.getoption("--choice") == "chosen"
        await go(emulator, f"/{value}?wide={wide}")
        assert "tag-1" in capsys.readouterr().out

    @sweep
    @pytest.mark.skip
    def test_skipped(self, value): ...

@sweep
def test_function(emulator, narrow):
    emulator.run(go(emulator))
"""


def test_test_is_found_again_with_its_fixtures(project: Project) -> None:
    project.ini("asyncio_mode = auto", "asyncio_default_fixture_loop_scope = function")
    project.write(
        "conftest.py",
        """
        import pytest

        def pytest_addoption(parser):
            parser.addoption("--choice", default="none")

        @pytest.fixture
        def option(request):
            return request.config.getoption("--choice")
        """,
    )
    write(project, FIXTURES)
    write(
        project, "\n@sweep\nasync def test_other(emulator):\n    await go(emulator)\n", "test_b.py"
    )
    options = ("--strict-markers", "--strict-config", "-W", "error", "--choice=chosen")
    result = project.pytest("-rP", "-k", "not skipped", *options, plugins=("asyncio", "respx"))
    result.assert_outcomes(passed=4, deselected=2)
    result.stdout.no_fnmatch_line(f"{ONLY}*")
    log = Log(project)
    # The wide fixtures stay from test to test, and are taken down at the end; here they are last.
    assert len(log.processes) == 2
    assert log.of(1) == [
        *("session up", "module up", "run", "run", "run", "module down", "run", "session down")
    ]
    assert log.of(0)[0] == "session up"
    assert log.lines[-1] == (log.processes[0], "session down")


def test_process_that_cannot_run_a_test_fails_nothing(project: Project) -> None:
    write(
        project,
        """
@sweep
async def test_dies(emulator):
    await go(emulator)
    if ELSEWHERE:
        os._exit(3)

@sweep
async def test_next(emulator):
    await go(emulator)

@sweep
async def test_skips(emulator):
    await go(emulator)
    if ELSEWHERE:
        pytest.skip("not there")
""",
    )
    write(
        project,
        """
if ELSEWHERE:
    raise RuntimeError("not to be imported")

@sweep
async def test_it(emulator):
    await go(emulator)
""",
        "test_b.py",
    )
    write(
        project,
        """
if not ELSEWHERE:
    @sweep
    async def test_here_only(emulator):
        await go(emulator)
""",
        "test_c.py",
    )
    result = project.pytest("-rP")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "*_ test_dies _*",
            f"{ONLY}the other process ended with the status 3*",
            "*_ test_next _*",
            "*_ test_skips _*",
            f"{ONLY}processes of their own agree with each other*: first at event 1",
            "  here:  +0:00:00.000     request GET / *",
            "  there: (it had ended: the test was skipped)",
            "*_ test_it _*",
            f"{ONLY}the other process could not collect the test: *not to be imported",
            "*_ test_here_only _*",
            f"{ONLY}the other process could not collect the test: there is none of this name",
        ]
    )
    assert sum("checked in this process only" in line for line in result.outlines) == 4


def test_session_gives_up_on_what_never_works(project: Project) -> None:
    write(
        project,
        """
@sweep
@pytest.mark.parametrize("number", range(5))
async def test_dies(emulator, number):
    await go(emulator)
    if ELSEWHERE:
        os._exit(3)
""",
    )
    result = project.pytest("-rP")
    result.assert_outcomes(passed=5)
    ended = f"{ONLY}the other process ended with the status 3*"
    given_up = f"{ONLY}given up after an earlier test, for which the other process ended *"
    result.stdout.fnmatch_lines([ended, ended, ended, given_up, given_up])
    assert len(Log(project).processes) == 1 + 3


def test_session_gives_up_where_processes_have_nothing_to_say(project: Project) -> None:
    write(
        project,
        """
@sweep
@pytest.mark.parametrize("number", range(3))
async def test_it(emulator, number):
    await go(emulator, "/elsewhere" if ELSEWHERE else "/here")
""",
    )
    result = project.pytest("-rP")
    result.assert_outcomes(passed=3)
    apart = f"{ONLY}processes of their own agree with each other and not with this one*"
    given_up = f"{ONLY}given up after earlier sweeps that did something else in a process of*"
    result.stdout.fnmatch_lines([apart, "*/here*", "*/elsewhere*", apart, given_up])


def test_process_that_hangs_is_ended_and_no_other_started(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import os
        from emulator.sweeping import process

        if process.ROLE not in os.environ:
            answer = process.OtherProcess.answer

            def impatient(self, number, doing):
                if doing.startswith("running"):
                    process.PATIENCE = 0.1
                return answer(self, number, doing)

            process.OtherProcess.answer = impatient
        """,
    )
    write(
        project,
        """
@sweep
@pytest.mark.parametrize("number", range(2))
async def test_hangs(emulator, number):
    await go(emulator)
    while ELSEWHERE: pass
""",
    )
    result = project.pytest("-rP")
    result.assert_outcomes(passed=2)
    why = "the other process was running the scenario for 0.1 s, and not done with it"
    result.stdout.fnmatch_lines([f"{ONLY}{why}", f"{ONLY}given up after an earlier test, *{why}"])


def test_one_of_several_shards_asks_the_other_process(project: Project) -> None:
    pytest.importorskip("xdist")
    write(
        project,
        """
@sweep
@pytest.mark.parametrize("number", range(3))
async def test_it(emulator, number, worker_id):
    assert worker_id.startswith("gw100" if ELSEWHERE else "gw")
    note(f"test {number} of {'another' if ELSEWHERE else 'gw'}")
    await go(emulator)

@sweep
async def test_set(emulator):
    await go(emulator, "/unsorted")
""",
    )
    result = project.pytest("-n", "2", "-rfP", plugins=("xdist", "respx"))
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["FAILED *::test_set[[]sweep-1/2] - *nondeterministic*"])
    result.stdout.no_fnmatch_line(f"{ONLY}*")
    elsewhere = [what for _, what in Log(project).lines if what.endswith("of another")]
    assert sorted(elsewhere) == [f"test {number} of another" for number in range(3)]


def test_files_of_the_session_stay_its_own(project: Project) -> None:
    project.ini("log_file = logs.txt", "log_file_level = INFO", "junit_family = xunit2")
    project.write(
        "conftest.py",
        """
        def pytest_sessionfinish(session):
            with open("results", "w") as file:  # as a project may
                file.write(str(session.testscollected))
        """,
    )
    write(
        project,
        """
import logging

def test_first():
    logging.getLogger().warning("before")

@sweep
async def test_it(emulator):
    await go(emulator)

def test_fails():
    assert False

def test_that_is_not_by_chance_here(): ...

def test_after_the_step(): ...
""",
    )
    options = ("-p", "cacheprovider", "-p", "stepwise", "--junitxml=junit.xml", "--stepwise")
    result = project.pytest(*options, "-k", "not by", "--deselect=test_b.py", "-rP")
    result.assert_outcomes(passed=2, failed=1, deselected=1)
    assert len(Log(project).processes) == 2
    cache = project.path / ".pytest_cache" / "v" / "cache"
    assert list(json.loads((cache / "lastfailed").read_text())) == ["test_a.py::test_fails"]
    assert json.loads((cache / "stepwise").read_text())["last_failed"] == "test_a.py::test_fails"
    cases = ElementTree.parse(project.path / "junit.xml").iter("testcase")
    assert [case.get("name") for case in cases] == ["test_first", "test_it", "test_fails"]
    assert "before" in (project.path / "logs.txt").read_text()
    assert (project.path / "results").read_text() == "4"


def test_wait_for_the_other_process_is_no_time_of_the_test(project: Project) -> None:
    write(
        project,
        """
import time
import emulator.emulator, emulator.sweeping.search, emulator.sweeping.check  # take their time

if ELSEWHERE:
    time.sleep(1.5)

@sweep
@pytest.mark.timeout(1)
async def test_it(emulator):
    await go(emulator)
    while ELSEWHERE and time.thread_time() < 0: pass
""",
    )
    result = project.pytest("-rP", plugins=("respx", "timeout"))
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line(f"{ONLY}*")
    assert len(Log(project).processes) == 2


def test_end_of_the_other_process_is_no_time_of_the_last_test(project: Project) -> None:
    write(
        project,
        """
import time

@pytest.fixture(scope="session")
def slow():
    yield
    if ELSEWHERE:
        time.sleep(5)

@sweep
async def test_it(emulator, slow):
    await go(emulator)

@pytest.mark.timeout(4.5)
def test_last(): ...
""",
    )
    result = project.pytest("-rP", plugins=("respx", "timeout"))
    result.assert_outcomes(passed=2)
    assert result.ret == 0
    write(
        project,
        "\n@sweep\n@pytest.mark.timeout(4.5)\nasync def test_last(emulator, slow):\n"
        "    await go(emulator)\n" + "\n@pytest.fixture(scope='session')\ndef slow():\n"
        "    yield\n    if ELSEWHERE:\n        import time\n        time.sleep(5)\n",
    )
    result = project.pytest("-rP", plugins=("respx", "timeout"))
    result.assert_outcomes(passed=1)
    assert result.ret == 0


def test_other_process_has_no_summary_to_write(project: Project) -> None:
    """What plugins say at the end may take as long as all the rest."""
    project.write(
        "conftest.py",
        """
        import os

        def pytest_terminal_summary(terminalreporter):
            with open("summaries", "a") as file:
                file.write(f"{os.getpid()}\\n")
        """,
    )
    project.ini("addopts = -q -rA --color=no")
    write(project, "\n@sweep\nasync def test_it(emulator):\n    await go(emulator)\n")
    result = project.pytest()
    assert result.ret == 0
    result.stdout.no_fnmatch_line(f"{ONLY}*")
    assert len(Log(project).processes) == 2
    assert len((project.path / "summaries").read_text().splitlines()) == 1


def test_project_in_another_folder_that_is_imported_by_its_files(project: Project) -> None:
    write(
        project,
        """
from . import helper

@sweep
async def test_it(emulator, given):
    await go(emulator, f"/{helper.PATH}/{given}")
""",
        "sub/tests/test_a.py",
    )
    project.write("sub/tests/__init__.py", "")
    project.write("sub/tests/helper.py", "PATH = 'helped'")
    project.write(
        "sub/conftest.py",
        """
        import pytest

        @pytest.fixture
        def given(request):
            return request.config.inipath.name
        """,
    )
    project.write("other.ini", "[pytest]\n")
    options = ("-c", "other.ini", "--rootdir=sub", "--import-mode=importlib", "-rP")
    result = project.pytest(*options, "sub/tests/test_a.py::test_it")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line(f"{ONLY}*")
    assert len(Log(project).processes) == 2


def test_nothing_is_asked_where_there_is_nothing_to_compare_with(project: Project) -> None:
    write(
        project,
        """
@sweep
async def test_fails(emulator):
    await go(emulator)
    assert False

@sweep
async def test_skips(emulator):
    await go(emulator)
    pytest.skip("not today")

@sweep
async def test_empty(emulator):
    await emulator.advance(1)

@pytest.mark.emulator(config={"main": CONFIG["main"]})
async def test_not_swept(emulator): ...
""",
    )
    result = project.pytest()
    result.assert_outcomes(passed=1, failed=2, skipped=1)
    assert len(Log(project).processes) == 1


def test_wrong_value_of_the_ini_option_is_refused(project: Project) -> None:
    write(project, "\ndef test_it(): ...\n")
    result = project.pytest("-o", "emulator_determinism=no")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*emulator_determinism is 'no'; it may be 'process' or 'in-process'"]
    )
