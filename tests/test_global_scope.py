"""What a module's top level may not do, in the words of production (workerd, io-context.c++)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker

from emulator import Emulator, WorkerLoadError

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "Error: Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or"
BINDINGS: dict[str, Any] = {
    "kv_namespaces": [{"binding": "KV"}],
    "queues": {"producers": [{"binding": "JOBS", "queue": "jobs"}]},
}
ENTRY = """
import asyncio
import js
from pyodide.ffi import create_proxy
from workers import Response, WorkerEntrypoint, env


def function():
    print("called")


async def work():
    pass


{line}


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        {line}
        return Response("done")
"""
LINE = 16


def project(folder: Path, line: str) -> dict[str, Any]:
    return worker(folder, ENTRY.format(line=line), **BINDINGS)


@pytest.mark.parametrize(
    "line",
    [
        "js.setTimeout(create_proxy(function), 5)",
        "js.setTimeout(function)",
        "js.setInterval(create_proxy(function), 5)",
        "js.AbortSignal.timeout(5)",
        "js.scheduler.wait(5)",
        "js.crypto.getRandomValues(js.Uint8Array.new(4))",
        "js.crypto.randomUUID()",
        "js.WebSocketPair.new()",
        'js.caches.default.match("http://a/")',
        'env.KV.get("a")',
        "env.JOBS.send(1)",
    ],
)
def test_what_needs_an_event_is_refused_on_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(WorkerLoadError) as caught:
        Emulator(project(tmp_path, line))
    assert TEXT in str(caught.value)
    assert f"entry.py:{LINE})" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("asyncio.get_event_loop().call_later(1, function)", "asyncio was to call function later."),
        (
            "asyncio.get_event_loop().call_at(1e6, print)",
            "asyncio was to call print later.",
        ),
        ("asyncio.ensure_future(work())", f"The work was begun at entry.py:{LINE}."),
        ('js.fetch("http://a/")', f"The work was begun at entry.py:{LINE}."),
    ],
)
def test_work_that_would_go_on_is_refused(tmp_path: Path, line: str, note: str) -> None:
    with pytest.raises(WorkerLoadError) as caught:
        Emulator(project(tmp_path, line))
    assert TEXT in str(caught.value)
    assert note in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "js.Math.random()",
        "js.Date.now()",
        "js.clearTimeout(1)",
        "js.queueMicrotask(create_proxy(function))",
        "js.AbortController.new()",
        "js.crypto.getRandomValues",
        'js.Request.new("http://a/")',
        "asyncio.get_event_loop().call_later(1, function).cancel()",
    ],
)
@pytest.mark.asyncio
async def test_the_rest_is_allowed_there_and_in_a_handler(tmp_path: Path, line: str) -> None:
    async with Emulator(project(tmp_path, line)) as emulator:
        assert (await emulator.fetch("/")).text == "done"


@pytest.mark.asyncio
async def test_timers_are_allowed_in_a_handler(tmp_path: Path) -> None:
    entry = ENTRY.format(line="pass")
    entry = entry.replace("        pass\n", "        js.setTimeout(create_proxy(function), 5)\n")
    async with Emulator(worker(tmp_path, entry)) as emulator:
        assert (await emulator.fetch("/")).text == "done"


def test_timers_are_allowed_where_no_worker_runs() -> None:
    """As in a test's own code, which may give a signal to a call."""
    import asyncio

    from emulator.runtime.web.abort import AbortSignal

    async def make() -> AbortSignal:
        return AbortSignal.timeout(1000)

    assert not asyncio.run(make()).aborted
