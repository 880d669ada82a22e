"""The public interface is what `emulator/__init__.py` says, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

import emulator

# Adding a name is a decision; so is losing one.
PUBLIC = [
    "BackgroundTask",
    "BatchResult",
    "ConfigError",
    "ConfigWarning",
    "DurationError",
    "Emulator",
    "EmulatorClosed",
    "EmulatorError",
    "Fault",
    "Finding",
    "InsideSimulation",
    "Log",
    "LoopRunning",
    "MigrationError",
    "NotSettled",
    "OutboundDenied",
    "OutsideWorker",
    "PlanError",
    "ReplyLost",
    "StateError",
    "Stuck",
    "SweepReport",
    "UnsupportedLoop",
    "WebSocketClosed",
    "WebSocketRefused",
    "WorkerCrashed",
    "WorkerLoadError",
    "WorkflowError",
    "WorkflowFailed",
    "sweep",
]


def test_the_public_names_are_sorted_and_these() -> None:
    assert emulator.__all__ == sorted(emulator.__all__)
    assert set(PUBLIC) <= set(emulator.__all__)
    unknown = set(emulator.__all__) - set(PUBLIC)
    assert not unknown, f"new public names, add them here: {sorted(unknown)}"


def test_each_name_can_be_loaded_and_has_a_docstring() -> None:
    for name in emulator.__all__:
        assert getattr(emulator, name).__doc__, name


def test_nothing_else_leaks() -> None:
    assert sorted(dir(emulator)) == sorted([*emulator.__all__, "__version__"])
    code = (
        "import emulator, types\n"
        "names = [n for n, v in vars(emulator).items() if not n.startswith('_')"
        " and not isinstance(v, types.ModuleType)]\n"
        "print(sorted(names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # What its own few lines import, until a name is asked for.
    assert done.stdout.strip() == "['Any', 'TYPE_CHECKING', 'annotations', 'import_module']"


def test_importing_the_package_is_cheap() -> None:
    """The pytest plugin imports it in every session."""
    code = "import sys, emulator; print([m for m in ('httpx', 'asyncio') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["js", "workers", "pyodide.ffi", "asgi"])
def test_what_worker_code_imports_is_there_in_a_script(name: str) -> None:
    """As soon as the package is imported; the error is then the emulator's own, with a hint."""
    code = (
        f"import emulator, {name}, js\n"
        "try:\n    js.crypto.randomUUID()\n"
        "except emulator.OutsideWorker as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("this needs a running Worker: use it in a handler")


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(emulator, "Missing")
