"""The scenarios of workflows.md (a) with Worker code, by their numbers, on the virtual clock.

Those that only the REST API can show (61) are the server's.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from workers.workflows import NonRetryableError
from workflow_bench import (
    DAY,
    NO_RETRY,
    PROFILES,
    START,
    clock,
    delays,
    do,
    events,
    failing,
    ids,
    now,
    one_step,
    rows,
    seconds,
    states,
    told,
    worker,
)

from emulator import Emulator, WorkflowError, WorkflowFailed
from emulator.values import JsException

pytestmark = pytest.mark.asyncio

INVALID_ID = "Workflow instance has invalid id"
BAD_CONFIG = (
    'Step config for "s" is in a invalid format. See '
    "https://developers.cloudflare.com/workflows/build/sleeping-and-retrying/"
)


async def failed(emulator: Emulator, **create: Any) -> WorkflowFailed:
    """Create an instance that ends without success, and return how it did."""
    instance = await emulator.workflows["flow"].create(**create)
    with pytest.raises(WorkflowFailed) as info:
        await instance.result()
    return info.value


def folded(profile: str, name: str, message: str) -> list[str]:
    """An error of the engine as user code sees it: locally its class is in the text (E3)."""
    return [name, message] if profile == "production" else ["Error", f"{name}: {message}"]


# -- creation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_1_an_instance_completes_with_what_run_returned(profile: Any) -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        return {"ok": True}

    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.create()
        return instance.id

    async with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:
        id = (await emulator.fetch("/")).json()
        assert UUID(id).version == 4
        (instance,) = emulator.workflows["flow"].instances
        assert instance.id == id
        assert await instance.result() == {"ok": True}
        assert instance.status == "complete"
        assert instance.error is None
        assert clock(emulator) == 0


@pytest.mark.parametrize("profile", PROFILES)
async def test_2_without_params_the_payload_is_an_empty_object(profile: Any) -> None:
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        seen.append((event["payload"], event["instanceId"], event["workflowName"]))

    async def fetch(worker: Any, request: Any) -> Any:
        await worker.env.FLOW.create()
        await worker.env.FLOW.create({"id": "b"})
        await worker.env.FLOW.create({"id": "c", "params": [1, {"a": None}]})

    async with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:
        await emulator.fetch("/")
        (first, *_) = emulator.workflows["flow"].instances
        await emulator.workflows["flow"].create("d")
        assert seen == [
            ({}, first.id, "flow"),
            ({}, "b", "flow"),
            ([1, {"a": None}], "c", "flow"),
            ({}, "d", "flow"),
        ]


@pytest.mark.parametrize("profile", PROFILES)
async def test_3_and_4_ids(profile: Any) -> None:
    good = ["a" * 100, "_a", "9-x", "A_b-1"]
    bad = ["a" * 101, "-a", "a.b", "a b", "", "ä", "a/b", "a:b", None]

    async def fetch(worker: Any, request: Any) -> Any:
        return [await told(lambda id=id: worker.env.FLOW.create({"id": id})) for id in bad]

    async with Emulator(worker(one_step(), fetch=fetch), profile=profile) as emulator:
        refused = (await emulator.fetch("/")).json()
        assert refused == [folded(profile, "WorkflowError", INVALID_ID)] * len(bad)
        for id in good:
            await emulator.workflows["flow"].create(id)
        for id in bad[:-1]:
            with pytest.raises(WorkflowError, match=INVALID_ID):
                await emulator.workflows["flow"].create(id)
        assert ids(emulator.workflows["flow"].instances) == good


@pytest.mark.parametrize("profile", PROFILES)
async def test_5_an_id_that_is_taken(profile: Any) -> None:
    """B4, B5; O-26."""
    runs: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        runs.append(event["payload"])
        return event["payload"]

    async def fetch(worker: Any, request: Any) -> Any:
        return await told(lambda: worker.env.FLOW.create({"id": "x", "params": "second"}))

    text = '(instance.already_exists) Workflow instance with id "x" already exists'
    async with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create("x", "first")
        assert instance.status == "complete"
        refused = (await emulator.fetch("/")).json()
        assert refused == folded(profile, "WorkflowError", text)
        with pytest.raises(WorkflowError) as info:
            await emulator.workflows["flow"].create("x")
        assert text in info.value.message
        assert runs == ["first"]
        assert instance.output == "first"
        assert len(emulator.workflows["flow"].instances) == 1


async def test_an_id_is_taken_from_two_requests_at_once() -> None:
    """O-26: one instance, one error, the body runs once."""
    bodies: list[str] = []

    async def create(worker: Any, request: Any) -> Any:
        async def made() -> Any:
            return (await worker.env.FLOW.create({"id": "o-1"})).id

        return await told(made)

    async with Emulator(worker(one_step(lambda _: bodies.append("b")), fetch=create)) as emulator:
        answers = await asyncio.gather(emulator.fetch("/"), emulator.fetch("/"))
        values = [answer.json() for answer in answers]
        assert sorted(map(str, values))[1] == "o-1"
        (refused,) = [value for value in values if value != "o-1"]
        assert "instance.already_exists" in refused[1]
        await emulator.settle()
        assert bodies == ["b"]


@pytest.mark.parametrize("profile", PROFILES)
async def test_6_the_size_of_a_batch(profile: Any) -> None:
    async def fetch(worker: Any, request: Any) -> Any:
        flow = worker.env.FLOW
        empty = await told(lambda: flow.create_batch([]))
        many = await told(lambda: flow.create_batch([{"id": f"i{n}"} for n in range(101)]))
        full = await flow.create_batch([{"id": f"i{n}"} for n in range(100)])
        return [empty, many, [instance.id for instance in full]]

    async with Emulator(worker(one_step(1), fetch=fetch), profile=profile) as emulator:
        empty, many, full = (await emulator.fetch("/")).json()
        assert empty == folded(
            profile, "WorkflowError", "batchCreate should have at least 1 instance"
        )
        assert many == folded(
            profile, "WorkflowError", "batchCreate only supports 100 instances at a time"
        )
        assert full == [f"i{number}" for number in range(100)]
        assert ids(emulator.workflows["flow"].instances) == full
        await emulator.settle()
        assert {one.status for one in emulator.workflows["flow"].instances} == {"complete"}


@pytest.mark.parametrize("profile", PROFILES)
async def test_7_a_batch_skips_ids_that_exist_and_repeats(profile: Any) -> None:
    """B7; O-26. An invalid id anywhere: nothing is created."""

    async def fetch(worker: Any, request: Any) -> Any:
        async def batch(*ids: str) -> Any:
            return [one.id for one in await worker.env.FLOW.create_batch([{"id": i} for i in ids])]

        return [
            await batch("x", "y"),
            await batch("z", "z"),
            await told(lambda: batch("new", "a b")),
        ]

    runs: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        runs.append(event["instanceId"])

    async with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:
        await emulator.workflows["flow"].create("x")
        first, second, third = (await emulator.fetch("/")).json()
        assert (first, second) == (["y"], ["z"])
        assert third == folded(profile, "WorkflowError", INVALID_ID)
        made = await emulator.workflows["flow"].create_batch([{"id": "z"}, {"id": "w"}])
        assert ids(made) == ["w"]
        assert runs == ["x", "y", "z", "w"]


async def test_8_an_instance_that_does_not_exist() -> None:
    """B10: the text differs, the code in it does not."""
    texts = {
        "production": ["WorkflowError", "(instance.not_found) Instance not found"],
        "miniflare": ["Error", "instance.not_found"],
    }

    async def fetch(worker: Any, request: Any) -> Any:
        return await told(lambda: worker.env.FLOW.get("missing"))

    for profile, expected in texts.items():
        config = worker(one_step(), fetch=fetch)
        async with Emulator(config, profile=profile) as emulator:  # type: ignore[arg-type]
            assert (await emulator.fetch("/")).json() == expected
            with pytest.raises(WorkflowError, match=r"instance\.not_found") as info:
                await emulator.workflows["flow"].get("missing")
            assert [info.value.name, info.value.message] == expected


# -- retries ---------------------------------------------------------------------------------------

CONSTANT = {"limit": 2, "delay": 500, "backoff": "constant"}
RETRIES = {
    "9": (None, [0, 10, 30, 70, 150, 310]),
    "10": (
        {"retries": {"limit": 3, "delay": "2 seconds", "backoff": "linear"}},
        [0, 2, 6, 12],
    ),
    "11": ({"retries": CONSTANT}, [0, 0.5, 1]),
    "12": ({"retries": {"limit": 2, "delay": "1 minute"}}, [0, 60, 180]),
    "14a": ({"retries": {"limit": 0, "delay": 1000}}, [0]),
    "14b": ({"retries": {"limit": 3, "delay": 0}}, [0, 0, 0, 0]),
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("number", RETRIES)
async def test_9_to_14_when_a_failing_step_is_tried(number: str, profile: Any) -> None:
    """R1, R2; the local default delay is 1 s (§14)."""
    config, expected = RETRIES[number]
    if config is None and profile == "miniflare":
        expected = [0, 1, 3, 7, 15, 31]
    times: list[float] = []
    run = one_step(failing(times), config)
    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        # Not a moment early.
        if expected[-1]:
            await emulator.advance(expected[-1] - 0.001)
            assert instance.status != "errored"
            assert len(times) == len([at for at in expected if at < expected[-1]])
            await emulator.advance(0.001)
        assert times == expected
        assert instance.status == "errored"
        waits = [round((after - before) * 1000) for before, after in pairwise(expected)]
        assert delays(instance) == [*waits, None]
        assert states(instance) == [("s", "errored", len(expected))]
        assert instance.error is not None
        assert "no" in instance.error.message
        await emulator.advance("1 day")
        assert times == expected


async def test_13_a_step_that_succeeds_at_last() -> None:
    """And 55, its history."""
    seen: list[tuple[float, int]] = []

    def body(ctx: Any) -> str:
        seen.append((now(), ctx["attempt"]))
        if ctx["attempt"] < 4:
            raise ValueError("not yet")
        return "done"

    config = {"retries": {"limit": 4, "delay": "1 second", "backoff": "exponential"}}
    async with Emulator(worker(one_step(body, config))) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "done"
        assert seen == [(0, 1), (1, 2), (3, 3), (7, 4)]
        assert clock(emulator) == 7
        assert events(instance) == [0, 1, 5, 10, 12, 10, 12, 10, 12, 10, 11, 6, 2]
        (step,) = instance.steps
        assert (step.attempts, step.output, step.error) == (4, "done", None)
        assert (seconds(step.started), seconds(step.ended)) == (0, 7)


@pytest.mark.parametrize(
    ("backoff", "waits"), [(None, [1000, 4000, 12000]), ("constant", [1000, 2000, 3000])]
)
async def test_15_a_delay_function(backoff: str | None, waits: list[int]) -> None:
    """R3: what it returns goes through the backoff too."""
    asked: list[tuple[int, str]] = []

    def delay(given: Any) -> int:
        asked.append((given.ctx.attempt, given.error.message))
        return given.ctx.attempt * 1000  # type: ignore[no-any-return]

    retries = {"limit": 3, "delay": delay}
    if backoff is not None:
        retries["backoff"] = backoff
    async with Emulator(worker(one_step(failing(), {"retries": retries}))) as emulator:
        instance = (await failed(emulator)).instance
        assert delays(instance) == [*waits, None]
        assert [number for number, _ in asked] == [1, 2, 3]
        assert all("no" in message for _, message in asked)
        assert clock(emulator) == sum(waits) / 1000


@pytest.mark.parametrize(
    ("answer", "text", "after"),
    [
        ("throws", "threw an error: nope", 0),
        ("hangs", "did not return within 5 seconds", 5),
        (
            "bad",
            "returned an invalid delay value (expected a number of ms or a duration string like "
            '"30 seconds")',
            0,
        ),
        (
            "negative",
            "returned an invalid delay value (expected a number of ms or a duration string like "
            '"30 seconds")',
            0,
        ),
    ],
)
async def test_16_a_delay_function_that_gives_none(answer: str, text: str, after: float) -> None:
    tries: list[float] = []

    async def delay(given: Any) -> Any:
        if answer == "throws":
            raise ValueError("nope")
        if answer == "hangs":
            await asyncio.sleep(100)
        return "soon" if answer == "bad" else -1

    config = {"retries": {"limit": 3, "delay": delay}}
    async with Emulator(worker(one_step(failing(tries), config))) as emulator:
        error = (await failed(emulator)).error
        assert error.name == "NonRetryableDelayError"
        assert f'The delay function for step "s-1" {text}' in error.message
        assert tries == [0]
        assert clock(emulator) == after


# -- time-outs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_17_a_time_out_of_each_attempt(profile: Any) -> None:
    """R4: the attempt counts as failed; the body goes on, its result is ignored."""
    marks: list[tuple[str, float, int]] = []

    async def body(ctx: Any) -> str:
        marks.append(("began", now(), ctx["attempt"]))
        await asyncio.sleep(10)
        marks.append(("ended", now(), ctx["attempt"]))
        return "late"

    config = {
        "retries": {"limit": 1, "delay": 1000, "backoff": "constant"},
        "timeout": "1 second",
    }
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        seen.append(await told(lambda: do(step, "s", body, config)))
        seen.append(now())
        await step.sleep("rest", "1 minute")
        return "went on"

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(0.999)
        assert delays(instance) == []
        await emulator.advance(0.001)
        assert delays(instance) == [1000]
        assert await instance.result() == "went on"
        assert seen == [
            folded(profile, "WorkflowTimeoutError", "Execution timed out after 1000ms"),
            3,
        ]
        assert [mark for mark in marks if mark[0] == "began"] == [("began", 0, 1), ("began", 2, 2)]
        assert [mark for mark in marks if mark[0] == "ended"] == [
            ("ended", 10, 1),
            ("ended", 12, 2),
        ]
        assert states(instance)[0] == ("s", "errored", 2)
        assert delays(instance) == [1000, None]


async def test_18_the_default_time_out() -> None:
    async def body(ctx: Any) -> None:
        await asyncio.Event().wait()

    async with Emulator(worker(one_step(body, NO_RETRY))) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(599.999)
        assert instance.status == "running"
        await emulator.advance(0.001)
        assert instance.status == "errored"
        assert instance.error.name == "WorkflowTimeoutError"
        assert instance.error.message == "Execution timed out after 600000ms"


async def test_only_the_configured_time_out_applies() -> None:
    """O-21: nine minutes are well, eleven are not; finished steps leave no timer."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def body(ctx: Any) -> int:
            await asyncio.sleep(event["payload"] * 60)
            return ctx["attempt"]

        return await do(step, "s", body, {"retries": {"limit": 1, "delay": "30 seconds"}})

    async with Emulator(worker(run)) as emulator:
        nine = await emulator.workflows["flow"].create("nine", 9)
        assert await nine.result() == 1
        assert clock(emulator) == 540
        assert emulator.clock.timers == []
        eleven = await emulator.workflows["flow"].create("eleven", 11)
        with pytest.raises(WorkflowFailed, match="Execution timed out after 600000ms"):
            await eleven.result()
        assert [seconds(row.at) - 540 for row in rows(eleven, 10, 12)] == [0, 600, 630, 1230]


# -- configs, names, counts ------------------------------------------------------------------------

BAD_CONFIGS: dict[str, Any] = {
    "no delay": {"retries": {"limit": 1}},
    "no limit": {"retries": {"delay": 1}},
    "negative limit": {"retries": {"limit": -1, "delay": 1}},
    "negative delay": {"retries": {"limit": 1, "delay": -1}},
    "no time": {"timeout": 0},
    "no such unit": {"timeout": "1s"},
    "backoff": {"retries": {"limit": 1, "delay": 1, "backoff": "x"}},
    "unknown key": {"foo": 1},
    "misspelt": {"retires": {"limit": 1, "delay": 1}},
    "infinite": {"retries": {"limit": float("inf"), "delay": 1}},
}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("given", BAD_CONFIGS.values(), ids=BAD_CONFIGS)
async def test_19_a_config_that_is_wrong(given: Any, profile: Any) -> None:
    """S4, E9: the callback is never called, nothing is retried, and it can be caught. O-20."""
    calls: list[str] = []
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        seen.append(await told(lambda: do(step, "s", lambda _: calls.append("called"), given)))
        return "went on"

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "went on"
        assert seen == [folded(profile, "WorkflowFatalError", BAD_CONFIG)]
        assert calls == []
        assert instance.steps == []
        assert clock(emulator) == 0


@pytest.mark.parametrize(
    ("delay", "waits"),
    [(0, [0]), (1500, [1.5]), ("1500", [1.5]), ("2 minutes", [120]), ("1.5 hours", [5400])],
)
async def test_units_of_a_delay(delay: Any, waits: list[float]) -> None:
    """O-20: a number is milliseconds, 0 is at once."""
    times: list[float] = []
    run = one_step(failing(times), {"retries": {"limit": 1, "delay": delay}})
    async with Emulator(worker(run)) as emulator:
        await failed(emulator)
        assert times == [0, *waits]


async def test_an_unknown_unit_is_an_error_before_the_body_runs() -> None:
    """O-20; D2: production is chosen to refuse what the local engine takes for milliseconds."""
    times: list[float] = []
    run = one_step(failing(times), {"retries": {"limit": 1, "delay": "5 parsecs"}})
    async with Emulator(worker(run)) as emulator:
        error = (await failed(emulator)).error
        assert BAD_CONFIG in error.message
        assert times == []


@pytest.mark.parametrize("profile", PROFILES)
async def test_20_names_of_steps(profile: Any) -> None:
    seen: dict[str, Any] = {}
    names = {"long": "n" * 256, "too long": "n" * 257, "line": "a\nb", "empty": ""}

    async def run(self: Any, event: Any, step: Any) -> None:
        for key in names:
            seen[key] = await told(lambda key=key: do(step, names[key], key))

    async with Emulator(worker(run), profile=profile) as emulator:
        await (await emulator.workflows["flow"].create()).result()
        text = 'Step name "{}" exceeds max length (256 chars) or invalid characters found'
        assert seen == {
            "long": "long",
            "empty": "empty",
            **{
                key: folded(profile, "WorkflowFatalError", text.format(names[key]))
                for key in ("too long", "line")
            },
        }


async def test_21_the_same_name_twice_is_two_steps() -> None:
    counts: list[int] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        def body(ctx: Any) -> int:
            counts.append(ctx["step"]["count"])
            return len(counts)

        return [await do(step, "s", body), await do(step, "s", body)]

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == [1, 2]
        assert counts == [1, 2]
        assert [row.target for row in rows(instance, 5)] == ["s-1", "s-2"]
        assert [(step.name, step.count, step.output) for step in instance.steps] == [
            ("s", 1, 1),
            ("s", 2, 2),
        ]


@pytest.mark.parametrize(("profile", "delay"), [("production", 10000), ("miniflare", 1000)])
async def test_22_the_context_of_a_step(profile: Any, delay: int) -> None:
    seen: list[Any] = []
    async with Emulator(worker(one_step(seen.append)), profile=profile) as emulator:
        await (await emulator.workflows["flow"].create()).result()
        assert seen == [
            {
                "step": {"name": "s", "count": 1},
                "attempt": 1,
                "config": {
                    "retries": {"limit": 5, "delay": delay, "backoff": "exponential"},
                    "timeout": "10 minutes",
                },
            }
        ]


# -- replays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["pause", "evict", "restart of the process"])
async def test_23_a_replay_calls_no_finished_step(how: str) -> None:
    """C4: code between the steps runs again."""
    log: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        log.append("top")
        a = await do(step, "a", lambda _: log.append("a") or 7)
        log.append("between")
        await step.sleep("n", "1 hour")
        b = await do(step, "b", lambda _: log.append("b") or 8)
        return [a, b]

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert log == ["top", "a", "between"]
        if how == "pause":
            await instance.pause()
            await instance.resume()
        elif how == "evict":
            await instance.evict()
        else:
            await emulator.restart()
        assert log == ["top", "a", "between", "top", "between"]
        assert await instance.result() == [7, 8]
        assert log == ["top", "a", "between", "top", "between", "b"]
        assert clock(emulator) == 3600


async def test_24_a_failed_step_fails_again_at_a_replay_without_a_call() -> None:
    calls: list[float] = []
    caught: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        try:
            await do(step, "s", failing(calls), NO_RETRY)
        except ValueError as error:
            caught.append(str(error))
        await step.sleep("n", 1000)
        return "went on"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.evict()
        assert await instance.result() == "went on"
        assert instance.status == "complete"
        assert calls == [0]
        assert caught == ["ValueError: no", "ValueError: no"]
        assert instance.steps[0].error is not None
        assert "no" in instance.steps[0].error.message


# -- errors ----------------------------------------------------------------------------------------


PRESERVE = "workflows_preserve_non_retryable_error_message"
BAD = ("NonRetryableError", "bad")
GENERAL = (
    "WorkflowFatalError",
    "The execution of the Workflow instance was terminated, as a step threw an NonRetryableError "
    "and it was not handled",
)


@pytest.mark.parametrize(
    ("profile", "config", "kept"),
    [
        ("production", {}, True),
        ("production", {"compatibility_date": "2026-05-13"}, False),
        # The local engine does not go by the date, only by the flag.
        ("miniflare", {}, False),
        ("miniflare", {"compatibility_flags": [PRESERVE]}, True),
    ],
)
@pytest.mark.parametrize("translated", [True, False])
async def test_25_a_non_retryable_error(
    profile: Any, config: Any, kept: bool, translated: bool
) -> None:
    """E5, E6; O-19: one attempt, whatever becomes of the text."""

    def body(ctx: Any) -> None:
        tries.append(ctx["attempt"])
        raise NonRetryableError("bad")

    async def raw(self: Any, event: Any, step: Any) -> None:
        def body(ctx: Any) -> None:
            tries.append(ctx.attempt)
            raise NonRetryableError("bad")

        await step.js_object.do("s", body)

    tries: list[int] = []
    run = one_step(body) if translated else raw
    async with Emulator(worker(run, **config), profile=profile) as emulator:
        failure = await failed(emulator)
        assert failure.status == "errored"
        error = BAD if kept else GENERAL
        assert tuple(failure.error) == error
        assert tries == [1]
        assert events(failure.instance) == [0, 1, 5, 10, 12, 7, 3]
        assert delays(failure.instance) == [None]
        assert clock(emulator) == 0
        (row,) = rows(failure.instance, 12)
        logged = "bad" if kept else 'Step threw a NonRetryableError with message "bad"'
        assert row.data["error"]["message"] == logged


async def test_26_caught_and_without_a_message() -> None:
    """E8; O-19."""
    tries: list[int] = []
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        def bare(ctx: Any) -> None:
            tries.append(ctx["attempt"])
            raise NonRetryableError

        def empty(ctx: Any) -> None:
            tries.append(ctx["attempt"])
            raise NonRetryableError("")

        def chained(ctx: Any) -> None:
            tries.append(ctx["attempt"])
            raise NonRetryableError("because") from ValueError("x")

        for body in (bare, empty, chained):
            try:
                await do(step, body.__name__, body)
            except NonRetryableError as error:
                seen.append(str(error))
        return "went on"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "went on"
        assert instance.status == "complete"
        assert tries == [1, 1, 1]
        assert seen == ["", "", "because"]


async def test_27_a_subclass_is_retried() -> None:
    """P13."""

    class Fatal(NonRetryableError):
        pass

    def body(ctx: Any) -> None:
        tries.append(ctx["attempt"])
        raise Fatal("bad")

    tries: list[int] = []
    async with Emulator(worker(one_step(body))) as emulator:
        failure = await failed(emulator)
        assert tries == [1, 2, 3, 4, 5, 6]
        assert "bad" in failure.error.message
        assert clock(emulator) == 310


@pytest.mark.parametrize("error", [NonRetryableError("bad"), ValueError("bad"), KeyError("bad")])
async def test_28_an_error_of_run_itself(error: Exception) -> None:
    """E2, E7: `run` is called once."""
    runs: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        runs.append(now())
        raise error

    async def fetch(worker: Any, request: Any) -> Any:
        return await (await worker.env.FLOW.get("x")).status()

    async with Emulator(worker(run, fetch=fetch)) as emulator:
        failure = await failed(emulator, id="x")
        assert failure.error.name == type(error).__name__
        assert "bad" in failure.error.message
        assert failure.instance.status == "errored"
        await emulator.settle()
        assert runs == [0]
        assert events(failure.instance) == [0, 1, 3]
        status = (await emulator.fetch("/")).json()
        assert status["status"] == "errored"
        assert status["error"] == failure.error._asdict()
        # What the instance says is what the exception says.
        assert f"{failure.error.name}: {failure.error.message}" in str(failure)
        assert "x" in str(failure)


@pytest.mark.parametrize(
    "config", [{}, {"compatibility_date": "2026-05-13"}, {"compatibility_date": "2026-02-01"}]
)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (RuntimeError("NonRetryableError: bad"), ("RuntimeError", "NonRetryableError: bad")),
        (ValueError("bad"), ("ValueError", "bad")),
    ],
)
async def test_what_a_python_run_lets_out_is_an_ordinary_error(
    error: Exception, shown: Any, profile: Any, config: Any
) -> None:
    """P14: to the engine it is a traceback, whatever its text, so that E7 does not apply."""

    async def run(self: Any, event: Any, step: Any) -> None:
        raise error

    async with Emulator(worker(run, **config), profile=profile) as emulator:
        failure = await failed(emulator)
        assert tuple(failure.error) == shown
        (row,) = rows(failure.instance, 3)
        assert (row.data["error"]["name"], row.data["error"]["message"]) == shown


@pytest.mark.parametrize(
    ("profile", "config", "kept"),
    [
        ("production", {}, True),
        ("production", {"compatibility_date": "2026-05-13"}, False),
        ("miniflare", {}, False),
        ("miniflare", {"compatibility_flags": [PRESERVE]}, True),
    ],
)
@pytest.mark.parametrize("error", [NonRetryableError("bad"), JsException(*BAD)])
async def test_28_a_non_retryable_error_outside_a_step(
    error: Exception, profile: Any, config: Any, kept: bool
) -> None:
    """E7."""

    async def run(self: Any, event: Any, step: Any) -> None:
        raise error

    async with Emulator(worker(run, **config), profile=profile) as emulator:
        failure = await failed(emulator)
        assert tuple(failure.error) == (BAD if kept else GENERAL)


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_ordinary_error_of_a_step_crosses_rpc(profile: Any) -> None:
    """E3, wf_failed_step_status: locally its class is in the text, wherever the error is seen.

    What the SDK makes of it is the same, also at a replay.
    """
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        def key(ctx: Any) -> None:
            raise KeyError("k")

        def value(ctx: Any) -> None:
            raise ValueError("v")

        for body in (key, value):
            try:
                await do(step, body.__name__, body, NO_RETRY)
            except ValueError as error:
                seen.append(str(error))
            except JsException as error:
                seen.append((error.name, error.message))
        await step.sleep("n", 1000)

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.evict()
        await instance.result()
        name, start = ("PythonError", "Traceback (most recent call last):\n")
        if profile == "miniflare":
            name, start = "Error", f"PythonError: {start}"
        assert seen[1] == seen[3] == "ValueError: v"
        assert seen[0] == seen[2]
        shown = [seen[0], tuple(instance.steps[0].error)]
        shown += [
            (row.data["error"]["name"], row.data["error"]["message"])
            for row in rows(instance, 12)
            if row.target == "key-1"
        ]
        assert len(shown) == 3
        assert [one[0] for one in shown] == [name] * 3
        assert all(text.startswith(start) for _, text in shown)
        assert all(text.endswith("KeyError: 'k'") for _, text in shown)


async def test_29_a_result_that_cannot_be_sent() -> None:
    """P9: an attempt failure, which is retried; the error names the value."""
    calls: list[int] = []

    def body(ctx: Any) -> Any:
        calls.append(ctx["attempt"])
        return (1, 2)

    run = one_step(body, {"retries": {"limit": 1, "delay": 0}})
    async with Emulator(worker(run)) as emulator:
        failure = await failed(emulator)
        assert calls == [1, 2]
        assert "<class 'tuple'> cannot be sent over RPC." in failure.error.message


async def test_30_a_result_that_is_too_large() -> None:
    """O3; O-22: retried, and it can be caught."""
    calls: list[int] = []
    caught: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        def body(ctx: Any) -> Any:
            calls.append(ctx["attempt"])
            return "x" * (1_048_576 + 1)

        config = {"retries": {"limit": 1, "delay": "10 seconds"}}
        caught.append(await told(lambda: do(step, "s", body, config)))
        return "went on"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "went on"
        assert calls == [1, 2]
        assert clock(emulator) == 10
        assert caught == [
            [
                "WorkflowInternalError",
                "Step s-1 output is too large. Maximum allowed size is 1MiB.",
            ]
        ]


@pytest.mark.parametrize("size", [200_000, 900_000])
async def test_large_bytes_come_back_after_a_replay(size: int) -> None:
    """O-22."""
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> int:
        value = await do(step, "s", lambda _: {"data": bytes(size)})
        seen.append(bytes(value["data"]))
        await step.sleep("n", 1000)
        return len(value["data"])

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.evict()
        assert await instance.result() == size
        assert seen == [bytes(size), bytes(size)]
        assert instance.steps[0].output == {"data": bytes(size)}


async def test_31_a_sensitive_output() -> None:
    """O7: it is cached and returned; what shows it does not."""
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        seen.append(await do(step, "s", "hunter2", {"sensitive": "output"}))
        await step.sleep("n", 1000)

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.evict()
        await instance.result()
        assert seen == ["hunter2", "hunter2"]
        assert instance.steps[0].output == "[REDACTED]"
        assert [row.data["result"] for row in rows(instance, 6)] == ["[REDACTED]"]
        assert "hunter2" not in emulator.trace.to_jsonl()
        assert "hunter2" not in str(instance.history)


# -- sleeps ----------------------------------------------------------------------------------------


async def test_32_a_sleep() -> None:
    async def run(self: Any, event: Any, step: Any) -> float:
        await step.sleep("n", "1 day")
        return now()

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(DAY - 0.001)
        assert instance.status == "waiting"
        await emulator.advance(0.001)
        assert instance.output == DAY
        (start,), (end,) = rows(instance, 8), rows(instance, 9)
        assert (start.data["durationMs"], start.target) == (86_400_000, "n-1")
        assert (seconds(start.at), seconds(end.at)) == (0, DAY)
        assert events(instance) == [0, 1, 8, 9, 2]
        (step,) = instance.steps
        assert (step.kind, step.state, step.attempts, step.output) == ("sleep", "complete", 0, None)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("duration", "slept"),
    [
        (1500, 1.5),
        ("10", 0.01),
        ("1.5 hours", 5400),
        ("2 weeks", 1_209_600),
        ("1 month", 2_592_000),
        ("1 year", 31_557_600),
        (0, 0),
    ],
)
async def test_33_durations(duration: Any, slept: float, profile: Any) -> None:
    async def run(self: Any, event: Any, step: Any) -> float:
        await step.sleep("n", duration)
        return now()

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        if slept > 365 * DAY and profile == "production":
            # D5: at most 365 days.
            assert instance.status == "errored"
            assert "365 days" in instance.error.message
        else:
            assert await instance.result("400 days") == slept


@pytest.mark.parametrize("profile", PROFILES)
async def test_34_sleeping_until_a_moment(profile: Any) -> None:
    """D7: a past moment is an error that can be caught, and is not retried."""
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        moment = datetime.now(UTC)
        past = moment - timedelta(milliseconds=1)
        seen.append(await told(lambda: step.sleep_until("past", past)))
        await step.sleep_until("now", moment)
        seen.append(now())
        await step.sleep_until("aware", moment + timedelta(seconds=90))
        seen.append(now())
        await step.sleep_until("naive", datetime(2026, 1, 1, 0, 2))
        seen.append(now())
        await step.sleep_until("number", (START.timestamp() + 180) * 1000)
        seen.append(now())

    async with Emulator(worker(run), profile=profile) as emulator:
        await (await emulator.workflows["flow"].create()).result()
        assert seen[0][1].endswith("You can't sleep until a time in the past, time-traveler")
        assert seen[1:] == [0, 90, 120, 180]


async def test_35_a_replay_after_the_moment_neither_fails_nor_sleeps() -> None:
    """D8: what the local engine does there is not copied in production's profile."""
    seen: list[float] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        await step.sleep_until("u", START + timedelta(seconds=60))
        seen.append(now())
        await do(step, "s", 1)
        await step.sleep("n", "20 seconds")
        return "done"

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(70)
        await instance.pause()
        assert instance.status == "paused"
        await emulator.advance(30)
        await instance.resume()
        assert seen == [60, 100]
        assert await instance.result() == "done"
        assert clock(emulator) == 110
        assert len(rows(instance, 8)) == 2


@pytest.mark.parametrize(("profile", "woke"), [("production", 3600), ("miniflare", 7800)])
async def test_a_sleep_that_a_replay_asks_for_with_another_duration(
    profile: Any, woke: float
) -> None:
    """C2: the local engine takes it for another sleep; production keeps the first one's end."""
    durations = ["1 hour", "2 hours"]

    async def run(self: Any, event: Any, step: Any) -> float:
        await step.sleep("n", durations.pop(0))
        return now()

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(600)
        await instance.evict()
        assert await instance.result() == woke
        assert [row.target for row in rows(instance, 8)] == ["n-1"] * (
            1 if profile == "production" else 2
        )


@pytest.mark.parametrize("profile", PROFILES)
async def test_which_states_are_ever_shown(profile: Any) -> None:
    """I6, §14: locally neither `waiting` nor `queued`."""
    seen: dict[str, None] = {}

    async def run(self: Any, event: Any, step: Any) -> str:
        await do(step, "s", lambda ctx: asyncio.sleep(5))
        await step.sleep("n", "1 minute")
        await told(lambda: do(step, "fails", failing(), {"retries": {"limit": 1, "delay": 1000}}))
        await told(lambda: step.wait_for_event("w", "go", timeout="1 minute"))
        return "done"

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()

        def look() -> bool:
            seen[instance.status] = None
            return instance.status == "complete"

        await emulator.advance(1)
        await instance.pause()
        look()
        await emulator.advance(10)
        look()
        await instance.resume()
        await emulator.run_until(look)
        expected = {"running", "waitingForPause", "paused", "complete"}
        if profile == "production":
            expected |= {"waiting"}
        assert {*seen} - {"queued"} == expected
        if profile == "miniflare":
            assert "queued" not in seen


# -- pause and resume ------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_36_a_pause_during_a_sleep_keeps_what_was_left(profile: Any) -> None:
    async def run(self: Any, event: Any, step: Any) -> float:
        await step.sleep("n", "60 seconds")
        return now()

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(20)
        await instance.pause()
        assert instance.status == "paused"
        await emulator.advance(80)
        assert instance.status == "paused"
        await instance.resume()
        await emulator.advance(39.999)
        assert instance.status in ("waiting", "running")
        await emulator.advance(0.001)
        assert instance.output == 140


async def test_37_a_pause_during_a_retry_delay() -> None:
    """I11, I13."""
    tries: list[tuple[float, int]] = []

    def body(ctx: Any) -> str:
        tries.append((now(), ctx["attempt"]))
        if ctx["attempt"] == 1:
            raise ValueError("no")
        return "ok"

    async with Emulator(worker(one_step(body))) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(4)
        await instance.pause()
        assert instance.status == "paused"
        await emulator.advance(46)
        await instance.resume()
        assert await instance.result() == "ok"
        assert tries == [(0, 1), (56, 2)]


async def test_38_a_pause_during_a_wait() -> None:
    """D15."""

    async def run(self: Any, event: Any, step: Any) -> float:
        await told(lambda: step.wait_for_event("w", "go", timeout="60 seconds"))
        return now()

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(20)
        await instance.pause()
        assert instance.status == "paused"
        await emulator.advance(80)
        await instance.resume()
        await emulator.advance(39.999)
        assert instance.status == "waiting"
        await emulator.advance(0.001)
        assert instance.output == 140


def slow_flow(log: list[Any]) -> Any:
    """Two steps, of which the first takes 30 s."""

    async def first(ctx: Any) -> str:
        log.append(("first", now()))
        await asyncio.sleep(30)
        return "first"

    async def run(self: Any, event: Any, step: Any) -> Any:
        a = await do(step, "a", first)
        b = await do(step, "b", lambda _: log.append(("second", now())) or "second")
        return [a, b]

    return run


@pytest.mark.parametrize("profile", PROFILES)
async def test_39_a_pause_waits_for_the_step_that_runs(profile: Any) -> None:
    """I10."""
    log: list[Any] = []
    async with Emulator(worker(slow_flow(log)), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(10)
        await instance.pause()
        assert instance.status == "waitingForPause"
        await emulator.advance(19.999)
        assert instance.status == "waitingForPause"
        await emulator.advance(0.001)
        assert instance.status == "paused"
        assert states(instance) == [("a", "complete", 1)]
        await emulator.advance(100)
        assert log == [("first", 0)]
        await instance.resume()
        assert await instance.result() == ["first", "second"]
        assert log == [("first", 0), ("second", 130)]


async def test_40_a_pause_that_is_taken_back() -> None:
    """I14."""
    log: list[Any] = []
    seen: list[str] = []
    async with Emulator(worker(slow_flow(log))) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(10)
        await instance.pause()
        await emulator.advance(10)
        await instance.resume()
        assert instance.status == "running"
        await emulator.run_until(lambda: seen.append(instance.status) or clock(emulator) == 30)
        assert await instance.result() == ["first", "second"]
        assert "paused" not in seen
        assert log == [("first", 0), ("second", 30)]


@pytest.mark.parametrize("profile", PROFILES)
async def test_41_verbs_without_effect(profile: Any) -> None:
    async def run(self: Any, event: Any, step: Any) -> None:
        if event["payload"] == "sleep":
            await step.sleep("n", 5000)

    async with Emulator(worker(run), profile=profile) as emulator:
        done = await emulator.workflows["flow"].create()
        before = events(done)
        await done.pause()
        await done.resume()
        assert (done.status, events(done)) == ("complete", before)
        asleep = await emulator.workflows["flow"].create("b", "sleep")
        status = asleep.status
        await asleep.resume()
        assert asleep.status == status
        await asleep.result()
        assert clock(emulator) == 5


@pytest.mark.parametrize("profile", PROFILES)
async def test_42_terminate(profile: Any) -> None:
    later: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> None:
        await step.sleep("n", "1 hour")
        await do(step, "later", lambda _: later.append("ran"))

    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.get("x")
        return await told(instance.terminate)

    text = "(instance.cannot_terminate) Cannot terminate instance since its on a finite state"
    async with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        await emulator.advance(60)
        await instance.terminate()
        assert instance.status == "terminated"
        assert events(instance)[-1] == 4
        assert (await emulator.fetch("/")).json() == folded(profile, "WorkflowError", text)
        with pytest.raises(WorkflowError) as info:
            await instance.terminate()
        assert text in info.value.message
        await emulator.advance("1 day")
        assert later == []
        with pytest.raises(WorkflowFailed) as failure:
            await instance.result()
        assert (failure.value.status, failure.value.error) == ("terminated", None)


# -- restarts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_43_restarts(profile: Any) -> None:
    """I19, I20."""
    calls: list[str] = []
    began: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        began.append((event["payload"], event["timestamp"]))
        for name in "ABC":
            await do(step, name, lambda _, name=name: calls.append(name))
        return "done"

    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.get("x")
        return await told(lambda: instance.restart({"from": {"name": "nope"}}))

    async with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create("x", {"a": 1})
        assert calls == ["A", "B", "C"]
        await emulator.advance(60)
        await instance.restart()
        assert calls == ["A", "B", "C"] * 2
        assert began == [began[0]] * 2
        assert began[0] == ({"a": 1}, datetime(2026, 1, 1))
        calls.clear()
        await instance.restart("B")
        assert calls == ["B", "C"]
        assert instance.status == "complete"
        before = instance.history
        text = '(instance.cannot_restart) Step "nope" not found in execution history'
        assert (await emulator.fetch("/")).json() == folded(profile, "WorkflowError", text)
        with pytest.raises(WorkflowError, match="cannot_restart"):
            await instance.restart({"name": "nope"})
        assert (calls, instance.history) == (["B", "C"], before)


async def test_44_a_restart_from_one_of_several_steps_of_a_name() -> None:
    calls: list[int] = []

    async def run(self: Any, event: Any, step: Any) -> Any:
        return [
            await do(step, "s", lambda ctx: calls.append(ctx["step"]["count"]) or len(calls))
            for _ in range(3)
        ]

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert instance.output == [1, 2, 3]
        await instance.restart({"name": "s", "count": 2, "type": "do"})
        assert calls == [1, 2, 3, 2, 3]
        assert instance.output == [1, 4, 5]


async def test_45_a_restart_of_an_instance_that_ended_errored() -> None:
    runs: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        runs.append(event["instanceId"])
        if len(runs) == 1:
            raise ValueError("once")
        return "done"

    async with Emulator(worker(run)) as emulator:
        failure = await failed(emulator, id="x")
        instance = failure.instance
        await instance.restart()
        assert (instance.status, instance.output, instance.error) == ("complete", "done", None)
        assert runs == ["x", "x"]
        assert len(emulator.workflows["flow"].instances) == 1


# -- events ----------------------------------------------------------------------------------------


def waits(*types: str, timeout: Any = "1 day") -> Any:
    """A `run` that waits for events one after the other."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        await step.sleep("n", "1 minute")
        seen = []
        for number, kind in enumerate(types):
            found = await step.wait_for_event(f"w{number}", kind, timeout=timeout)
            seen.append([found["type"], found["payload"], found["timestamp"].isoformat(), now()])
        return seen

    return run


@pytest.mark.parametrize("profile", PROFILES)
async def test_46_an_event_before_the_wait(profile: Any) -> None:
    """D11; O-25."""
    async with Emulator(worker(waits("go")), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(20)
        await instance.send_event("go", {"n": 1})
        assert await instance.result() == [["go", {"n": 1}, "2026-01-01T00:00:20", 60]]
        assert clock(emulator) == 60
        (step,) = [step for step in instance.steps if step.kind == "waitForEvent"]
        assert step.output["payload"] == {"n": 1}
        assert seconds(step.output["timestamp"]) == 20


async def test_47_events_are_served_in_order_and_by_type() -> None:
    """D11 to D13; O-25: across an eviction."""
    async with Emulator(worker(waits("a", "a", "b"))) as emulator:
        instance = await emulator.workflows["flow"].create()
        await instance.send_event("b", "first b")
        await instance.send_event("a", 1)
        await emulator.advance(60)
        assert [step.state for step in instance.steps] == ["complete", "complete", "waiting"]
        await instance.evict()
        await instance.send_event("A", "other case")
        assert instance.status == "waiting"
        await instance.send_event("a", 2)
        found = await instance.result()
        assert [[kind, payload] for kind, payload, *_ in found] == [
            ["a", 1],
            ["a", 2],
            ["b", "first b"],
        ]


@pytest.mark.parametrize("profile", PROFILES)
async def test_48_a_wait_that_times_out(profile: Any) -> None:
    """D9, D10: not retried; the instance goes on if it is caught."""
    seen: list[Any] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        seen.append(await told(lambda: step.wait_for_event("w", "go")))
        return "went on"

    async with Emulator(worker(run), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(DAY - 0.001)
        assert seen == []
        await emulator.advance(0.001)
        assert seen == [
            folded(profile, "WorkflowTimeoutError", "Execution timed out after 86400000ms")
        ]
        assert instance.output == "went on"
        assert events(instance) == [0, 1, 14, 16, 2]


async def test_49_events_that_are_refused() -> None:
    """I23, I24: in production only."""

    async def run(self: Any, event: Any, step: Any) -> None:
        if event["payload"] == "wait":
            await step.wait_for_event("w", "go")

    async def fetch(worker: Any, request: Any) -> Any:
        done, waiting = await worker.env.FLOW.get("done"), await worker.env.FLOW.get("waiting")
        return [
            await told(lambda: done.send_event({"type": "go", "payload": 1})),
            await told(lambda: waiting.send_event({"type": "a.b", "payload": 1})),
        ]

    for profile in PROFILES:
        async with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:  # type: ignore[arg-type]
            done = await emulator.workflows["flow"].create("done")
            await emulator.workflows["flow"].create("waiting", "wait")
            finite, kind = (await emulator.fetch("/")).json()
            if profile == "miniflare":
                assert (finite, kind) == (None, None)
                continue
            assert finite == [
                "WorkflowError",
                "(instance.in_finite_state) Instance reached a finite state, cannot send events "
                "to it",
            ]
            assert "workflow.invalid_event_type" in kind[1]
            with pytest.raises(WorkflowError, match=r"instance\.in_finite_state"):
                await done.send_event("go")


async def test_50_an_event_while_paused() -> None:
    """I15."""
    async with Emulator(worker(waits("go"))) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance(90)
        await instance.pause()
        await instance.send_event("go", "kept")
        await emulator.advance(10)
        assert instance.status == "paused"
        await instance.resume()
        assert [found[1] for found in await instance.result()] == ["kept"]


# -- limits, parallel steps, crashes ---------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_51_the_step_limit(profile: Any) -> None:
    """T1: sleeps do not count, cached calls do."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        for number in range(3):
            await do(step, f"s{number}", number)
        for number in range(5):
            await step.sleep(f"n{number}", 1000)
        return await told(lambda: do(step, "one too many", 1))

    config = worker(run, limits={"steps": 3})
    async with Emulator(config, profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        text = (
            "The limit of 3 steps has been reached. This limit can be changed in your worker "
            "configuration."
        )
        assert await instance.result() == folded(profile, "WorkflowFatalError", text)
        assert clock(emulator) == 5


@pytest.mark.parametrize("profile", PROFILES)
async def test_52_parallel_steps(profile: Any) -> None:
    """C6."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        async def body(ctx: Any) -> Any:
            await asyncio.sleep(5 if ctx["step"]["name"] == event["payload"] else 10)
            if ctx["step"]["name"] == event["payload"]:
                raise ValueError("broken")
            return ctx["step"]["name"]

        return await asyncio.gather(*(do(step, name, body, NO_RETRY) for name in "abc"))

    async with Emulator(worker(run), profile=profile) as emulator:
        good = await emulator.workflows["flow"].create("good", "none")
        assert await good.result() == ["a", "b", "c"]
        assert clock(emulator) == 10
        bad = await emulator.workflows["flow"].create("bad", "b")
        with pytest.raises(WorkflowFailed, match="broken"):
            await bad.result()
        assert clock(emulator) == 15
        assert {step.name: step.state for step in bad.steps}["b"] == "errored"
        await emulator.settle()
        assert clock(emulator) == 20
        assert [(step.name, step.state, step.output) for step in bad.steps] == [
            ("a", "complete", "a"),
            ("b", "errored", None),
            ("c", "complete", "c"),
        ]
        assert bad.status == "errored"


async def test_53_an_attempt_that_is_lost() -> None:
    """X2, X3: it counts, there is no delay; production charges it to the retries."""
    tries: list[tuple[float, int]] = []

    async def body(ctx: Any) -> str:
        tries.append((now(), ctx["attempt"]))
        await asyncio.sleep(10)
        return "ok"

    run = one_step(body, {"retries": {"limit": 1, "delay": "1 minute"}})
    lost = "Attempt failed due to internal workflows error"
    for profile in PROFILES:
        tries.clear()
        async with Emulator(worker(run), profile=profile) as emulator:  # type: ignore[arg-type]
            instance = await emulator.workflows["flow"].create()
            await emulator.advance(5)
            await instance.crash()
            assert tries == [(0, 1), (5, 2)]
            await emulator.advance(5)
            await emulator.crash()
            await emulator.advance(0)
            if profile == "production":
                assert instance.status == "errored"
                assert lost in instance.error.message
                assert [row.data["error"]["message"] for row in rows(instance, 12)] == [lost, lost]
                assert [row.data["error"]["name"] for row in rows(instance, 12)] == [
                    "WorkflowInternalError"
                ] * 2
                assert states(instance) == [("s", "errored", 2)]
                assert clock(emulator) == 10
            else:
                assert tries == [(0, 1), (5, 2), (10, 3)]
                assert await instance.result() == "ok"
                assert clock(emulator) == 20
                assert rows(instance, 12) == []
            assert len(rows(instance, 5)) == 1


@pytest.mark.parametrize("away", [30, 90])
async def test_54_a_process_that_is_away_during_a_sleep(tmp_path: Any, away: int) -> None:
    """X5."""

    async def run(self: Any, event: Any, step: Any) -> float:
        await step.sleep("n", "60 seconds")
        return now()

    state = tmp_path / "state"
    async with Emulator(worker(run), state=state) as emulator:
        await emulator.workflows["flow"].create("x")
        await emulator.advance(20)
    start = START + timedelta(seconds=away)
    async with Emulator(worker(run), state=state, start=start) as emulator:
        instance = await emulator.workflows["flow"].get("x")
        assert clock(emulator) == away
        assert await instance.result() == max(60, away)


async def test_55_the_history_of_a_step_that_fails() -> None:
    """L1 to L4."""
    config = {"retries": {"limit": 1, "delay": 10}}
    async with Emulator(worker(one_step(failing(), config))) as emulator:
        failure = await failed(emulator)
        assert events(failure.instance) == [0, 1, 5, 10, 12, 10, 12, 7, 3]
        assert [row.id for row in failure.instance.history] == list(range(1, 10))
        assert rows(failure.instance, 3)[0].data["error"] == failure.error._asdict()
        assert [row.data["attempt"] for row in rows(failure.instance, 10)] == [1, 2]


async def test_58_dependencies_between_steps() -> None:
    """P5, P7, P8."""

    def run_of(concurrent: bool) -> Any:
        async def run(self: Any, event: Any, step: Any) -> Any:
            calls = []

            @step.do("a")
            async def first() -> str:
                calls.append("a")
                await asyncio.sleep(10)
                return "A"

            @step.do("b")
            async def second() -> str:
                await asyncio.sleep(10)
                return "B"

            @step.do("c", concurrent=concurrent)
            async def third(a: str, b: str) -> Any:
                return [a, b, now()]

            @step.do("d")
            async def fourth(a: str) -> str:
                return a.lower()

            results = [await third(), await fourth(), calls.count("a")]
            await first()
            await first()
            return [*results, calls.count("a")]

        return run

    for concurrent, at in ((True, 10), (False, 20)):
        async with Emulator(worker(run_of(concurrent))) as emulator:
            instance = await emulator.workflows["flow"].create()
            assert await instance.result() == [["A", "B", at], "a", 1, 3]
            counts = [step.count for step in instance.steps if step.name == "a"]
            assert counts == [1, 2, 3]


async def test_59_a_parameter_that_is_no_step() -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        @step.do("s")
        async def body(zzz: Any) -> None:
            raise AssertionError

        return await told(body)

    async with Emulator(worker(run)) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == ["TypeError", "Received unexpected parameter zzz"]


@pytest.mark.parametrize("profile", PROFILES)
async def test_60_delete(profile: Any) -> None:
    """I18."""
    later: list[str] = []

    async def run(self: Any, event: Any, step: Any) -> str:
        await step.sleep("n", "1 hour")
        later.append(event["payload"])
        return "done"

    async with Emulator(worker(run), profile=profile) as emulator:
        flow = emulator.workflows["flow"]
        instance = await flow.create("x", "first")
        await instance.delete()
        assert flow.instances == []
        with pytest.raises(WorkflowError, match=r"instance\.not_found"):
            await flow.get("x")
        with pytest.raises(WorkflowError, match=r"instance\.not_found"):
            await instance.pause()
        await emulator.advance(1800)
        again = await flow.create("x", "second")
        assert await again.result() == "done"
        assert later == ["second"]
        assert clock(emulator) == 5400


@pytest.mark.parametrize("profile", PROFILES)
async def test_62_a_run_that_returns_nothing(profile: Any) -> None:
    async def run(self: Any, event: Any, step: Any) -> None:
        pass

    async def fetch(worker: Any, request: Any) -> Any:
        return await (await worker.env.FLOW.get("x")).status()

    async with Emulator(worker(run, fetch=fetch), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create("x")
        assert await instance.result() is None
        status = (await emulator.fetch("/")).json()
        assert (status["status"], status.get("output")) == ("complete", None)
