"""Errors between Worker code and the Workflows engine (workflows.md P12 to P14, E3, E4).

Theory of operation. The engine knows JavaScript's errors only: a name and a message, which is also
all that it stores. A Python exception reaches it as Pyodide makes it one, a `PythonError` whose
message is the traceback; the SDK makes an exception of `NonRetryableError`, and of that type only,
so that the engine knows it by its name. What a step failed with comes back as the name and message,
and the SDK makes a Python exception of it again where the last line of the traceback says which.

    raised in a step                      the engine gets             `await my_step()` raises
    NonRetryableError("x")                NonRetryableError: x        NonRetryableError("x")
      with the frozen SDK                 PythonError: Traceback …    NonRetryableError("workers.
                                                                      workflows.Non…Error: x")
    a subclass of it, any other class     PythonError: Traceback …    JsException
    TypeError("x"), ValueError("x")       PythonError: Traceback …    TypeError("TypeError: x"), …
    JsException                           its own name and message    by name: RangeError →
                                                                      ValueError, TypeError, else
                                                                      JsException

The SDK frozen in the runtime makes no exception: before 2026-04-21 the engine retries a
`NonRetryableError` as it does any other error (workers-py#266). An error that JavaScript made under
that name is final there too, and stays a `JsException`.

What leaves `run` nobody translates, at any date, and how the instance's error reads then is
unconfirmed (P14): here it is the exception's class and text. A `NonRetryableError` that leaves it,
raised there or by `await my_step()`, has the text that E6 and E7 give it by date.
"""

from __future__ import annotations

from itertools import dropwhile
from textwrap import indent
from typing import TYPE_CHECKING, Final

from emulator.location import describe_error, format_error
from emulator.values import JsException

if TYPE_CHECKING:
    from pathlib import Path

# Worker code imports this module as `workers.workflows`.
__all__ = ["NonRetryableError"]


class NonRetryableError(Exception):
    """Raised in a step, it ends the step without another attempt."""


NonRetryableError.__module__ = "workers.workflows"

_FINAL: Final = "NonRetryableError"
_PYTHON: Final = "PythonError"
_HEADER: Final = "Traceback (most recent call last):"

# What the last line of a traceback begins with → the exception that the SDK makes of that line.
_BY_LAST_LINE: Final[tuple[tuple[str, type[Exception]], ...]] = (
    ("TypeError", TypeError),
    ("ValueError", ValueError),
    ("workers.workflows.NonRetryableError", NonRetryableError),
)
# The name of a JavaScript error → the exception that the SDK makes of its message.
_BY_NAME: Final[dict[str, type[Exception]]] = {
    _FINAL: NonRetryableError,
    "RangeError": ValueError,
    "TypeError": TypeError,
}
# The classes that an error still has after RPC (E3).
_STANDARD: Final = frozenset(
    {
        "Error",
        "DataCloneError",
        "EvalError",
        "RangeError",
        "ReferenceError",
        "SyntaxError",
        "TypeError",
        "URIError",
    }
)


def step_error(
    error: BaseException, folder: Path | None = None, *, modern: bool = True
) -> JsException:
    """Return the error that the engine gets for what a step's body raised.

    `modern` says that the SDK is the one from PyPI, which makes the engine know a
    `NonRetryableError`. Files in the traceback are named from `folder`. The message of a
    `NonRetryableError` is what its last line has after the first colon, so that one of several
    lines loses the others, as with the SDK. Notes stand above the last line:
    whoever added them does not change what is made of it.
    """
    if isinstance(error, JsException):
        return error
    last, notes = _parts(error)
    if modern and is_final(error):
        return JsException(_FINAL, _last_line(last).partition(": ")[2])
    frames = format_error(error, folder).removesuffix(describe_error(error)).rstrip("\n")
    if not frames.rpartition("\n")[2].startswith(" "):
        frames = f"{frames}\n\n{_HEADER}".lstrip()  # none of the lines is the user's
    return JsException(_PYTHON, "\n".join(filter(None, (frames, indent(notes, "  "), last))))


def is_final(error: BaseException) -> bool:
    """Whether the SDK makes the engine's `NonRetryableError` of it: by the exact name (P13)."""
    return type(error).__name__ == _FINAL


def run_error(error: BaseException) -> JsException:
    """Return the error with which an instance fails for what its `run` raised (P14).

    That is `error` itself only if it is one of JavaScript's.
    """
    if isinstance(error, JsException):
        return readable(error)
    return JsException(type(error).__name__, str(error))


def python_error(error: JsException, *, modern: bool = True) -> Exception:
    """Return what `await my_step()` raises for the error that the engine stored.

    A name that RPC folded into the message is understood too. What has no class of its own in
    Python is `error` itself, as RPC left it.
    """
    seen = _unfolded(error)
    if seen.name != _PYTHON:
        kind = _BY_NAME.get(seen.name)
        if kind is None or (kind is NonRetryableError and not modern):
            return error
        return kind(seen.message) if seen.message else kind()
    last = _last_line(seen.message)
    # A message without a traceback says nothing of a type.
    if last != seen.message.rstrip():
        for start, kind in _BY_LAST_LINE:
            if last.startswith(start):
                return kind(last)
    return error


def readable(error: JsException) -> JsException:
    """Return a `PythonError` as the type and the text of the exception it stands for."""
    _, header, after = _unfolded(error).message.rpartition(_HEADER)
    if not header:
        return error
    shown = dropwhile(lambda line: not line or line.startswith(" "), after.split("\n"))
    name, _, text = "\n".join(shown).partition(": ")
    return JsException(name.rpartition(".")[2].strip(), text)


def folded(error: JsException) -> JsException:
    """Return the error as RPC delivers it: a class of its own is part of the message only (E3)."""
    if error.name in _STANDARD:
        return error
    return JsException("Error", f"{error.name}: {error.message}" if error.message else error.name)


def _unfolded(error: JsException) -> JsException:
    name, colon, message = error.message.partition(": ")
    if name not in (_FINAL, _PYTHON) or not (colon or name == _FINAL):
        return error
    return JsException(name, message)


def _parts(error: BaseException) -> tuple[str, str]:
    """The end of an exception's traceback: its type and text, and its notes."""
    described = describe_error(error)
    notes = "\n".join(str(note) for note in getattr(error, "__notes__", ()))
    return described.removesuffix(notes.rstrip()).rstrip("\n"), notes


def _last_line(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    return lines[-1] if lines else ""
