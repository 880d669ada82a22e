"""The faults of `request.<METHOD>.<path>`, and what a crash does to everything else in flight."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from worker_files import handler

from emulator import Emulator, ReplyLost, WorkerCrashed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = """
    try:
        print("began")
        await asyncio.sleep(2)
        print("ended")
    finally:
        print("finally")
    return Response("done", status=201)
"""
QUEUES = {"queues": {"producers": [{"binding": "Q", "queue": "q"}]}}


def lines(emulator: Emulator) -> list[str]:
    return [log.text for log in emulator.logs]


def clock(emulator: Emulator) -> float:
    return (emulator.now - START).total_seconds()


@pytest.mark.parametrize(
    ("action", "error", "text", "ran", "after"),
    [
        ("crash_before", WorkerCrashed, "request GET / was cut off before its handler ran", [], 0),
        (
            "crash_after",
            WorkerCrashed,
            "request GET / was cut off while it was handled",
            ["began", "ended", "finally"],
            2,
        ),
        (
            "lose_reply",
            ReplyLost,
            "request GET /: the answer was lost, by a fault",
            ["began", "ended", "finally"],
            2,
        ),
    ],
)
async def test_what_the_client_sees(
    tmp_path: Path, action: str, error: type[Exception], text: str, ran: list[str], after: float
) -> None:
    fault = f"request.GET./#1:{action}"
    async with Emulator(handler(tmp_path, STEPS), faults=fault) as emulator:
        with pytest.raises(error, match=text):
            await emulator.fetch("/")
        assert (lines(emulator), clock(emulator)) == (ran, after)
        assert [str(each) for each in emulator.faults.fired] == [fault]
        assert list(emulator.findings) == []
        assert (await emulator.fetch("/")).status_code == 201


@pytest.mark.parametrize("action", ["crash_before", "crash_after", "lose_reply"])
async def test_a_patient_client_tries_again(tmp_path: Path, action: str) -> None:
    fault = f"request.GET./#1:{action}"
    async with Emulator(handler(tmp_path, STEPS), faults=fault) as emulator:
        response = await emulator.fetch("/", retries=1, wait="10 seconds")
        assert response.status_code == 201
        assert lines(emulator).count("ended") == (1 if action == "crash_before" else 2)
        assert clock(emulator) == (12 if action == "crash_before" else 14)


async def test_retries_that_are_used_up(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, STEPS), faults="request.GET./#*:lose_reply") as emulator:
        with pytest.raises(ReplyLost):
            await emulator.fetch("/", retries=2)
        assert len(emulator.faults.fired) == 3


async def test_a_lost_answer_is_an_error_of_httpx_too(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, STEPS), faults="request.GET./#1:lose_reply") as emulator:
        with pytest.raises(httpx.RemoteProtocolError):
            await emulator.client.get("/")
        assert (await emulator.client.get("/")).status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "site"),
    [
        ("GET", "/", "request.GET./"),
        ("POST", "/a/b.html?x=1", "request.POST./a/b.html"),
        ("PURGE", "/x", "request.PURGE./x"),
        ("GET", "/a:b", "request.GET./a%3Ab"),
    ],
)
async def test_how_a_request_names_its_site(
    tmp_path: Path, method: str, path: str, site: str
) -> None:
    config = handler(tmp_path, "return Response('ok')")
    async with Emulator(config) as emulator:
        await emulator.fetch(path, method=method)
        assert emulator.faults.sites[0].name == site
    async with Emulator(config, faults=f"{site}#1:crash_before") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch(path, method=method)


@pytest.mark.parametrize("action", ["crash_before", "crash_after"])
async def test_a_crash_takes_all_requests_of_the_isolate_along(tmp_path: Path, action: str) -> None:
    body = """
    global count
    count = globals().get("count", 0) + 1
    try:
        await asyncio.sleep(1 if path == "/victim" else 10)
    finally:
        print(f"finally {path}")
    return Response(str(count))
    """
    async with Emulator(
        handler(tmp_path, body), faults=f"request.GET./victim#1:{action}"
    ) as emulator:
        results = await asyncio.gather(
            emulator.fetch("/one"),
            emulator.fetch("/two"),
            emulator.fetch("/victim"),
            return_exceptions=True,
        )
        assert [type(result) for result in results] == [WorkerCrashed] * 3
        assert lines(emulator) == ([] if action == "crash_before" else ["finally /victim"])
        # Its memory is gone.
        assert (await emulator.fetch("/one")).text == "1"


async def test_what_was_sent_before_a_crash_stays_sent(tmp_path: Path) -> None:
    body = """
    await self.env.Q.send("before")
    self.ctx.waitUntil(self.env.Q.send("in the background"))
    await asyncio.sleep(1)
    return Response("done")
    """
    config = handler(tmp_path, body, **QUEUES)
    async with Emulator(config, faults="request.GET./#1:crash_after") as emulator:
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        assert [item.body for item in emulator.queues["q"].backlog] == [
            "before",
            "in the background",
        ]


async def test_background_work_is_lost_with_its_isolate(tmp_path: Path) -> None:
    body = """
    async def later():
        try:
            await asyncio.sleep(5)
        finally:
            print("finally")
    if path == "/background":
        self.ctx.waitUntil(later())
    return Response("ok")
    """
    config = handler(tmp_path, body)
    async with Emulator(config, faults="request.GET./crash#1:crash_before") as emulator:
        await emulator.fetch("/background")
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/crash")
        await emulator.settle()
        assert [task.state for task in emulator.background] == ["lost"]
        assert lines(emulator) == []
        assert clock(emulator) == 0


async def test_a_crash_of_one_worker_leaves_the_others(tmp_path: Path) -> None:
    def named(name: str) -> dict[str, Any]:
        (tmp_path / name).mkdir()
        return handler(tmp_path / name, "await asyncio.sleep(1)\nreturn Response(path)", name=name)

    workers = [named("one"), named("two")]
    async with Emulator(workers, faults="request.GET./crash#1:crash_after") as emulator:
        results = await asyncio.gather(
            emulator.fetch("/crash", worker="one"),
            emulator.fetch("/fine", worker="two"),
            return_exceptions=True,
        )
        assert isinstance(results[0], WorkerCrashed)
        assert isinstance(results[1], httpx.Response)
        assert results[1].text == "/fine"


async def test_findings_of_a_struck_request_are_the_faults(tmp_path: Path) -> None:
    body = """
    asyncio.create_task(asyncio.sleep(9))
    raise ValueError("its own")
    """
    async with Emulator(handler(tmp_path, body), faults="request.GET./#1:lose_reply") as emulator:
        with pytest.raises(ReplyLost):
            await emulator.fetch("/")
        assert list(emulator.findings) == []
        await emulator.fetch("/")
        assert {finding.code for finding in emulator.findings} == {
            "floating_task",
            "handler_exception",
        }


async def test_faults_of_a_request_are_planned_while_others_wait(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, STEPS)) as emulator:
        first = asyncio.create_task(emulator.fetch("/", advance=False))
        await asyncio.sleep(0.01)
        emulator.faults.add("request.GET./#2:crash_before")
        with pytest.raises(WorkerCrashed):
            await emulator.fetch("/")
        with pytest.raises(WorkerCrashed):
            await first
        assert lines(emulator) == ["began"]


@pytest.mark.parametrize("action", ["crash_before", "crash_after", "lose_reply"])
async def test_the_class_of_a_request_fault(tmp_path: Path, action: str) -> None:
    async with Emulator(handler(tmp_path, STEPS)) as emulator:
        await emulator.fetch("/")
        assert emulator.faults.sites[0].actions[action] == "request"
        assert emulator.faults.sites[0].faults() != ()
        assert emulator.faults.sites[0].faults(("platform",)) == ()
