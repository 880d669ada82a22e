"""The pump on a real clock, driven by uvloop: its timers are of whole milliseconds."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest
from test_real_time import Driven

from emulator.clock import RealClock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="uvloop has no Windows build")


def test_what_falls_due_within_a_millisecond_runs() -> None:
    """A timer fires early there, and is none at all where less than half of one is left."""
    uvloop = pytest.importorskip("uvloop")
    names = [str(number) for number in range(60)]

    async def main() -> None:
        with Driven(RealClock(lambda: time.time_ns() // 1000)) as driven:
            for number, name in enumerate(names, 1):
                driven.after(0.00013 * number, name)
                async with asyncio.timeout(10):
                    while len(driven.ran) < number:  # noqa: ASYNC110 (it tells nobody)
                        await asyncio.sleep(0.0004)
            assert [name for name, _ in driven.ran] == names

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
