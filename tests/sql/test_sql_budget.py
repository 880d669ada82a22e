"""Statements that never end: the budget, and signals meanwhile (`emulator.sql.budget`)."""

from __future__ import annotations

import random
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from emulator.sql import Database, Source, SqlError
from emulator.sql.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
FILL = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) INSERT INTO t SELECT x FROM c"
)
TOO_LONG = "Durable Object exceeded its CPU time limit and was reset."


@contextmanager
def opened(steps: int, path: Path | None = None) -> Iterator[Database]:
    made = Database(path, Source(lambda: 0, random.Random(7).randbytes), Limits(steps=steps))
    try:
        yield made
    finally:
        made.close()


def first_to(count: int) -> str:
    return (
        f"{ENDLESS[: ENDLESS.index(' FROM c)')]} FROM c WHERE x < {count}) SELECT count(*) FROM c"
    )


@pytest.mark.parametrize("sql", [ENDLESS, f"SELECT 1; {ENDLESS}", f"{ENDLESS}; SELECT 1"])
def test_a_statement_that_takes_more_than_its_budget_fails_with_the_platforms_text(sql):
    with opened(1_000_000) as database:
        with pytest.raises(SqlError) as raised:
            database.run(sql)

        assert str(raised.value) == TOO_LONG
        assert database.run("SELECT 1").rows == [(1,)]


def test_each_statement_has_the_whole_budget():
    with opened(1_000_000) as database:
        for _ in range(5):  # some 700,000 instructions each
            assert database.run(first_to(50_000)).rows == [(50_000,)]


def test_a_reading_that_never_ends_fails_too():
    with opened(1_000_000) as database:
        reading = database.open(ENDLESS.replace("count(*)", "1") + " WHERE x < 0 OR x = 5")

        with pytest.raises(SqlError, match="exceeded its CPU time limit"):
            list(iter(reading.fetch, None))


def test_what_was_written_before_a_statement_that_never_stops_writing_stays(tmp_path):
    with opened(1_000_000, tmp_path / "d.sqlite") as database:
        database.run("CREATE TABLE t (x)")
        database.run("INSERT INTO t VALUES (0)")

        with pytest.raises(SqlError, match="exceeded its CPU time limit"):
            database.run(FILL)

        assert database.run("SELECT x FROM t").rows == [(0,)]


@contextmanager
def struck(kind: type[BaseException]) -> Iterator[None]:
    """A time-out's signal that strikes soon and raises this."""

    def strike(number: int, frame: FrameType | None) -> None:
        raise kind("struck")

    before = signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_what_a_signals_handler_raises_ends_a_statement_and_comes_out_as_it_is(kind):
    with opened(10**15) as database:
        with pytest.raises(kind, match=r"^struck$"), struck(kind):
            database.run(ENDLESS)
        assert database.run("SELECT 1").rows == [(1,)]


def test_a_transaction_can_be_undone_whose_statement_a_signal_ended():
    with opened(10**15) as database:
        database.run("CREATE TABLE t (x)")
        database.flush()
        database.begin()

        with pytest.raises(KeyboardInterrupt), struck(KeyboardInterrupt):
            database.run(FILL)
        database.rollback()

        assert database.levels == 0
        assert database.run("SELECT count(*) FROM t").rows == [(0,)]
