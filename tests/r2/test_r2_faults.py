"""The faults of `r2.<binding>.<operation>`: what strikes, what is left."""

from __future__ import annotations

from typing import Any

import pytest
from r2_bench import PROFILES, fired, problem, running, worker

from emulator import Emulator, WorkerCrashed, sweep
from emulator.faults.sites import KINDS

pytestmark = pytest.mark.asyncio

CALLS: dict[str, Any] = {
    "head": lambda r2, upload: r2.head("a"),
    "get": lambda r2, upload: r2.get("a"),
    "list": lambda r2, upload: r2.list(),
    "put": lambda r2, upload: r2.put("a", "2"),
    "delete": lambda r2, upload: r2.delete("a"),
    "createMultipartUpload": lambda r2, upload: r2.createMultipartUpload("a"),
    "uploadPart": lambda r2, upload: upload.uploadPart(1, "part"),
    "complete": lambda r2, upload: upload.complete([]),
    "abort": lambda r2, upload: upload.abort(),
}
NAMES = {"complete": "completeMultipartUpload", "abort": "abortMultipartUpload"}
# The bodies that are there, and the parts of the uploads that are not over.
BEFORE = ({"a": b"1"}, [{}])
AFTER: dict[str, Any] = {
    "put": ({"a": b"2"}, [{}]),
    "delete": ({}, [{}]),
    "createMultipartUpload": ({"a": b"1"}, [{}, {}]),
    "uploadPart": ({"a": b"1"}, [{1: 4}]),
    "complete": ({"a": b""}, []),
    "abort": ({"a": b"1"}, []),
}


def state(emulator: Emulator) -> Any:
    bucket = emulator.r2["R2"]
    return {found.key: found.body for found in bucket.objects}, [u.parts for u in bucket.uploads]


async def test_every_operation_is_a_site() -> None:
    assert set(CALLS) == set(KINDS["r2"].operations)


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize("action", ["crash_before", "fail", "crash_after", "lose_reply"])
async def test_each_action_at_each_operation(operation: str, action: str) -> None:
    seen: list[str] = []

    async def handle(env: Any) -> str:
        upload = env.R2.resumeMultipartUpload("a", id)
        try:
            seen.append(await problem(lambda: CALLS[operation](env.R2, upload)))
        finally:
            seen.append("finally")
        return "ok"

    plan = f"r2.R2.{operation}#1:{action}"
    async with running(handle, faults=plan) as emulator:
        await emulator.env.R2.put("a", "1")  # a test's calls are no sites
        upload = await emulator.env.R2.createMultipartUpload("a")
        id = upload.uploadId
        assert state(emulator) == BEFORE
        if action.startswith("crash"):
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
            assert seen == []  # no further line ran
        else:
            assert (await emulator.fetch("/")).text == "ok"
            name = NAMES.get(operation, operation)
            text = "We encountered an internal error. Please try again. (10001)"
            assert seen == [f"Error: {name}: {text}", "finally"]
        assert fired(emulator) == [plan]
        is_done = action in ("crash_after", "lose_reply")
        assert state(emulator) == (AFTER.get(operation, BEFORE) if is_done else BEFORE)


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_call_that_nobody_awaits_is_dropped_in_production(profile: Any) -> None:
    async def handle(env: Any) -> str:
        env.R2.put("a", "1")
        return "ok"

    async with running(handle, profile=profile) as emulator:
        await emulator.fetch("/")
        expected = [] if profile == "production" else ["a"]
        assert emulator.r2["R2"].keys == expected
        emulator.findings.expect("never_awaited")


# -- what a sweep finds ----------------------------------------------------------------------------


async def keep_both(batch: Any, env: Any) -> None:
    """A counter in an object, which a message that comes again counts twice."""
    for message in batch.messages:
        found = await env.R2.get("total")
        total = int(await found.text()) if found else 0
        await env.R2.put("total", str(total + message.body))


async def keep_once(batch: Any, env: Any) -> None:
    """An object under the message's own name may be stored again."""
    for message in batch.messages:
        await env.R2.put(f"deposits/{message.id}", str(message.body))


async def counted(emulator: Emulator) -> None:
    await emulator.queues["q"].send(5)
    await emulator.settle()
    assert emulator.r2["R2"].get("total").text == "5"  # type: ignore[union-attr]


async def stored(emulator: Emulator) -> None:
    await emulator.queues["q"].send(5)
    await emulator.settle()
    assert [found.text for found in emulator.r2["R2"].objects] == ["5"]


async def test_a_sweep_finds_a_write_that_may_not_be_repeated() -> None:
    report = await sweep(counted, worker(consume=keep_both))
    plans = [str(fault) for failure in report.failures for fault in failure.plan]
    assert "r2.R2.put#1:crash_after" in plans


async def test_a_write_that_may_be_repeated_bears_every_fault() -> None:
    report = await sweep(stored, worker(consume=keep_once), classes="all")
    assert report.failures == []
    assert "r2.R2.put" in [site.name for site in report.sites]
