"""`sweep()`: runs a scenario under plan after plan, each in an emulator of its own."""

from __future__ import annotations

import asyncio
import inspect
import sys
from dataclasses import replace
from difflib import get_close_matches
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from emulator.capture import keeping
from emulator.deployment import ARGUMENTS, Deployments
from emulator.emulator import Config, Emulator
from emulator.foreign import is_foreign
from emulator.lenient_respx import lenient
from emulator.sweeping.collection import Collections
from emulator.sweeping.elsewhere import Elsewhere
from emulator.sweeping.kept_mocks import kept_mocks
from emulator.sweeping.observe import observe, release
from emulator.sweeping.places import locate
from emulator.sweeping.process import is_loading
from emulator.sweeping.search import Search

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from emulator.sweeping.outcome import Outcome, Plan
    from emulator.sweeping.report import SweepReport

Determinism: TypeAlias = Literal["process", "in-process"]
"""Where a clean run is repeated: in another process too, or in this one only."""

# Arguments of `Emulator` that a sweep does not take, and why.
REFUSED: Final = {
    "faults": "the sweep plans the faults; a scenario may add its own with emulator.faults.add()",
    "state": "each run starts with nothing stored",
}


async def sweep(
    scenario: Callable[[Emulator], Awaitable[object]],
    config: Config | Sequence[Config],
    depth: int = 1,
    classes: Collection[str] | Literal["all"] = ("platform",),
    seed: int = 0,
    *,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    limit: int | None = None,
    determinism: Determinism = "process",
    **emulator_arguments: Any,
) -> SweepReport:
    """Run a scenario once clean and once under each fault that can strike it; report what fails.

        async def scenario(emulator):
            await emulator.fetch("/signup", method="POST", json={"email": "a@b.example"})
            await emulator.settle()
            assert len(emulator.queues["emails"].deliveries) == 1

        report = await sweep(scenario, "wrangler.jsonc")
        assert report.passed, report.render()

    `depth` is the number of faults in a plan. `classes` are those to try, "all" means all but
    "loss". `only` and `skip` are patterns of sites (`step.*.charge`) or of faults
    (`batch.*#*:lose_ack`). `limit` is the most plans to try; which ones, `seed` decides, as it does
    every choice of the emulator's. The other arguments are those of `Emulator`; `bindings` are the
    same objects in every run.

    The clean run is made twice, and must be the same; with `determinism="process"` also in another
    process, with another PYTHONHASHSEED, which imports the scenario from its module. Where that
    cannot be, the report's `in_process_only` says why. `"in-process"` leaves it out.

    A scenario fails by an exception, or by findings that fail a test by default. Raises `TypeError`
    for a scenario that is no coroutine function and for `faults` and `state`, `ValueError` for
    arguments that are wrong, and whatever `Emulator` raises for its own.

    What the Workers print is not shown, unless a debugger stops in one: that of a failing run is in
    the failure's `output`, and in its trace.
    """
    _check(scenario, emulator_arguments, determinism)
    search = Search(depth=depth, classes=classes, only=only, skip=skip, limit=limit, seed=seed)
    read = {name: emulator_arguments[name] for name in ARGUMENTS if name in emulator_arguments}
    deployments = Deployments()
    clean: Outcome | None = None
    elsewhere = Elsewhere(
        scenario, config, seed, emulator_arguments, wanted=determinism == "process"
    )
    try:
        with Collections() as collections, kept_mocks():
            while (plan := search.next()) is not None:
                deployment = deployments.get(config, **read)
                with keeping() as kept:
                    emulator = Emulator(deployment, seed=seed, faults=plan, **emulator_arguments)
                    outcome = await _run(scenario, emulator, plan)
                if outcome.error is not None:
                    outcome = replace(outcome, output=emulator.trace.masker(kept.text))
                pinned = emulator._kernel.loop.pinned
                del emulator
                release(outcome.error)
                search.tell(plan, outcome)
                if clean is None:
                    clean = outcome
                    elsewhere.load(clean)
                del outcome
                collections.between(pinned)
        return await elsewhere.judge(search.report(), clean)
    finally:
        elsewhere.close()


async def run_clean(
    scenario: Callable[[Emulator], Awaitable[object]],
    config: Config | Sequence[Config],
    seed: int,
    arguments: dict[str, Any],
) -> Outcome:
    """Run a scenario once, without faults."""
    return await _run(scenario, Emulator(config, seed=seed, **arguments), ())


async def _run(
    scenario: Callable[[Emulator], Awaitable[object]], emulator: Emulator, plan: Plan
) -> Outcome:
    start = perf_counter()
    if not plan:
        locate(emulator)
    async with emulator:
        with lenient(emulator):
            error = await _error_of(scenario, emulator)
        outcome = observe(emulator, plan, error, seconds=perf_counter() - start)
    # From Python 3.13 on the frames of an error keep this one, with what it holds.
    del emulator, error
    return outcome


async def _error_of(
    scenario: Callable[[Emulator], Awaitable[object]], emulator: Emulator
) -> BaseException | None:
    try:
        await scenario(emulator)
    except BaseException as error:
        if _is_from_outside(error):
            raise
        return error
    return None


def _is_from_outside(error: BaseException) -> bool:
    """Whether an exception ends the sweep instead of failing the run."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        return True
    outcomes: Any = sys.modules.get("_pytest.outcomes")
    if outcomes is not None and isinstance(error, outcomes.OutcomeException):
        if not isinstance(error, outcomes.Failed):
            return True  # pytest.skip and pytest.exit
        # `pytest.fail` fails the run, unless a time-out's signal handler called it.
        return is_foreign(AssertionError().with_traceback(error.__traceback__))
    return is_foreign(error)


def is_coroutine_function(scenario: object) -> bool:
    """Whether this is a coroutine function, or an object that is called like one."""
    call = getattr(type(scenario), "__call__", None)  # noqa: B004 - what it is, not whether
    return inspect.iscoroutinefunction(scenario) or inspect.iscoroutinefunction(call)


def _check(scenario: object, arguments: dict[str, Any], determinism: str) -> None:
    if not is_coroutine_function(scenario):
        raise TypeError(
            f"a scenario is a coroutine function that takes the emulator, not {scenario!r}; "
            "write `async def scenario(emulator): ...`"
        )
    for name, why in REFUSED.items():
        if name in arguments:
            raise TypeError(f"sweep() takes no {name}: {why}")
    names = dict.fromkeys((*_names(sweep), *_names(Emulator)))
    allowed = [name for name in names if name not in ("scenario", "base", *REFUSED)]
    for name in arguments:
        if name not in allowed:
            close = get_close_matches(name, allowed, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise TypeError(f"sweep() has no argument {name!r}{hint} It takes {', '.join(allowed)}")
    if determinism not in get_args(Determinism):
        choices = " or ".join(map(repr, get_args(Determinism)))
        raise ValueError(f"determinism is {determinism!r}; it may be {choices}")
    if is_loading():
        raise RuntimeError(
            "sweep() was called while another process imports the scenario for its determinism "
            'check; call it below `if __name__ == "__main__":`, or in a function'
        )


def _names(function: Callable[..., object]) -> list[str]:
    parameters = list(inspect.signature(function).parameters.values())
    return [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
