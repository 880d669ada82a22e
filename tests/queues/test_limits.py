"""Sizes and counts, in both profiles and both forms of error text.

Numbers such as 1.12 are rules of the reference on Cloudflare Queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyodide.ffi import JsException
from workbench import worker

from emulator import Emulator
from emulator.queues.limits import Refused, as_error, check, internal_error
from emulator.queues.model import SECOND, Outgoing

if TYPE_CHECKING:
    from emulator.queues.limits import Verb
    from emulator.queues.model import Profile

EXPOSED = frozenset({"queue_expose_error_codes"})
PLAIN: frozenset[str] = frozenset()


def refusal(
    verb: Verb, sizes: list[int], profile: Profile, flags: frozenset[str], delay: int | None = None
) -> str:
    """How a send of messages of these sizes is refused; "" if it is not."""
    messages = [Outgoing("id", bytes(size), "bytes", delay) for size in sizes]
    try:
        check(verb, messages, profile)
    except Refused as refused:
        return str(as_error(refused, verb, profile, flags))
    return ""


@pytest.mark.parametrize("profile", ["production", "miniflare"])
@pytest.mark.parametrize(
    ("verb", "sizes"),
    [
        ("send", [128_000]),
        ("send", [0]),
        ("sendBatch", [1] * 100),
        ("sendBatch", [128_000, 128_000]),
        ("sendBatch", [2_560] * 100),
    ],
)
def test_what_is_exactly_at_a_limit_passes(verb: Verb, sizes: list[int], profile: Profile) -> None:
    """1.12; (a) 16 to 18"""
    assert refusal(verb, sizes, profile, PLAIN) == ""


@pytest.mark.parametrize(
    ("verb", "sizes", "cause", "code"),
    [
        ("send", [128_001], "message length of 128001 bytes exceeds limit of 128000", 10204),
        ("sendBatch", [1] * 101, "batch message count of 101 exceeds limit of 100", 10206),
        (
            "sendBatch",
            [1, 128_001],
            "message in batch has length 128001 bytes which exceeds single message size limit of "
            "128000",
            10204,
        ),
        (
            "sendBatch",
            [128_000, 128_000, 1],
            "batch size of 256001 bytes exceeds limit of 256000 bytes",
            10205,
        ),
    ],
)
def test_beyond_a_limit_production_explains(
    verb: Verb, sizes: list[int], cause: str, code: int
) -> None:
    """1.12, 1.13; (a) 16 to 18, 56; S-05"""
    text = f"Error: Queue {verb} failed: {cause}"
    assert refusal(verb, sizes, "production", PLAIN) == text
    assert refusal(verb, sizes, "production", EXPOSED) == f"Error: {cause} ({code})"


@pytest.mark.parametrize(
    ("verb", "sizes", "cause"),
    [
        ("send", [128_001], "message length of 128001 bytes exceeds limit of 128000"),
        ("sendBatch", [1] * 101, "batch message count of 101 exceeds limit of 100"),
        ("sendBatch", [96_000] * 3, ""),
        (
            "sendBatch",
            [96_001, 96_000, 96_000],
            "batch size of 288001 bytes exceeds limit of 288000",
        ),
    ],
)
def test_the_local_runtime_has_its_own_limits(verb: Verb, sizes: list[int], cause: str) -> None:
    """Recordings queue_size_errors and queue_size_errors_cd2025"""
    text = f"Error: Queue {verb} failed: {cause}" if cause else ""
    assert refusal(verb, sizes, "miniflare", PLAIN) == text
    exposed = "Error: Unknown Internal Error (15000)" if cause else ""
    assert refusal(verb, sizes, "miniflare", EXPOSED) == exposed


def test_count_comes_before_the_largest_and_that_before_the_total() -> None:
    """1.12"""
    for sizes, word in (
        ([128_001] * 101, "count"),
        ([128_001] * 100, "single message"),
        ([128_000] * 100, "batch size"),
    ):
        assert word in refusal("sendBatch", sizes, "production", PLAIN)


@pytest.mark.parametrize("delay", [-1, 86_401])
def test_a_delay_out_of_range(delay: int) -> None:
    """1.9"""
    text = refusal("send", [1], "production", PLAIN, delay * SECOND)
    assert (
        text == f"Error: Queue send failed: message delay of {delay} s is not between 0 and 86400 s"
    )
    text = refusal("sendBatch", [1], "miniflare", PLAIN, delay * SECOND)
    assert text == "Error: Queue sendBatch failed: Internal Server Error"


def test_the_error_of_a_service_that_fails() -> None:
    """1.13"""
    assert str(internal_error("send", PLAIN)) == "Error: Queue send failed: Internal Server Error"
    assert str(internal_error("sendBatch", EXPOSED)) == "Error: Unknown Internal Error (15000)"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("date", "text"),
    [
        (
            "2026-03-11",
            "Error: Queue send failed: message length of 128001 bytes exceeds limit of 128000",
        ),
        ("2026-03-12", "Error: message length of 128001 bytes exceeds limit of 128000 (10204)"),
    ],
)
async def test_the_text_depends_on_the_compatibility_date(date: str, text: str) -> None:
    """1.13; (a) 56"""

    async def produce(worker: Any) -> str:
        try:
            # The JSON of it has two quotes more.
            await worker.env.Q.send("x" * 127_999)
        except JsException as error:
            return str(error)
        return "sent"

    config = worker(produce, compatibility_date=date, compatibility_flags=["python_workers"])
    async with Emulator(config) as emulator:
        assert (await emulator.fetch("/")).json() == text
        with pytest.raises(JsException, match="exceeds limit") as info:
            await emulator.queues["q"].send("x" * 127_999)
        assert str(info.value) == text
        await emulator.queues["q"].send("x" * 127_998)
