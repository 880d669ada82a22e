"""What the platform says when it refuses, word for word; a letter and number name the source.

Where no source has a text the sentence is ours, and says so in a comment.
"""

from __future__ import annotations

from typing import Final

from emulator.workflows.model import DelayFailed, ErrorInfo

_DOCS: Final = "https://developers.cloudflare.com/workflows/build/sleeping-and-retrying/"
_FATAL: Final = "WorkflowFatalError"
_INTERNAL: Final = "WorkflowInternalError"
_ENDED: Final = "The execution of the Workflow instance was terminated, as "


class EngineError(Exception):
    """The platform refuses; `name` is its class of error, `message` its text."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.message = message

    @property
    def info(self) -> ErrorInfo:
        """The error as a value."""
        return ErrorInfo(self.name, self.message)


# Instances (B, I).

INVALID_ID: Final = ErrorInfo("WorkflowError", "Workflow instance has invalid id")
RESERVED_ID: Final = ErrorInfo("WorkflowError", "(instance.invalid_id) Instance ID is invalid")
NOT_FOUND: Final = ErrorInfo("WorkflowError", "(instance.not_found) Instance not found")
NOT_FOUND_LOCALLY: Final = ErrorInfo("Error", "instance.not_found")
NOT_THERE: Final = ErrorInfo("WorkflowError", "(instance.not_found) Instance does not exist")
CANNOT_TERMINATE: Final = ErrorInfo(
    "WorkflowError",
    "(instance.cannot_terminate) Cannot terminate instance since its on a finite state",
)
IN_FINITE_STATE: Final = ErrorInfo(
    "WorkflowError",
    "(instance.in_finite_state) Instance reached a finite state, cannot send events to it",
)
# I23 has the code; the words after it are ours.
INVALID_EVENT_TYPE: Final = ErrorInfo(
    "WorkflowError", "(workflow.invalid_event_type) Event type is invalid"
)
# B15 and I25 have the limit; the words are ours, after O3.
PARAMS_TOO_LARGE: Final = ErrorInfo(
    "WorkflowError", "Instance params are too large. Maximum allowed size is 1MiB."
)
PAYLOAD_TOO_LARGE: Final = ErrorInfo(
    "WorkflowError", "Event payload is too large. Maximum allowed size is 1MiB."
)
BATCH_EMPTY: Final = ErrorInfo("WorkflowError", "batchCreate should have at least 1 instance")
BATCH_TOO_LONG: Final = ErrorInfo(
    "WorkflowError", "batchCreate only supports 100 instances at a time"
)
BAD_COUNT: Final = ErrorInfo("WorkflowError", "(body) count must be a positive integer")
COUNT_TOO_HIGH: Final = ErrorInfo(
    "WorkflowError", "(body) batchCreate only supports 100 instances at a time"
)
BATCH_SIZE: Final = ErrorInfo("WorkflowError", "(body) Batch size exceeds maximum allowed")
BAD_ARGUMENT: Final = ErrorInfo("WorkflowError", "(body) Provided argument is invalid")
DELETE_EMPTY: Final = ErrorInfo(
    "WorkflowError", "(body) batchDeleteInstances should have at least 1 instance"
)
DELETE_TOO_LONG: Final = ErrorInfo(
    "WorkflowError", "(body) batchDeleteInstances only supports 100 instances at a time"
)
ALREADY_EXISTS: Final = (10405, "workflows.api.error.instance.already_exists")
DUPLICATE_IN_BATCH: Final = (10415, "workflows.api.error.instance.duplicate_in_batch")
MISSING_IN_BATCH: Final = (10400, "workflows.api.error.instance.not_found")


def already_exists(id: str) -> EngineError:
    """B4."""
    return EngineError(
        "WorkflowError",
        f'(instance.already_exists) Workflow instance with id "{id}" already exists',
    )


def cannot_restart(name: str) -> EngineError:
    """I20."""
    return EngineError(
        "WorkflowError",
        f'(instance.cannot_restart) Step "{name}" not found in execution history',
    )


# What `step` refuses (S, D, T, K1, K7).

BAD_DURATION: Final = ErrorInfo(
    "Error",
    "Duration must be a number or a string in format '{{number}} {{unit}}'"
    " where unit is second(s), minute(s), etc.",
)
BAD_DURATION_LOCALLY: Final = ErrorInfo(
    "Error",
    "NOT NULL constraint failed: priority_queue.target_timestamp:"
    " SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)",
)
# D5 and D9 have the limit; the words are ours.
TOO_LONG: Final = ErrorInfo("Error", "Duration must not be longer than 365 days")
IN_THE_PAST: Final = ErrorInfo("Error", "You can't sleep until a time in the past, time-traveler")
IN_ROLLBACK: Final = ErrorInfo(_FATAL, "Cannot execute steps during rollback phase")


def no_callback(name: str) -> EngineError:
    """S1."""
    return EngineError(_FATAL, f'Step "{name}" requires a callback function')


def invalid_name(name: str) -> EngineError:
    """S2."""
    return EngineError(
        _FATAL,
        f'Step name "{name}" exceeds max length (256 chars) or invalid characters found',
    )


def invalid_config(name: str) -> EngineError:
    """S4."""
    return EngineError(_FATAL, f'Step config for "{name}" is in a invalid format. See {_DOCS}')


def rollback_options(name: str) -> EngineError:
    """K1."""
    return EngineError(_FATAL, f'Rollback options for "{name}" must be an object')


def rollback_function(name: str) -> EngineError:
    """K1."""
    return EngineError(_FATAL, f'Rollback for "{name}" must be a function')


def rollback_config(name: str) -> EngineError:
    """K1."""
    return EngineError(_FATAL, f'Rollback config for "{name}" is in a invalid format. See {_DOCS}')


def step_limit(limit: int) -> EngineError:
    """T1."""
    return EngineError(
        _FATAL,
        f"The limit of {limit} steps has been reached."
        " This limit can be changed in your worker configuration.",
    )


# How attempts fail (R, O, E, X).

LOST: Final = ErrorInfo(_INTERNAL, "Attempt failed due to internal workflows error")
TERMINATED: Final = ErrorInfo("Terminated", "Instance terminated during rollback")
UNHANDLED: Final = ErrorInfo(
    _FATAL, f"{_ENDED}a step threw an NonRetryableError and it was not handled"
)
ROLLBACK_MISSING: Final = ErrorInfo(
    "RollbackMissing", "Rollback function not available in registry"
)


def timed_out(milliseconds: str) -> ErrorInfo:
    """R4, D10."""
    return ErrorInfo("WorkflowTimeoutError", f"Execution timed out after {milliseconds}ms")


def too_large(target: str) -> ErrorInfo:
    """O3."""
    return ErrorInfo(_INTERNAL, f"Step {target} output is too large. Maximum allowed size is 1MiB.")


def not_serialisable(name: str) -> tuple[ErrorInfo, ErrorInfo]:
    """The attempt's error, and the instance's (O2)."""
    return (
        ErrorInfo(_FATAL, f'Value returned from step "{name}" is not serialisable'),
        ErrorInfo(_FATAL, f'{_ENDED}the step "{name}" returned a value which is not serialisable'),
    )


def bad_stream(name: str, reason: str) -> ErrorInfo:
    """O5."""
    return ErrorInfo(
        _FATAL,
        f'{_ENDED}the step "{name}" returned an invalid ReadableStream output. {reason}',
    )


def threw_non_retryable(message: str) -> ErrorInfo:
    """What the history has of such an attempt without the compatibility flag (E6)."""
    return ErrorInfo(_FATAL, f'Step threw a NonRetryableError with message "{message}"')


def delay_failed(target: str, failure: DelayFailed) -> ErrorInfo:
    """R3."""
    reasons = {
        "threw": f"threw an error: {failure.message}",
        "timeout": "did not return within 5 seconds",
        "invalid": (
            "returned an invalid delay value"
            ' (expected a number of ms or a duration string like "30 seconds")'
        ),
    }
    return ErrorInfo(
        "NonRetryableDelayError",
        f'The delay function for step "{target}" {reasons[failure.kind]}',
    )
