"""`@pytest.mark.fault_sweep`: the test, once clean and once under each fault that can strike it.

The runs of a sweep go unseen (pytest_sweep_run.py). Then one run is reported, as that of any other
test, so that one item has one report for each phase and everything that looks at reports works:

1. A sweep that found nothing ends with one more clean run. A section "fault sweep" is added.
2. One that found something ends with the run under the smallest plan that fails, whose failure is
   the item's. `--pdb` stops in it, `xfail` and junit files judge it. Where that run does not fail
   in the call phase (its set-up or its teardown failed, or it fails only now and then), the last
   run is a clean one, and the error the sweep has seen is raised in its place. A teardown that
   fails without any fault is a failure of the teardown, as ever.
3. A test that is skipped without faults is run once more and reported so.
4. A test that cannot be swept fails in its set-up, and its body does not run.
"""

from __future__ import annotations

from time import perf_counter
from traceback import format_exc
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from emulator.pytest_plugin import RUN, Run
from emulator.pytest_sweep_elsewhere import ELSEWHERE, Elsewhere, is_server
from emulator.pytest_sweep_marker import (
    CannotSweep,
    check,
    check_emulator,
    is_swept,
    is_unclaimed,
    make_search,
)
from emulator.pytest_sweep_memory import recall, remember
from emulator.pytest_sweep_progress import Progress
from emulator.pytest_sweep_run import (
    NOT_COUNTED,
    Repeater,
    cannot_rebuild,
    restart_timeout,
    stop_timeout,
)
from emulator.pytest_sweep_shards import shard_of, split
from emulator.pytest_sweep_verdict import VERDICT, Verdict, notes, tell

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from emulator.sweeping.outcome import Outcome
    from emulator.sweeping.search import Search


# In which a skip is that of the test.
_CLEAN_RUNS = 2


def start(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin to sweep marked items, and split them where several processes share them."""
    if is_server(config):
        return
    config.stash[ELSEWHERE] = Elsewhere(config)
    config.pluginmanager.register(FaultSweep(), "workers-emulator-sweep")
    split(config, items)


class FaultSweep:
    """The hooks of the sweep; a plugin of its own beside pytest_plugin.py."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Sweep a marked item, then let pytest run it once more, to be reported."""
        if not is_swept(item):
            if nextitem is None:
                self._close(item)
            return None
        hooks = item.ihook
        hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        try:
            verdict = item.stash[VERDICT] = sweep(item)
            item.stash[RUN] = _last_run(verdict)
            if nextitem is None:
                self._close(item)
            runtestprotocol(item, nextitem=nextitem)
        finally:
            item.stash[VERDICT] = Verdict()
            item.stash[RUN] = Run(())
        hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @staticmethod
    def _close(last: pytest.Item) -> None:
        """End the other process: there, too, the fixtures of the session are taken down now.

        That takes none of the time of the last test, whose own this is not.
        """
        stop_timeout(last)
        last.config.stash[ELSEWHERE].close()
        restart_timeout(last)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        session.config.stash[ELSEWHERE].close()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: Any, request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        """Note a failure that pytest does not: an asynchronous fixture without an async plugin.

        It could not be set up again, and pytest would say so by an `AssertionError` of its own.
        """
        try:
            return (yield)
        except (Exception, pytest.fail.Exception) as error:
            if fixturedef.cached_result is None:
                noted = (error, error.__traceback__)
                fixturedef.cached_result = (None, fixturedef.cache_key(request), noted)
            raise

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        verdict = item.stash.get(VERDICT, None)
        if verdict is None:
            return (yield)
        if verdict.refusal:
            pytest.fail(verdict.refusal, pytrace=False)
        try:
            return (yield)
        except (Exception, pytest.fail.Exception) as error:
            if verdict.report is None or verdict.fails_clean or isinstance(error, NOT_COUNTED):
                raise
            refusal = str(cannot_rebuild(item, error))
        pytest.fail(refusal, pytrace=False)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail the run that is reported if the sweep failed and this run does not."""
        __tracebackhide__ = True
        verdict = item.stash.get(VERDICT, None)
        try:
            result = yield
        except (Exception, pytest.fail.Exception, *NOT_COUNTED) as error:
            if verdict is None or not verdict.replaces(skipped=isinstance(error, NOT_COUNTED)):
                raise
        else:
            if verdict is None or not verdict.wrong or verdict.shown_in != "call":
                return result
        verdict.replaced = item.stash[RUN].told = True
        _fail(verdict)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Fail a teardown that failed in the clean runs of the sweep, if it does not now."""
        __tracebackhide__ = True
        result = yield
        verdict = item.stash.get(VERDICT, None)
        if verdict is None or verdict.shown_in != "teardown":
            return result
        verdict.replaced = True
        _fail(verdict)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Count the time of the sweep as the test's, and say what the sweep found."""
        verdict = item.stash.get(VERDICT, None)
        if verdict is None:
            return (yield)
        if call.when == "call":
            call.duration += verdict.seconds
            call.start = call.stop - call.duration
        report = yield
        # Where the set-up failed there is no other report.
        if call.when == verdict.shown_in or (call.when == "setup" and report.failed):
            tell(item, verdict, report)
        return report


def _last_run(verdict: Verdict) -> Run:
    """Return the run that is reported: under the smallest plan if that shows the failure."""
    failure = verdict.failure
    if failure is None or not failure.plan or failure.flaky or verdict.phase != "call":
        return Run(())
    return Run(failure.plan, told=True)


def _fail(verdict: Verdict) -> NoReturn:
    error = verdict.failure.error if verdict.failure else None
    # Of a text alone pytest would say that all its frames are hidden.
    __tracebackhide__ = shown = error is not None and error.__traceback__ is not None
    if error is not None and shown:
        raise error
    pytest.fail(f"fault sweep: {verdict.wrong}", pytrace=False)


# -- the sweep -----------------------------------------------------------------------------------


def sweep(item: pytest.Item) -> Verdict:
    """Run an item under each plan, unseen, and return what came of it."""
    start = perf_counter()
    try:
        verdict = _sweep(check(item))
    except (CannotSweep, pytest.fail.Exception) as refusal:
        verdict = Verdict(refusal=str(refusal))
    except pytest.exit.Exception:
        raise
    except Exception:  # A mistake of ours must fail this test, and not end the session.
        verdict = Verdict(refusal=f"fault_sweep: the sweep itself failed\n{format_exc()}")
    verdict.seconds = perf_counter() - start
    return verdict


def _sweep(item: pytest.Function) -> Verdict:
    search = make_search(item, first=recall(item), shard=shard_of(item), seed=_seed(item))
    repeater = Repeater(item, strict_codes(item))
    progress = Progress(item.config)
    elsewhere = item.config.stash[ELSEWHERE]
    try:
        clean = _try_all(item, search, repeater, progress)
        report = search.report()
        if clean is not None:
            repeater.pause()
            report = elsewhere.judge(report, clean)
    finally:
        progress.clear()
        repeater.finish()
        remember(item, search.report())
    if clean is None:
        return Verdict(skipped=True)
    failure = report.failures[0] if report.failures else None
    phase = repeater.phases.get(failure.plan, "call") if failure else "call"
    return Verdict(report=report, failure=failure, phase=phase, notes=notes(repeater))


def _try_all(
    item: pytest.Function, search: Search, repeater: Repeater, progress: Progress
) -> Outcome | None:
    """Run plan after plan; return the first outcome, None if the test is skipped without faults."""
    from emulator.sweeping.collection import Collections
    from emulator.sweeping.kept_mocks import kept_mocks
    from emulator.sweeping.outcome import Outcome

    clean: Outcome | None = None
    with Collections() as collections, kept_mocks():
        while (plan := search.next()) is not None:
            try:
                outcome = repeater.run(plan)
            except CannotSweep:
                if search.done < _CLEAN_RUNS:
                    raise
                outcome = Outcome()  # the run that is reported says so, beside what was found
            if (outcome is None or outcome.error is None) or is_unclaimed(outcome.error):
                check_emulator(item, met=repeater.met_emulator, skipped=repeater.skipped_clean)
            if outcome is None and search.done < _CLEAN_RUNS:
                return None
            outcome = outcome or Outcome()  # the last run, which the test itself does not count
            search.tell(plan, outcome)
            if clean is None:
                clean = outcome
                item.config.stash[ELSEWHERE].load(item, clean)
            del outcome
            collections.between(repeater.pinned)
            progress.show(search.done, search.total)
            if item.session.shouldstop or item.session.shouldfail:
                break
    return clean


def _seed(item: pytest.Function) -> int:
    from emulator.pytest_arguments import marked

    seed = item.config.getoption("--emulator-seed")
    chosen = marked(item).get("seed", 0) if seed is None else seed
    return chosen if isinstance(chosen, int) else 0  # Else the emulator says what is wrong.


def strict_codes(item: pytest.Function) -> Collection[str] | None:
    """Return the codes of the findings that fail a run; None for those of the documentation."""
    import warnings

    from emulator.findings import CODES
    from emulator.pytest_plugin import FindingWarning

    with warnings.catch_warnings(record=True):
        try:
            item.warn(FindingWarning(""))
        except FindingWarning:  # filterwarnings makes the others errors too.
            return frozenset(CODES)
    strict = item.config.getini("emulator_strict")
    return None if strict is None else frozenset(strict)
