"""The clock of the dashboard, in a real browser."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from dashboard_browser import shown

if TYPE_CHECKING:
    from pathlib import Path

    from dashboard_browser import Dashboard

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_what_is_due_next_is_listed(dashboard: Dashboard) -> None:
    await dashboard.emulator.queues["jobs"].send("later", delaySeconds=7200)
    await dashboard.open("clock")
    await dashboard.sees("queue jobs", "2 h", "cron", "only when moved")


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("Move the clock on by 1 hour", timedelta(hours=1)),
        ("Move the clock on by 3 days", timedelta(days=3)),
        ("+1 minute", timedelta(minutes=1)),
    ],
)
async def test_clock_is_moved_by_a_button(dashboard: Dashboard, name: str, step: timedelta) -> None:
    before = dashboard.emulator.now
    await dashboard.open("clock")
    await dashboard.push(name)
    await dashboard.sees("Time moved on by")
    assert dashboard.emulator.now - before == step


async def test_clock_is_moved_to_the_next_event_exactly(dashboard: Dashboard) -> None:
    queue = dashboard.emulator.queues["jobs"]
    await queue.send("soon", delaySeconds=1)
    due = dashboard.emulator.clock.timers[0].due
    await dashboard.open("queues")
    await dashboard.push("Move the clock to what is due next")
    await dashboard.sees("Time moved on to what was due next")
    assert dashboard.emulator.now == due
    assert queue.acked == 1


async def test_clock_is_moved_by_any_duration(dashboard: Dashboard) -> None:
    before = dashboard.emulator.now
    await dashboard.open("clock")
    await dashboard.page.fill("[name=duration]", "2 h 30 min")
    await dashboard.push("Move")
    await dashboard.sees("Time moved on by 2 h 30 min")
    assert dashboard.emulator.now - before == timedelta(hours=2, minutes=30)
    dashboard.refusals = True
    await dashboard.page.fill("[name=duration]", "soon")
    await dashboard.push("Move")
    await dashboard.sees("'soon' is not a duration")


async def test_clock_of_the_machine_goes_on_by_itself(browser: Any, tmp_path: Path) -> None:
    async with shown(browser, tmp_path, clock="real") as dashboard:
        page = await dashboard.open("clock")
        await dashboard.sees("by the machine")
        first = await page.inner_text("#now")
        await page.wait_for_function(
            "first => document.getElementById('now').textContent > first", arg=first
        )
        await dashboard.push("Move the clock on by 3 days")
        await dashboard.sees("Ahead of the machine", "3 d")
