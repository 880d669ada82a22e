"""Errors of D1, from the runtime's source (`cloudflare-internal:d1-api`) and the documentation."""

from __future__ import annotations

from typing import Final

from emulator.values import JsException

NO_STATEMENTS: Final = "No SQL statements detected."
# In the documentation's list of errors, as one that may be tried again.
CONNECTION_LOST: Final = "Network connection lost."
# Seen in many public reports; it follows a query of too much work.
TOO_LONG: Final = "D1 DB exceeded its CPU time limit and was reset."
NO_DUMP: Final = {"production": 400, "miniflare": 404}
# The services' own texts for what is no text differ; this one is ours.
NOT_A_TEXT: Final = "the query is not a text"


def d1_error(message: str) -> JsException:
    """What is wrong with a query, or with the way to the database."""
    return _with_cause(f"D1_ERROR: {message}", message)


def exec_error(line: str, message: str) -> JsException:
    """What is wrong with an `exec`; it always speaks of the first line."""
    text = f"Error in line 1: {line}: {message}"
    return _with_cause(f"D1_EXEC_ERROR: {text}", text)


def type_error(kind: str, shown: str) -> JsException:
    """A value that `bind` does not take."""
    text = f"Type '{kind}' not supported for value '{shown}'"
    return _with_cause(f"D1_TYPE_ERROR: {text}", text)


def no_column(name: str) -> JsException:
    """A column that `first` was asked for and the row has not."""
    return _with_cause(f"D1_COLUMN_NOTFOUND: Column not found ({name})", "Column not found")


def no_dump(status: int) -> JsException:
    """`dump`, which only databases of D1's alpha had."""
    return _with_cause(f"D1_DUMP_ERROR: Status + {status}", f"Status {status}")


def _with_cause(text: str, cause: str) -> JsException:
    error = JsException("Error", text)
    error.cause = JsException("Error", cause)
    return error
