"""The event, the context, results, sleeps and waits as `run` sees them (workflows.md P1 to P10)."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from workflow_host import (
    CONFIG,
    DATES,
    EXTERNAL,
    IMPLICIT,
    LISTED,
    OLDEST,
    Journal,
    WorkflowStep,
    worker_of,
)

from emulator.runtime import js
from emulator.runtime.ffi import to_js
from emulator.runtime.promises import PyodideFuture
from emulator.runtime.proxies import JsProxy
from emulator.runtime.pyproxy import jsnull
from emulator.runtime.rpc import JsDict
from emulator.runtime.sdk.entrypoints import WorkflowEntrypoint
from emulator.runtime.sdk.workflows import wrap_workflow_event, wrap_workflow_step
from emulator.values import UNDEFINED, JsException, to_v8

pytestmark = pytest.mark.asyncio
FROZEN = (IMPLICIT, LISTED, OLDEST)


async def result_of(date: str, value: Any) -> Any:
    """What `await my_step()` gives for what the step's body returns."""
    with worker_of(date):
        step = wrap_workflow_step(WorkflowStep(Journal()))
        return await step.do("s")(lambda: value)()


async def test_event_is_a_dict_with_attributes() -> None:
    """P2."""
    with worker_of(EXTERNAL):
        event = wrap_workflow_event(Journal().event)
    assert type(event) is JsDict
    assert event.payload.order == event["payload"]["order"] == 7
    assert event.payload.note is None
    assert event.payload.lines[0].sku == "a"
    assert event.timestamp == datetime(2026, 1, 2, 3, 4, 5, 678000)
    assert (event.instanceId, event.workflowName) == ("order-7", "orders")
    assert not hasattr(event, "instance_id")
    assert "schedule" not in event


@pytest.mark.parametrize(("date", "null"), [(LISTED, jsnull), (IMPLICIT, jsnull), (OLDEST, None)])
async def test_frozen_event_is_a_plain_dict(date: str, null: object) -> None:
    """python-api.md 1.8 and 1.13: null inside is as Pyodide has it."""
    with worker_of(date):
        event = wrap_workflow_event(Journal().event)
    assert type(event) is dict
    assert event["payload"] == {"order": 7, "note": null, "lines": [{"sku": "a"}]}
    assert event["timestamp"] == datetime(2026, 1, 2, 3, 4, 5, 678000)


@pytest.mark.parametrize("date", DATES)
async def test_change_of_an_event_is_not_in_the_next_one(date: str) -> None:
    """B14."""
    event = Journal().event
    with worker_of(date):
        wrap_workflow_event(event)["payload"]["order"] = 8
        assert wrap_workflow_event(event)["payload"]["order"] == 7


@pytest.mark.parametrize("date", DATES)
async def test_context_has_step_attempt_and_config(date: str) -> None:
    """R5; the body's changes of it have no effect on the next attempt."""
    journal = Journal(attempts=2)
    seen: list[Any] = []

    def body(ctx: Any) -> None:
        seen.append((type(ctx), dict(ctx)))
        ctx["attempt"] = 9
        raise RuntimeError("again")

    with worker_of(date):
        step = wrap_workflow_step(WorkflowStep(journal))
        with pytest.raises(JsException):
            await step.do("s")(body)()
    kind = JsDict if date == EXTERNAL else dict
    context = {"step": {"name": "s", "count": 1}, "config": CONFIG}
    assert seen == [(kind, {**context, "attempt": 1}), (kind, {**context, "attempt": 2})]


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, None),
        ("x", "x"),
        (True, True),
        (7, 7),
        (1.0, 1),
        (0.5, 0.5),
        (2**60, 2**60),
        ({"a": [None, {"b": 1}]}, {"a": [None, {"b": 1}]}),
        (datetime(2026, 1, 2, 3, 4, 5), datetime(2026, 1, 2, 3, 4, 5)),
        (
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))),
            datetime(2026, 1, 2, 1, 4, 5),
        ),
        ({1, 2}, {1, 2}),
    ],
)
async def test_result_comes_back_as_python_has_it(value: Any, result: Any) -> None:
    """P9: the first time and at a replay, datetimes naive and in UTC."""
    back = await result_of(EXTERNAL, value)
    assert back == result
    assert isinstance(back, JsDict if isinstance(result, dict) else type(result))


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize("value", [b"\x00\xff", memoryview(b"\x00\xff")])
async def test_bytes_come_back_as_a_memoryview(date: str, value: Any) -> None:
    """python-api.md 1.5."""
    back = await result_of(date, value)
    assert type(back) is memoryview
    assert bytes(back) == b"\x00\xff"


@pytest.mark.parametrize(
    ("value", "text", "path"),
    [
        ((1, 2), "<class 'tuple'> cannot be sent over RPC.", "$"),
        ({"rows": [{"at": (1,)}]}, "<class 'tuple'> cannot be sent over RPC.", "$.rows[0].at"),
        (bytearray(b"x"), "<class 'bytearray'> cannot be sent over RPC.", "$"),
    ],
)
async def test_result_that_cannot_be_sent_fails_the_attempt(
    value: Any, text: str, path: str
) -> None:
    """P9: inside the body, so that it is tried again; the stored text says where."""
    journal = Journal(attempts=3)
    with worker_of(EXTERNAL):
        step = wrap_workflow_step(WorkflowStep(journal))
        with pytest.raises(TypeError) as caught:
            await step.do("broken")(lambda: value)()
    assert str(caught.value) == f"TypeError: {text}"
    assert journal.tried == [("broken", 1, "PythonError")] * 3
    stored = journal.outcomes["broken", 1]
    assert isinstance(stored, JsException)
    assert f"the value at {path} is the cause" in stored.message
    assert "what the body of the step 'broken' returned" in stored.message


async def test_result_that_is_awaitable_but_no_coroutine_cannot_be_sent() -> None:
    """P9: only a coroutine is awaited for the body."""
    with worker_of(EXTERNAL):
        step = wrap_workflow_step(WorkflowStep(Journal()))
        future = asyncio.get_running_loop().create_future()
        future.set_result(1)
        with pytest.raises(TypeError, match=r"^TypeError: Awaitable .* cannot be sent over RPC.$"):
            await step.do("s")(lambda: future)()


@dataclasses.dataclass
class Row:
    number: int


@pytest.mark.parametrize("value", [Row(1), {"rows": [Row(1)]}], ids=["top", "inside"])
async def test_result_of_a_class_of_its_own_cannot_be_cloned(value: Any) -> None:
    with pytest.raises(JsException, match=r"DataCloneError: \[object Object\] could not be cloned"):
        await result_of(EXTERNAL, value)


@pytest.mark.parametrize("date", FROZEN)
async def test_frozen_result_is_what_to_js_makes_of_it(date: str) -> None:
    """python-api.md 1.8: tuples are lists, dicts plain objects, and None is None again."""
    assert await result_of(date, {"a": (1, [2])}) == {"a": [1, [2]]}
    assert type(await result_of(date, {"a": 1})) is dict
    assert await result_of(date, None) is None
    assert await result_of(date, {"a": None}) == {"a": None}
    with pytest.raises(JsException, match="DataCloneError"):
        await result_of(date, datetime(2026, 1, 2))


@pytest.mark.parametrize("date", DATES)
async def test_stored_null_is_none(date: str) -> None:
    """P9: whatever null inside a result is to the SDK."""
    journal = Journal(outcomes={("s", 1): to_v8(None)})
    with worker_of(date):
        step = wrap_workflow_step(WorkflowStep(journal))
        assert await step.do("s")(lambda: 1)() is None
    assert journal.tried == []


@pytest.mark.parametrize("date", DATES)
async def test_sleep_hands_its_arguments_on(date: str) -> None:
    """P10: numbers are milliseconds, which is the engine's affair."""
    with worker_of(date):
        engine = WorkflowStep(Journal())
        step = wrap_workflow_step(engine)
        promise = step.sleep("nap", 1500)
        assert isinstance(promise, PyodideFuture)
        await promise
        await step.sleep("nap", "10 seconds")
        await step.sleep("half", 0.5)
    assert engine.calls == [
        ("sleep", ("nap", 1500)),
        ("sleep", ("nap", "10 seconds")),
        ("sleep", ("half", 0.5)),
    ]


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize(
    ("given", "arrives"),
    [
        (datetime(2026, 1, 2, 3, 4, 5), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (
            datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))),
            datetime(2026, 1, 2, 1, tzinfo=UTC),
        ),
        (1767322800000, 1767322800000),
        ("2026-01-02T03:00:00Z", "2026-01-02T03:00:00Z"),
    ],
)
async def test_sleep_until_takes_a_datetime_a_number_or_text(
    date: str, given: Any, arrives: Any
) -> None:
    """P10: a naive datetime is in UTC."""
    with worker_of(date):
        engine = WorkflowStep(Journal())
        await wrap_workflow_step(engine).sleep_until("nap", given)
    assert engine.calls == [("sleepUntil", ("nap", arrives))]


async def test_sleep_until_refuses_what_cannot_be_sent() -> None:
    with worker_of(EXTERNAL):
        step = wrap_workflow_step(WorkflowStep(Journal()))
        with pytest.raises(TypeError, match="<class 'tuple'> cannot be sent over RPC"):
            step.sleep_until("nap", (2026, 1, 2))


@pytest.mark.parametrize(
    ("given", "timeout"),
    [({}, "24 hours"), ({"timeout": 5000}, 5000), ({"timeout": None}, UNDEFINED)],
)
async def test_wait_for_event_begins_when_it_is_awaited(
    given: dict[str, Any], timeout: Any
) -> None:
    """P10."""
    with worker_of(EXTERNAL):
        engine = WorkflowStep(Journal())
        waiting = wrap_workflow_step(engine).wait_for_event("approval", "approved", **given)
        assert asyncio.iscoroutine(waiting)
        assert engine.calls == []
        event = await waiting
    assert engine.calls == [
        ("waitForEvent", ("approval", {"type": "approved", "timeout": timeout}))
    ]
    assert type(event) is JsDict
    assert event == {
        "payload": {"approved": True},
        "timestamp": datetime(2026, 1, 2),
        "type": "approved",
    }


@pytest.mark.parametrize("date", FROZEN)
async def test_frozen_wait_for_event_is_a_promise_of_a_raw_object(date: str) -> None:
    """python-api.md 1.8."""
    with worker_of(date):
        engine = WorkflowStep(Journal())
        promise = wrap_workflow_step(engine).wait_for_event("approval", "approved", "1 hour")
        assert isinstance(promise, PyodideFuture)
        event = await promise
        assert isinstance(event, JsProxy)
        assert event.payload.approved is True
        with pytest.raises(TypeError, match="not subscriptable"):
            event["payload"]
    assert engine.calls == [
        ("waitForEvent", ("approval", {"type": "approved", "timeout": "1 hour"}))
    ]


@pytest.mark.parametrize("date", DATES)
async def test_name_and_type_of_a_wait_are_positional_only(date: str) -> None:
    """P10."""
    with worker_of(date):
        step = wrap_workflow_step(WorkflowStep(Journal()))
        with pytest.raises(TypeError, match="positional-only arguments passed as keyword"):
            step.wait_for_event(name="approval", event_type="approved")


@pytest.mark.parametrize("date", DATES)
async def test_step_has_the_names_of_the_sdk_only(date: str) -> None:
    """python-api.md 1.8: no `sleepUntil`."""
    with worker_of(date):
        step = wrap_workflow_step(WorkflowStep(Journal()))
        assert wrap_workflow_step(step) is step
        for name in ("sleepUntil", "waitForEvent", "rollback"):
            with pytest.raises(AttributeError, match=name):
                getattr(step, name)
        assert step.js_object is step._js_step


@pytest.mark.parametrize("date", DATES)
async def test_engine_object_behind_step_takes_a_rollback(date: str) -> None:
    """K1, K9: with Pyodide's own rules, so that options have to be converted by hand."""
    undone: list[Any] = []
    with worker_of(date):
        engine = WorkflowStep(Journal())
        raw = wrap_workflow_step(engine)._js_step
        options = to_js(
            {"rollback": lambda given: undone.append(given.output)},
            dict_converter=js.Object.fromEntries,
        )
        assert await raw.do("charge", lambda ctx: ctx.attempt + 1, options) == 2
        ((_, (name, _, arrived)),) = engine.calls
        assert name == "charge"
        arrived["rollback"]({"output": 2})
    assert undone == [2]


async def test_body_given_to_the_engine_itself_returns_by_the_rules_of_pyodide() -> None:
    """A dict that nobody converted is a proxy, which cannot be cloned."""

    async def convert(_: Any) -> Any:
        return to_js({"a": 1}, dict_converter=js.Object.fromEntries)

    async def forget(_: Any) -> Any:
        return {"a": 1}

    with worker_of(EXTERNAL):
        raw = wrap_workflow_step(WorkflowStep(Journal()))._js_step
        assert (await raw.do("converted", convert)).a == 1
        with pytest.raises(JsException, match="DataCloneError"):
            await raw.do("forgotten", forget)


class Sync(WorkflowEntrypoint):
    def run(self, event: Any, step: Any) -> Any:
        return {"order": event["payload"]["order"]}


class Nothing(WorkflowEntrypoint):
    async def run(self, event: Any, step: Any) -> None:
        return None


class ReturnsItsStep(WorkflowEntrypoint):
    def run(self, event: Any, step: Any) -> Any:
        @step.do("only")
        async def only() -> str:
            return "done"

        return only()


class Tuple(WorkflowEntrypoint):
    async def run(self, event: Any, step: Any) -> Any:
        return (1, 2)


class NoStep(WorkflowEntrypoint):
    async def run(self, event: Any) -> None:
        """Never runs."""


class Base(WorkflowEntrypoint):
    async def run(self, event: Any, step: Any) -> Any:
        @step.do("base")
        async def base() -> int:
            return int(event["payload"]["order"])

        return await base()


class Derived(Base):
    async def run(self, event: Any, step: Any) -> Any:
        event["payload"]["order"] += 1
        return {"base": await super().run(event, step)}


class Inherits(Base):
    pass


class Bare(WorkflowEntrypoint):
    pass


class Mixin:
    async def run(self, event: Any, step: Any) -> str:
        return f"{type(event).__name__} {type(step).__name__}"


class Mixed(Mixin, WorkflowEntrypoint):
    pass


@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize(
    ("cls", "output"),
    [
        (Sync, {"order": 7}),
        (Nothing, None),
        (ReturnsItsStep, "done"),
        (Base, 7),
        (Inherits, 7),
        (Derived, {"base": 8}),
    ],
)
async def test_run_returns_the_output(date: str, cls: type[Any], output: Any) -> None:
    """P1, P9: `run` may be sync; what it returns arrives as plain values."""
    with worker_of(date):
        assert await Journal().run(cls) == output


async def test_output_that_cannot_be_sent_is_an_error_of_run() -> None:
    """P9, python-api.md 1.8."""
    with worker_of(EXTERNAL), pytest.raises(TypeError, match=r"tuple.* cannot be sent over RPC"):
        await Journal().run(Tuple)


@pytest.mark.parametrize("date", FROZEN)
async def test_frozen_output_may_be_a_tuple(date: str) -> None:
    """As a step's result there; what production does is not verified."""
    with worker_of(date):
        assert await Journal().run(Tuple) == [1, 2]


@pytest.mark.parametrize("date", DATES)
async def test_run_without_a_parameter_for_step_is_pythons_error(date: str) -> None:
    with (
        worker_of(date),
        pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"),
    ):
        await Journal().run(NoStep)


@pytest.mark.parametrize("date", DATES)
async def test_class_without_run_has_no_such_method(date: str) -> None:
    with worker_of(date), pytest.raises(JsException, match="TypeError: Method run does not exist"):
        await Journal().run(Bare)


@pytest.mark.parametrize(
    ("date", "output"),
    [
        (EXTERNAL, "JsProxy JsProxy"),
        (IMPLICIT, "dict _WorkflowStepWrapper"),
        (LISTED, "dict _WorkflowStepWrapper"),
    ],
)
async def test_run_of_a_mixin_is_wrapped_by_the_frozen_sdk_only(date: str, output: str) -> None:
    """python-api.md 1.1."""
    with worker_of(date):
        assert await Journal().run(Mixed) == output


class Onboarding(WorkflowEntrypoint):
    async def run(self, event: Any, step: Any) -> Any:
        @step.do("account")
        async def account() -> Any:
            return {"id": event["payload"]["order"], "at": "now"}

        first = await account()
        await step.sleep("nap", 1000)
        second = await helper(step)
        return [first["id"], second]


async def helper(step: Any) -> Any:
    @step.do("welcome")
    async def welcome(ctx: Any) -> Any:
        return ctx["step"]["count"]

    return await welcome()


@pytest.mark.parametrize("date", DATES)
async def test_replay_gets_stored_results_without_a_body_running(date: str) -> None:
    """C4, S3: steps made by a helper count in the same way."""
    journal = Journal()
    with worker_of(date):
        assert await journal.run(Onboarding) == [7, 1]
        assert await journal.run(Onboarding) == [7, 1]
    assert journal.tried == [("account", 1, ""), ("welcome", 1, "")]
