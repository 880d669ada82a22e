"""A scenario file: a Python file with `async def scenario(emulator)`.

    CONFIG     the wrangler config: a path, a mapping of its shape, or a list of these. Without it,
               the nearest wrangler file at or above the scenario file
    EMULATOR   further arguments of `Emulator`, as `@pytest.mark.emulator` takes them

Both are optional; paths in them start at the file's folder. The file is run as Python runs a
script: its folder is the first on `sys.path`, so that it may import what lies beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from emulator.cli.refusal import Refusal
from emulator.cli.rewriting import helpers, rewrite
from emulator.emulator import Emulator
from emulator.location import format_error
from emulator.recording.file import is_recording
from emulator.shell import quoted
from emulator.sweeping.run import is_coroutine_function

if TYPE_CHECKING:
    from types import CodeType, ModuleType

USUAL_NAME: Final = "scenario"
CONFIG: Final = "CONFIG"
ARGUMENTS: Final = "EMULATOR"
_SHAPE: Final = "async def scenario(emulator): ..."
# What a mapping of arguments may not name, and what to do instead.
_ELSEWHERE: Final = {"config": f"write {CONFIG} = ... beside it", "base": "it is the file's folder"}

Scenario = Callable[[Emulator], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """A file, as it was given, and what of it counts; `config` is None where it has none."""

    path: Path
    name: str
    scenario: Scenario
    config: Any
    arguments: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """The folder that the paths in the file start from."""
        return self.path.absolute().parent


def load(path: Path, name: str | None) -> ScenarioFile:
    """Import a file and find its scenario, the one that is called `name` if a name is given.

    Raises `Refusal`, with the user's traceback where the file cannot be imported.
    """
    module = _import(path)
    chosen = _choose(module, path, name)
    return ScenarioFile(
        path,
        chosen,
        _checked(getattr(module, chosen), chosen, path),
        getattr(module, CONFIG, None),
        _arguments(getattr(module, ARGUMENTS, {}), path),
    )


class _Loader(SourceFileLoader):
    """Compiles from source each time: Python's cache goes by whole seconds."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = rewrite(self.get_data(self.path), self.path)
        return code


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        what = "is a folder; give a Python file" if path.is_dir() else "is not there"
        raise Refusal(f"the scenario file {path} {what}")
    if is_recording(path):
        command = f"workers-emulator run --replay {quoted(str(path))}"
        raise Refusal(f"{path} is a recording, not a scenario: repeat it with `{command}`")
    file = str(path.absolute())
    name = path.stem
    if name in sys.modules or name in sys.stdlib_module_names:
        name = f"scenario file {path.stem}"
    spec = spec_from_loader(name, _Loader(name, file), origin=file)
    assert spec is not None, "a loader was given"
    spec.has_location = True
    module = module_from_spec(spec)
    vars(module).update(helpers())
    sys.path.insert(0, str(path.absolute().parent))
    sys.modules[name] = module
    try:
        assert spec.loader is not None
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except OSError as error:
        if error.filename == file:
            raise Refusal(f"{path} cannot be read: {error.strerror}") from None
        _refuse_import(path, error)
    except BaseException as error:  # `sys.exit()` too
        _refuse_import(path, error)
    return module


def _refuse_import(path: Path, error: BaseException) -> NoReturn:
    trace = format_error(error, Path.cwd())
    raise Refusal(f"{path} cannot be imported\n\n{trace}") from None


def _choose(module: ModuleType, path: Path, name: str | None) -> str:
    own = _coroutine_functions(module)
    if name is not None:
        if not hasattr(module, name):
            raise Refusal(f"--scenario: {path} has no {name!r}; {_there(own)}")
        return name
    if hasattr(module, USUAL_NAME):
        return USUAL_NAME
    if len(own) == 1:
        return own[0]
    if own:
        raise Refusal(
            f"{path} has no {USUAL_NAME!r} and more than one function that could be meant; "
            f"choose with --scenario {' or '.join(own)}"
        )
    raise Refusal(f"{path} has no scenario; write `{_SHAPE}`")


def _coroutine_functions(module: ModuleType) -> list[str]:
    """Return the names of the file's own coroutine functions that take one argument."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and not isinstance(value, type)
        and is_coroutine_function(value)
        and _takes_one(value)
    ]


def _there(names: list[str]) -> str:
    return f"there is {', '.join(names)}" if names else f"write `{_SHAPE}`"


def _checked(scenario: Any, name: str, path: Path) -> Scenario:
    if not is_coroutine_function(scenario):
        raise Refusal(
            f"{name!r} in {path} is {_kind(scenario)}, not a coroutine function; write `{_SHAPE}`"
        )
    if not _takes_one(scenario):
        raise Refusal(
            f"{name!r} in {path} must take one argument, the emulator, and takes "
            f"{signature(scenario)}. Fixtures are pytest's; a scenario makes its own mocks, as "
            "`with respx.mock() as outside` does"
        )
    chosen: Scenario = scenario
    return chosen


def _takes_one(function: Any) -> bool:
    # A decorator such as `@respx.mock` may give the others.
    for follow_wrapped in (True, False):
        try:
            signature(function, follow_wrapped=follow_wrapped).bind(None)
        except (TypeError, ValueError):
            continue
        return True
    return False


def _kind(value: object) -> str:
    name = type(value).__name__
    return {"type": "a class", "function": "a plain function"}.get(name, f"a {name}")


def _arguments(given: Any, path: Path) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise Refusal(
            f"{ARGUMENTS} in {path} is {_kind(given)}; write a mapping of arguments of Emulator, "
            f'such as {ARGUMENTS} = {{"plan": "free"}}'
        )
    allowed = [name for name in signature(Emulator).parameters if name not in _ELSEWHERE]
    for name in given:
        if name in _ELSEWHERE:
            raise Refusal(f"{ARGUMENTS} in {path} has {name!r}: {_ELSEWHERE[name]}")
        if name not in allowed:
            raise Refusal(
                f"{ARGUMENTS} in {path} has {name!r}, which is no argument of Emulator; those are: "
                f"{', '.join(allowed)}"
            )
    return given
