"""Exceptions that cross from one entrypoint to another (workerd, `jsg/util.c++` and `jsg/ser.c++`).

Theory of operation. An exception of Python's leaves Pyodide as a `PythonError` whose message is the
traceback and whose `type` is the class's name; a `JsException` that nobody caught is one too. From
there on it is an error of JavaScript's. What arrives depends on `enhanced_error_serialization` (on
from 2026-04-21), at both ends:

    sender  receiver   name                        message          own properties
    on      on         as raised                   as raised        kept
    off     on         of a standard class, or     as raised        lost
                       `Error`
    any     off        of a standard class, or     `Name: message`  lost
                       `Error`                     if it is none

It always gets `remote`, and keeps `retryable` and `overloaded`. It is never the exception that was
raised: `except ValueError` catches nothing that came over RPC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.location import format_error
from emulator.values import JsException

if TYPE_CHECKING:
    from pathlib import Path

ENHANCED: Final = "enhanced_error_serialization"
DISCONNECTED: Final = "Network connection lost."

# The classes that keep their name whatever the date: JavaScript's, and names of DOMException's.
_STANDARD: Final = frozenset(
    {
        *("Error", "AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError"),
        *("SuppressedError", "TypeError", "URIError", "CompileError", "LinkError", "RuntimeError"),
        *("AbortError", "DataCloneError", "InvalidAccessError", "InvalidStateError"),
        *("NotSupportedError", "OperationError", "QuotaExceededError", "TimeoutError"),
    }
)
_PYTHON: Final = "PythonError"
_HEADER: Final = "Traceback (most recent call last):"
# Properties that say what the platform may do with a failed call.
_HINTS: Final = ("retryable", "overloaded")


def outgoing(error: BaseException, folder: Path | None) -> JsException:
    """Return the error of JavaScript's as which an exception leaves Python code.

    Files in the traceback are named from `folder`.
    """
    text = format_error(error, folder)
    if not text.startswith(_HEADER):
        text = f"{_HEADER}\n{text}"  # production shows the runtime's own frames
    made = JsException(_PYTHON, f"{text}\n")
    made.__dict__["type"] = type(error).__name__
    return made


def carried(
    error: JsException, sender: frozenset[str], receiver: frozenset[str], *, remote: bool = True
) -> JsException:
    """Return the error as it arrives at the receiver, by the flags of both ends."""
    name, message = error.name, error.message
    known = name in _STANDARD
    own: dict[str, Any] = {}
    if ENHANCED not in receiver:
        if not known:
            name, message = "Error", f"{name}: {message}" if message else name
    elif ENHANCED in sender:
        own = properties(error)
    elif not known:
        name = "Error"
    arrived = JsException(name, message)
    arrived.__dict__.update(own)
    for hint in _HINTS:
        if getattr(error, hint, False) is True:
            arrived.__dict__[hint] = True
    if remote:
        arrived.__dict__["remote"] = True
    return arrived


def properties(error: JsException) -> dict[str, Any]:
    """The own properties of an error, as far as they are plain values."""
    kept = (str, bool, int, float)
    hidden = ("name", "message", "stack", "cause", "path", "__notes__")
    return {
        key: value
        for key, value in vars(error).items()
        if key not in hidden and isinstance(value, kept)
    }


def disconnected() -> JsException:
    """The error of a call whose other end is gone, or cannot be reached."""
    error = JsException("Error", DISCONNECTED)
    error.__dict__["retryable"] = True
    return error
