"""`workers-emulator init`: first tests for a Worker project that has none of ours yet."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from emulator.cli.arguments import given_configs, nearest_config
from emulator.cli.interrupts import interruptible
from emulator.cli.options import config_option, stand_in_option
from emulator.cli.problems import find_problems
from emulator.cli.refusal import Refusal
from emulator.cli.streams import Gate
from emulator.cli.terminal import lines, say
from emulator.config import examine
from emulator.secrets import Masker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.worker_config import WorkerConfig

FILE: Final = "tests/test_worker.py"

_HEAD = '''\
"""The Worker `{name}` on a virtual clock, with the faults that the platform may inject."""

import pytest
'''
_STAND_IN = """

class {label}:
    \"\"\"Stands in for the binding `{name}`: say here what it answers.\"\"\"
"""
_MARK = """

pytestmark = pytest.mark.emulator({arguments})
"""
_FETCH = """

async def test_the_worker_answers(emulator):
    response = await emulator.fetch("/")

    assert response.status_code < 500
"""
_CRON = """

async def test_the_cron_trigger_{label}_runs(emulator):
    assert await emulator.scheduled({quoted}) == ("ok", None)
"""
_QUEUE = """

@pytest.mark.skip(reason="say what a message is like, and what must come of it")
@pytest.mark.fault_sweep
async def test_the_consumer_of_{label}_bears_what_the_platform_may_do(emulator):
    await emulator.queues[{quoted}].send({{"id": 1}})
    await emulator.settle()

    emulator.check.no_lost_message()
"""
_WORKFLOW = """

@pytest.mark.skip(reason="say what the params are like, and what must come of them")
@pytest.mark.fault_sweep
async def test_the_workflow_{label}_bears_what_the_platform_may_do(emulator):
    instance = await emulator.workflows[{quoted}].create(params={{}})

    assert await instance.result() is not None
"""
_NEXT = """\
Install pytest, and respx to stand in for the outside world, and run the tests:

  pip install pytest respx
  pytest {file}"""


@click.command("init")
@config_option
@stand_in_option
@click.pass_context
def command(ctx: click.Context, /, configs: tuple[str, ...], stand_ins: tuple[str, ...]) -> None:
    """Write first tests for the Worker of a wrangler config, in tests/test_worker.py beside it.

    Of several configs the first is the one whose Worker is tested; it has the others' Workers for
    neighbours, in tests too.

    A file that is there is never changed. Exit code: 0 written; 1 the project has problems, see
    `check`; 2 no config, or the file is there already.
    """
    paths = given_configs(configs) or [nearest_config(Path.cwd())]
    file = paths[0].parent / FILE
    if file.exists():
        raise Refusal(f"{_shown(file)} is there already, and is left as it is")
    with interruptible(), Gate(aside=True) as gate:
        verdict = find_problems(paths, profile="production", environment=None, stand_ins=stand_ins)
        gate.masker = masker = Masker(verdict.secrets)
        if verdict.loads:
            gate.open(masker)
    wrong = [text for text in verdict.warnings if text.startswith("--stand-in:")]
    if wrong:
        raise Refusal("; ".join(wrong))
    if verdict.problems:
        say(masker(lines("\n".join(verdict.problems))), aside=True)
        say("\nMend these first; `workers-emulator check` lists them.", aside=True)
        ctx.exit(1)
    settings = examine(paths).settings
    assert settings is not None, "it has no problems"
    worker = settings.workers[0]
    marked = "".join(_marker(file.parent, paths, tuple(dict.fromkeys(stand_ins))))
    _write(file, "".join(_tests(worker, verdict.handlers.get(worker.name, []), marked)))
    say(f"wrote {_shown(file)}\n\n{_NEXT.format(file=_shown(file))}")


def _marker(folder: Path, configs: list[Path], stand_ins: tuple[str, ...]) -> Iterator[str]:
    """Yield what the tests' emulators need beyond the nearest config."""
    arguments = []
    if len(configs) > 1:
        names = [Path(os.path.relpath(config, folder)).as_posix() for config in configs]
        arguments.append(f"config={json.dumps(names)}")
    given = []
    for name in stand_ins:
        label = "StandIn" + re.sub(r"\W", "_", name.title().replace("_", ""))
        given.append(f"{json.dumps(name)}: {label}()")
        yield _STAND_IN.format(label=label, name=name)
    if given:
        arguments.append(f"bindings={{{', '.join(given)}}}")
    if arguments:
        yield _MARK.format(arguments=", ".join(arguments))


def _tests(worker: WorkerConfig, handlers: list[str], marked: str) -> Iterator[str]:
    swept = [(_QUEUE, consumer.queue) for consumer in worker.consumers]
    swept += [(_WORKFLOW, workflow.name) for workflow in worker.workflows]
    head = _HEAD.format(name=worker.name)
    yield head if swept or marked else head.removesuffix("\nimport pytest\n")
    yield marked
    if "fetch" in handlers or not handlers:
        yield _FETCH
    labels: dict[str, int] = {}
    crons = [(_CRON, cron) for cron in worker.crons]
    for template, name in (*crons, *swept):
        label = re.sub(r"\W+", "_", name.replace("*", "x")).strip("_").lower() or "it"
        number = labels[label] = labels.get(label, 0) + 1
        label = label if number == 1 else f"{label}_{number}"
        yield template.format(quoted=json.dumps(name), label=label)


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(exist_ok=True)
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except OSError as error:
        raise Refusal(f"{_shown(file)} cannot be written: {error.strerror}") from None


def _shown(file: Path) -> str:
    try:
        return str(file.relative_to(Path.cwd()))
    except ValueError:
        return str(file)
