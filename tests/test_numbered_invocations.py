"""Invocations that are called the same have names of their own in the trace."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from workers import Response, WorkerEntrypoint, fetch

from emulator import Emulator

pytestmark = pytest.mark.asyncio


class Main(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        if request.url.endswith("/boom"):
            raise ValueError("boom")
        print(request.url)
        return Response("ok")

    async def scheduled(self, controller: Any, env: Any, ctx: Any) -> None:
        print("cron")


class Counter(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        value = int(await (await fetch("https://store.example/n")).text())
        await asyncio.sleep(1)
        await fetch("https://store.example/n", method="PUT", body=str(value + 1))
        return Response("ok")


def subjects(emulator: Emulator, kind: str) -> list[str]:
    return [event.subject for event in emulator.trace if event.kind == kind]


async def test_requests_of_one_path_are_told_apart() -> None:
    async with Emulator({"main": Main}) as emulator:
        await asyncio.gather(*(emulator.fetch(path) for path in ("/a?1", "/b", "/a?2")))
        await emulator.fetch("/a", method="POST")
        expected = ["request GET /a", "request GET /b", "request GET /a #2", "request POST /a"]
        for kind in ("request", "log", "response"):
            assert subjects(emulator, kind) == expected
        assert [site.name for site in emulator.faults.sites if site.name != "schedule"] == [
            *("request.GET./a", "request.GET./b", "request.GET./a", "request.POST./a")
        ]


async def test_numbers_start_again_after_a_reset() -> None:
    async with Emulator({"main": Main}) as emulator:
        for _ in range(2):
            await emulator.fetch("/")
            await emulator.fetch("/")
            assert subjects(emulator, "request") == ["request GET /", "request GET / #2"]
            await emulator.reset()


async def test_numbers_go_on_after_a_restart() -> None:
    async with Emulator({"main": Main}) as emulator:
        await emulator.fetch("/")
        await emulator.restart()
        await emulator.fetch("/")
        assert subjects(emulator, "request") == ["request GET /", "request GET / #2"]


async def test_runs_of_one_cron_are_told_apart() -> None:
    async with Emulator({"main": Main}) as emulator:
        for _ in range(2):
            await emulator.scheduled("0 * * * *")
        expected = ["scheduled 0 * * * *", "scheduled 0 * * * * #2"]
        assert subjects(emulator, "scheduled") == subjects(emulator, "log") == expected


async def test_a_cron_run_that_a_fault_missed_is_lost() -> None:
    async with Emulator({"main": Main}, faults="cron.worker#1:miss") as emulator:
        for _ in range(2):
            await emulator.scheduled("0 * * * *")
        assert subjects(emulator, "lost") == ["scheduled 0 * * * *"]
        assert subjects(emulator, "scheduled") == ["scheduled 0 * * * * #2"]
        assert "x  scheduled 0 * * * *" in emulator.trace.render()


async def test_a_finding_of_every_request_is_told_once() -> None:
    """It is about the code, which is the same for each of them."""
    async with Emulator({"main": Main}) as emulator:
        for _ in range(3):
            await emulator.fetch("/boom")
        (finding,) = emulator.findings
        assert finding.subject == "request GET /boom"
        assert finding.message == "request GET /boom: ValueError: boom"
        assert subjects(emulator, "finding")[1:] == ["request GET /boom #2", "request GET /boom #3"]


@pytest.mark.parametrize("at_a_time", [True, False])
async def test_an_update_that_another_request_overwrote(at_a_time: bool, respx_mock: Any) -> None:
    value = [0]

    def store(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            value[0] = int(request.content)
        return httpx.Response(200, text=str(value[0]))

    respx_mock.route(host="store.example").mock(side_effect=store)
    async with Emulator({"main": Counter}) as emulator:
        if at_a_time:
            await asyncio.gather(emulator.fetch("/"), emulator.fetch("/"))
            with pytest.raises(AssertionError, match=r"request GET / #2 wrote store.example/n"):
                emulator.check.no_lost_update("store.example/n")
        else:
            await emulator.fetch("/")
            await emulator.fetch("/")
            emulator.check.no_lost_update("store.example/n")
    assert value == [1 if at_a_time else 2]
