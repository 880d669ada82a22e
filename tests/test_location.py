"""Lines of the user's code: whose they are, and which one a finding or a record names."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from worker_files import handler
from workers import WorkerEntrypoint

from emulator import Emulator, location
from emulator.location import Location, caller, is_users_file
from emulator.loop import SimLoop

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

QUEUES = {"producers": [{"binding": "Q", "queue": "q"}]}
# A method of the Worker's, so that the call stands on a line of its own: the 12th.
BODY = """
    import httpx, js
    from pyodide.ffi import to_js; from pyodide.http import pyfetch
    STATEMENT
    return Response("sent")
"""


def calling(folder: Path, statement: str, **config: Any) -> dict[str, Any]:
    return handler(folder, BODY.replace("STATEMENT", statement), **config)


# -- whose a file is -------------------------------------------------------------------------------


async def test_libraries_are_not_the_users_in_whatever_environment_they_lie() -> None:
    assert is_users_file(__file__)
    assert is_users_file("/home/ada/shop/src/entry.py")
    for name in (httpx.__file__, os.__file__, asyncio.__file__, "<string>", "<frozen importlib>"):
        assert not is_users_file(name), name
    assert not is_users_file("/elsewhere/lib/python3.13/site-packages/httpx/_client.py")
    assert not is_users_file("/usr/lib/python3/dist-packages/httpx/_client.py")


async def test_the_bottom_of_the_simulation_is_told_by_its_name_first() -> None:
    """A renamed `SimLoop.enter` would let a walk up the stack go on into the test."""
    assert SimLoop.bottom.co_name == location._BOTTOM


async def test_outside_a_simulation_the_caller_is_the_line_itself() -> None:
    here = caller()
    assert isinstance(here, Location)
    assert here.file == __file__


async def test_a_noted_instruction_is_of_the_line_that_ran() -> None:
    here = sys._getframe().f_lineno
    places = [
        location.calling(),
        (
            location.calling()
        ),
    ]  # fmt: skip
    lines = [one.line for one in map(location.location, places) if one is not None]
    assert lines == [here + 2, here + 4]
    assert location.location(None) is None


# -- requests to the outside -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "await {call}",
        "await asyncio.gather({call}, asyncio.sleep(0))",
        "await asyncio.wait_for({call}, 5)",
        "(await asyncio.wait([asyncio.ensure_future({call})]))[0].pop().exception()",
        "async with asyncio.timeout(5): await {call}",
        "async with asyncio.TaskGroup() as group: group.create_task(asyncio.wait_for({call}, 5))",
        "await asyncio.create_task(asyncio.wait_for({call}, 5))",
        "await asyncio.gather(asyncio.gather({call}))",
        "await js.Promise.all(to_js([{call}]))",
        "await js.Promise.resolve({call})",
        "await js.Promise.resolve(1).then(lambda _: {call})",
        "waitUntil({call})",
        "waitUntil(asyncio.gather({call}))",
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        "fetch(URL)",
        "js.fetch(URL)",
        "pyfetch(URL)",
        "js.fetch(URL, method='POST', body=js.Response.new('x').body)",
        "fetch(URL, signal=js.AbortController.new().signal)",
        "httpx.AsyncClient().get(URL)",
    ],
)
@pytest.mark.parametrize("date", ["2025-08-14", "2026-09-08"])
async def test_a_denied_request_is_put_down_to_the_workers_line(
    tmp_path: Path, statement: str, call: str, date: str
) -> None:
    call = call.replace("URL", "'https://a.example/'")
    line = statement.format(call=call)
    async with Emulator(calling(tmp_path, line, compatibility_date=date)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        found = [f for f in emulator.findings if f.code == "outbound_unmocked"]
        assert [f.location for f in found] == ["entry.py:12"]
        for other in emulator.findings:
            assert re.fullmatch(r"entry\.py:\d+", other.location or ""), other


async def test_a_request_from_a_callback_has_the_line_of_the_callback(tmp_path: Path) -> None:
    line = (
        "asyncio.get_running_loop().call_later(\n"
        "        1, lambda: waitUntil(js.fetch('https://a.example/')))\n"
        "    await asyncio.sleep(2)"
    )
    async with Emulator(calling(tmp_path, line)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert {f.location for f in emulator.findings} == {"entry.py:13"}


async def test_a_request_made_while_the_body_is_sent_has_its_line(tmp_path: Path) -> None:
    line = (
        "async def chunks():\n"
        "        await asyncio.gather(js.fetch('https://a.example/'), return_exceptions=True)\n"
        "        yield js.Uint8Array.new(b'x')\n"
        "    return Response(js.ReadableStream.from_(chunks()))"
    )
    async with Emulator(calling(tmp_path, line)) as emulator:
        assert (await emulator.fetch("/")).content == b"x"
        assert [f.location for f in emulator.findings] == ["entry.py:13"]


async def test_a_worker_asked_by_a_mock_of_another_keeps_its_lines(
    tmp_path: Path, respx_mock: Any
) -> None:
    inner = Emulator(calling(tmp_path / "inner", "await js.fetch('https://b.example/')"))

    async def ask(request: httpx.Request) -> httpx.Response:
        return httpx.Response((await inner.fetch("/")).status_code)

    respx_mock.get("https://a.example/").mock(side_effect=ask)
    respx_mock.get("https://b.example/").mock(side_effect=httpx.ConnectError)
    async with Emulator(calling(tmp_path / "o", "await js.fetch('https://a.example/')")) as outer:
        await outer.fetch("/")
        assert [f.location for f in inner.findings] == ["entry.py:12"]
        assert list(outer.findings) == []
    inner.close()


# -- other findings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "work",
    [
        "js.fetch('https://a.example/')",
        "fetch('https://a.example/')",
        "asyncio.gather(fetch('https://a.example/'))",
        "js.Promise.reject('no')",
    ],
)
@pytest.mark.parametrize("date", ["2025-08-14", "2026-09-08"])
async def test_failed_background_work_has_the_line_that_gave_it(
    tmp_path: Path, work: str, date: str
) -> None:
    config = calling(tmp_path, f"waitUntil({work})", compatibility_date=date)
    async with Emulator(config) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        found = [f for f in emulator.findings if f.code == "background_error"]
        assert [f.location for f in found] == ["entry.py:12"]
        assert [task.location for task in emulator.background] == ["entry.py:12"]


@pytest.mark.parametrize(
    "work", ["js.fetch('https://slow.example/')", "fetch('https://slow.example/')"]
)
async def test_background_work_out_of_time_has_the_line_that_gave_it(
    tmp_path: Path, respx_mock: Any, work: str
) -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(60)
        return httpx.Response(200)

    respx_mock.get("https://slow.example/").mock(side_effect=answer)
    async with Emulator(calling(tmp_path, f"waitUntil({work})")) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert [(f.code, f.location) for f in emulator.findings] == [
            ("wait_until_cancelled", "entry.py:12")
        ]


@pytest.mark.parametrize(
    "statement",
    [
        "self.env.Q.send(1)",
        "js.Promise.resolve(self.env.Q.send(1))",
        "asyncio.gather(self.env.Q.send(1))",
        "asyncio.gather(asyncio.gather(asyncio.sleep(9)))",
    ],
)
async def test_loose_ends_have_the_line_that_made_them(tmp_path: Path, statement: str) -> None:
    async with Emulator(calling(tmp_path, statement, queues=QUEUES)) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        found = [f for f in emulator.findings if f.code != "no_consumer"]
        assert [f.location for f in found] == ["entry.py:12"]


async def test_an_option_without_effect_in_a_started_task_has_its_line(tmp_path: Path) -> None:
    line = "await asyncio.gather(self.env.Q.send(1, delay_seconds=5))"
    async with Emulator(calling(tmp_path, line, queues=QUEUES)) as emulator:
        await emulator.fetch("/")
        found = [f for f in emulator.findings if f.code == "ignored_option"]
        assert [f.location for f in found] == ["entry.py:12"]


# -- errors that resist description ----------------------------------------------------------------


def _in_a_circle() -> BaseException:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    return one


def _deep_group() -> BaseException:
    group: BaseException = ValueError("innermost")
    for _ in range(3000):
        group = ExceptionGroup("group", [group])  # type: ignore[list-item]
    return group


def _long_chain() -> BaseException:
    error: BaseException = ValueError("first")
    for _ in range(3000):
        following = ValueError("following")
        following.__cause__ = error
        error = following
    return error


class _NoTruth(Exception):
    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


class _NoCause(Exception):
    @property
    def __cause__(self) -> Any:
        raise RuntimeError("no cause")


class _Falsy(Exception):
    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (_in_a_circle, "ValueError"),
        (_deep_group, "ExceptionGroup"),
        (_long_chain, "ValueError"),
        (_NoTruth, "_NoTruth"),
        (_NoCause, "_NoCause"),
        (_Falsy, "_Falsy"),
    ],
)
async def test_an_error_of_any_kind_only_fails_its_batch(make: Any, name: str) -> None:
    class Worker(WorkerEntrypoint):
        async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
            raise make()

    consumer = {"queue": "q", "max_retries": 1, "max_batch_timeout": 0}
    async with Emulator({"main": Worker, "queues": {"consumers": [consumer]}}) as emulator:
        start = emulator.now
        await emulator.queues["q"].send("a")
        await emulator.settle()

        assert [one.outcome for one in emulator.queues["q"].deliveries] == ["retry", "dropped"]
        assert emulator.now == start
        (finding,) = emulator.findings
        assert finding.code == "message_dropped"
        assert name in finding.message
        assert name in emulator.logs[0].text
