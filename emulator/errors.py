"""Every exception the emulator raises to a test, in one tree.

    EmulatorError
    ├── ConfigError (also a ValueError)      a config file or mapping is wrong
    ├── DurationError (also a ValueError)    a duration cannot be read
    ├── PlanError (also a ValueError)        a fault plan cannot be read
    ├── WorkerLoadError                      the Worker's code cannot be imported
    ├── WorkerCrashed                        a planned crash hit a request in flight
    ├── OutboundDenied (also an OSError)     a request to the outside that nothing mocks
    ├── NotSettled                           a limit of virtual time was reached first
    ├── Stuck                                nothing new can ever happen
    ├── InsideSimulation                     a call that only a test may make
    ├── OutsideWorker                        a Worker API was used where no Worker runs
    ├── UnsupportedLoop                      the caller's event loop is not asyncio's
    ├── LoopRunning (also a RuntimeError)    `run` was called where an event loop runs already
    ├── WorkflowError                        the platform refuses a verb of a Workflow
    ├── WorkflowFailed                       an instance ended errored or terminated
    ├── MigrationError                       a migration of a D1 database fails
    ├── WebSocketRefused                     a request for a WebSocket got another answer
    ├── WebSocketClosed                      a WebSocket ended
    ├── EmulatorClosed                       the emulator is closed already
    ├── RecordingError                       a recording cannot be written, read or repeated
    └── StateError                           the state file cannot be used
        └── DamagedState                     what it holds cannot be read any more

Errors that imitate the platform are not here: user code sees them as `JsException` (`values.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

    from emulator.runtime.host import Close


class EmulatorError(Exception):
    """Base of everything the emulator raises to a test."""


class ConfigError(EmulatorError, ValueError):
    """A wrangler config is wrong; the text has file, key path, value and what is allowed."""


class DurationError(EmulatorError, ValueError):
    """A duration is neither a `timedelta`, a number of seconds nor text such as "3 days"."""


class PlanError(EmulatorError, ValueError):
    """A fault plan cannot be read; the text shows the part and what is allowed there."""


class WorkerLoadError(EmulatorError):
    """The Worker's code cannot be imported; the original exception is the cause."""


class WorkerCrashed(EmulatorError):
    """The isolate lost power while this request was in flight."""


class OutboundDenied(EmulatorError, OSError):
    """A request to the outside that nothing mocks, under `outbound="deny"`."""


class NotSettled(EmulatorError):
    """The limit of virtual time was reached; the text names what is still pending."""


class Stuck(EmulatorError):
    """Nothing new can ever happen; the text says which calls wait and on which line.

    Also where something starts over for ever at one instant, so that no time passes any more.
    """


class InsideSimulation(EmulatorError):
    """`advance`, `settle`, `run_until` and the like were called from inside the simulation."""


class OutsideWorker(EmulatorError):
    """An API of the Workers runtime was used where no Worker is running."""


class UnsupportedLoop(EmulatorError):
    """The caller runs on an event loop that is not asyncio's, such as trio."""


class LoopRunning(EmulatorError, RuntimeError):
    """`emulator.run()` was called while an event loop runs: await the coroutine instead."""


class WorkflowError(EmulatorError):
    """The platform refuses something about a Workflow: `name` and `message`, as user code sees."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


class WorkflowFailed(EmulatorError):
    """An instance came to an end that was not waited for: `instance`, `status`, `error`."""

    def __init__(self, instance: object, status: str, error: object) -> None:
        super().__init__(instance, status, error)
        self.instance = instance
        self.status = status
        self.error = error

    def __str__(self) -> str:
        why = ""
        if self.error is not None:
            why = f": {getattr(self.error, 'name', '')}: {getattr(self.error, 'message', '')}"
        return f"{self.instance!r} is {self.status}{why}"


class MigrationError(EmulatorError):
    """A migration of a D1 database cannot be applied; the text names the file and the problem."""


class WebSocketRefused(EmulatorError):
    """A request for a WebSocket got another answer, which is `response`."""

    def __init__(self, text: str, response: httpx.Response) -> None:
        super().__init__(text)
        self.response = response


class WebSocketClosed(EmulatorError):
    """A WebSocket ended: `code`, `reason` and `clean` say how."""

    def __init__(self, call: str, close: Close | None) -> None:
        code, reason, clean = (None, "", False) if close is None else close
        how = f"with {code}" if clean else f"without a Close ({code})"
        super().__init__(
            f"{call}: the connection was closed {how}{f': {reason}' if reason else ''}"
        )
        self.code = code
        self.reason = reason
        self.clean = clean


class EmulatorClosed(EmulatorError):
    """The emulator was closed; make a new one."""


class RecordingError(EmulatorError):
    """A recording of a development server cannot be written, read or repeated."""


class StateError(EmulatorError):
    """The state file is in use, or belongs to a newer version, or cannot be written."""


class DamagedState(StateError):
    """The state file, or a record in it, is not what was written there."""
