"""Event notifications: what a change of a bucket sends to a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from r2_bench import PART, running, worker

from emulator import Stuck, sweep
from emulator.r2.events import ACCOUNT, MOST_RULES, Rule, RuleError, actions_of, check

if TYPE_CHECKING:
    from pathlib import Path

CREATE = ("PutObject", "CompleteMultipartUpload", "CopyObject")
DELETE = ("DeleteObject", "LifecycleDeletion")


def rule(queue: str = "q", actions: Any = CREATE, prefix: str = "", suffix: str = "") -> Rule:
    return Rule("id", queue, actions, prefix, suffix, "", 0)


async def taken(batch: Any, env: Any) -> None:
    """Take what comes: `deliveries` has it."""


def bodies(emulator: Any, queue: str = "q") -> list[Any]:
    return [delivery.body for delivery in emulator.queues[queue].deliveries]


# -- rules ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "actions"),
    [
        ("object-create", CREATE),
        (["object-delete", "PutObject"], (*DELETE, "PutObject")),
        (["PutObject", "object-create"], CREATE),
    ],
)
def test_event_types_stand_for_actions(given: Any, actions: tuple[str, ...]) -> None:
    assert actions_of(given) == actions


def test_an_unknown_event_type_is_refused_with_those_there_are() -> None:
    with pytest.raises(RuleError, match=r"no event type or action 'object-read'.*object-create"):
        actions_of("object-read")
    with pytest.raises(RuleError, match="a rule needs an event type"):
        actions_of([])


def test_a_rule_matches_by_action_prefix_and_suffix() -> None:
    found = rule(prefix="in/", suffix=".pdf")
    assert found.matches("PutObject", "in/a.pdf")
    assert not found.matches("DeleteObject", "in/a.pdf")
    assert not found.matches("PutObject", "out/a.pdf")
    assert not found.matches("PutObject", "in/a.txt")


@pytest.mark.parametrize(
    ("one", "other", "overlaps"),
    [
        (rule(), rule(), True),
        (rule(), rule(actions=DELETE), False),
        (rule(), rule(prefix="in/"), True),
        (rule(prefix="in/"), rule(prefix="out/"), False),
        (rule(prefix="in/"), rule(prefix="in/new/", suffix=".pdf"), True),
        (rule(suffix=".pdf"), rule(prefix="in/", suffix="a.pdf"), True),
        (rule(prefix="in/", suffix=".pdf"), rule(prefix="in/", suffix=".txt"), False),
    ],
)
def test_rules_overlap_where_one_change_would_match_both(
    one: Rule, other: Rule, overlaps: bool
) -> None:
    assert one.overlaps(other) is overlaps
    assert other.overlaps(one) is overlaps


def test_overlapping_rules_are_refused_for_one_queue_only() -> None:
    check(rule("a"), [rule("b")])
    with pytest.raises(RuleError, match="overlaps with one that is there"):
        check(rule("a", prefix="in/"), [rule("a")])
    with pytest.raises(RuleError, match=f"{MOST_RULES} event notification rules at most"):
        check(rule("b"), [rule("a", prefix=f"{n}/") for n in range(MOST_RULES)])
    check(rule("b"), [rule("a", prefix=f"{n}/") for n in range(MOST_RULES - 1)])


# -- messages ------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_each_change_sends_the_message_that_is_documented() -> None:
    async with running(consume=taken) as emulator:
        emulator.r2["R2"].notify("q")
        await emulator.advance("90 min")
        stored = await emulator.env.R2.put("in/a.txt", "hello")
        await emulator.advance(0.5)
        await emulator.env.R2.delete("in/a.txt")
        await emulator.settle()
        shared = {"account": ACCOUNT, "bucket": "files"}
        assert bodies(emulator) == [
            {
                **shared,
                "action": "PutObject",
                "object": {"key": "in/a.txt", "size": 5, "eTag": stored.etag},
                "eventTime": "2026-01-01T01:30:00.000Z",
            },
            {
                **shared,
                "action": "DeleteObject",
                "object": {"key": "in/a.txt"},
                "eventTime": "2026-01-01T01:30:00.500Z",
            },
        ]


@pytest.mark.asyncio
async def test_a_worker_reads_a_message_as_any_other() -> None:
    seen: list[Any] = []

    async def consume(batch: Any, env: Any) -> None:
        for message in batch.messages:
            found = await env.R2.get(message.body["object"]["key"])
            seen.append((message.body["action"], await found.text(), message.attempts))

    async def handle(env: Any) -> str:
        await env.R2.put("a", "1")
        upload = await env.R2.createMultipartUpload("b")
        parts = [await upload.uploadPart(1, b"x" * PART), await upload.uploadPart(2, "y")]
        whole = await upload.complete(parts)
        return str(whole.etag)

    async with running(handle, consume=consume) as emulator:
        emulator.r2["files"].notify("q", event_types="object-create")
        etag = (await emulator.fetch("/")).text
        await emulator.settle()
        assert seen == [
            ("PutObject", "1", 1),
            ("CompleteMultipartUpload", "x" * PART + "y", 1),
        ]
        assert bodies(emulator)[1]["object"] == {"key": "b", "size": PART + 1, "eTag": etag}


@pytest.mark.asyncio
async def test_what_changes_nothing_sends_nothing() -> None:
    async with running(consume=taken) as emulator:
        emulator.r2["R2"].put("before", "1")
        emulator.r2["R2"].notify("q")
        await emulator.env.R2.delete("never-there")
        await emulator.env.R2.put("before", "2", onlyIf={"etagMatches": "0"})
        upload = await emulator.env.R2.createMultipartUpload("b")
        await upload.uploadPart(1, "x")
        await upload.abort()
        await emulator.env.R2.get("before")
        await emulator.settle()
        assert bodies(emulator) == []


@pytest.mark.asyncio
async def test_each_key_of_a_delete_has_a_message_of_its_own() -> None:
    async with running(consume=taken) as emulator:
        bucket = emulator.r2["R2"]
        for key in ("a", "b", "in/c"):
            bucket.put(key, "1")
        bucket.notify("q", event_types="object-delete")
        await emulator.env.R2.delete(["a", "b", "in/c"])
        bucket.put("d", "1")
        bucket.delete("d")
        await emulator.settle()
        assert [body["object"]["key"] for body in bodies(emulator)] == ["a", "b", "in/c", "d"]


@pytest.mark.asyncio
async def test_prefix_and_suffix_choose_among_several_rules() -> None:
    queues = {"consumers": [{"queue": "q"}, {"queue": "other"}]}
    async with running(consume=taken, config={"queues": queues}) as emulator:
        bucket = emulator.r2["R2"]
        first = bucket.notify("q", event_types="object-create", prefix="in/", suffix=".pdf")
        bucket.notify("other", event_types="PutObject")
        assert bucket.notifications[0] == first
        assert (first.queue, first.actions, first.prefix, first.suffix) == (
            *("q", CREATE, "in/", ".pdf"),
        )
        for key in ("in/a.pdf", "in/a.txt", "out/a.pdf"):
            bucket.put(key, "1")
        bucket.stop_notifying("other")
        assert bucket.notifications == [first]
        bucket.put("in/b.pdf", "1")
        await emulator.settle()
        keys = {
            name: [one["object"]["key"] for one in bodies(emulator, name)]
            for name in emulator.queues
        }
        assert keys == {
            "q": ["in/a.pdf", "in/b.pdf"],
            "other": ["in/a.pdf", "in/a.txt", "out/a.pdf"],
        }


@pytest.mark.asyncio
async def test_what_cannot_be_set_up_is_refused() -> None:
    async with running(consume=taken) as emulator:
        bucket = emulator.r2["R2"]
        with pytest.raises(KeyError, match="there is no queue 'nope'; there are: q"):
            bucket.notify("nope")
        bucket.notify("q", event_types="object-create")
        with pytest.raises(ValueError, match="overlaps with one that is there, for PutObject"):
            bucket.notify("q", prefix="in/")
        assert len(bucket.notifications) == 1


@pytest.mark.asyncio
async def test_buckets_of_two_jurisdictions_have_their_own_rules_and_one_name() -> None:
    buckets = [
        {"binding": "R2", "bucket_name": "files"},
        {"binding": "EU", "bucket_name": "files", "jurisdiction": "eu"},
    ]
    async with running(consume=taken, config={"r2_buckets": buckets}) as emulator:
        emulator.r2["EU"].notify("q")
        emulator.r2["R2"].put("a", "1")
        emulator.r2["EU"].put("b", "1")
        await emulator.settle()
        assert [(one["bucket"], one["object"]["key"]) for one in bodies(emulator)] == [
            ("files", "b")
        ]


# -- faults and what lasts -----------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fault", "sent"),
    [
        ("r2.R2.put#1:fail", 0),
        ("r2.R2.put#1:crash_before", 0),
        ("r2.R2.put#1:lose_reply", 1),
        ("r2.R2.put#1:crash_after", 1),
        ("message.q#1:duplicate", 2),
        ("message.q#1:drop", 0),
    ],
)
async def test_a_message_is_sent_if_and_only_if_the_object_was_stored(
    fault: str, sent: int
) -> None:
    async def handle(env: Any) -> str:
        await env.R2.put("a", "1")
        return "stored"

    async with running(handle, consume=taken, faults=fault) as emulator:
        emulator.r2["R2"].notify("q")
        try:
            await emulator.fetch("/")
        except Exception:
            assert "crash" in fault
        await emulator.settle()
        assert [str(fired) for fired in emulator.faults.fired] == [fault]
        assert len(bodies(emulator)) == sent
        emulator.findings.expect("handler_exception")
        emulator.findings.expect("message_dropped")


@pytest.mark.asyncio
async def test_a_sweep_finds_a_consumer_that_counts_messages_twice() -> None:
    async def consume(batch: Any, env: Any) -> None:
        for message in batch.messages:
            before = await env.R2.get("count")
            count = 0 if before is None else int(await before.text())
            await env.R2.put("count", str(count + 1))
            message.ack()

    async def scenario(emulator: Any) -> None:
        emulator.r2["R2"].notify("q", prefix="in/")
        emulator.r2["R2"].put("in/a", "1")
        await emulator.settle()
        count = emulator.r2["R2"].get("count")
        assert count is not None
        assert count.text == "1"

    report = await sweep(scenario, worker(consume=consume))
    plans = [str(failure.plan[0]) for failure in report.failures]
    assert "message.q#1:duplicate" in plans


@pytest.mark.asyncio
async def test_rules_and_messages_outlast_a_restart_and_a_process(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with running(consume=taken, state=state) as emulator:
        emulator.r2["R2"].notify("q", prefix="in/")
        emulator.r2["R2"].notify("q", prefix="gone/")
        emulator.queues["q"].pause()
        await emulator.restart()
        emulator.r2["R2"].put("in/a", "1")
    async with running(consume=taken, state=state) as emulator:
        emulator.queues["q"].resume()
        emulator.r2["R2"].put("in/b", "1")
        await emulator.settle()
        assert [body["object"]["key"] for body in bodies(emulator)] == ["in/a", "in/b"]
        emulator.r2["R2"].stop_notifying("q")
        await emulator.restart()
        assert emulator.r2["R2"].notifications == []
        emulator.r2["R2"].notify("q")
        await emulator.reset()
        assert emulator.r2["R2"].notifications == []


@pytest.mark.asyncio
async def test_a_consumer_that_causes_its_own_next_message_is_told_so() -> None:
    async def consume(batch: Any, env: Any) -> None:
        await env.R2.put("again", "1")

    async with running(consume=consume) as emulator:
        emulator.r2["R2"].notify("q")
        emulator.r2["R2"].put("first", "1")
        with pytest.raises(
            Stuck, match="each made of what the consumer of the one before had sent"
        ):
            await emulator.settle()


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["prefix", "suffix"])
@pytest.mark.parametrize("value", [5, None, b"a"])
async def test_a_prefix_is_a_text(name: str, value: Any) -> None:
    async with running(consume=taken) as emulator:
        with pytest.raises(TypeError, match=f"{name} is a text, not {type(value).__name__}"):
            emulator.r2["R2"].notify("q", **{name: value})
        assert emulator.r2["R2"].notifications == []
