"""Workflows with the SDK frozen in the runtime, as dates before 2026-04-21 give (python 1.13)."""

from __future__ import annotations

from typing import Any

import pytest
from workers.workflows import NonRetryableError
from workflow_bench import PROFILES, clock, delays, do, one_step, seconds, states, told, worker

from emulator import Emulator
from emulator.runtime import js
from emulator.runtime.ffi import to_js
from emulator.runtime.promises import PyodideFuture
from emulator.runtime.proxies import JsProxy
from emulator.values import JsException

pytestmark = pytest.mark.asyncio

OLD = ("2025-09-29", "2026-04-20")
NEW = "2026-04-21"
EXTERNAL = "enable_python_external_sdk"
LINE = "workers.workflows.NonRetryableError: bad"


def plain(value: Any) -> Any:
    """What users of that SDK have to write."""
    return to_js(value, dict_converter=js.Object.fromEntries)


async def waits(self: Any, event: Any, step: Any) -> Any:
    got = await step.wait_for_event("w", "go", timeout="1 hour")
    return getattr(got, "payload", None)


# -- the binding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("date", OLD)
async def test_a_status_takes_a_second_await_and_is_raw(date: str) -> None:
    async def fetch(worker: Any, request: Any) -> Any:
        flow = worker.env.FLOW
        instance = await flow.create(plain({"id": "x", "params": {"n": 1}}))
        promise = await instance.status()
        status = await promise
        found = await flow.get("x")
        assert (type(promise), type(status)) == (PyodideFuture, JsProxy)
        with pytest.raises(TypeError):
            status["status"]
        names = [type(one).__name__ for one in (flow, instance, found)]
        return [*names, instance.id, found.id, status.status, status.to_py()["status"]]

    async with Emulator(worker(waits, fetch=fetch, compatibility_date=date)) as emulator:
        answer = (await emulator.fetch("/")).json()
        assert answer[0] == "_WorkflowBindingWrapper"
        assert answer[1:3] == ["_WorkflowInstanceWrapper"] * 2
        assert answer[3:5] == ["x", "x"]
        assert answer[5] == answer[6]
        assert answer[5] in ("queued", "running", "waiting")
        (instance,) = emulator.workflows["flow"].instances
        assert instance.id == "x"


@pytest.mark.parametrize("date", OLD)
async def test_a_naive_answer_with_a_status_fails(date: str) -> None:
    async def fetch(worker: Any, request: Any) -> Any:
        return await (await worker.env.FLOW.create()).status()

    async with Emulator(worker(waits, fetch=fetch, compatibility_date=date)) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 500
        assert "PyodideFuture is not JSON serializable" in response.text


async def test_a_dict_of_python_cannot_be_sent() -> None:
    """`to_js` is needed, for options, events and batches; `kwargs` are options too."""

    async def fetch(worker: Any, request: Any) -> Any:
        flow = worker.env.FLOW
        refused = [
            await told(lambda: flow.create({"id": "a", "params": {"n": 1}})),
            await told(lambda: flow.create(id="b", params={"n": 1})),
        ]
        made = [
            await flow.create(id="c", params=plain({"n": 1})),
            *await flow.create_batch(plain([{"id": "d"}, {"id": "e"}])),
        ]
        return [refused, [[type(one).__name__, one.id] for one in made]]

    config = worker(waits, fetch=fetch, compatibility_date=OLD[1])
    async with Emulator(config) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 200, response.text
        refused, made = response.json()
        assert [name for name, _ in refused] == ["DataCloneError"] * 2
        assert made == [["_WorkflowInstanceWrapper", id] for id in "cde"]
        assert [one.id for one in emulator.workflows["flow"].instances] == ["c", "d", "e"]


async def test_methods_of_an_instance_return_the_promise() -> None:
    """The call is made by the first `await`; the second waits for it."""
    seen: list[str] = []

    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.create(plain({"id": "x"}))
        for name in ("pause", "resume", "restart", "pause", "resume"):
            promise = await getattr(instance, name)()
            assert type(promise) is PyodideFuture
            await promise
            seen.append((await (await instance.status())).status)
        event = plain({"type": "go", "payload": {"n": 1}})
        await (await instance.send_event(event))
        gone = await worker.env.FLOW.create(plain({"id": "y"}))
        await gone.terminate()
        return None

    config = worker(waits, fetch=fetch, compatibility_date=OLD[1])
    async with Emulator(config) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 200, response.text
        await emulator.settle()
        assert seen[0] == seen[3] == "paused"
        assert "paused" not in (seen[1], seen[2], seen[4])
        x, y = emulator.workflows["flow"].instances
        assert (x.status, x.output, y.status) == ("complete", {"n": 1}, "terminated")


async def test_other_names_pass_through_raw() -> None:
    async def fetch(worker: Any, request: Any) -> Any:
        flow = worker.env.FLOW
        listed = await flow.createBatch(plain([{"id": "x"}]))
        assert isinstance(listed, JsProxy)
        assert isinstance(listed[0], JsProxy)
        instance = await flow.get("x")
        await instance.sendEvent(plain({"type": "go", "payload": 2}))
        await told(lambda: flow.deleteBatch(plain(["none"])))
        assert not hasattr(flow, "nothing")
        return None

    config = worker(waits, fetch=fetch, compatibility_date=OLD[1])
    async with Emulator(config) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 200, response.text
        await emulator.settle()
        (instance,) = emulator.workflows["flow"].instances
        assert (instance.status, instance.output) == ("complete", 2)


@pytest.mark.parametrize(
    "config", [{"compatibility_date": NEW}, {"compatibility_date": OLD[1], "flags": [EXTERNAL]}]
)
async def test_the_sdk_from_pypi_converts(config: dict[str, Any]) -> None:
    flags = config.pop("flags", [])

    async def fetch(worker: Any, request: Any) -> Any:
        instance = await worker.env.FLOW.create({"id": "x", "params": {"n": 1}})
        return (await instance.status())["status"]

    given = worker(waits, fetch=fetch, compatibility_flags=flags, **config)
    async with Emulator(given) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 200, response.text


@pytest.mark.parametrize("date", OLD)
async def test_a_test_has_its_own_view_at_every_date(date: str) -> None:
    async def run(self: Any, event: Any, step: Any) -> Any:
        return event["payload"]["n"]

    async with Emulator(worker(run, compatibility_date=date)) as emulator:
        made = await emulator.env.FLOW.create({"id": "x", "params": {"n": 1}})
        await emulator.settle()
        status = await made.status()
        assert (status["status"], status["output"]) == ("complete", 1)
        other = await emulator.workflows["flow"].create(params={"n": 2})
        assert await other.result() == 2


# -- errors ----------------------------------------------------------------------------------------


def catches(tries: list[int], seen: list[str]) -> Any:
    """A `run` whose step raises a NonRetryableError, which it catches."""

    def body(ctx: Any) -> None:
        tries.append(ctx["attempt"])
        raise NonRetryableError("bad")

    async def run(self: Any, event: Any, step: Any) -> str:
        try:
            await do(step, "s", body)
        except NonRetryableError as error:
            seen.append(str(error))
        return "went on"

    return run


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("date", OLD)
async def test_a_non_retryable_error_is_retried(date: str, profile: Any) -> None:
    """workers-py#266: that SDK does not tell the engine; `except` sees the traceback's last line.

    The platform's log says so, once for an instance.
    """
    tries: list[int] = []
    seen: list[str] = []
    config = worker(catches(tries, seen), compatibility_date=date)
    async with Emulator(config, profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "went on"
        assert tries == [1, 2, 3, 4, 5, 6]
        assert seen == [LINE]
        assert clock(emulator) == (310 if profile == "production" else 31)
        assert delays(instance)[-1] is None
        assert states(instance) == [("s", "errored", 6)]
        await (await emulator.workflows["flow"].create()).result()
        warnings = [log for log in emulator.logs if log.level == "warn"]
        assert [seconds(log.at) for log in warnings] == [0, 310 if profile == "production" else 31]
        assert all(
            log.text.startswith(
                "before compatibility date 2026-04-21 production retries a NonRetryableError"
            )
            for log in warnings
        )


async def test_the_warning_comes_once_though_run_starts_over() -> None:
    def body(ctx: Any) -> None:
        raise NonRetryableError("bad")

    async def run(self: Any, event: Any, step: Any) -> None:
        for name in ("a", "b"):
            with pytest.raises(NonRetryableError):
                await do(step, name, body, {"retries": {"limit": 0, "delay": 0}})
            await step.sleep(f"after {name}", "1 hour")

    async with Emulator(worker(run, compatibility_date=OLD[1])) as emulator:
        instance = await emulator.workflows["flow"].create()
        await emulator.advance("1 minute")
        await instance.crash()
        await instance.result()
        assert states(instance)[0::2] == [("a", "errored", 1), ("b", "errored", 1)]
        assert [log.level for log in emulator.logs].count("warn") == 1


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("date", "flags"), [(NEW, []), (OLD[1], [EXTERNAL])])
async def test_the_sdk_from_pypi_tells_the_engine(date: str, flags: Any, profile: Any) -> None:
    tries: list[int] = []
    seen: list[str] = []
    config = worker(catches(tries, seen), compatibility_date=date, compatibility_flags=flags)
    async with Emulator(config, profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == "went on"
        assert (tries, seen, clock(emulator)) == ([1], ["bad"], 0)
        assert [log for log in emulator.logs if log.level == "warn"] == []


@pytest.mark.parametrize("profile", PROFILES)
async def test_an_error_of_javascript_of_that_name_is_final(profile: Any) -> None:
    """E4: the way out that this SDK leaves; `except NonRetryableError` does not catch it."""
    tries: list[int] = []

    def body(ctx: Any) -> None:
        tries.append(ctx["attempt"])
        raise JsException("NonRetryableError", "bad")

    async def run(self: Any, event: Any, step: Any) -> list[str]:
        try:
            await do(step, "s", body)
        except NonRetryableError:
            return []
        except JsException as error:
            return [error.name, error.message]
        return []

    async with Emulator(worker(run, compatibility_date=OLD[1]), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        folded = ["Error", "NonRetryableError: bad"]
        expected = ["NonRetryableError", "bad"] if profile == "production" else folded
        assert await instance.result() == expected
        assert (tries, clock(emulator)) == ([1], 0)


async def test_a_mocked_error_is_what_the_body_would_raise() -> None:
    """So the mock of a NonRetryableError is retried as well, and the text is the last line."""

    async def run(self: Any, event: Any, step: Any) -> Any:
        return await told(lambda: do(step, "s", 1))

    async with Emulator(worker(run, compatibility_date=OLD[1])) as emulator:
        emulator.workflows["flow"].mock_step_error("s", NonRetryableError("bad"))
        instance = await emulator.workflows["flow"].create()
        assert await instance.result() == ["NonRetryableError", LINE]
        assert states(instance) == [("s", "errored", 6)]


@pytest.mark.parametrize("profile", PROFILES)
async def test_the_instances_error_is_that_of_its_date(profile: Any) -> None:
    """E6: what the SDK made of the step's error leaves `run`."""

    def body(ctx: Any) -> None:
        raise NonRetryableError("bad")

    run = one_step(body, {"retries": {"limit": 0, "delay": 0}})
    async with Emulator(worker(run, compatibility_date=OLD[1]), profile=profile) as emulator:
        instance = await emulator.workflows["flow"].create()
        assert instance.status == "errored"
        assert instance.error is not None
        assert instance.error.name == "WorkflowFatalError"
        assert "NonRetryableError and it was not handled" in instance.error.message
