"""`workers-emulator init`: first tests, which run as they are."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Cli

FILE = "tests/test_worker.py"
WORKER = """
from workers import Response, WorkerEntrypoint, WorkflowEntrypoint

class Flow(WorkflowEntrypoint):
    async def run(self, event, step):
        @step.do()
        async def one():
            return 1

        return await one()

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        return Response("ok", status=404)

    async def queue(self, batch, env, ctx):
        batch.ackAll()

    async def scheduled(self, controller, env, ctx):
        assert controller.cron in ("*/5 * * * *", "0 3 * * *")
"""
CONFIG = {
    "name": "w",
    "main": "src/entry.py",
    "compatibility_date": "2026-09-01",
    "compatibility_flags": ["python_workers"],
    "triggers": {"crons": ["*/5 * * * *", "0 3 * * *"]},
    "queues": {
        "producers": [{"binding": "JOBS", "queue": "my-jobs"}],
        "consumers": [{"queue": "my-jobs"}, {"queue": "my.jobs"}],
    },
    "workflows": [{"name": "flow", "binding": "FLOW", "class_name": "Flow"}],
}


def run_tests(cli: Cli) -> tuple[int, str]:
    """Run what was written in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", FILE],
        cwd=cli.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout


def test_what_is_written_passes_and_says_what_is_to_be_filled_in(cli: Cli) -> None:
    cli.write("src/entry.py", WORKER)
    cli.write("wrangler.jsonc", json.dumps(CONFIG))
    result = cli("init", code=0)
    assert result.stdout.startswith(f"wrote {FILE}\n")
    assert f"pytest {FILE}" in result.stdout
    code, out = run_tests(cli)
    assert code == 0, out
    assert "3 passed, 3 skipped" in out
    assert "say what a message is like" in out
    text = (cli.path / FILE).read_text()
    (cli.path / FILE).write_text(
        "\n".join(line for line in text.splitlines() if "mark.skip" not in line)
    )
    code, out = run_tests(cli)
    assert code == 0, out
    assert "6 passed" in out


def test_a_file_that_is_there_is_left_as_it_is(cli: Cli) -> None:
    cli.write(FILE, "mine")
    result = cli("init", code=2)
    assert f"{FILE} is there already" in result.stderr
    assert (cli.path / FILE).read_text() == "mine"


def test_problems_come_first_and_nothing_is_written(cli: Cli) -> None:
    cli.write("src/entry.py", "import nothing_like_it\n")
    result = cli("init", code=1)
    assert "nothing_like_it" in result.stderr
    assert "workers-emulator check" in result.stderr
    assert not (cli.path / FILE).exists()


def test_a_worker_of_requests_alone_has_one_test(cli: Cli) -> None:
    config = {key: CONFIG[key] for key in ("name", "main", "compatibility_date")}
    cli.write("wrangler.jsonc", json.dumps(config | {"compatibility_flags": ["python_workers"]}))
    cli.write("src/entry.py", WORKER)
    cli("init", code=0)
    text = (cli.path / FILE).read_text()
    assert "import pytest" not in text
    assert text.count("async def test_") == 1


def test_the_tests_lie_beside_the_config(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.path / "deep").mkdir()
    monkeypatch.chdir(cli.path / "deep")
    cli("init", code=0)
    assert (cli.path / FILE).is_file()
    cli("init", "-c", "../wrangler.jsonc", code=2)


CALLER = """
from workers import Response, WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        return Response(await self.env.STOCK.left() if "left" in request.url else "ok")
"""
NEIGHBOUR = """
from workers import WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def left(self):
        return "seven"
"""
COMMON = {
    "main": "src/entry.py",
    "compatibility_date": "2026-09-01",
    "compatibility_flags": ["python_workers"],
}


def two_workers(cli: Cli) -> None:
    service = {"binding": "STOCK", "service": "stock"}
    cli.write("wrangler.jsonc", json.dumps({**COMMON, "name": "shop", "services": [service]}))
    cli.write("src/entry.py", CALLER)
    cli.write("stock/wrangler.jsonc", json.dumps({**COMMON, "name": "stock"}))
    cli.write("stock/src/entry.py", NEIGHBOUR)


def test_a_service_that_is_not_there_is_told_with_the_options_for_it(cli: Cli) -> None:
    two_workers(cli)
    told = cli("init", code=1).stderr
    assert "give its config too, with another -c, or say --stand-in STOCK" in told
    assert "bindings=" not in told


def test_neighbours_are_in_the_tests_too(cli: Cli) -> None:
    two_workers(cli)
    cli("init", "-c", ".", "-c", "stock", code=0)
    file = cli.path / FILE
    text = file.read_text()
    assert 'emulator(config=["../wrangler.jsonc", "../stock/wrangler.jsonc"])' in text
    file.write_text(text.replace('"/")', '"/left")') + '    assert response.text == "seven"\n')
    code, out = run_tests(cli)
    assert code == 0, out


def test_a_stand_in_is_a_class_to_be_filled_in(cli: Cli) -> None:
    two_workers(cli)
    cli("init", "--stand-in", "STOCK", code=0)
    file = cli.path / FILE
    text = file.read_text()
    assert 'emulator(bindings={"STOCK": StandInStock()})' in text
    says = '    async def left(self):\n        return "none"\n\n\npytestmark'
    text = text.replace("\npytestmark", says).replace('"/")', '"/left")')
    file.write_text(text + '    assert response.text == "none"\n')
    code, out = run_tests(cli)
    assert code == 0, out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-c", ".", "-c", "b"], "there is no file"),
        (["--stand-in", "NOPE"], "--stand-in: no Worker lacks a binding NOPE"),
        (["-c", "nope.jsonc"], "nope.jsonc"),
    ],
)
def test_wrong_usage_is_refused(cli: Cli, arguments: list[str], text: str) -> None:
    assert text in cli("init", *arguments, code=2).stderr
