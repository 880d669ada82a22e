"""`step.do`: names, dependencies, what is remembered (workflows.md P3 to P8)."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

import pytest
from workflow_host import (
    DATES,
    EXTERNAL,
    IMPLICIT,
    LISTED,
    OLDEST,
    Journal,
    WorkflowStep,
    worker_of,
)

from emulator.runtime.sdk.workflows import wrap_workflow_step
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Iterator

IMPLICIT_DATES = (EXTERNAL, IMPLICIT)
LEGACY = [
    pytest.param((EXTERNAL, "no_python_workflows_implicit_dependencies"), id="external"),
    pytest.param((LISTED,), id="frozen"),
    pytest.param((OLDEST,), id="oldest"),
]

pytestmark = pytest.mark.asyncio


class Bench:
    """A step object, and the engine behind it."""

    def __init__(self) -> None:
        self.journal = Journal()
        self.engine = WorkflowStep(self.journal)
        self.step = wrap_workflow_step(self.engine)

    @property
    def ran(self) -> list[str]:
        return self.journal.names()


@pytest.fixture(params=IMPLICIT_DATES)
def implicit(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with worker_of(request.param):
        yield Bench()


@pytest.fixture
def external() -> Iterator[Bench]:
    with worker_of(EXTERNAL):
        yield Bench()


@pytest.fixture
def frozen() -> Iterator[Bench]:
    with worker_of(IMPLICIT):
        yield Bench()


@pytest.fixture(params=LEGACY)
def legacy(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with worker_of(*request.param):
        yield Bench()


async def test_decorating_a_function_runs_nothing(implicit: Bench) -> None:
    """P4: the step runs when what the decorator returned is awaited."""

    @implicit.step.do()
    async def charge() -> str:
        return "paid"

    assert implicit.engine.calls == []
    assert await charge() == "paid"
    assert implicit.ran == ["charge"]


async def test_step_is_named_by_the_argument_or_else_by_the_function(implicit: Bench) -> None:
    """P3."""

    @implicit.step.do("by hand")
    def first() -> int:
        return 1

    @implicit.step.do()
    def second() -> int:
        return 2

    @implicit.step.do(name="")
    def third() -> int:
        return 3

    assert [await first(), await second(), await third()] == [1, 2, 3]
    assert implicit.ran == ["by hand", "second", ""]


async def test_legacy_name_is_required_and_may_be_none(legacy: Bench) -> None:
    """P3: `name=None` is the function's name; leaving it out is an error of Python's."""

    @legacy.step.do(None)
    async def charge() -> int:
        return 1

    assert await charge() == 1
    assert legacy.ran == ["charge"]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        legacy.step.do()


async def test_step_is_called_without_arguments(implicit: Bench) -> None:
    """P4."""

    @implicit.step.do()
    async def charge() -> None:
        """Never runs."""

    with pytest.raises(TypeError, match=r"wrapper\(\) takes 0 positional arguments but 1 was"):
        charge(7)
    with pytest.raises(TypeError, match=r"got an unexpected keyword argument 'order'"):
        charge(order=7)
    assert implicit.engine.calls == []


async def test_decorator_without_parentheses_gives_no_step(implicit: Bench) -> None:
    """`@step.do` takes the function for the name."""

    @implicit.step.do
    async def charge() -> None:
        """Never runs."""

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'func'"):
        await charge()


async def test_function_without_a_name_needs_one(implicit: Bench) -> None:
    nameless = functools.partial(int, "7")
    with pytest.raises(AttributeError, match="__name__"):
        implicit.step.do()(nameless)


async def test_dependencies_come_by_the_names_of_registered_steps(implicit: Bench) -> None:
    """P5: the step's name counts, not the function's."""

    @implicit.step.do("price")
    async def look_up() -> int:
        return 20

    @implicit.step.do()
    async def tax() -> int:
        return 4

    @implicit.step.do()
    async def total(price: int, ctx: Any, tax: int) -> list[Any]:
        return [price + tax, ctx["step"]["name"]]

    assert await total() == [24, "total"]
    assert implicit.ran == ["price", "tax", "total"]


async def test_unknown_parameter_is_an_error_when_the_step_is_awaited(implicit: Bench) -> None:
    """P5; a parameter with a default, or for all others, is one too."""

    @implicit.step.do()
    async def charge(zzz: int = 1) -> None:
        """Never runs."""

    @implicit.step.do()
    async def refund(*others: int) -> None:
        """Never runs."""

    with pytest.raises(TypeError, match=r"^Received unexpected parameter zzz$"):
        await charge()
    with pytest.raises(TypeError, match=r"^Received unexpected parameter others$"):
        await refund()
    assert implicit.engine.calls == []


async def test_step_registered_later_counts_when_it_is_awaited(implicit: Bench) -> None:
    @implicit.step.do()
    async def total(price: int) -> int:
        return price + 1

    @implicit.step.do()
    async def price() -> int:
        return 20

    assert await total() == 21


async def test_step_named_ctx_comes_before_the_context(implicit: Bench) -> None:
    @implicit.step.do()
    async def ctx() -> str:
        return "a result"

    @implicit.step.do()
    async def reads(ctx: str) -> str:
        return ctx

    assert await reads() == "a result"


async def test_depends_is_not_known_to_the_implicit_decorator(implicit: Bench) -> None:
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'depends'") as caught:
        implicit.step.do("x", depends=[])
    (note,) = caught.value.__notes__
    assert "set no_python_workflows_implicit_dependencies" in note
    with pytest.raises(TypeError, match=r"takes from 1 to 2 positional arguments but 3 were"):
        implicit.step.do("x", [])


async def test_dependency_runs_once_for_all_its_dependents(implicit: Bench) -> None:
    """P7."""

    @implicit.step.do()
    async def order() -> int:
        return 7

    @implicit.step.do()
    async def left(order: int) -> int:
        return order + 1

    @implicit.step.do()
    async def right(order: int) -> int:
        return order + 2

    @implicit.step.do(concurrent=True)
    async def both(left: int, right: int) -> list[int]:
        return [left, right]

    assert await both() == [8, 9]
    assert implicit.ran.count("order") == 1
    assert await left() == 8
    assert implicit.ran.count("order") == 1


@pytest.mark.parametrize(("concurrent", "most"), [(True, 3), (False, 1)])
async def test_concurrent_dependencies_run_together(
    implicit: Bench, concurrent: bool, most: int
) -> None:
    """P7: otherwise one after the other, in the order of the parameters."""
    running = 0
    seen: list[int] = []

    async def work() -> int:
        nonlocal running
        running += 1
        seen.append(running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return 1

    for name in ("c", "a", "b"):
        implicit.step.do(name)(work)

    @implicit.step.do(concurrent=concurrent)
    async def total(b: int, c: int, a: int) -> int:
        return a + b + c

    assert await total() == 3
    assert max(seen) == most
    assert implicit.ran == ["b", "c", "a", "total"]


async def test_second_direct_call_runs_the_step_again(implicit: Bench) -> None:
    """P8: what is remembered serves dependents only, and they get the newest result."""
    values = iter([1, 2])

    @implicit.step.do()
    async def draw() -> int:
        return next(values)

    @implicit.step.do()
    async def shown(draw: int) -> int:
        return draw

    assert [await draw(), await draw()] == [1, 2]
    assert await shown() == 2
    assert implicit.journal.tried == [("draw", 1, ""), ("draw", 2, ""), ("shown", 1, "")]


async def test_dependency_that_is_running_is_waited_for(implicit: Bench) -> None:
    """P7."""
    gate = asyncio.Event()

    @implicit.step.do()
    async def slow() -> int:
        await gate.wait()
        return 5

    @implicit.step.do()
    async def after(slow: int) -> int:
        return slow + 1

    direct = asyncio.create_task(slow())
    dependent = asyncio.create_task(after())
    for _ in range(10):
        await asyncio.sleep(0)
    assert implicit.ran == ["slow"]
    gate.set()
    assert await asyncio.gather(direct, dependent) == [5, 6]
    assert implicit.ran == ["slow", "after"]


async def test_failed_dependency_is_not_remembered(implicit: Bench) -> None:
    """P7: the dependent fails with it, and the next time it is tried again."""
    outcomes = iter([ValueError("no"), 3])

    @implicit.step.do()
    async def flaky() -> int:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @implicit.step.do()
    async def uses(flaky: int) -> int:
        return flaky

    with pytest.raises(ValueError, match=r"^ValueError: no$"):
        await uses()
    assert implicit.ran == ["flaky"]
    assert await uses() == 3
    assert implicit.ran == ["flaky", "flaky", "uses"]


async def test_other_concurrent_dependencies_go_on_when_one_fails(implicit: Bench) -> None:
    @implicit.step.do()
    async def bad() -> None:
        raise TypeError("no")

    @implicit.step.do()
    async def good() -> int:
        for _ in range(5):
            await asyncio.sleep(0)
        return 1

    @implicit.step.do(concurrent=True)
    async def both(bad: None, good: int) -> None:
        """Never runs."""

    with pytest.raises(TypeError, match=r"^TypeError: no$"):
        await both()
    for _ in range(20):
        await asyncio.sleep(0)
    assert ("good", 1) in implicit.journal.outcomes
    assert implicit.ran == ["bad", "good"]


async def test_external_sdk_remembers_a_step_by_itself(external: Bench) -> None:
    """P7, P16: two steps of one name are two, and the name is that of the last."""

    @external.step.do("same")
    async def first() -> int:
        return 1

    @external.step.do("same")
    async def second() -> int:
        return 2

    @external.step.do()
    async def uses(same: int) -> int:
        return same * 10

    assert await asyncio.gather(first(), first()) == [1, 1]
    assert await uses() == 20
    assert external.journal.tried == [
        ("same", 1, ""),
        ("same", 2, ""),
        ("same", 3, ""),
        ("uses", 1, ""),
    ]


async def test_frozen_sdk_remembers_a_step_by_its_name(frozen: Bench) -> None:
    """P16."""

    @frozen.step.do("same")
    async def first() -> int:
        return 1

    @frozen.step.do("same")
    async def second() -> int:
        """Never runs."""
        return 2

    @frozen.step.do()
    async def uses(same: int) -> int:
        return same * 10

    assert await first() == 1
    assert await uses() == 10
    assert frozen.journal.tried == [("same", 1, ""), ("uses", 1, "")]
    assert second is not first


async def test_frozen_sdk_loses_one_of_two_running_steps_with_one_name(frozen: Bench) -> None:
    """Of the source of the SDK in the runtime; both bodies run."""

    @frozen.step.do("same")
    async def one() -> int:
        return 1

    outcomes = await asyncio.gather(one(), one(), return_exceptions=True)
    assert outcomes[0] == 1
    assert isinstance(outcomes[1], KeyError)
    assert outcomes[1].args == ("same",)
    assert "by its name only" in outcomes[1].__notes__[0]
    assert frozen.journal.tried == [("same", 1, ""), ("same", 2, "")]
    assert await one() == 1


async def test_depends_gives_results_in_the_order_of_the_list(legacy: Bench) -> None:
    """P6: names of parameters are free, `ctx` is the context wherever it stands."""

    @legacy.step.do("one")
    async def one() -> int:
        return 1

    @legacy.step.do("two")
    def two() -> int:
        return 2

    @legacy.step.do("sum", [two, one], True)
    async def total(x: int, ctx: Any, y: int = 0) -> list[int]:
        return [x, y, ctx["attempt"]]

    assert await total() == [2, 1, 1]
    assert legacy.ran == ["two", "one", "sum"]


def takes_none() -> None: ...
def takes_context(ctx: Any) -> None: ...
def takes_one(a: Any) -> None: ...
def takes_two(a: Any, ctx: Any, b: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "count", "text"),
    [
        (takes_one, None, "Step has 1 non-ctx parameter(s) but no 'depends' list provided"),
        (takes_two, None, "Step has 2 non-ctx parameter(s) but no 'depends' list provided"),
        (takes_two, 1, "Step declares 2 non-ctx parameter(s) but 'depends' has 1 item(s)"),
        (takes_one, 0, "Step declares 1 non-ctx parameter(s) but 'depends' has 0 item(s)"),
        (takes_none, 1, "Step declares 0 non-ctx parameter(s) but 'depends' has 1 item(s)"),
        (takes_context, 1, "Step declares 0 non-ctx parameter(s) but 'depends' has 1 item(s)"),
    ],
)
async def test_depends_that_does_not_fit_is_an_error_when_awaited(
    legacy: Bench, function: Any, count: int | None, text: str
) -> None:
    """P6."""
    dependency = legacy.step.do("dependency")(takes_none)
    depends = None if count is None else [dependency] * count
    unfit = legacy.step.do("unfit", depends=depends)(function)
    with pytest.raises(TypeError) as caught:
        await unfit()
    assert str(caught.value) == text
    assert legacy.engine.calls == []


async def test_external_sdk_says_which_entry_of_depends_is_no_step() -> None:
    """P6: before any dependency runs."""
    with worker_of(EXTERNAL, "no_python_workflows_implicit_dependencies"):
        bench = Bench()
        good = bench.step.do("good")(takes_none)
        unfit = bench.step.do("unfit", depends=[good, takes_none])(takes_two)
        with pytest.raises(TypeError) as caught:
            await unfit()
    assert str(caught.value) == (
        "'depends' entry for parameter 'b' is not a function decorated with step.do"
    )
    assert bench.engine.calls == []


async def test_frozen_sdk_trips_over_an_entry_of_depends_that_is_no_step() -> None:
    """Of the source of the SDK in the runtime: the dependencies before it have run."""
    with worker_of(LISTED):
        bench = Bench()
        good = bench.step.do("good")(takes_none)
        unfit = bench.step.do("unfit", depends=[good, takes_none])(takes_two)
        with pytest.raises(AttributeError, match="no attribute '_step_name'"):
            await unfit()
        assert bench.ran == ["good"]


async def test_step_inside_a_step_is_a_step_of_its_own(implicit: Bench) -> None:
    """C8: the body may ask for another step."""

    @implicit.step.do()
    async def inner() -> int:
        return 2

    @implicit.step.do()
    async def outer() -> int:
        return await inner() * 10

    @implicit.step.do()
    def returns_its_call() -> Any:
        return inner()

    assert await outer() == 20
    assert await returns_its_call() == 2
    assert implicit.journal.tried == [
        ("outer", 1, ""),
        ("inner", 1, ""),
        ("returns_its_call", 1, ""),
        ("inner", 2, ""),
    ]


async def test_sync_and_async_bodies_and_lambdas_are_steps(implicit: Bench) -> None:
    """P9."""
    named = implicit.step.do("named")(lambda: 1)
    nameless = implicit.step.do()(lambda: 2)
    assert [await named(), await nameless()] == [1, 2]
    assert implicit.ran == ["named", "<lambda>"]


async def test_config_arrives_with_its_keys_before_the_body(implicit: Bench) -> None:
    """P11; without one the engine gets the name and the body."""
    config = {"retries": {"limit": 3, "delay": "10 seconds", "backoff": "linear"}, "timeout": 500}
    configured = implicit.step.do("configured", config=config)(takes_none)
    plain = implicit.step.do("plain")(takes_none)
    await configured()
    await plain()
    (_, (name, arrived, body)), (_, rest) = implicit.engine.calls
    assert (name, arrived) == ("configured", config)
    assert callable(body)
    assert rest[0] == "plain"
    assert len(rest) == 2


@pytest.mark.parametrize("date", DATES)
async def test_function_as_delay_gets_one_javascript_object(date: str) -> None:
    """P11 leaves it open; the engine calls it with `{ctx, error}` (R3)."""
    with worker_of(date):
        bench = Bench()
        delay = lambda options: options.ctx.attempt * 1000  # noqa: E731
        config = {"retries": {"limit": 1, "delay": delay}}
        await bench.step.do("s", config=config)(takes_none)()
        ((_, (_, arrived, _)),) = bench.engine.calls
        error = JsException("Error", "no")
        assert arrived["retries"]["delay"]({"ctx": {"attempt": 3}, "error": error}) == 3000


async def test_giving_up_waiting_leaves_the_step_to_the_engine(implicit: Bench) -> None:
    """A promise of JavaScript's is not cancelled with whoever waits for it."""
    gate = asyncio.Event()

    @implicit.step.do()
    async def slow() -> int:
        await gate.wait()
        return 1

    task = asyncio.create_task(slow())
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert ("slow", 1) in implicit.journal.outcomes
    assert implicit.journal.tried == [("slow", 1, "")]
    assert await slow() == 1


# -- an object of the user's own -------------------------------------------------------------------


class FakeStep:
    """A `step` as unit tests of Workers have it, which runs each body once."""

    def __init__(self, *given: Any) -> None:
        self.given = given  # to the bodies
        self.calls: list[Any] = []

    async def do(self, name: str, *rest: Any) -> Any:
        *config, body = rest
        self.calls.append((name, *(one.to_py() for one in config)))
        return await body(*self.given)

    async def sleep(self, name: str, duration: Any) -> None:
        self.calls.append((name, duration))

    async def waitForEvent(self, name: str, options: Any) -> Any:
        self.calls.append((name, options.to_py()))
        return {"payload": 1}


@pytest.mark.parametrize("date", DATES)
async def test_step_of_the_users_own_is_called_by_the_sdk(date: str) -> None:
    """The SDK calls methods of what it gets, of JavaScript or of Python."""
    fake = FakeStep()
    with worker_of(date):
        step = wrap_workflow_step(fake)

        @step.do("a")
        async def a() -> dict[str, int]:
            return {"n": 1}

        @step.do("b", config={"timeout": 1000})
        def b() -> None:
            return None

        result = await a()
        assert (result["n"], await b()) == (1, None)
        assert step.js_object is fake
        await step.sleep("s", "1 hour")
        assert (await step.wait_for_event("w", "go"))["payload"] == 1
    assert fake.calls == [
        ("a",),
        ("b", {"timeout": 1000}),
        ("s", "1 hour"),
        ("w", {"type": "go", "timeout": "24 hours"}),
    ]


@pytest.mark.parametrize("date", DATES)
async def test_context_is_what_such_a_step_gives(date: str) -> None:
    seen: list[Any] = []
    with worker_of(date):
        for given in ((), ({"attempt": 1},)):
            step = wrap_workflow_step(FakeStep(*given))

            @step.do("s")
            async def s(ctx: Any) -> None:
                seen.append(ctx)

            await s()
    assert seen == [None, {"attempt": 1}]


@pytest.mark.parametrize("date", DATES)
async def test_error_passes_through_such_a_step(date: str) -> None:
    with worker_of(date):
        step = wrap_workflow_step(FakeStep())

        @step.do("s")
        async def s() -> None:
            raise KeyError("k")

        with pytest.raises(KeyError, match="k"):
            await s()
