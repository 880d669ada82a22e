"""The determinism check of `sweep()` in another process, with another PYTHONHASHSEED."""

from __future__ import annotations

import asyncio
import importlib
import os
import select
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
import respx
import time_machine

from emulator import SweepReport, sweep
from emulator.sweeping import process
from emulator.sweeping.check import hash_seeds
from emulator.sweeping.outcome import FindingsError
from emulator.sweeping.process import ROLE, OtherProcess
from emulator.sweeping.standing import Standing, standing
from emulator.sweeping.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

COMMON = f"""
import os, sys
from emulator import sweep
from workers import Response, WorkerEntrypoint, fetch

ELSEWHERE = {ROLE!r} in os.environ
QUEUES = {{
    "producers": [{{"binding": "JOBS", "queue": "jobs"}}], "consumers": [{{"queue": "jobs"}}]
}}


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        await self.env.JOBS.send("x")
        return Response("ok")

    async def queue(self, batch, env, ctx):
        pass


CONFIG = {{"main": Default, "queues": QUEUES}}


def note_process():
    with open("processes", "a") as file:
        file.write(f"{{os.getpid()}}\\n")


async def scenario(emulator):
    note_process()
    await emulator.fetch("/")
    await emulator.settle()
"""


class Project:
    """A folder with modules of scenarios."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self._name = name

    def write(self, code: str = "", name: str = "") -> Path:
        path = self.path / f"{name or self._name}.py"
        path.write_text(COMMON + dedent(code))
        return path

    def module(self, code: str = "") -> ModuleType:
        self.write(code)
        importlib.invalidate_caches()
        return importlib.import_module(self._name)

    def others(self) -> list[int]:
        """The other processes in which the scenario ran, once for each run."""
        lines = (self.path / "processes").read_text().split()
        return [pid for pid in map(int, lines) if pid != os.getpid()]

    def python(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.path,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch, request) -> Iterator[Project]:
    # A module of its own for each test, since the other process stays.
    name = request.node.name.partition("[")[0]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield Project(tmp_path, name)
    sys.modules.pop(name, None)
    standing.apart = 0


def run(module: ModuleType, scenario: Any = None, **options: Any) -> SweepReport:
    scenario = module.scenario if scenario is None else scenario
    return asyncio.run(sweep(scenario, module.CONFIG, only=["batch.*"], **options))


SCENARIO = """
async def scenario(emulator):
    BEGIN
    await emulator.fetch("/")
    await emulator.settle()
"""


# What it finds.

SET = """
TAGS = {f"tag-{number}" for number in range(20)}


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        for tag in TAGS:
            print(tag)  # the line
        await self.env.JOBS.send("x")
        return Response("ok")

    async def queue(self, batch, env, ctx):
        pass


CONFIG = {"main": Default, "queues": QUEUES}
"""


def test_order_of_a_set_is_found_by_another_process_only(project):
    module = project.module(SET)
    report = run(module, determinism="in-process")
    assert report.passed
    assert not report.in_process_only

    report = run(module)
    (failure,) = report.failures
    assert not report.passed
    assert failure.cause == "nondeterministic"
    assert failure.plan == ()
    first, second, third, fourth, *_, last = failure.text.splitlines()
    assert first.endswith("processes with another PYTHONHASHSEED differed, first at event 2")
    assert second.startswith(f"  PYTHONHASHSEED={hash_seeds()[0]}: ")
    assert third.startswith(f"  PYTHONHASHSEED={hash_seeds()[1]}: ")
    assert second.rpartition("=")[2] != third.rpartition("=")[2]
    assert fourth.endswith("print(tag)  # the line")
    assert fourth.startswith(f"  at {module.__name__}.py:")
    assert last.startswith("Likely cause: the order of a set")
    assert isinstance(failure.error, FindingsError)
    (finding,) = failure.error.findings
    assert finding.location is not None
    assert finding.location.startswith(f"{module.__name__}.py:")
    assert failure.trace is not None
    assert "1 failure of 1 cause" in report.render()


def test_failures_under_faults_are_reported_beside_it(project):
    module = project.module(
        SET
        + """
async def scenario(emulator):
    await emulator.fetch("/")
    await emulator.settle()
    assert len(emulator.queues["jobs"].deliveries) == 1
"""
    )
    report = run(module)
    plans = ["; ".join(map(str, failure.plan)) for failure in report.failures]
    assert plans[0] == ""
    assert "batch.jobs#1:lose_ack" in plans
    assert next(iter(report.groups)) == "nondeterministic"
    assert "replayed:" not in report.summary()


def test_what_each_process_has_of_its_own_is_found(project):
    module = project.module(
        """
        async def scenario(emulator):
            note_process()
            await emulator.fetch(f"/?process={os.getpid()}")
            await emulator.settle()
        """
    )
    (failure,) = run(module).failures
    assert "two runs without a fault in two processes differed, first at event 1" in failure.text
    assert "Likely cause: something that each process has of its own" in failure.text
    # One that was asked at first, and a fresh one for each seed; two of them with the same.
    others = project.others()
    assert len(others) == len(set(others)) == 1 + 4


def test_run_that_only_ends_in_another_way(project):
    module = project.module(
        f"""
        async def scenario(emulator):
            await emulator.fetch("/")
            await emulator.settle()
            assert os.environ.get("PYTHONHASHSEED") != "{hash_seeds()[0]}"
        """
    )
    (failure,) = run(module).failures
    assert "PYTHONHASHSEED differed, only in how it ended" in failure.text
    assert f"PYTHONHASHSEED={hash_seeds()[0]}: AssertionError" in failure.text
    assert f"PYTHONHASHSEED={hash_seeds()[1]}: passed" in failure.text


# What it does not find.


def test_scenario_that_is_deterministic_passes(project):
    report = run(project.module())
    assert report.passed
    assert report.in_process_only == ""
    assert "determinism" not in report.summary()
    assert len(project.others()) == 1


class Callable_:
    def __init__(self, path: str) -> None:
        self.path = path

    async def __call__(self, emulator: Any) -> None:
        await emulator.fetch(self.path)
        await emulator.settle()


async def fetching(emulator: Any, path: str) -> None:
    await Callable_(path)(emulator)


def test_partial_and_object_are_scenarios_too(project):
    module = project.module()
    for scenario in (Callable_("/a"), partial(fetching, path="/a"), Callable_("/b").__call__):
        report = run(module, scenario)
        assert report.passed
        assert report.in_process_only == ""


def test_arguments_of_the_emulator_go_along(project):
    module = project.module(
        """
        async def scenario(emulator):
            note_process()
            assert emulator.now.year == 2027 and emulator.env.LIMITS == {"jobs": 3}
            await emulator.fetch("/")
            await emulator.settle()
        """
    )
    options = {"bindings": {"LIMITS": {"jobs": 3}}, "start": datetime(2027, 1, 1, tzinfo=UTC)}
    report = run(module, seed=5, **options)
    assert report.passed
    assert report.in_process_only == ""
    assert len(project.others()) == 1


def test_mock_around_the_sweep_is_no_failure(project):
    """A fresh process lacks it, and all of them do the same without it."""
    module = project.module(
        """
        class Default(Default):
            async def queue(self, batch, env, ctx):
                await fetch("https://out.example/", method="POST")

        CONFIG = {"main": Default, "queues": QUEUES}
        """
    )
    with respx.mock() as router:
        router.post("https://out.example/").respond(202)
        report = run(module)
    assert report.passed
    assert "agree with each other and not with this one" in report.in_process_only
    assert "here:  +0:00:05.000     queue jobs #1  response_in" in report.in_process_only
    assert "there: +0:00:05.000" in report.in_process_only
    assert "determinism was checked in this process only: processes of their" in report.summary()


def test_what_the_kept_process_has_behind_it_is_no_failure(project):
    """A second scenario finds there what the first one has left; here it is cleared meanwhile."""
    module = project.module(
        """
        left = []

        async def scenario(emulator):
            note_process()
            await emulator.fetch(f"/{len(left)}")
            await emulator.settle()

        async def leaving(emulator):
            left.append(1) if ELSEWHERE else None
            await emulator.fetch("/")
            await emulator.settle()
        """
    )
    assert run(module, module.leaving).passed
    report = run(module)
    assert report.passed
    assert report.in_process_only == ""
    assert len(set(project.others())) == 1 + 6
    assert standing.apart == 1


def test_after_some_that_say_nothing_no_more_are_asked(project):
    module = project.module(SCENARIO.replace("BEGIN", "note_process()"))
    standing.apart = 2
    report = run(module)
    assert report.passed
    assert report.in_process_only.startswith("given up after earlier sweeps that did something")
    assert project.others() == []


# Where another process cannot make the run.


def test_scenario_made_inside_a_function_is_checked_in_this_process_only(project):
    module = project.module()

    async def scenario(emulator: Any) -> None:
        await module.scenario(emulator)

    report = run(module, scenario)
    assert report.passed
    assert "the scenario is made inside a function" in report.in_process_only
    assert "<locals>.scenario" in report.in_process_only
    assert "determinism was checked in this process only: the scenario is made" in report.summary()
    assert f'"in_process_only": "{report.in_process_only}"' in report.to_json()
    assert project.others() == []


def test_what_cannot_be_handed_over_is_named(project):
    module = project.module()

    class Local(module.Default):  # type: ignore[name-defined,misc]
        pass

    config = {"main": Local, "queues": module.QUEUES}
    report = asyncio.run(sweep(module.scenario, config))
    assert report.passed
    assert report.in_process_only.startswith("the config cannot be handed to another process: ")

    report = run(module, bindings={"STREAM": sys.stdout})
    assert report.passed
    assert report.in_process_only.startswith("bindings cannot be handed to another process: ")
    assert project.others() == []


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("if ELSEWHERE: os._exit(3)", "the other process ended with the status 3"),
        (
            "if ELSEWHERE: print('last words', file=sys.stderr, flush=True); os._exit(3)",
            "the other process ended with the status 3: last words",
        ),
        ("if ELSEWHERE: raise RuntimeError('not here')", "RuntimeError: not here"),
        ("if ELSEWHERE: sys.exit('enough')", "SystemExit: enough"),
        ("if ELSEWHERE: del scenario", "Can't get attribute 'scenario'"),
    ],
    ids=["dies", "speaks", "raises", "exits", "lacks it"],
)
def test_process_that_cannot_load_the_scenario_fails_nothing(project, code, why):
    report = run(project.module(code))
    assert report.passed
    assert why in report.in_process_only
    assert project.others() == []
    standing.close()  # it is half loaded


def test_process_that_dies_in_the_run_fails_nothing(project):
    die = "if ELSEWHERE: note_process(); os.kill(os.getpid(), 9)"
    report = run(project.module(SCENARIO.replace("BEGIN", die)))
    assert report.passed
    assert report.in_process_only == "the other process ended with the status -9"
    assert len(project.others()) == 1


@pytest.mark.parametrize("doing", ["loading", "running"])
def test_process_that_hangs_is_ended(project, monkeypatch, doing):
    hang = "if ELSEWHERE: exec('while True: pass')"
    module = project.module(hang if doing == "loading" else SCENARIO.replace("BEGIN", hang))
    kept: list[OtherProcess] = []
    answer = OtherProcess.answer

    def impatient(self: OtherProcess, number: int, what: str) -> Any:
        kept.append(self)
        if what.startswith(doing):
            monkeypatch.setattr(process, "PATIENCE", 0.1)
        return answer(self, number, what)

    monkeypatch.setattr(OtherProcess, "answer", impatient)
    report = run(module)
    assert report.passed
    assert report.in_process_only == (
        f"the other process was {doing} the scenario for 0.1 s, and not done with it"
    )
    assert not any(each.is_alive for each in kept)
    assert not any(each.path.exists() for each in kept)


def test_scenario_reads_no_input_and_prints_nothing_here(project, capfd):
    module = project.module(
        """
        async def scenario(emulator):
            if ELSEWHERE:
                print("printed elsewhere", sys.stdin.read(), flush=True)
                os.system("echo by the system; cat")
            await emulator.fetch("/")
            await emulator.settle()
        """
    )
    report = run(module)
    assert report.passed
    assert report.in_process_only == ""
    output = "".join(capfd.readouterr())
    assert "elsewhere" not in output
    assert "by the system" not in output


def test_frozen_time_would_not_be_there(project):
    module = project.module()
    with time_machine.travel(datetime(2026, 5, 1, tzinfo=UTC), tick=False):
        report = run(module)
    assert report.passed
    assert "time is frozen around the sweep" in report.in_process_only
    assert project.others() == []


def test_process_starts_no_further_ones(project, monkeypatch):
    module = project.module()
    monkeypatch.setenv(ROLE, "running")
    report = run(module)
    assert report.passed
    assert report.in_process_only == "this is such a process itself"
    monkeypatch.setenv(ROLE, "loading")
    with pytest.raises(RuntimeError, match='below `if __name__ == "__main__":`'):
        run(module)


def test_module_that_sweeps_when_it_is_imported(project):
    """The other process would start another, and so on."""
    module = project.module(
        """
        import asyncio

        if ELSEWHERE:
            asyncio.run(sweep(scenario, CONFIG))
        """
    )
    report = run(module)
    assert report.passed
    assert "sweep() was called while another process imports" in report.in_process_only


def test_wrong_argument_is_refused(project):
    with pytest.raises(ValueError, match="determinism is 'on'; it may be 'process' or 'in-proc"):
        run(project.module(), determinism="on")


# Scripts.

SCRIPT = """
import asyncio

def main():
    report = asyncio.run(sweep(scenario, CONFIG, only=["batch.*"]))
    print(report.passed, report.in_process_only or "everywhere")

GUARD:
    main()
"""


@pytest.mark.parametrize("how", ["path", "module", "no guard", "standard input"])
def test_script(project, how):
    guard = "if True" if how == "no guard" else 'if __name__ == "__main__"'
    script = project.write(SCRIPT.replace("GUARD", guard), "script")
    if how == "standard input":
        output = project.python("-", stdin=script.read_text())
        assert (
            output
            == "True the scenario is defined in an interactive session; put it into a module\n"
        )
        return
    output = project.python(*(("-m", "script") if how == "module" else ("script.py",)))
    said = "True script.py is a script and would run as a whole if another process imported it"
    assert output.startswith(said if how == "no guard" else "True everywhere\n")
    assert len(set((project.path / "processes").read_text().split())) == 1 + (how != "no guard")


def test_module_that_only_its_file_leads_to(project):
    """As pytest imports test modules with `--import-mode=importlib`."""
    spec = importlib.util.spec_from_file_location("far_away", project.write(name="away"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["far_away"] = module
    try:
        spec.loader.exec_module(module)
        report = run(module)
    finally:
        del sys.modules["far_away"]
    assert report.passed
    assert report.in_process_only == ""
    assert len(project.others()) == 1


# The process.


def test_process_waits_for_the_next_sweep_and_sees_what_has_changed(project, monkeypatch):
    module = project.module(
        """
        async def scenario(emulator):
            note_process()
            await emulator.fetch(f"/{os.environ['PLACE']}/{os.path.basename(os.getcwd())}")
            await emulator.settle()
        """
    )
    for place in ("a", "b"):
        (project.path / place).mkdir()
        monkeypatch.chdir(project.path / place)
        monkeypatch.setenv("PLACE", place)
        report = run(module)
        assert report.passed
        assert report.in_process_only == ""
    others = [
        pid
        for place in ("a", "b")
        for pid in (project.path / place / "processes").read_text().split()
        if int(pid) != os.getpid()
    ]
    assert len(others) == 2
    assert len(set(others)) == 1
    standing.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(others[0]), 0)


def test_one_process_is_kept_and_it_is_not_used_after_a_fork(monkeypatch):
    kept = Standing()
    transfer = Transfer(fetching, {}, 0, {})
    first, _ = transfer.start(1)
    second, _ = transfer.start(1)
    try:
        kept.keep(first)
        kept.keep(second)
        assert first.is_alive
        assert not second.is_alive
        assert not second.path.exists()
        process_id = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: process_id + 1)
        assert kept._take(1) is None
        assert first.is_alive
        kept.keep(first)
        monkeypatch.undo()
        assert kept._take(1) is None
        kept.keep(first)
        assert kept._take(2) is None  # of another seed
        assert not first.is_alive
        assert not first.path.exists()
    finally:
        first.close()
        second.close()


def test_hash_seeds_are_never_that_of_this_process(monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    assert hash_seeds()[:2] == [1, 2]
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    assert hash_seeds()[:2] == [2, 3]
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    assert hash_seeds()[:2] == [1, 2]


def test_what_measures_coverage_is_not_inherited(monkeypatch):
    monkeypatch.setenv("COV_CORE_SOURCE", "src")
    monkeypatch.setenv("COVERAGE_PROCESS_START", "setup.cfg")
    monkeypatch.setenv("COVERAGE_FILE", "kept")
    inherited = process.inherited()
    assert "COV_CORE_SOURCE" not in inherited
    assert "COVERAGE_PROCESS_START" not in inherited
    assert inherited["COVERAGE_FILE"] == "kept"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="nothing else says when it ends")
@pytest.mark.parametrize("where", ["waiting", "running"])
def test_process_does_not_outlive_the_one_that_started_it(project, where):
    script = project.write(
        f"""
        import asyncio, signal
        from emulator.sweeping.process import OtherProcess

        async def scenario(emulator):
            note_process()
            await emulator.fetch("/")
            await emulator.settle()
            if ELSEWHERE and {where!r} == "running":
                os.kill(os.getppid(), signal.SIGKILL)
                while True: pass

        class Noted(OtherProcess):
            def tell(self, verb, **command):
                with open("other", "w") as file:
                    file.write(str(self._process.pid))
                limit = {{"patience": 0.2}} if (verb, {where!r}) == ("run", "running") else {{}}
                return super().tell(verb, **command, **limit)

        if __name__ == "__main__":
            from emulator.sweeping import standing
            standing.OtherProcess = Noted
            asyncio.run(sweep(scenario, CONFIG, only=["batch.*"]))
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        "script",
    )
    done = subprocess.run([sys.executable, script], cwd=project.path, check=False)
    assert done.returncode == -9
    try:
        other = os.pidfd_open(int((project.path / "other").read_text()))
    except ProcessLookupError:
        return  # by now it has ended
    try:
        assert select.select([other], [], [], 30)[0]
    finally:
        os.close(other)
