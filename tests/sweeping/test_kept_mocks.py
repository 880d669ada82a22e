"""respx over the runs of a sweep: it stays in httpcore, and nobody notices."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import httpcore
import httpx
import pytest
import respx
from respx.mocks import HTTPCoreMocker
from respx.models import AllMockedAssertionError
from workers import Response, WorkerEntrypoint, fetch

from emulator import SweepReport, sweep
from emulator.sweeping.kept_mocks import kept_mocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator import Emulator

THINGS = "https://api.example/things"


class Asks(WorkerEntrypoint):
    async def fetch(self, request):
        return Response(await (await fetch(THINGS)).text())


def run(scenario: Any, **options: Any) -> SweepReport:
    return asyncio.run(sweep(scenario, {"main": Asks}, determinism="in-process", **options))


def replaced() -> Any:
    return vars(httpcore.AsyncConnectionPool)["handle_async_request"]


def text_of(url: str) -> str:
    return httpx.get(url).text


@pytest.fixture
def server() -> Iterator[str]:
    """A real one, on this machine."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"real")

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Answer) as served:
        thread = threading.Thread(target=served.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}/"
        served.shutdown()
        thread.join()


def test_it_is_replaced_once_and_put_back_at_the_end() -> None:
    usual = replaced()
    seen: list[Any] = []

    async def scenario(emulator: Emulator) -> None:
        seen.append(replaced())
        with respx.mock(assert_all_called=False) as router:
            router.get(THINGS).respond(text="mocked")
            seen.append(replaced())
            with suppress(Exception):  # of a fault
                await emulator.fetch("/")
        seen.append(replaced())

    report = run(scenario, classes="all")
    assert report.runs > 3
    assert len(seen) == 3 * report.runs
    assert all(one is seen[0] for one in seen)
    assert seen[0] is not usual
    assert replaced() is usual
    assert HTTPCoreMocker.routers == []


def test_a_request_of_the_tests_own_goes_where_it_would(server: str) -> None:
    answers: list[str] = []

    async def scenario(emulator: Emulator) -> None:
        answers.append(text_of(server))
        async with httpx.AsyncClient() as client:
            answers.append((await client.get(server)).text)
        with respx.mock(assert_all_called=False) as router:
            router.get(THINGS).respond(text="mocked")
            answers.append(text_of(THINGS))
            with pytest.raises(AllMockedAssertionError, match=server):
                text_of(server)
            await emulator.fetch("/")

    report = run(scenario)
    assert answers == ["real", "real", "mocked"] * report.runs


def test_a_worker_without_a_mock_is_told_so() -> None:
    async def scenario(emulator: Emulator) -> None:
        await emulator.fetch("/")

    report = run(scenario)
    assert not report.passed
    assert f"GET {THINGS} is not mocked, and outbound requests are denied" in report.render()


def test_a_router_around_the_sweep_answers() -> None:
    async def scenario(emulator: Emulator) -> None:
        assert (await emulator.fetch("/")).text in ("mocked", "")

    with respx.mock(assert_all_called=False) as router:
        route = router.get(THINGS).respond(text="mocked")
        report = run(scenario)
        assert route.call_count >= 2
        assert httpx.get(THINGS).text == "mocked"
        with pytest.raises(AllMockedAssertionError, match="other"):
            httpx.get("https://other.example/")
    assert report.runs > 1


def test_it_is_put_back_where_a_router_stays_open() -> None:
    usual = replaced()
    with kept_mocks():
        router = respx.mock(assert_all_called=False)
        router.start()
    assert replaced() is not usual
    router.stop()
    assert replaced() is usual
