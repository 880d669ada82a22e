"""The pytest plugin: the `emulator` fixture, its marker and options, and the report of a failure.

Nothing of the emulator is imported until a test asks for it: the plugin costs a start of pytest
next to nothing. `pytest_arguments.py` reads markers and options, `pytest_report.py` writes what a
report says, `pytest_guard.py` is what the entry point names, `pytest_sweep.py` sweeps marked tests.

It is over 400 lines because the hooks of a plugin are found in one module.
"""

from __future__ import annotations

import inspect
import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import wraps
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

import pytest

from emulator import door

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from emulator import Emulator
    from emulator.deployment import Deployments
    from emulator.findings import Group
    from emulator.sweeping.outcome import Plan

_EMULATOR = pytest.StashKey["Emulator"]()
_JUDGED = pytest.StashKey[bool]()
_LENIENT = pytest.StashKey[ExitStack]()
_EPOCH = pytest.StashKey[float]()
_SECTION = "workers-emulator"
SWEEP_SECTION = "fault sweep"
_OTHER_EMULATOR = re.compile(r"No module named 'emulator\.|from 'emulator' \(")


class FindingWarning(UserWarning):
    """A finding that does not fail the test.

    Where filterwarnings makes warnings errors it fails the test after all, in the same way as a
    finding of a strict code; `default::emulator.pytest_plugin.FindingWarning` is the filter that
    lets it be a warning again.
    """


@dataclass(slots=True)
class Run:
    """A run of a marked test, as the fixture and the reports see it.

    `plan` are the sweep's faults; `silent` says that nobody will see a report, `told` that the
    report of the sweep says all that is to be said. Silent runs share their `deployments`.
    """

    plan: Plan
    silent: bool = False
    told: bool = False
    deployments: Deployments | None = None
    emulator: Emulator | None = None

    def start(self, emulator: Emulator) -> None:
        """Take note of the emulator of this run, as the fixture has made it."""
        self.emulator = emulator
        if self.plan:
            # A site that a sweep has seen need not be met when something else goes wrong.
            emulator.findings.expect("fault_not_fired")
        elif self.silent:
            from emulator.sweeping.places import locate

            locate(emulator)


RUN = pytest.StashKey[Run]()


# -- options -----------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("workers-emulator")
    group.addoption(
        "--emulator-faults",
        metavar="PLAN",
        default="",
        help="run the tests that use the emulator under this fault plan, such as "
        '"batch.emails#1:lose_ack"; several faults are separated by ";"',
    )
    group.addoption(
        "--emulator-seed",
        metavar="N",
        type=int,
        default=None,
        help="the seed of every choice the emulator makes (default 0)",
    )
    group.addoption(
        "--fault-sweep",
        choices=("on", "off"),
        default="on",
        help="off: run tests marked with fault_sweep once, without faults",
    )
    _add_ini_options(parser)


def _add_ini_options(parser: pytest.Parser) -> None:
    parser.addini(
        "emulator_config",
        "path of the wrangler config, relative to rootdir; by default the nearest wrangler.jsonc, "
        "wrangler.json or wrangler.toml at or above the test file",
    )
    parser.addini(
        "emulator_strict",
        "finding codes that fail a test; by default those marked so in the documentation",
        type="args",
        default=None,
    )
    parser.addini(
        "emulator_wall_clock",
        "`test`: time.time() and datetime.now() are virtual in the test body too; `worker`: only "
        "in Worker code",
        default="test",
    )
    parser.addini(
        "emulator_determinism",
        "`process`: tests marked with fault_sweep are run once in another process too, which must "
        "do the same; `in-process`: only in this one",
        default="process",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Let conftest files say `from workers import …`: they are loaded before `pytest_configure`."""
    door.open()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "emulator(**arguments): arguments of `Emulator` for a test, class or module; the closest "
        "marker wins argument by argument, relative paths resolve against the test file",
    )
    config.addinivalue_line(
        "markers",
        'fault_sweep(depth=1, classes=("platform",), only=[], skip=[], limit=None): run the test '
        "once clean and once per fault found",
    )
    if any("sweep-" in argument for argument in config.args):
        from emulator.pytest_sweep_shards import configure

        configure(config)
    # Virtual time reaches every copy of time.time(), but not the performance counter's.
    config.stash[_EPOCH] = time() - perf_counter()
    _check_options(config)
    door.open()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called by pytest-xdist for each of its processes."""
    from emulator.pytest_sweep_pose import StandIn
    from emulator.pytest_sweep_shards import tell_worker

    if not isinstance(node, StandIn):
        tell_worker(node)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if any(item.get_closest_marker("fault_sweep") for item in items):
        from emulator.pytest_sweep import start

        start(config, items)


def _check_options(config: pytest.Config) -> None:
    _check_ini(config, "emulator_wall_clock", "test", "worker")
    _check_ini(config, "emulator_determinism", "process", "in-process")
    plan, strict = config.getoption("--emulator-faults"), config.getini("emulator_strict")
    try:
        if plan:
            from emulator.faults import Faults

            Faults(lambda: 0, plan)
        if strict:
            from emulator.findings import check_codes

            check_codes(strict)
    except ValueError as error:  # A PlanError is one.
        option = "emulator_strict" if type(error) is ValueError else "--emulator-faults"
        raise pytest.UsageError(f"{option}: {error}") from None


def _check_ini(config: pytest.Config, name: str, *allowed: str) -> None:
    given = config.getini(name)
    if given not in allowed:
        choices = " or ".join(map(repr, allowed))
        raise pytest.UsageError(f"{name} is {given!r}; it may be {choices}")


def pytest_report_header(config: pytest.Config) -> list[str]:
    plan, seed = config.getoption("--emulator-faults"), config.getoption("--emulator-seed")
    lines = [f"emulator faults: {plan}"] if plan else []
    return lines if seed is None else [*lines, f"emulator seed: {seed}"]


# -- the fixture, and who runs a test ------------------------------------------------------------


@pytest.fixture
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """A fresh `Emulator` of the project's wrangler config: in-memory state, virtual clock.

    `@pytest.mark.emulator(...)` overrides the constructor's arguments.
    """
    from emulator import pytest_arguments
    from emulator.lenient_respx import lenient

    run = request.node.stash.get(RUN, None)
    with pytest_arguments.make(request, run) as instance:
        if run is not None:
            run.start(instance)
        request.node.stash[_EMULATOR] = instance
        request.node.stash[_JUDGED] = False
        # To the end of the teardown: that is when `respx_mock` stops.
        request.node.stash[_LENIENT] = stack = ExitStack()
        stack.enter_context(lenient(instance))
        yield instance


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    try:
        yield
    finally:
        stack = item.stash.get(_LENIENT, None)
        if stack is not None:
            stack.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let go of the emulator when all is reported: pytest keeps its items to the end."""
    try:
        return (yield)
    finally:
        forget(item)


def forget(item: pytest.Item) -> None:
    """Take off an item what leads to the emulator of its latest run."""
    keys: tuple[pytest.StashKey[Any], ...] = (_EMULATOR, _LENIENT)
    for key in keys:
        if key in item.stash:
            del item.stash[key]


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test that uses the emulator and that no other plugin has claimed."""
    emulator = _emulator_of(pyfuncitem)
    if emulator is None:
        return None
    test = pyfuncitem.obj
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    if inspect.iscoroutinefunction(test):
        emulator.run(test(**arguments))
        return True
    given = getattr(test, "hypothesis", None)
    if inspect.iscoroutinefunction(getattr(given, "inner_test", None)):
        _run_given(emulator, test, arguments)
        return True
    return None


def _emulator_of(item: pytest.Item) -> Emulator | None:
    """The emulator a test uses: ours, or one that a fixture of the project's own has made."""
    made = item.stash.get(_EMULATOR, None)
    module: Any = sys.modules.get("emulator.emulator")
    if made is not None or module is None:
        return made
    values = (getattr(item, "funcargs", None) or {}).values()
    return next((value for value in values if isinstance(value, module.Emulator)), None)


def _run_given(
    emulator: Emulator, test: Callable[..., object], arguments: dict[str, object]
) -> None:
    """Run a coroutine test under Hypothesis' `@given`, which calls the function it has kept."""
    given: Any = test.hypothesis  # type: ignore[attr-defined]
    coroutine_function = given.inner_test

    @wraps(coroutine_function)
    def run(*positional: Any, **named: Any) -> None:
        emulator.run(coroutine_function(*positional, **named))

    given.inner_test = run
    try:
        test(**arguments)
    finally:
        given.inner_test = coroutine_function


# -- findings ------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Judge the findings in the call phase, so that a test fails as one item."""
    yield
    # Named so that `--pdb`, which stops in this frame, has it at hand.
    emulator = item.stash.get(_EMULATOR, None)
    if emulator is not None and not _unseen(item) and len(emulator.findings):
        text = _judge(item, emulator)
        if text is not None:
            item.stash[_JUDGED] = True
            pytest.fail(text, pytrace=False)


def _judge(item: pytest.Item, emulator: Emulator) -> str | None:
    """Return the text with which the findings fail the test, if they do; warn of the others."""
    from emulator.findings import grouped
    from emulator.pytest_report import failure

    strict = item.config.getini("emulator_strict")
    codes = None if strict is None else frozenset(strict)
    wrong = grouped(emulator.findings.unexpected(codes))
    warned = grouped(emulator.findings.tolerated(codes))
    errors = [group for group in warned if not _warn(item, group)]
    return failure(wrong, errors) if wrong or errors else None


def _warn(item: pytest.Item, group: Group) -> bool:
    """Issue a warning; False if filterwarnings makes it an error."""
    try:
        item.warn(FindingWarning(group.text))
    except FindingWarning:
        return False
    return True


def _unseen(item: pytest.Item) -> bool:
    """Whether this is a run of a sweep, which judges it."""
    run = item.stash.get(RUN, None)
    return run is not None and run.silent


# -- the report ----------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the timeline and a line that reproduces it to a failure."""
    if _unseen(item):
        return (yield)
    emulator = _emulator_of(item)
    if emulator is not None:
        # Stamped by time.time(), which was virtual at one end at least.
        call.stop = item.config.stash[_EPOCH] + perf_counter()
        call.start = call.stop - call.duration
    report = yield
    if emulator is not None:
        # What pytest captured while the Worker ran.
        mask = emulator.trace.masker
        report.sections = [(title, mask(text)) for title, text in report.sections]
        if report.failed and not _told(item, report):
            from emulator.pytest_report import add_section

            add_section(report, _SECTION, _describe(item, emulator))
    return report


def _told(item: pytest.Item, report: pytest.TestReport) -> bool:
    """Whether the report of a sweep says all there is to say."""
    run = item.stash.get(RUN, None)
    return run is not None and run.told and report.when == "call"


def _describe(item: pytest.Item, emulator: Emulator) -> str:
    from emulator.pytest_report import describe

    try:
        return describe(item, emulator, findings=not item.stash.get(_JUDGED, False))
    except Exception as error:  # A report that cannot be written must not end the session.
        return f"the timeline could not be written: {type(error).__name__}: {error}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Let a passing session say what its sweeps tried: passing tests have no report to read."""
    swept = {
        report.nodeid: text
        for report in terminalreporter.stats.get("passed", ())
        for title, text in report.sections
        if title == SWEEP_SECTION
    }
    if not swept or terminalreporter.hasopt("P"):
        return
    from emulator import pytest_sweep_verdict as verdicts

    if terminalreporter.verbosity < 0:
        verdicts.warn(terminalreporter, swept)
    else:
        verdicts.summarise(terminalreporter, swept)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Explain an import that failed because the project has a package `emulator` too."""
    report = yield
    if report.failed and _OTHER_EMULATOR.search(str(report.longrepr)):
        ours = sys.modules["emulator"].__file__
        report.sections.append(
            (
                _SECTION,
                f"`emulator` is the package of workers-emulator here ({ours}). If the project has "
                "one of that name, rename it, or run pytest without the plugin: "
                "-p no:workers-emulator",
            )
        )
    return report
