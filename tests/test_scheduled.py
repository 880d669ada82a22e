"""`emulator.scheduled`: runs of the cron handler."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import handler, worker

from emulator import Emulator
from emulator.values import JsException

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)


def scheduled(folder: Path, body: str, **config: Any) -> dict[str, Any]:
    """A Worker whose `scheduled` handler has this body."""
    source = handler(folder, body, **config)
    path = folder / "src" / "entry.py"
    text = path.read_text()
    text = text.replace("fetch(self, request)", "scheduled(self, controller, env, ctx)")
    path.write_text(text.replace("urlsplit(request.url).path", "None"))
    return source


async def test_the_controller_has_the_cron_and_the_time_in_milliseconds(tmp_path: Path) -> None:
    """python-api.md 1.2: `scheduledTime` is an int, and there is no snake case."""
    body = """
        print(controller.cron, controller.scheduledTime, type(controller.scheduledTime).__name__)
        print(type(controller).__name__, hasattr(controller, "scheduled_time"), env, ctx)
        assert controller.noRetry() is None
    """
    config = scheduled(tmp_path, body, triggers={"crons": ["*/5 * * * *", "0 0 * * *"]})
    async with Emulator(config) as emulator:
        assert await emulator.scheduled() == ("ok", None)
        await emulator.advance(90)
        assert await emulator.scheduled(cron="0 0 * * *") == ("ok", None)
        at = datetime(2026, 3, 4, 5, 6, 7, 891_000, tzinfo=timezone(timedelta(hours=2)))
        assert await emulator.scheduled(time=at) == ("ok", None)
        texts = [log.text for log in emulator.logs]
    assert texts[0] == "*/5 * * * * 1767225600000 int"
    assert texts[1] == "JsProxy False None None"
    assert texts[2] == "0 0 * * * 1767225690000 int"
    assert texts[4] == f"*/5 * * * * {int(at.timestamp() * 1000)} int"


async def test_without_triggers_the_cron_is_empty(tmp_path: Path) -> None:
    async with Emulator(scheduled(tmp_path, "print(repr(controller.cron))")) as emulator:
        await emulator.scheduled()
        assert [log.text for log in emulator.logs] == ["''"]


async def test_a_time_without_a_zone_is_refused(tmp_path: Path) -> None:
    async with Emulator(scheduled(tmp_path, "")) as emulator:
        with pytest.raises(ValueError, match="has no time zone"):
            await emulator.scheduled(time=datetime(2026, 1, 1))


async def test_a_failing_handler_is_the_outcome_and_not_raised(tmp_path: Path) -> None:
    async with Emulator(scheduled(tmp_path, "raise ValueError('boom')")) as emulator:
        outcome, error = await emulator.scheduled()
        assert outcome == "exception"
        assert isinstance(error, ValueError)
        (log,) = emulator.logs
        assert (log.level, log.text.splitlines()[-1]) == ("error", "ValueError: boom")
        assert list(emulator.findings) == []


async def test_it_returns_when_the_background_work_is_done(tmp_path: Path) -> None:
    body = """
        async def later():
            await asyncio.sleep(60)
            print("later")
        self.ctx.waitUntil(later())
        await asyncio.sleep(5)
    """
    async with Emulator(scheduled(tmp_path, body)) as emulator:
        assert await emulator.scheduled() == ("ok", None)
        assert emulator.now - START == timedelta(seconds=60)
        assert [task.event for task in emulator.background] == ["scheduled"]


async def test_a_failure_in_the_background_is_the_outcome_and_a_finding(tmp_path: Path) -> None:
    body = """
        async def fails():
            raise ValueError("background")
        waitUntil(fails())
    """
    async with Emulator(scheduled(tmp_path, body)) as emulator:
        outcome, error = await emulator.scheduled()
        assert (outcome, str(error)) == ("exception", "background")
        assert [finding.code for finding in emulator.findings] == ["background_error"]


async def test_a_worker_without_the_handler(tmp_path: Path) -> None:
    async with Emulator(handler(tmp_path, "return Response('')")) as emulator:
        outcome, error = await emulator.scheduled()
    assert outcome == "exception"
    assert isinstance(error, JsException)
    assert str(error) == "Error: Handler does not export a scheduled() function"


async def test_a_run_that_a_crash_cuts_off_is_canceled(tmp_path: Path) -> None:
    body = "try:\n    await asyncio.sleep(60)\nfinally:\n    print('never')"
    async with Emulator(scheduled(tmp_path, body)) as emulator:
        with emulator.hold():
            run = asyncio.ensure_future(emulator.scheduled())
            await asyncio.sleep(0)
            await emulator.crash()
            assert await run == ("canceled", None)
        await emulator.settle()
        assert list(emulator.logs) == []
        assert emulator.now == START  # nothing is left to wait for


async def test_a_named_worker_runs(tmp_path: Path) -> None:
    configs = [
        scheduled(tmp_path / name, f"print({name!r})", name=name) for name in ("first", "second")
    ]
    async with Emulator(configs) as emulator:
        await emulator.scheduled(worker="second")
        assert [(log.worker, log.text) for log in emulator.logs] == [("second", "second")]
        with pytest.raises(KeyError, match="no Worker 'third'; there are: first, second"):
            await emulator.scheduled(worker="third")


async def test_runs_and_requests_share_the_isolate(tmp_path: Path) -> None:
    source = """
        from workers import Response, WorkerEntrypoint
        runs = []
        class Default(WorkerEntrypoint):
            async def scheduled(self, controller, env, ctx):
                runs.append(controller.cron)
            async def fetch(self):
                return Response(str(runs))
    """
    async with Emulator(worker(tmp_path, source)) as emulator:
        await emulator.scheduled(cron="a")
        await emulator.scheduled(cron="b")
        assert (await emulator.fetch("/")).text == "['a', 'b']"


async def test_whether_a_handler_asks_for_no_retry_is_told(tmp_path: Path) -> None:
    """workerd, `api/scheduled.h`: `noRetry` of the controller."""
    body = "if controller.cron == 'once':\n    controller.noRetry()"
    async with Emulator(scheduled(tmp_path, body)) as emulator:
        assert (await emulator.scheduled(cron="once")).no_retry is True
        assert (await emulator.scheduled(cron="often")).no_retry is False
        assert await emulator.scheduled(cron="once") == ("ok", None)


async def test_a_run_has_15_minutes(tmp_path: Path) -> None:
    async with Emulator(scheduled(tmp_path, "await asyncio.sleep(3600)")) as emulator:
        assert await emulator.scheduled() == ("exceededWallTime", None)
        assert emulator.now - START == timedelta(minutes=15)
