"""Retry delays (R1 to R3, S7) and errors that are not retried (E4)."""

from __future__ import annotations

import math

import pytest

from emulator.workflows.model import SECOND, DelayFailed, ErrorInfo, StepConfig
from emulator.workflows.retries import (
    MOST,
    given_delay,
    is_non_retryable,
    microseconds,
    retry_delay,
    will_retry,
)
from emulator.workflows.texts import delay_failed


def config(backoff="exponential", limit=5):
    return StepConfig(limit, 1000, backoff, "10 minutes")


@pytest.mark.parametrize(
    ("backoff", "seconds"),
    [
        ("constant", [2, 2, 2, 2, 2]),
        ("linear", [2, 4, 6, 8, 10]),
        ("exponential", [2, 4, 8, 16, 32]),
    ],
)
def test_the_backoff_multiplies_the_delay(backoff, seconds):
    """R1."""
    delays = [retry_delay(config(backoff), attempt, 2000) for attempt in range(1, 6)]
    assert delays == [second * SECOND for second in seconds]


def test_fractions_of_milliseconds_are_kept():
    """D1: `0.1 seconds`, and halves of a millisecond."""
    assert retry_delay(config("constant"), 1, 0.5) == 500


@pytest.mark.parametrize("attempt", [50, 101, 10_000])
def test_a_delay_always_fits_into_a_store(attempt):
    """R1 knows no cap; ours is later than any test looks."""
    assert retry_delay(config(), attempt, 1e300) == MOST
    assert retry_delay(config(), attempt, 31_557_600_000) <= MOST


@pytest.mark.parametrize(("limit", "attempts"), [(0, 1), (1, 2), (1.5, 2), (5, 6)])
def test_the_limit_counts_retries(limit, attempts):
    """S4, S7."""
    made = 1
    while will_retry(config(limit=limit), made):
        made += 1
    assert made == attempts


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (ErrorInfo("NonRetryableError", ""), True),
        (ErrorInfo("Error", "NonRetryableError: bad"), True),
        (ErrorInfo("Error", "NonRetryableErrors are many"), True),
        (ErrorInfo("Error", "a NonRetryableError"), False),
        (ErrorInfo("MyNonRetryableError", "bad"), False),
        (ErrorInfo("NonRetryableDelayError", "bad"), False),
    ],
)
def test_the_name_or_the_beginning_of_the_text_decides(error, found):
    """E4, E8."""
    assert is_non_retryable(error) is found


@pytest.mark.parametrize(("value", "base"), [(5, 5), ("2 seconds", 2000), ("", 0), (0, 0)])
def test_what_a_delay_function_may_return(value, base):
    """R3."""
    assert given_delay(value) == base


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "soon", None, True, [], "-1 second"])
def test_what_a_delay_function_may_not_return(value):
    """R3."""
    assert given_delay(value) is None


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (DelayFailed("threw", "nope"), "threw an error: nope"),
        (DelayFailed("timeout"), "did not return within 5 seconds"),
        (
            DelayFailed("invalid"),
            "returned an invalid delay value"
            ' (expected a number of ms or a duration string like "30 seconds")',
        ),
    ],
)
def test_how_a_delay_function_fails(failure, text):
    """R3."""
    expected = f'The delay function for step "s-2" {text}'
    assert delay_failed("s-2", failure) == ("NonRetryableDelayError", expected)


@pytest.mark.parametrize(
    ("milliseconds", "expected"), [(-5, 0), (math.nan, 0), (1.5, 1500), (math.inf, MOST)]
)
def test_numbers_become_durations(milliseconds, expected):
    """D2, D5: negative ones are none."""
    assert microseconds(milliseconds) == expected
