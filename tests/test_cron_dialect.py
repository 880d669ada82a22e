"""Cron expressions as Cloudflare reads them (its own parser, saffron)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from emulator.cron_dialect import BadCron, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

START = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday


def instants(expression: str, start: datetime = START) -> Iterator[datetime]:
    times = parse(expression)
    moment: datetime | None = start
    while (moment := times.after(moment or start)) is not None:
        yield moment


def first(expression: str, count: int) -> list[str]:
    return [f"{at:%a %Y-%m-%d %H:%M}" for at in islice(instants(expression), count)]


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("* * * * *", ["Thu 2026-01-01 00:01", "Thu 2026-01-01 00:02"]),
        ("*/30 * * * *", ["Thu 2026-01-01 00:30", "Thu 2026-01-01 01:00"]),
        ("0 17 * * sun", ["Sun 2026-01-04 17:00", "Sun 2026-01-11 17:00"]),
        ("0 17 * * 1", ["Sun 2026-01-04 17:00", "Sun 2026-01-11 17:00"]),
        ("10 7 * * MON-fri", ["Thu 2026-01-01 07:10", "Fri 2026-01-02 07:10"]),
        ("10 7 * * 2-6", ["Thu 2026-01-01 07:10", "Fri 2026-01-02 07:10"]),
        ("0 0 * * FRI-MON", ["Fri 2026-01-02 00:00", "Sat 2026-01-03 00:00"]),
        ("0 22-1 * * *", ["Thu 2026-01-01 01:00", "Thu 2026-01-01 22:00"]),
        ("0 22-4/3 * * *", ["Thu 2026-01-01 01:00", "Thu 2026-01-01 04:00"]),
        ("5/25 0 * * *", ["Thu 2026-01-01 00:05", "Thu 2026-01-01 00:30"]),
        ("0 15 1 * *", ["Thu 2026-01-01 15:00", "Sun 2026-02-01 15:00"]),
        ("0 0 1 feb,4 *", ["Sun 2026-02-01 00:00", "Wed 2026-04-01 00:00"]),
        ("0 18 * * 6L", ["Fri 2026-01-30 18:00", "Fri 2026-02-27 18:00"]),
        ("0 18 * * friL", ["Fri 2026-01-30 18:00", "Fri 2026-02-27 18:00"]),
        ("0 0 * * L", ["Sat 2026-01-03 00:00", "Sat 2026-01-10 00:00"]),
        ("0 10 * * MON#2", ["Mon 2026-01-12 10:00", "Mon 2026-02-09 10:00"]),
        ("0 0 L * *", ["Sat 2026-01-31 00:00", "Sat 2026-02-28 00:00"]),
        ("0 0 L-3 * *", ["Wed 2026-01-28 00:00", "Wed 2026-02-25 00:00"]),
        ("59 23 LW * *", ["Fri 2026-01-30 23:59", "Fri 2026-02-27 23:59"]),
        ("0 0 L-2W * *", ["Thu 2026-01-29 00:00", "Thu 2026-02-26 00:00"]),
        ("0 0 15W * *", ["Thu 2026-01-15 00:00", "Mon 2026-02-16 00:00"]),
        ("0 0 28W 2 *", ["Fri 2026-02-27 00:00", "Fri 2027-02-26 00:00"]),
        ("0 0 1W * *", ["Mon 2026-02-02 00:00", "Mon 2026-03-02 00:00"]),
        ("0 0 1W 8 *", ["Mon 2026-08-03 00:00", "Mon 2027-08-02 00:00"]),
        ("0 0 13 * FRI", ["Fri 2026-01-02 00:00", "Fri 2026-01-09 00:00", "Tue 2026-01-13 00:00"]),
        ("0 0 */2 * MON", ["Sat 2026-01-03 00:00", "Mon 2026-01-05 00:00"]),
        ("0 0 29 2 *", ["Tue 2028-02-29 00:00", "Sun 2032-02-29 00:00"]),
        ("0 0 31 2 *", []),
    ],
)
def test_instants(expression: str, times: list[str]) -> None:
    assert first(expression, max(len(times), 1)) == times


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("0 22 * * 0", "'0' is no day of the week: 1 to 7 or SUN to SAT"),
        ("0 22 * * 8", "'8' is no day of the week: 1 to 7 or SUN to SAT"),
        ("60 * * * *", "'60' is no minute: 0 to 59"),
        ("*/60 * * * *", "'*/60' is no minute: 0 to 59"),
        ("*/0 * * * *", "'*/0' is no minute: 0 to 59"),
        ("*,5 * * * *", "'*' is no minute: 0 to 59"),
        ("-5 * * * *", "'-5' is no minute: 0 to 59"),
        ("5- * * * *", "'5-' is no minute: 0 to 59"),
        (", * * * *", "'' is no minute: 0 to 59"),
        ("* 24 * * *", "'24' is no hour: 0 to 23"),
        ("* * 0 * *", "'0' is no day of the month: 1 to 31"),
        ("* * 32W * *", "'32' is no day of the month: 1 to 31"),
        ("* * L-31 * *", "'L-31' is no day of the month: 1 to 31"),
        ("* * L-0 * *", "'L-0' is no day of the month: 1 to 31"),
        ("* * 1,L * *", "'L' is no day of the month: 1 to 31"),
        ("* * * 13 *", "'13' is no month: 1 to 12 or JAN to DEC"),
        ("* * * MON *", "'MON' is no month: 1 to 12 or JAN to DEC"),
        ("* * * * MON#6", "'MON#6' is no day of the week: 1 to 7 or SUN to SAT"),
        ("* * * * MON#0", "'MON#0' is no day of the week: 1 to 7 or SUN to SAT"),
        (
            "* * * *",
            "it has 4 fields; write minute, hour, day of the month, month",
        ),
        ("0 0 0 * * *", "it has 6 fields; write minute"),
        ("@daily", "it has 1 fields"),
        ("", "it has 0 fields"),
        (" * * * * *", "it has 5 fields"),
        ("\u0661 * * * *", "is no minute: 0 to 59"),
    ],
)
def test_what_cannot_be_deployed(expression: str, text: str) -> None:
    with pytest.raises(BadCron) as caught:
        parse(expression)
    assert text in str(caught.value)


def test_an_instant_is_later_than_the_one_asked_for() -> None:
    at = START + timedelta(hours=1)
    hourly = parse("0 * * * *")
    assert hourly.after(at) == at + timedelta(hours=1)
    assert hourly.after(at - timedelta(microseconds=1)) == at
    assert hourly.after(at + timedelta(seconds=59)) == at + timedelta(hours=1)


def fields(least: int, most: int) -> st.SearchStrategy[str]:
    value = st.integers(least, most)
    # Of one value cronsim takes `3-3/2` for `3/2`.
    pairs = st.tuples(value, value).filter(lambda pair: pair[0] < pair[1])
    spans = pairs.map(lambda pair: f"{pair[0]}-{pair[1]}")
    steps = st.tuples(st.one_of(st.just("*"), spans), st.integers(1, most)).map(
        lambda pair: f"{pair[0]}/{pair[1]}"
    )
    return st.lists(st.one_of(value.map(str), spans, steps), min_size=1, max_size=3).map(",".join)


FIELDS = (fields(0, 59), fields(0, 23), fields(1, 28), fields(1, 12), fields(1, 7))


@given(
    minute=FIELDS[0],
    hour=FIELDS[1],
    month=FIELDS[3],
    days=st.one_of(
        st.just(("*", "*")),
        FIELDS[2].map(lambda day: (day, "*")),
        FIELDS[4].map(lambda day: ("*", day)),
    ),
)
def test_the_common_dialect_is_read_as_others_do(
    minute: str, hour: str, month: str, days: tuple[str, str]
) -> None:
    """cronsim counts the days of the week from 0, and `*/2` among them is 0, 2, 4, 6 to it."""
    day, weekday = days
    theirs = ",".join(_from_zero(part) for part in weekday.split(","))
    other = CronSim(f"{minute} {hour} {day} {month} {theirs}", START)
    ours = instants(f"{minute} {hour} {day} {month} {weekday}")
    assert list(islice(ours, 20)) == list(islice(other, 20))


def _from_zero(part: str) -> str:
    span, slash, step = part.partition("/")
    if span == "*":
        return f"0-6{slash}{step}" if slash else part
    return "-".join(str(int(value) - 1) for value in span.split("-")) + slash + step


def test_near_the_end_of_time_there_is_no_next_instant() -> None:
    last = datetime(9999, 1, 1, tzinfo=UTC)
    assert parse("0 0 29 2 *").after(last) is None
    assert parse("0 0 31 12 *").after(last) == datetime(9999, 12, 31, tzinfo=UTC)
