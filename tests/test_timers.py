"""What `emulator.clock.timers` says of what is pending."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from worker_files import handler

from emulator import Emulator

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.asyncio

SLEEPER = """
    async def nap():
        await asyncio.sleep(70)
    async with asyncio.timeout(90):
        await asyncio.gather(nap(), asyncio.sleep(60))
    return Response("")
"""


async def test_timers_are_listed_in_order_with_owner_and_line(tmp_path: Path) -> None:
    config = handler(tmp_path, SLEEPER)
    lines = (tmp_path / "src" / "entry.py").read_text().splitlines()

    def line(text: str) -> str:
        number = next(index for index, found in enumerate(lines, 1) if text in found)
        return f"entry.py:{number}"

    async with Emulator(config) as emulator:
        assert emulator.clock.timers == []
        request = asyncio.create_task(emulator.fetch("/", advance=False))
        await emulator.advance(1)

        pending = emulator.clock.timers
        found = [(timer.due - emulator.clock.now, timer.owner, timer.location) for timer in pending]
        await emulator.advance(100)
        await request

    assert [due for due, _, _ in found] == [timedelta(seconds=s) for s in (59, 69, 89)]
    assert {owner for _, owner, _ in found} == {"request GET /"}
    assert all(timer.line == timer.location for timer in pending)
    assert [place for _, _, place in found[1:]] == [
        line("await asyncio.sleep(70)"),
        line("await asyncio.gather"),
    ]


async def test_platforms_own_timers_have_an_owner_and_no_line(tmp_path: Path) -> None:
    queues = {"producers": [{"binding": "Q", "queue": "q"}], "consumers": [{"queue": "q"}]}
    config = {**handler(tmp_path, 'return Response("")'), "queues": queues}

    async with Emulator(config) as emulator:
        await emulator.queues["q"].send("hello")
        first = emulator.clock.timers[0]

    assert (first.due - emulator.now, first.location) == (timedelta(seconds=5), None)
    assert first.owner == "queue q: the next batch"
