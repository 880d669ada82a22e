"""Cron triggers that fire as virtual time passes, and their faults."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import worker

from emulator import ConfigError, Emulator, sweep

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
ENTRY = """
    import asyncio
    from workers import Response, WorkerEntrypoint

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            await asyncio.sleep(2 * 3600)
            return Response("slept")

        async def scheduled(self, controller, env, ctx):
            print(controller.cron, controller.scheduledTime // 1000 - 1767225600)
            await asyncio.sleep(1)
            print("end")
"""


def hourly(folder: Path, *crons: str, **config: Any) -> dict[str, Any]:
    return worker(folder, ENTRY, triggers={"crons": list(crons or ("0 * * * *",))}, **config)


def runs(emulator: Emulator) -> list[str]:
    return [log.text for log in emulator.logs if log.level == "log" and log.text != "end"]


def ends(emulator: Emulator) -> int:
    return sum(log.text == "end" for log in emulator.logs)


async def test_a_trigger_fires_at_its_time(tmp_path: Path) -> None:
    async with Emulator(hourly(tmp_path)) as emulator:
        await emulator.advance("59 minutes 59 seconds")
        assert runs(emulator) == []
        await emulator.advance(1)
        assert runs(emulator) == ["0 * * * * 3600"]
        assert ends(emulator) == 0
        await emulator.advance("2 hours")
        assert runs(emulator) == [f"0 * * * * {n * 3600}" for n in (1, 2, 3)]
        assert ends(emulator) == 2
        assert emulator.now == START + timedelta(hours=3)


async def test_several_triggers_fire_in_order_of_time(tmp_path: Path) -> None:
    async with Emulator(hourly(tmp_path, "30 * * * *", "0 1 * * *", "30 * * * *")) as emulator:
        await emulator.advance("2 hours")
        assert runs(emulator) == ["30 * * * * 1800", "0 1 * * * 3600", "30 * * * * 5400"]


async def test_nothing_waits_for_a_trigger(tmp_path: Path) -> None:
    async with Emulator(hourly(tmp_path)) as emulator:
        await emulator.settle()
        assert emulator.now == START
        assert runs(emulator) == []


async def test_triggers_fire_on_the_way_and_never_move_the_clock(tmp_path: Path) -> None:
    async with Emulator(hourly(tmp_path)) as emulator:
        assert (await emulator.fetch("/")).text == "slept"
        assert emulator.now == START + timedelta(hours=2)
        assert len(runs(emulator)) == 2
        await emulator.settle()
        assert len(runs(emulator)) == ends(emulator) == 2


async def test_the_local_runtime_fires_none(tmp_path: Path) -> None:
    async with Emulator(hourly(tmp_path), profile="miniflare") as emulator:
        await emulator.advance("1 day")
        assert runs(emulator) == []
        assert await emulator.scheduled() == ("ok", None)


async def test_reset_starts_them_anew_and_a_crash_does_not_matter(tmp_path: Path) -> None:
    async with Emulator(hourly(tmp_path)) as emulator:
        await emulator.advance("90 minutes")
        await emulator.restart()
        await emulator.crash()
        await emulator.evict()
        await emulator.advance("30 minutes")
        assert len(runs(emulator)) == 2
        await emulator.reset()
        await emulator.advance("1 hour")
        assert runs(emulator) == ["0 * * * * 3600"]


async def test_a_state_file_goes_on_with_the_next_one(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    config = hourly(tmp_path)
    async with Emulator(config, state=state) as emulator:
        await emulator.advance("90 minutes")
    async with Emulator(config, state=state) as emulator:
        await emulator.advance("29 minutes")
        assert runs(emulator) == []
        await emulator.advance("1 minute")
        assert runs(emulator) == ["0 * * * * 7200"]


async def test_a_failing_run_is_logged_and_not_repeated(tmp_path: Path) -> None:
    entry = ENTRY.replace('print("end")', 'raise ValueError("boom")')
    config = worker(tmp_path, entry, triggers={"crons": ["0 0 * * *"]})
    async with Emulator(config) as emulator:
        await emulator.advance("36 hours")
        assert [log.level for log in emulator.logs] == ["log", "error"]
        assert emulator.logs[1].text.endswith("ValueError: boom")
        assert list(emulator.findings) == []


@pytest.mark.parametrize(
    ("action", "times", "complete"),
    [
        ("duplicate", [3600, 3600], 2),
        ("duplicate(30 min)", [3600, 3600], 2),
        ("miss", [], 0),
        ("crash_before", [], 0),
        ("fail", [], 0),
        ("crash_after", [3600], 1),
    ],
)
async def test_faults(tmp_path: Path, action: str, times: list[int], complete: int) -> None:
    async with Emulator(hourly(tmp_path), faults=[f"cron.worker#1:{action}"]) as emulator:
        await emulator.advance("1 hour 59 minutes")
        assert runs(emulator) == [f"0 * * * * {at}" for at in times]
        assert ends(emulator) == complete
        assert [str(fault) for fault in emulator.faults.fired] == [f"cron.worker#1:{action}"]
        crashes = [event.subject for event in emulator.trace if event.kind == "crash"]
        assert crashes == (["worker worker"] if "crash" in action else [])
        await emulator.advance("2 minutes")
        assert runs(emulator)[len(times) :] == ["0 * * * * 7200"]
        assert list(emulator.findings) == []


@pytest.mark.parametrize(
    ("actions", "complete"),
    [
        (["duplicate", "duplicate(30 min)"], 3),
        (["duplicate", "miss"], 1),
        (["duplicate(30 min)", "crash_before"], 1),
    ],
)
async def test_several_faults_of_one_run(tmp_path: Path, actions: list[str], complete: int) -> None:
    plan = [f"cron.worker#1:{action}" for action in actions]
    async with Emulator(hourly(tmp_path), faults=plan) as emulator:
        await emulator.advance("1 hour 59 minutes")
        assert ends(emulator) == complete
        assert [str(fault) for fault in emulator.faults.fired] == plan


@pytest.mark.parametrize(
    ("action", "outcome"),
    [("miss", "canceled"), ("crash_before", "canceled"), ("crash_after", "canceled")],
)
async def test_faults_strike_runs_of_the_test_too(
    tmp_path: Path, action: str, outcome: str
) -> None:
    async with Emulator(hourly(tmp_path), faults=[f"cron.worker#1:{action}"]) as emulator:
        assert await emulator.scheduled() == (outcome, None)
        assert await emulator.scheduled() == ("ok", None)
        assert [(site.name, site.occurrence) for site in emulator.faults.sites] == [
            ("cron.worker", 1),
            ("cron.worker", 2),
        ]


async def test_a_run_that_fails_by_a_fault_says_so(tmp_path: Path) -> None:
    async with Emulator(hourly(tmp_path), faults=["cron.worker#1:fail"]) as emulator:
        outcome, error = await emulator.scheduled()
        assert (outcome, str(error)) == ("exception", "Error: internal error")
        assert runs(emulator) == []


async def test_a_sweep_finds_what_is_not_idempotent(tmp_path: Path) -> None:
    async def scenario(emulator: Emulator) -> None:
        await emulator.advance("1 hour")
        await emulator.settle()
        assert len(runs(emulator)) == 1

    report = await sweep(scenario, hourly(tmp_path))
    plans = ["; ".join(map(str, failure.plan)) for failure in report.failures]
    assert plans == [
        "cron.worker#1:duplicate",
        "cron.worker#1:duplicate(1 h)",
        "cron.worker#1:crash_before",
    ]


async def test_what_cannot_be_deployed_is_a_config_error(tmp_path: Path) -> None:
    text = (
        "config: triggers.crons has \"0 0 * * 0\", but '0' is no day of the week: 1 to 7 or SUN to "
        "SAT (Cloudflare: invalid cron string [code: 10100])"
    )
    with pytest.raises(ConfigError, match=re.escape(text)):
        Emulator(hourly(tmp_path, "0 0 * * 0"))


async def test_what_never_fires_is_a_warning(tmp_path: Path) -> None:
    with pytest.warns(match="never fires: no month has such a day"):
        Emulator(hourly(tmp_path, "0 0 31 2 *")).close()
