"""What Workers print under `sweep()` is kept from the terminal, and is with the failing run."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Any

from emulator import Emulator, sweep

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from emulator import SweepReport

ENTRY = """
import js
import logging
import sys

from workers import Response, WorkerEntrypoint

print("imported")
log = logging.getLogger("shop")
taken = []


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        print("asked with", self.env.KEY)
        print("aside", file=sys.stderr)
        sys.stdout.buffer.write(b"bytes\\n")
        sys.stdout.writelines(["one\\n", "two\\n"])
        log.warning("logged")
        js.console.log("console")
        await self.env.JOBS.send("job")
        return Response("ok")

    async def queue(self, batch, env, ctx):
        print("batch of", [message.attempts for message in batch.messages])
        FAIL
"""
CONFIG = """
{
  "name": "shop", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "queues": {
    "producers": [{"binding": "JOBS", "queue": "jobs"}], "consumers": [{"queue": "jobs"}]
  },
}
"""
LINES = ["asked with [secret KEY]", "aside", "one", "two", "logged", "console"]


def project(path: Path, last: str = "pass") -> Path:
    """A Worker that prints whatever way there is."""
    (path / "src").mkdir()
    (path / "src/entry.py").write_text(ENTRY.replace("FAIL", last), "utf-8")
    (path / ".dev.vars").write_text("KEY=k-12345-secret\n", "utf-8")
    (path / "wrangler.jsonc").write_text(CONFIG, "utf-8")
    return path / "wrangler.jsonc"


def swept(config: Path, scenario: Any) -> SweepReport:
    return asyncio.run(sweep(scenario, config, determinism="in-process"))


async def once(emulator: Emulator) -> None:
    """Each run has the lines, whether they are shown or not."""
    await emulator.fetch("/")
    await emulator.settle()
    await emulator.restart()
    texts = [log.text for log in emulator.logs]
    assert [text for text in texts if text in LINES] == LINES
    print("the scenario's own")
    assert len(emulator.queues["jobs"].deliveries) == 1


def test_nothing_that_workers_print_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    handler = logging.StreamHandler(sys.stderr)
    logging.root.addHandler(handler)
    try:
        report = swept(project(tmp_path), once)
    finally:
        logging.root.removeHandler(handler)
    shown = capfd.readouterr()
    assert report.runs > 3
    assert set(shown.out.splitlines()) == {"the scenario's own"}
    assert shown.err == ""


def test_a_failing_run_has_what_was_printed_in_it(tmp_path: Path) -> None:
    report = swept(project(tmp_path), once)
    (failure,) = [one for one in report.failures if "lose_ack" in str(one.plan[0])]
    lines = failure.output.splitlines()
    assert lines[0] == "imported"
    assert lines[1:6] == ["asked with [secret KEY]", "aside", "bytes", "one", "two"]
    assert [line for line in lines if line.startswith("batch")] == ["batch of [1]", "batch of [2]"]
    assert failure.trace is not None
    assert "batch of [2]" in failure.trace.render()


def test_other_loggers_handlers_still_hear_workers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    swept(project(tmp_path), once)
    assert "logged" in caplog.messages


def test_what_a_debugger_prints_is_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A module of that name stands for the real one, which would read from the terminal."""
    told = (
        'exec(compile("print(\'(Pdb) \')", "pdb.py", "exec"), {"__name__": "pdb"}); print("after")'
    )
    swept(project(tmp_path, told), once)
    shown = capfd.readouterr().out
    assert "(Pdb)" in shown
    assert "after" in shown
    assert "asked with" not in shown


def test_an_emulator_made_beside_a_sweep_prints_as_always(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = project(tmp_path)
    swept(config, once)
    capfd.readouterr()
    with Emulator(config) as emulator:
        emulator.run(emulator.fetch("/"))
    assert "asked with k-12345-secret" in capfd.readouterr().out
