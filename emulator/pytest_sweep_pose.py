"""How the other process of a sweep poses as one of pytest-xdist, so that plugins can bear it.

A plugin that asks `config.workerinput` expects there what it put into it where the tests are
divided: pytest-randomly its seed, pytest-rerunfailures the port of its server. So the plugins of
this session are asked, as pytest-xdist asks them for each process that it starts.
"""

from __future__ import annotations

import traceback
from pathlib import Path, PurePath
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pytest

# The number of the other process, to be told from those of pytest-xdist; one for each of them.
_FIRST_WORKER: Final = 1000


class StandIn:
    """What plugins are given in place of a process of pytest-xdist."""

    def __init__(self, config: pytest.Config, workerinput: dict[str, Any]) -> None:
        self.config = config
        self.workerinput = workerinput
        name = workerinput["workerid"]
        self.gateway = SimpleNamespace(id=name, spec=SimpleNamespace(id=name, popen=True))


def worker_input(config: pytest.Config) -> dict[str, Any]:
    """Return what a process of pytest-xdist has, with a number of its own.

    Where this is one, it is what this one was given.
    """
    given: dict[str, Any] = getattr(config, "workerinput", {})
    name = str(given.get("workerid", "gw0")).removeprefix("gw")
    number = _FIRST_WORKER + (int(name) if name.isdecimal() else 0)
    ours = {"workerid": f"gw{number}", "workercount": 1}
    values = {"testrunuid": "workers-emulator", "mainargv": ["pytest"], **given, **ours}
    if not given:
        _fill(config, values)
    return {name: value for name, value in values.items() if is_plain(value)} | ours


def _fill(config: pytest.Config, values: dict[str, Any]) -> None:
    """Let the plugins of this session put in what they expect."""
    hook: Any = getattr(config.hook, "pytest_configure_node", None)
    node = StandIn(config, values)
    for implementation in hook.get_hookimpls() if hook is not None else ():
        if implementation.wrapper or implementation.hookwrapper:
            continue
        try:  # each by itself: one that cannot bear this must not cost what the others say
            implementation.function(*((node,) if "node" in implementation.argnames else ()))
        except Exception:  # then the process says what it lacks
            continue
    # pytest-randomly asks for it always, and gives it where pytest-xdist is installed.
    seed = getattr(config.option, "randomly_seed", None)
    if isinstance(seed, int):
        values.setdefault("randomly_seed", seed)


def is_plain(value: Any) -> bool:
    """Whether a value can be handed to another process as it is."""
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(map(is_plain, (*value, *value.values())))
    return value is None or type(value) in (bool, int, float, str, bytes) or _is_path(value)


def _is_path(value: object) -> bool:
    return type(value) in (type(Path()), type(PurePath()))


# -- what breaks it ------------------------------------------------------------------------------


def blamed(error: BaseException, config: Any) -> str:
    """Say in words which plugin of the other process raised an error, where, and what to do."""
    frames = [
        (Path(frame.f_code.co_filename), line, str(frame.f_globals.get("__name__")))
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    plugins = {} if config is None else _plugins(config)
    guilty = next((frame for frame in reversed(frames) if frame[2] in plugins), frames[-1])
    file, line, module = guilty
    way_out = "set the ini option emulator_determinism to in-process to leave it out"
    return (
        f"{plugins.get(module, 'something')} breaks the other process, which poses as one of "
        f"pytest-xdist: {type(error).__name__}: {error} ({'/'.join(file.parts[-2:])}:{line}); "
        f"{way_out}"
    )


def _plugins(config: Any) -> dict[str, str]:
    """Return the plugins that are not pytest's own or ours, by the name of their module."""
    manager = config.pluginmanager
    wheels = {id(plugin): wheel for plugin, wheel in manager.list_plugin_distinfo()}
    found: dict[str, str] = {}
    for name, plugin in manager.list_name_plugin():
        is_module = isinstance(plugin, ModuleType)
        module = plugin.__name__ if is_module else type(plugin).__module__
        if not module.startswith(("_pytest.", "emulator.")):
            found.setdefault(module, _named(str(name), wheels.get(id(plugin))))
    return found


def _named(name: str, wheel: Any) -> str:
    if wheel is not None:
        return f"the plugin {wheel.project_name} {wheel.version}"
    path = Path(name)
    return "/".join(path.parts[-2:]) if path.suffix == ".py" else f"the plugin {name}"
