"""The rate limiting binding. Texts are those of miniflare (`ratelimit.worker.ts`)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from workers import Response, WorkerEntrypoint

from emulator import ConfigError, Emulator, WorkerCrashed

pytestmark = pytest.mark.asyncio

LIMITS = [{"name": "LIMITER", "namespace_id": "1001", "simple": {"limit": 2, "period": 10}}]
FROZEN = "2026-04-20"


def worker(body: Any, **config: Any) -> dict[str, Any]:
    async def fetch(self: Any, request: Any) -> Any:
        return Response.json(await body(self.env.LIMITER))

    main = type("Worker", (WorkerEntrypoint,), {"fetch": fetch})
    return {"main": main, "ratelimits": LIMITS, **config}


async def allowed(limiter: Any) -> Any:
    return (await limiter.limit({"key": "ada"})).success


async def told(call: Any) -> Any:
    try:
        return await call()
    except Exception as error:
        return [error.name, error.message]  # type: ignore[attr-defined]


async def test_a_key_is_refused_past_its_limit_until_the_period_is_over() -> None:
    async with Emulator(worker(allowed)) as emulator:
        await emulator.advance("3 s")
        assert [(await emulator.fetch("/")).json() for _ in range(3)] == [True, True, False]
        await emulator.advance("6.999 s")
        assert (await emulator.fetch("/")).json() is False
        await emulator.advance("1 ms")  # 10 s past midnight
        assert (await emulator.fetch("/")).json() is True
        events = [e for e in emulator.trace if e.kind == "ratelimit"]
        assert events[0].subject == "ratelimit LIMITER"
        assert dict(events[2].data) == {"key": "ada", "success": False, "by": "request GET / #3"}


async def test_keyword_arguments_dicts_and_the_old_sdk() -> None:
    async def body(limiter: Any) -> Any:
        from js import Object
        from pyodide.ffi import to_js

        given = to_js({"key": "b"}, dict_converter=Object.fromEntries)
        return [(await limiter.limit(key="a")).success, (await limiter.limit(given)).success]

    for date in (FROZEN, "2026-09-08"):
        async with Emulator(worker(body, compatibility_date=date)) as emulator:
            assert (await emulator.fetch("/")).json() == [True, True]


async def test_bad_options_are_refused_with_the_platforms_texts() -> None:
    async def body(limiter: Any) -> Any:
        return [
            await told(lambda: limiter.limit()),
            await told(lambda: limiter.limit("ada")),
            await told(lambda: limiter.limit(None)),
            await told(lambda: limiter.limit({"key": 5})),
            await told(lambda: limiter.limit({"key": "a", "limits": 1, "what": 2})),
            await told(lambda: limiter.limit({"key": "a", "limit": "1"})),
            await told(lambda: limiter.limit({"key": "a", "period": True})),
            await told(lambda: limiter.limit({"key": "a", "period": 30})),
            (await limiter.limit({})).success,
            (await limiter.limit({"limit": 0})).success,
        ]

    async with Emulator(worker(body)) as emulator:
        assert (await emulator.fetch("/")).json() == [
            ["Error", "invalid rate limit options"],
            ["Error", "invalid rate limit options"],
            ["Error", "invalid rate limit options"],
            ["Error", "invalid key: 5"],
            ["Error", "bad rate limit options: [limits,what]"],
            ["Error", "limit must be a number: 1"],
            ["Error", "period must be a number: true"],
            ["Error", "unsupported period: 30"],
            True,
            False,
        ]


async def test_bindings_of_one_namespace_share_counts_also_between_workers() -> None:
    other = {
        "name": "other",
        "main": type("Other", (WorkerEntrypoint,), {}),
        "unsafe": {
            "bindings": [
                {
                    "name": "OLD",
                    "type": "ratelimit",
                    "namespace_id": "1001",
                    "simple": {"limit": 5, "period": 10},
                }
            ]
        },
    }
    async with Emulator([worker(allowed), other]) as emulator:
        assert (await emulator.envs["other"].OLD.limit(key="ada")).success is True
        assert (await emulator.fetch("/")).json() is True
        assert (await emulator.fetch("/")).json() is False
        assert (await emulator.envs["other"].OLD.limit(key="ada")).success is True
        assert list(emulator.findings) == []


async def test_counts_survive_crashes_and_restarts(tmp_path: Any) -> None:
    config = worker(allowed)
    async with Emulator(config, state=tmp_path / "state") as emulator:
        await emulator.fetch("/")
        await emulator.crash()
        await emulator.fetch("/")
        await emulator.restart()
        assert (await emulator.fetch("/")).json() is False
    async with Emulator(config, state=tmp_path / "state") as emulator:
        assert (await emulator.fetch("/")).json() is False
        await emulator.reset()
        assert (await emulator.fetch("/")).json() is True


@pytest.mark.parametrize("action", ["crash_before", "fail", "crash_after", "lose_reply"])
async def test_each_fault(action: str) -> None:
    async def body(limiter: Any) -> Any:
        return await told(lambda: limiter.limit(key="ada"))

    plan = f"ratelimit.LIMITER.limit#1:{action}"
    async with Emulator(worker(body), faults=plan) as emulator:
        if action.startswith("crash"):
            with pytest.raises(WorkerCrashed):
                await emulator.fetch("/")
        else:
            assert (await emulator.fetch("/")).json() == ["Error", "internal error"]
        assert [str(fault) for fault in emulator.faults.fired] == [plan]
        counted = action in ("crash_after", "lose_reply")
        answers = [await emulator.env.LIMITER.limit(key="ada") for _ in range(2)]
        assert [one.success for one in answers] == [True, not counted]


async def test_calls_in_parallel_are_counted_one_by_one() -> None:
    async def body(limiter: Any) -> Any:
        answers = await asyncio.gather(*(limiter.limit(key="ada") for _ in range(4)))
        return [one.success for one in answers]

    async with Emulator(worker(body)) as emulator:
        assert (await emulator.fetch("/")).json() == [True, True, False, False]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": None}, 'bindings must have a string "name" field but got'),
        ({"namespace_id": 1001}, 'bindings must have a string "namespace_id" field but got'),
        ({"simple": {"period": 10}}, 'bindings "simple.limit" must be a number but got'),
        ({"simple": {"limit": 1}}, 'bindings "simple.period" must be a number but got'),
        ({"simple": {"limit": "9", "period": 10}}, 'bindings "simple.limit" must be a number'),
        (
            {"simple": {"limit": 1, "period": 30}},
            'bindings "simple.period" must be either 10 or 60 but got 30.',
        ),
    ],
)
async def test_a_wrong_config_is_refused_in_the_words_of_wrangler(change: Any, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Emulator(worker(allowed, ratelimits=[{**LIMITS[0], **change}]))
    assert "config: ratelimits[0]" in str(caught.value)
    assert f'wrangler: "ratelimits[0]" {text}' in str(caught.value)
