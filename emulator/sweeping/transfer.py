"""Gives a scenario to another process, which imports it from where it is defined.

What is handed over is a pickle: functions and classes by their names, everything else by value. A
script is loaded as multiprocessing does it, under the name `__mp_main__`, so that what is below
`if __name__ == "__main__":` does not run.
"""

from __future__ import annotations

import ast
import asyncio
import datetime
import io
import os
import pickle
import sys
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from emulator.sweeping.account import Account
from emulator.sweeping.process import ROLE, OtherProcess, Unable, cannot_start, inherited

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec

    from emulator.sweeping.channel import Channel
    from emulator.sweeping.check import Loading

SERVE = f"{__name__}:serve"
_MAIN = "__main__"


class Transfer:
    """A scenario and its emulator's arguments as they were before the first run.

    Raises `Unable` where another process cannot have them.
    """

    def __init__(self, scenario: Any, config: Any, seed: int, arguments: Mapping[str, Any]) -> None:
        if why := cannot_start() or _frozen():
            raise Unable(why)
        parts = {"the scenario": scenario, "the config": config, **arguments}
        self._payload = _pickled(parts, (scenario, config, seed, dict(arguments)))
        main = _main() if _MAIN.encode() in self._payload else None
        self._surroundings = {
            "path": list(map(str, sys.path)),
            "argv": sys.argv,
            "folder": os.getcwd(),
            "environment": inherited(),
            "files": _file_of(scenario),
            "main": main,
        }

    def start(self, hash_seed: int) -> Loading:
        """Start a fresh process and let it load the scenario."""
        return self.load_in(OtherProcess(SERVE, hash_seed))

    def load_in(self, process: OtherProcess) -> Loading:
        """Let a process load the scenario."""
        try:
            (process.path / "payload").write_bytes(self._payload)
            return process, process.tell("load", **self._surroundings)
        except BaseException:
            process.close()
            raise


def _pickled(parts: Mapping[str, Any], whole: Any) -> bytes:
    try:
        return pickle.dumps(whole)
    except Exception as error:  # an object's own code may raise anything
        for name, part in parts.items():
            try:
                pickle.dumps(part)
            except Exception as reason:
                raise Unable(_why_not(name, part, reason)) from None
        raise Unable(f"what it needs cannot be handed over: {error}") from None


def _why_not(name: str, part: Any, reason: Exception) -> str:
    called = getattr(part, "__qualname__", "")
    if "<lambda>" in called or "<locals>" in called:
        return (
            f"{name} is made inside a function ({called}), where no other process can import it; "
            "define it at the top of a module"
        )
    return f"{name} cannot be handed to another process: {type(reason).__name__}: {reason}"


def _file_of(scenario: Any) -> dict[str, str]:
    """Return the scenario's module and its file, where its name alone may not lead to it."""
    function = scenario
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__module__", None)
    file = getattr(sys.modules.get(str(name)), "__file__", None)
    return {name: os.path.abspath(file)} if name and name != _MAIN and file else {}


def _main() -> dict[str, str]:
    """How to load again the script that runs here; raises `Unable`."""
    main = sys.modules[_MAIN]
    file = getattr(main, "__file__", None)
    if file is None or not os.path.isfile(file):
        raise Unable("the scenario is defined in an interactive session; put it into a module")
    if not _has_guard(Path(file)):
        raise Unable(
            f"{os.path.basename(file)} is a script and would run as a whole if another process "
            'imported it; put what it does below `if __name__ == "__main__":`'
        )
    spec: ModuleSpec | None = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return {"module": spec.name}
    return {"path": os.path.abspath(file)}


def _has_guard(file: Path) -> bool:
    """Whether a script asks for its name before it does its work."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    return any(
        isinstance(node, ast.Name) and node.id == "__name__"
        for statement in tree.body
        if isinstance(statement, ast.If)
        for node in ast.walk(statement.test)
    )


def _frozen() -> str:
    """Why the scenario would read another time there; empty if it would not."""
    travels = getattr(sys.modules.get("time_machine"), "traveller_stack", ())
    if travels or datetime.datetime.__name__ == "FakeDatetime":
        return "time is frozen around the sweep, and would not be there; freeze it in the scenario"
    return ""


# -- in the other process ------------------------------------------------------------------------


def serve(_: dict[str, Any], channel: Channel) -> None:
    """Load scenarios, and run them without faults."""
    # Before user code, which may say `from workers import ...` at its top.
    from emulator.sweeping.run import run_clean

    loaded: list[Any] = []
    mains: list[dict[str, str]] = []

    def load(command: dict[str, Any]) -> None:
        _surround(command)
        main = command["main"]
        if main is not None and main not in mains:
            _load_main(main)
            mains.append(main)
        payload = (channel.folder / "payload").read_bytes()
        loaded[:] = _Unpickler(payload, command["files"]).load()

    def run() -> Account:
        return Account.of(asyncio.run(run_clean(*loaded)))

    channel.serve(load, run)


def _surround(command: dict[str, Any]) -> None:
    """Let the process look like the one that asks, whose surroundings may have changed."""
    sys.path[:] = command["path"]
    sys.argv[:] = command["argv"]
    os.chdir(command["folder"])
    own = {name: os.environ[name] for name in (ROLE, "PYTHONHASHSEED")}
    os.environ.clear()
    os.environ.update(command["environment"] | own)


class _Unpickler(pickle.Unpickler):
    """Imports a module from its file where its name does not lead to it (importlib mode)."""

    def __init__(self, payload: bytes, files: Mapping[str, str]) -> None:
        super().__init__(io.BytesIO(payload))
        self._files = files

    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except ModuleNotFoundError as error:
            if error.name is None or module not in self._files:
                raise
            _import(module, self._files[module])
            return super().find_class(module, name)


def _import(name: str, file: str) -> None:
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


def _load_main(main: dict[str, str]) -> None:
    import runpy

    module = ModuleType("__mp_main__")
    if "path" in main:
        content = runpy.run_path(main["path"], run_name="__mp_main__")
    else:
        content = runpy.run_module(main["module"], run_name="__mp_main__", alter_sys=True)
    module.__dict__.update(content)
    sys.modules[_MAIN] = sys.modules["__mp_main__"] = module
