"""What the `emulator` fixture makes its emulator of: the command line, markers and ini options.

1. `--emulator-seed` wins over a marker's `seed`; `--emulator-faults` adds to a marker's `faults`,
   and a fault that both name is planned once.
2. Of several markers the closest wins, argument by argument: that of a parameter set before the
   test's, the class's, its base classes' and the module's.
3. Paths in a marker are relative to the test file, the ini option `emulator_config` to rootdir.
   Without either, the nearest wrangler config at or above the test file counts.
"""

from __future__ import annotations

from inspect import signature
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from emulator.deployment import ARGUMENTS
from emulator.emulator import Emulator
from emulator.errors import ConfigError, PlanError, StateError, WorkerLoadError
from emulator.faults import parse_plan, read_plan
from emulator.location import format_error, raised_at
from emulator.wrangler import FILE_NAMES, find

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from emulator.faults import Fault
    from emulator.pytest_plugin import Run


def make(request: pytest.FixtureRequest, run: Run | None = None) -> Emulator:
    """Make the emulator of a test; what the user did wrong fails it in one message.

    The faults of a `run` of a sweep come beside the test's own. `--full-trace` shows the frames as
    well.
    """
    try:
        arguments = _arguments(request, run.plan if run else ())
        if run is not None and run.deployments is not None:
            arguments["config"] = run.deployments.get(
                arguments["config"],
                **{name: arguments[name] for name in ARGUMENTS if name in arguments},
            )
        return Emulator(**arguments)
    except (ConfigError, PlanError, StateError, WorkerLoadError) as error:
        if request.config.getoption("fulltrace"):
            raise
        text = f"{type(error).__name__}: {error}"
        cause = error.__cause__
        if cause is not None and raised_at(cause) is not None:
            text += f"\n{format_error(cause, request.config.rootpath)}"
        _fail(text)


def marked(node: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """Return the arguments that markers give to a test's emulator."""
    arguments: dict[str, Any] = {}
    for mark in reversed(list(_marks(node))):
        if mark.args:
            _fail(
                f"the emulator marker takes keyword arguments only, and was given {mark.args[0]!r} "
                'without a keyword; write @pytest.mark.emulator(config="wrangler.jsonc")'
            )
        arguments.update(mark.kwargs)
    if arguments:
        _check_names(arguments)
    return arguments


def _check_names(arguments: dict[str, Any]) -> None:
    allowed = [name for name in signature(Emulator).parameters if name != "base"]
    for name in arguments:
        if name not in allowed:
            _fail(
                f"the emulator marker has no argument {name!r}; it takes those of Emulator: "
                f"{', '.join(allowed)}"
            )


def _arguments(request: pytest.FixtureRequest, plan: Iterable[Fault]) -> dict[str, Any]:
    config, folder = request.config, request.path.parent
    arguments = {
        "wall_clock": config.getini("emulator_wall_clock"),
        "base": folder,
        **marked(request.node),
    }
    if "config" not in arguments:
        arguments["config"] = _find_config(config, folder)
    state = arguments.get("state")
    if isinstance(state, str | PathLike):
        arguments["state"] = folder / fspath(state)
    given = parse_plan(config.getoption("--emulator-faults"))
    own = read_plan(arguments.get("faults", ()))
    arguments["faults"] = tuple(dict.fromkeys((*own, *given, *plan)))
    seed = config.getoption("--emulator-seed")
    if seed is not None:
        arguments["seed"] = seed
    return arguments


def _marks(node: pytest.Item | pytest.Collector) -> Iterator[pytest.Mark]:
    """Yield the node's emulator markers, the closest first.

    pytest itself puts a base class before the class, and a test before its parameter set.
    """
    for level in node.iter_parents():
        marks = [mark for mark in level.own_markers if mark.name == "emulator"]
        if len(marks) > 1:
            nearest = _nearest(level)
            marks.sort(key=lambda mark: nearest.get(id(mark), len(nearest)))
        yield from marks


def _nearest(level: Any) -> dict[int, int]:
    """Return the rank of markers, by identity, where pytest's order is not that of closeness."""
    callspec = getattr(level, "callspec", None)
    if callspec is not None:
        return {id(mark): 0 for mark in callspec.marks}
    if not isinstance(level, pytest.Class):
        return {}
    ranks: dict[int, int] = {}
    for rank, base in enumerate(level.obj.__mro__):
        marks = vars(base).get("pytestmark", [])
        for mark in marks if isinstance(marks, list) else [marks]:
            ranks[id(getattr(mark, "mark", mark))] = rank
    return ranks


def _find_config(config: pytest.Config, folder: Path) -> Path:
    given = config.getini("emulator_config")
    if given:
        return config.rootpath / str(given)
    found = find(folder)
    if found is None:
        _fail(
            f"there is no {', '.join(FILE_NAMES[:-1])} or {FILE_NAMES[-1]} at or above {folder}; "
            "set the ini option emulator_config, or use @pytest.mark.emulator(config=...)"
        )
    return found


def _fail(message: str) -> NoReturn:
    raise pytest.fail.Exception(message, pytrace=False) from None
