"""Runs one test again and again, unseen: what a sweep does between the start and the report.

A run has the three phases of any other, through the same hooks, so that fixtures, other plugins
and the hooks of conftest files see what they always see. Two things differ:

1. Nothing is reported. `pytest_runtest_makereport` is asked all the same, since `tmp_path` and the
   well-known fixtures that ask whether their test failed need it.
2. The teardown is told that the next test is this one again. Function-scoped fixtures are torn
   down, wider ones stay. What a run left on the item (output, properties, markers) is taken off.
"""

from __future__ import annotations

import copy
import warnings
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from unittest import SkipTest

import pytest

from emulator.pytest_plugin import RUN, Run, forget
from emulator.pytest_sweep_marker import CannotSweep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from emulator.deployment import Deployments
    from emulator.sweeping.outcome import Outcome, Plan

Phase: TypeAlias = Literal["setup", "call", "teardown"]

# As in pytest's own runner; a debugger is not for the runs that nobody sees.
_FOREIGN = (pytest.exit.Exception, KeyboardInterrupt)
# Not an error of the run: the test itself says that it does not count.
NOT_COUNTED = (pytest.skip.Exception, pytest.xfail.Exception, SkipTest)


class Repeater:
    """Runs one item under plan after plan; `phases` says where a plan's run failed.

    Raises `CannotSweep` where the fixtures cannot be set up for the second run without faults.
    """

    def __init__(self, item: pytest.Function, strict: Collection[str] | None) -> None:
        self._item: Any = item  # its private parts are what a repetition is about
        self._strict = strict
        # The same test, as another node: a teardown goes as far up as the two differ.
        self._again = copy.copy(item)
        self._markers = list(item.own_markers)
        self._properties = list(item.user_properties)
        self._deployments = _deployments()
        self.phases: dict[Plan, Phase] = {}
        self.skipped: list[Plan] = []
        self.skipped_clean: BaseException | None = None
        self.met_emulator = False
        self._was_set_up = False
        # What the latest run froze, once its emulator is closed.
        self.pinned: list[object] = []

    def run(self, plan: Plan) -> Outcome | None:
        """Run the item under a plan; None if a run without faults is skipped."""
        self._renew()
        run = self._item.stash[RUN] = Run(plan, silent=True, deployments=self._deployments)
        try:
            # What is warned of is what the run that is reported warns of.
            with warnings.catch_warnings(record=True):
                return self._run(run)
        finally:
            self._item._request = False
            self._item.funcargs = None
            del self._item.stash[RUN]
            forget(self._item)

    def _run(self, run: Run) -> Outcome | None:
        restart_timeout(self._item)
        start = perf_counter()
        phase: Phase = "setup"
        error = self._do(phase)
        if error is None:
            self._was_set_up = True
            phase = "call"
            error = self._do(phase)
        elif self._was_set_up and not run.plan and not isinstance(error, NOT_COUNTED):
            refusal = cannot_rebuild(self._item, error)
            self._end()
            raise refusal
        self.met_emulator = self.met_emulator or run.emulator is not None
        skipped = isinstance(error, NOT_COUNTED)
        if skipped and not run.plan:
            self.skipped_clean = error
            self._end()
            return None
        if skipped:
            self.skipped.append(run.plan)
            error = None
        outcome = self._observe(run, phase, error, perf_counter() - start)
        late = self._end()
        if late is not None and outcome.error is None:
            phase = "teardown"
            outcome = self._observe(run, phase, late, perf_counter() - start)
        if outcome.error is not None:
            self.phases[run.plan] = phase
            _forget(late, outcome.error)
        self.pinned = _pinned(run)
        run.emulator = None
        return outcome

    def _do(self, phase: Phase, **arguments: object) -> BaseException | None:
        hooks = self._item.ihook
        hook = getattr(hooks, f"pytest_runtest_{phase}")

        def act() -> None:
            __tracebackhide__ = True
            hook(item=self._item, **arguments)

        call = pytest.CallInfo.from_call(act, phase, reraise=_FOREIGN)
        hooks.pytest_runtest_makereport(item=self._item, call=call)
        return None if call.excinfo is None else call.excinfo.value

    def _end(self) -> BaseException | None:
        return self._do("teardown", nextitem=self._again)

    def _observe(
        self, run: Run, phase: Phase, error: BaseException | None, seconds: float
    ) -> Outcome:
        from emulator.sweeping.observe import observe
        from emulator.sweeping.outcome import Outcome, describe

        text = f"{describe(error)} (in {phase})" if error and phase != "call" else ""
        if run.emulator is None:
            cause = f"{type(error).__name__} in {phase}" if error else ""
            return Outcome(error, cause, seconds=seconds, text=text)
        return observe(
            run.emulator, run.plan, error, seconds=seconds, strict=self._strict, text=text
        )

    def _renew(self) -> None:
        """Make the item what it was when it was collected."""
        item = self._item
        item._report_sections.clear()
        item.own_markers[:] = self._markers
        item.user_properties[:] = self._properties
        if isinstance(item.parent, pytest.Class):
            # Each run has an instance of its own, as each test has.
            item.__dict__.pop("_obj", None)
            item.__dict__.pop("_instance", None)
        item._initrequest()

    def pause(self) -> None:
        """Let no time count as that of a run."""
        stop_timeout(self._item)

    def finish(self) -> None:
        """Leave the item as new, for the run that is reported."""
        self._renew()
        restart_timeout(self._item)


def cannot_rebuild(item: Any, error: BaseException) -> CannotSweep:
    """Say which fixture cannot be set up again; to be called before the teardown."""
    from emulator.location import describe_error, raised_at

    where = raised_at(error)
    place = f" at {where.relative_to(item.config.rootpath)}" if where is not None else ""
    name = next((name for name, its in _failed_fixtures(item) if its is error), None)
    what = f"the fixture {name!r}" if name else "something that the test needs"
    return CannotSweep(
        f"fault_sweep: {what} was set up for a run before, and cannot be set up again{place}. Each "
        "run of a sweep sets up and tears down what is function-scoped: let the teardown undo what "
        f"the set-up did, or give it a wider scope\n{describe_error(error)}"
    )


def _failed_fixtures(item: Any) -> Iterator[tuple[str, BaseException]]:
    """Yield the fixtures of a test whose set-up failed, each with its exception."""
    for name, definitions in item._fixtureinfo.name2fixturedefs.items():
        for definition in definitions:
            result = definition.cached_result
            failure = result[2] if result is not None else None
            if failure is not None:  # the exception, with its traceback
                yield name, failure[0]


def _deployments() -> Deployments:
    from emulator.deployment import Deployments

    return Deployments()


def _pinned(run: Run) -> list[object]:
    loop = None if run.emulator is None else run.emulator._kernel.loop
    return loop.pinned if loop is not None and loop.is_closed() else []


def _forget(*errors: BaseException | None) -> None:
    """Let go of what the frames of an error hold."""
    from emulator.sweeping.observe import release

    for error in errors:
        release(error)


def restart_timeout(item: pytest.Item) -> None:
    """Give each run the time that pytest-timeout gives a test."""
    settings = stop_timeout(item)
    if settings is not None:
        item.ihook.pytest_timeout_set_timer(item=item, settings=settings)


def stop_timeout(item: pytest.Item) -> Any:
    """Stop the timer that pytest-timeout has for a test; return its settings, if there is one."""
    plugin: Any = item.config.pluginmanager.get_plugin("timeout")
    read = getattr(plugin, "_get_item_settings", None)
    settings = None if read is None else read(item)
    if settings is None or not settings.timeout or settings.func_only is not False:
        return None
    item.ihook.pytest_timeout_cancel_timer(item=item)
    return settings
