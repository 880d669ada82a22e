"""workers-emulator: a local emulator of Cloudflare Workers for tests.

The names of this module are the public interface; everything else may change. They are loaded on
first use, so that the pytest plugin costs next to nothing where no test uses it. What Worker code
imports (`workers`, `js`, `pyodide`) can be imported as soon as this module is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from emulator import door as _door

if TYPE_CHECKING:
    from emulator.background import BackgroundTask as BackgroundTask
    from emulator.config import ConfigWarning as ConfigWarning
    from emulator.emulator import Emulator as Emulator
    from emulator.errors import ConfigError as ConfigError
    from emulator.errors import DurationError as DurationError
    from emulator.errors import EmulatorClosed as EmulatorClosed
    from emulator.errors import EmulatorError as EmulatorError
    from emulator.errors import InsideSimulation as InsideSimulation
    from emulator.errors import LoopRunning as LoopRunning
    from emulator.errors import MigrationError as MigrationError
    from emulator.errors import NotSettled as NotSettled
    from emulator.errors import OutboundDenied as OutboundDenied
    from emulator.errors import OutsideWorker as OutsideWorker
    from emulator.errors import PlanError as PlanError
    from emulator.errors import StateError as StateError
    from emulator.errors import Stuck as Stuck
    from emulator.errors import UnsupportedLoop as UnsupportedLoop
    from emulator.errors import WebSocketClosed as WebSocketClosed
    from emulator.errors import WebSocketRefused as WebSocketRefused
    from emulator.errors import WorkerCrashed as WorkerCrashed
    from emulator.errors import WorkerLoadError as WorkerLoadError
    from emulator.errors import WorkflowError as WorkflowError
    from emulator.errors import WorkflowFailed as WorkflowFailed
    from emulator.faults import Fault as Fault
    from emulator.findings import Finding as Finding
    from emulator.ingress import ReplyLost as ReplyLost
    from emulator.logs import Log as Log
    from emulator.queues.control import BatchResult as BatchResult
    from emulator.sweeping.report import SweepReport as SweepReport
    from emulator.sweeping.run import sweep as sweep

_HOMES = {
    "BackgroundTask": "background",
    "BatchResult": "queues.control",
    "ConfigError": "errors",
    "ConfigWarning": "config",
    "DurationError": "errors",
    "Emulator": "emulator",
    "EmulatorClosed": "errors",
    "EmulatorError": "errors",
    "Fault": "faults",
    "Finding": "findings",
    "InsideSimulation": "errors",
    "Log": "logs",
    "LoopRunning": "errors",
    "MigrationError": "errors",
    "NotSettled": "errors",
    "OutboundDenied": "errors",
    "OutsideWorker": "errors",
    "PlanError": "errors",
    "ReplyLost": "ingress",
    "StateError": "errors",
    "Stuck": "errors",
    "SweepReport": "sweeping.report",
    "UnsupportedLoop": "errors",
    "WebSocketClosed": "errors",
    "WebSocketRefused": "errors",
    "WorkerCrashed": "errors",
    "WorkerLoadError": "errors",
    "WorkflowError": "errors",
    "WorkflowFailed": "errors",
    "sweep": "sweeping.run",
}

__all__ = sorted(_HOMES)
__version__ = "0.1.0"

_door.open()


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'emulator' has no attribute {name!r}")
    value = getattr(import_module(f"emulator.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
