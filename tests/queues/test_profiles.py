"""Every documented rule of Queues in which the local runtime differs from the service.

Each test runs both profiles and compares what comes of it, production first. Numbers such as 2.10
are rules of the reference on Cloudflare Queues, `(b) 12` its surprises. Differences whose tests
stand elsewhere:

    1.6           how the type of a missing body is called
                  test_producer: test_send_wants_a_body
    1.9           a delay out of range
                  test_producer: test_the_service_refuses_a_delay_beyond_a_day
    1.11, (b) 14  `producers[].delivery_delay`
                  test_producer: test_the_delivery_delay_of_a_producer_counts_only_locally
    1.17          a send that nobody awaits
                  test_producer: test_a_send_that_nobody_awaits
    2.6, (b) 18   the class of bytes
                  test_consumer: test_bytes_as_old_dates_see_them
    2.10, (b) 2   acks of a batch that fails
                  test_consumer: test_what_the_calls_on_a_batch_mean
    3.1           ranges of settings, and the texts of what is out of them
                  test_config: test_miniflare_refuses_in_its_own_words
    3.10, (b) 16  a queue that nobody consumes
                  test_producer: test_a_queue_that_nobody_consumes
    3.11, 4.5     the log of a dead letter
                  test_consumer: test_a_dead_letter_keeps_id_and_timestamp
    8.1           the queue of a producer that names none
                  test_config: test_a_producer_without_a_queue_gets_the_one_the_platform_makes

The other differences of (b) are between the service and what people believe, not between profiles;
`test_scenarios` has them.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyodide.ffi import JsException
from workbench import PROFILES, batches, bodies, clock, codes, deliveries, worker

from emulator import ConfigError, Emulator

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.asyncio

AT_ONCE = {"max_batch_timeout": 0}


async def both(scenario: Callable[[str], Awaitable[Any]]) -> tuple[Any, Any]:
    """What comes of a scenario in production, and in the local runtime."""
    production, miniflare = [await scenario(profile) for profile in PROFILES]
    return production, miniflare


def accept(batch: Any, worker: Any) -> None:
    """A consumer that returns, which acknowledges everything."""


def refuse(batch: Any, worker: Any) -> None:
    raise ValueError("refused")


# -- 1: sending ------------------------------------------------------------------------------------


async def refusal(
    profile: str, sizes: list[int], *, date: str = "2026-03-12", consumed: bool = True
) -> str:
    """How a Worker's send of messages of these sizes is refused; "" if it is not."""

    async def produce(worker: Any) -> str:
        items = [{"body": "x" * size, "contentType": "text"} for size in sizes]
        try:
            if len(items) == 1:
                await worker.env.Q.send(items[0]["body"], contentType="text")
            else:
                await worker.env.Q.sendBatch(items)
        except JsException as error:
            return str(error)
        return ""

    flags = ["python_workers"]
    consume = accept if consumed else None
    config = worker(produce, consume, compatibility_date=date, compatibility_flags=flags)
    async with Emulator(config, profile=profile) as emulator:
        return (await emulator.fetch("/")).json()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("sizes", "production", "miniflare"),
    [
        ([128_000, 128_000], "", ""),
        (
            [128_000, 128_000, 1],
            "batch size of 256001 bytes exceeds limit of 256000 bytes (10205)",
            "",
        ),
        (
            [96_000, 96_000, 96_001],
            "batch size of 288001 bytes exceeds limit of 256000 bytes (10205)",
            "Unknown Internal Error (15000)",
        ),
    ],
    ids=["256000", "256001", "288001"],
)
async def test_bytes_of_a_batch(sizes: list[int], production: str, miniflare: str) -> None:
    """1.12; (b) 11; api.md 8"""
    expected = tuple(f"Error: {text}" if text else "" for text in (production, miniflare))
    assert await both(lambda profile: refusal(profile, sizes)) == expected


async def test_text_of_an_error_of_the_service() -> None:
    """1.13, 1.14; (b) 12; api.md 8"""
    cause = "message length of 128001 bytes exceeds limit of 128000"
    old, new = "2026-03-11", "2026-03-12"
    assert await both(lambda profile: refusal(profile, [128_001], date=old)) == (
        f"Error: Queue send failed: {cause}",
        f"Error: Queue send failed: {cause}",
    )
    assert await both(lambda profile: refusal(profile, [128_001], date=new)) == (
        f"Error: {cause} (10204)",
        "Error: Unknown Internal Error (15000)",
    )


async def test_limits_of_a_queue_that_nobody_consumes() -> None:
    """1.12; (b) 16"""
    assert await both(lambda profile: refusal(profile, [200_000], consumed=False)) == (
        "Error: message length of 200000 bytes exceeds limit of 128000 (10204)",
        "",
    )


async def test_a_body_that_json_has_no_text_for() -> None:
    """1.6: locally the service fails; of production nothing is known, and the call is wrong"""

    async def run(profile: str) -> tuple[str, list[Any]]:
        async def produce(worker: Any) -> str:
            with pytest.raises(JsException) as info:
                await worker.env.Q.send(lambda: None)
            return f"{info.value.name}: {info.value.message}"

        async with Emulator(worker(produce, accept), profile=profile) as emulator:
            return (await emulator.fetch("/")).json(), bodies(emulator)

    assert await both(run) == (
        ("TypeError: A value of type function cannot be serialized to JSON", []),
        ("Error: Unknown Internal Error (15000)", []),
    )


# -- 3: batches ------------------------------------------------------------------------------------


async def test_settings_that_are_left_out() -> None:
    """3.1; (b) 1; api.md 8"""

    async def run(profile: str) -> tuple[Any, ...]:
        async with Emulator(worker(None, accept), profile=profile) as emulator:
            found = emulator.queues["q"].settings
            await emulator.queues["q"].send_batch(list(range(11)))
            await emulator.settle()
            sizes = [(at, len(batch)) for at, batch in batches(emulator)]
            return found["max_retries"], found["retry_delay"], found["dead_letter_queue"], sizes

    assert await both(run) == (
        (3, 0, None, [(0, 10), (5, 1)]),
        (2, 0, None, [(0, 5), (0, 5), (1, 1)]),
    )


async def test_a_batch_size_of_zero() -> None:
    """3.1: that it is accepted locally is recorded, what it does is not; here it counts as 1"""

    async def run(profile: str) -> Any:
        config = worker(None, accept, consumer={**AT_ONCE, "max_batch_size": 0})
        try:
            async with Emulator(config, profile=profile) as emulator:
                await emulator.advance(60)
                assert emulator.queues["q"].deliveries == []
                await emulator.queues["q"].send_batch(["a", "b"])
                await emulator.settle()
                return batches(emulator)
        except ConfigError as error:
            return str(error).partition(" (")[2]

    assert await both(run) == (
        "Cloudflare, code 100127: The specified consumer settings are invalid.)",
        [(60, ["a"]), (60, ["b"])],
    )


async def test_concurrency_beyond_the_platforms_limit() -> None:
    """3.1"""

    async def run(profile: str) -> Any:
        config = worker(None, accept, consumer={"max_concurrency": 251})
        try:
            async with Emulator(config, profile=profile) as emulator:
                return emulator.queues["q"].settings["max_concurrency"]
        except ConfigError as error:
            return str(error).partition(" (")[2]

    assert await both(run) == (
        "Cloudflare, code 100127: The specified consumer settings are invalid.)",
        251,
    )


async def test_a_batch_that_fills_while_another_is_in_hand_waits_for_it() -> None:
    """3.5: the local runtime would start it at once, a quirk that no recording shows"""

    async def consume(batch: Any, worker: Any) -> None:
        await asyncio.sleep(10)

    async def run(profile: str) -> Any:
        consumer = {"max_batch_size": 2, "max_batch_timeout": 1}
        async with Emulator(worker(None, consume, consumer=consumer), profile=profile) as emulator:
            await emulator.queues["q"].send("a")
            await emulator.advance(3)
            assert [message.body for message in emulator.queues["q"].in_flight] == ["a"]
            await emulator.queues["q"].send_batch(["b", "c"])
            await emulator.settle()
            return batches(emulator)

    serial = [(1, ["a"]), (11, ["b", "c"])]
    assert await both(run) == (serial, serial)


async def test_messages_outlive_the_platforms_process() -> None:
    """3.10; (b) 17: the local runtime forgets them, which would make no test better"""

    async def run(profile: str) -> Any:
        async with Emulator(worker(None, accept), profile=profile) as emulator:
            await emulator.queues["q"].send("waits")
            await emulator.queues["q"].send("delayed", delaySeconds=60)
            await emulator.restart()
            kept = bodies(emulator)
            await emulator.settle()
            return kept, [body for _, body, *_ in deliveries(emulator)]

    kept = ["waits", "delayed"]
    assert await both(run) == ((kept, kept), (kept, kept))


async def test_retention() -> None:
    """3.9, 3.10: the local runtime keeps everything while it runs, no profile does"""

    async def run(profile: str) -> Any:
        async with Emulator(worker(None, accept), profile=profile) as emulator:
            emulator.queues["q"].pause()
            await emulator.queues["q"].send("a")
            await emulator.advance("95 hours")
            kept = bodies(emulator)
            await emulator.advance("1 hour")
            return kept, bodies(emulator), emulator.queues["q"].expired

    assert await both(run) == ((["a"], [], 1), (["a"], [], 1))


async def test_what_is_logged_of_failures() -> None:
    """3.11"""

    def consume(batch: Any, worker: Any) -> None:
        for message in batch.messages:
            if message.body != "good":
                message.retry()

    async def run(profile: str) -> Any:
        consumer = {**AT_ONCE, "max_batch_size": 2, "max_retries": 1}
        async with Emulator(worker(None, consume, consumer=consumer), profile=profile) as emulator:
            _, id = await emulator.queues["q"].send_batch(["good", "bad"])
            await emulator.settle()
            # Production tells nobody; so the findings do.
            assert codes(emulator) == ["message_dropped"]
            return [(log.level, log.text.replace(id, "ID")) for log in emulator.logs]

    assert await both(run) == (
        [],
        [
            ("debug", 'Retrying message "ID" on queue "q"...'),
            ("info", "QUEUE q 1/2 (0ms)"),
            ("warn", 'Dropped message "ID" on queue "q" after 2 failed attempts!'),
            ("info", "QUEUE q 0/1 (0ms)"),
        ],
    )


# -- 4: attempts and the dead letter queue ---------------------------------------------------------


async def test_a_delivery_that_a_crash_took_counts_as_an_attempt() -> None:
    """4.1; api.md 8: that crashes are not charged locally is said of Workflows"""

    async def run(profile: str) -> Any:
        config = worker(None, accept, consumer={**AT_ONCE, "max_retries": 1})
        plan = "batch.q#*:crash_before"
        async with Emulator(config, profile=profile, faults=plan) as emulator:
            await emulator.queues["q"].send("a")
            await emulator.settle()
            return deliveries(emulator)

    counted = [(0, "a", 1, "lost"), (0, "a", 2, "dropped")]
    assert await both(run) == (counted, counted)


def graveyard(**producer: Any) -> dict[str, Any]:
    """Queues of a Worker whose dead letters go to `d`, into which it may also send."""
    return {
        "producers": [{"binding": "D", "queue": "d", **producer}],
        "consumers": [{"queue": "q", **AT_ONCE, "max_retries": 0, "dead_letter_queue": "d"}],
    }


async def test_dead_letters_that_nobody_consumes() -> None:
    """4.5, 3.10; (b) 16"""

    async def run(profile: str) -> Any:
        async with Emulator(worker(None, refuse, queues=graveyard()), profile=profile) as emulator:
            await emulator.queues["q"].send("a")
            await emulator.settle()
            assert emulator.queues["q"].dead_lettered == 1
            return bodies(emulator, "d"), emulator.queues["d"].dropped

    assert await both(run) == ((["a"], 0), ([], 1))


async def test_dead_letters_wait_for_the_delay_of_a_producer_only_locally() -> None:
    """4.5, 1.11"""

    def consume(batch: Any, worker: Any) -> None:
        if batch.queue == "q":
            raise ValueError("refused")

    async def run(profile: str) -> Any:
        queues = graveyard(delivery_delay=30)
        queues["consumers"].append({"queue": "d", **AT_ONCE})
        async with Emulator(worker(None, consume, queues=queues), profile=profile) as emulator:
            await emulator.queues["q"].send("a")
            await emulator.settle()
            return deliveries(emulator, "d"), clock(emulator), codes(emulator)

    assert await both(run) == (
        ([(0, "a", 1, "ack")], 0, ["ignored_option"]),
        ([(30, "a", 1, "ack")], 30, []),
    )


# -- the list above --------------------------------------------------------------------------------


async def test_the_tests_named_above_exist() -> None:
    tests = Path(__file__).parents[1]
    named = re.findall(r"^ +(test_\w+): (test_\w+)$", __doc__ or "", re.MULTILINE)
    assert len(named) == 10
    for module, name in named:
        (path,) = tests.rglob(f"{module}.py")
        assert re.search(rf"^(async )?def {name}\(", path.read_text("utf-8"), re.MULTILINE), name
