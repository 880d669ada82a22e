"""Values as user code sees them: encoded ones decoded, errors raised, statuses as objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.sdk.workflow_errors import folded
from emulator.runtime.web.streams import ReadableStream
from emulator.values import (
    UNDEFINED,
    ArrayBuffer,
    BigInt,
    JsException,
    TypedArray,
    class_of,
    from_json,
    from_milliseconds,
    from_v8,
    to_json,
)
from emulator.workflows.model import ErrorInfo, InstanceEvent

if TYPE_CHECKING:
    from emulator.workflows.model import (
        Event,
        HistoryRow,
        InstanceView,
        Profile,
        StepView,
    )
    from emulator.workflows.texts import EngineError

REDACTED: Final = "[REDACTED]"
# What stored streams begin with; V8's format begins otherwise.
STREAM: Final = b"stream:"
_SHOWN: Final = 1024


def decoded(data: bytes | None) -> Any:
    """The value of encoded data; undefined for none, a fresh stream for a stream's."""
    if data is None:
        return UNDEFINED
    if data.startswith(STREAM):
        return ReadableStream.of_bytes(data[len(STREAM) :])
    return from_v8(data)


def stream_text(data: bytes) -> str:
    """What the log shows of a stream's content (O6)."""
    content = data[len(STREAM) :]
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"[ReadableStream (binary): {len(content)} bytes]"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}[truncated output]"


def raised(profile: Profile, error: ErrorInfo | EngineError) -> JsException:
    """What user code catches: locally RPC folds the platform's own classes into the text (E3)."""
    seen = JsException(error.name, error.message)
    return folded(seen) if profile == "miniflare" else seen


def received(profile: Profile, error: JsException) -> ErrorInfo:
    """What the engine gets of an error of user code: what locally RPC leaves of it (E3).

    It knows a `NonRetryableError` all the same (E6).
    """
    if profile == "miniflare" and error.name != "NonRetryableError":
        error = folded(error)
    return ErrorInfo(error.name, error.message)


def event_object(event: Event) -> dict[str, Any]:
    """An event as a wait returns it; without a payload it has no such key (I25)."""
    shown: dict[str, Any] = {} if event.payload is None else {"payload": from_v8(event.payload)}
    shown["type"] = event.type
    shown["timestamp"] = from_milliseconds(event.timestamp // 1000)
    return shown


def status_object(
    profile: Profile, view: InstanceView, steps: list[StepView], history: list[HistoryRow]
) -> dict[str, Any]:
    """What `status()` answers (I4, I5)."""
    error = UNDEFINED if view.error is None else view.error._asdict()
    output = decoded(view.output)
    if profile == "miniflare":
        return {
            "status": view.status.value,
            "__LOCAL_DEV_STEP_OUTPUTS": _local_outputs(steps, history),
            "output": None if output is UNDEFINED else preview(output),
            "error": error,
        }
    shown: dict[str, Any] = {"status": view.status.value}
    if error is not UNDEFINED:
        shown["error"] = error
    if output is not UNDEFINED:
        shown["output"] = output
    shown["rollback"] = None
    if view.rollback is not None:
        why = view.rollback.error
        shown["rollback"] = {
            "outcome": view.rollback.outcome,
            "error": None if why is None else why._asdict(),
        }
    return shown


def _local_outputs(steps: list[StepView], history: list[HistoryRow]) -> list[Any]:
    """Results of steps and payloads of events, in the order of the log."""
    hidden = {f"{step.name}-{step.count}" for step in steps if step.sensitive}
    shown = []
    for row in history:
        if row.event is InstanceEvent.STEP_SUCCESS:
            value = REDACTED if row.target in hidden else _previewed(row.data.get("result"))
            shown.append(value)
        elif row.event is InstanceEvent.WAIT_COMPLETE:
            shown.append(_previewed(row.data.get("payload")))
    return shown


def _previewed(data: object) -> Any:
    if isinstance(data, bytes) and data.startswith(STREAM):
        return stream_text(data)
    return preview(decoded(data)) if isinstance(data, bytes) else UNDEFINED


def preview(value: Any) -> Any:
    """A value as the local runtime logs it: JSON, with a word for what JSON has not."""
    if value is UNDEFINED:
        return UNDEFINED
    return from_json(to_json(_worded(value)))


def _worded(value: Any) -> Any:
    if isinstance(value, BigInt):
        return f"[BigInt({value.value})]"
    if isinstance(value, (bytes, TypedArray, ArrayBuffer)):
        kind = "Uint8Array" if isinstance(value, bytes) else class_of(value)
        return f"[{kind}({len(bytes(value))} bytes)]"
    if type(value) is dict:
        return {key: _worded(item) for key, item in value.items()}
    if type(value) is list:
        return [_worded(item) for item in value]
    return value
