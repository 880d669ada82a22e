"""A handler that expects its bindings in `env`, as JavaScript's do, is told where they are."""

from __future__ import annotations

import linecache
import re
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker

from emulator import Emulator
from emulator.passed_none import explain, used

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

QUEUES = {"consumers": [{"queue": "q", "max_retries": 0}]}
ENV = "Production passes None as `env` here: use `self.env`."


async def notes(folder: Path, body: str, **config: Any) -> list[str]:
    """The notes of the error with which a handler ends that has this body."""
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    entry = f"""
from workers import WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def queue(self, batch, env, ctx):
{lines}

    async def consume(self, batch, env):
        await env.DB.prepare("SELECT 1").run()
"""
    with Emulator(worker(folder, entry, queues=QUEUES, **config)) as emulator:
        await emulator.queues["q"].send("x")
        await emulator.settle()
        (delivery,) = emulator.queues["q"].deliveries
        found = list(getattr(delivery.error, "__notes__", []))
        logged = "\n".join(log.text for log in emulator.logs)
        assert all(note in logged for note in found)
        return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("await env.DB.prepare('SELECT 1').run()", [ENV]),
        ("env['DB']", [ENV]),
        ("ctx.waitUntil(None)", ["Production passes None as `ctx` here: use `self.ctx`."]),
        ("await self.consume(batch, env)", [ENV]),
        ("[m for m in batch.messages if env.DB]", [ENV]),
        ("value = None\nvalue.DB", []),
        ("env = self\nenv.nothing", []),
        ("raise AttributeError('of its own')", []),
        ("raise ValueError(env)", []),
    ],
    ids=[
        *("attribute", "item", "ctx", "passed on", "comprehension"),
        *("another None", "assigned", "own text", "another error"),
    ],
)
async def test_error_of_a_none_says_what_to_write(
    tmp_path: Path, body: str, expected: list[str]
) -> None:
    """python-api.md 2.2"""
    found = await notes(tmp_path, body)
    if "for m" not in body:
        assert found == expected
    else:  # before Python 3.12 that is a function of its own, which has no such parameter
        assert found in ([], expected)


async def test_scheduled_and_fetch_are_told_too(tmp_path: Path) -> None:
    entry = """
from workers import WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def fetch(self, request, environment, context):
        return environment.DB

    async def scheduled(self, controller, environment, context):
        context.waitUntil(None)
"""
    with Emulator(worker(tmp_path, entry)) as emulator:
        _, error = await emulator.scheduled()
        assert error.__notes__ == ["Production passes None as `context` here: use `self.ctx`."]
        response = await emulator.fetch("/")
        assert response.status_code == 500
        (finding,) = emulator.findings
        assert finding.code == "handler_exception"
        log = next(log.text for log in emulator.logs if "environment.DB" in log.text)
        assert "Production passes None as `environment` here: use `self.env`." in log


class Handlers:
    def attribute(self, batch, env, ctx):
        batch.ackAll()
        return env.DB

    def second(self, batch, environment, context):
        context.waitUntil(environment)

    def passed(self, batch, env, ctx):
        return self.attribute(batch, env, ctx)

    def asked(self, batch, env, ctx):
        return (env or self.env).DB, env.DB

    def compared(self, batch, env=None, ctx=None):
        return env.DB if env is not None else self.env.DB

    def assigned(self, batch, env, ctx):
        env = self.env
        return env.DB

    def own(self, batch, env, ctx):
        return self.env.DB, batch.env

    def rest(self, batch, *rest):
        return rest[0].DB


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("attribute", [("env", "env")]),
        ("second", [("context", "ctx")]),
        *((name, []) for name in ("passed", "asked", "compared", "assigned", "own", "rest")),
    ],
)
async def test_use_of_such_a_parameter_is_seen_in_the_code(
    name: str, expected: list[tuple[str, str]]
) -> None:
    handler = getattr(Handlers, name)
    found = list(used(handler))
    assert [(parameter, own) for parameter, own, _ in found] == expected
    for parameter, _, location in found:
        assert re.search(rf"\b{parameter}\.", linecache.getline(__file__, location.line))


async def test_error_without_lines_of_the_users_is_left_alone() -> None:
    error = AttributeError("'NoneType' object has no attribute 'DB'")
    explain(error, Handlers.attribute)
    assert not hasattr(error, "__notes__")
