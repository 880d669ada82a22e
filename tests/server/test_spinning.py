"""What holds up the server's loop, and who says so."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
import threading

import pytest

from emulator.server.spinning import Watchdog, held_up_by
from emulator.sql.budget import Budget


@pytest.fixture
def loop():
    made = asyncio.new_event_loop()
    yield made
    made.close()


def looked(watchdog: Watchdog, times: int) -> None:
    """Look from another thread, as its own does, while this one stands here."""
    thread = threading.Thread(target=lambda: [watchdog.look() for _ in range(times)])
    thread.start()
    thread.join()


def turned(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_until_complete(asyncio.sleep(0))


def test_code_that_does_not_give_way_is_told_once_with_its_line(loop):
    said: list[str] = []
    watchdog = Watchdog(loop, said.append)

    looked(watchdog, 5)
    assert said == []
    looked(watchdog, 20)

    (line,) = said
    assert re.search(r"the Worker runs at .*test_spinning\.py:\d+, and nothing else could", line)


def test_a_loop_that_turns_again_is_watched_anew(loop):
    said: list[str] = []
    watchdog = Watchdog(loop, said.append)

    for _ in range(3):
        looked(watchdog, 5)
        turned(loop)
    assert said == []

    for _ in range(2):
        looked(watchdog, 6)
        turned(loop)
    assert len(said) == 2


def test_sql_that_runs_is_told_as_such(monkeypatch):
    seen: list[str | None] = []
    budget = Budget(10**9)
    connection = sqlite3.connect(":memory:")
    count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 99999) "

    class Steps:
        """Looks where a signal's handler would: in the callback."""

        def __get__(self, instance, owner):
            return instance.__dict__.get("asked", 0)

        def __set__(self, instance, value):
            instance.__dict__["asked"] = value
            if value:
                seen.append(held_up_by(sys._getframe(1)))

    monkeypatch.setattr(Budget, "asked", Steps(), raising=False)
    budget.install(connection)
    connection.execute(count + "SELECT count(*) FROM c")
    connection.close()

    assert seen
    assert str(seen[0]).startswith("SQL of the Worker runs at ")


def test_the_server_itself_is_nobodys_worker():
    assert held_up_by(None) is None
