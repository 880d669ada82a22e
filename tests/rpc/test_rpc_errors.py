"""Exceptions over RPC, by the flags of both ends (recorded with workerd 1.20260730)."""

from __future__ import annotations

import pytest

from emulator.rpc.errors import carried, disconnected, outgoing
from emulator.values import JsException

ON = frozenset({"enhanced_error_serialization"})
OFF: frozenset[str] = frozenset()


def custom() -> JsException:
    error = JsException("Custom", "cc")
    error.__dict__["code"] = 42
    return error


@pytest.mark.parametrize(
    ("sender", "receiver", "name", "message", "code"),
    [
        (ON, ON, "Custom", "cc", 42),
        (OFF, ON, "Error", "cc", None),
        (ON, OFF, "Error", "Custom: cc", None),
        (OFF, OFF, "Error", "Custom: cc", None),
    ],
)
def test_class_of_its_own(
    sender: frozenset[str], receiver: frozenset[str], name: str, message: str, code: int | None
) -> None:
    arrived = carried(custom(), sender, receiver)
    assert (arrived.name, arrived.message) == (name, message)
    assert getattr(arrived, "code", None) == code
    assert arrived.__dict__["remote"] is True


@pytest.mark.parametrize("flags", [ON, OFF])
@pytest.mark.parametrize("name", ["Error", "TypeError", "RangeError", "DataCloneError"])
def test_standard_classes_keep_their_name(flags: frozenset[str], name: str) -> None:
    arrived = carried(JsException(name, "tt"), flags, flags)
    assert (arrived.name, arrived.message) == (name, "tt")


@pytest.mark.parametrize("flags", [ON, OFF])
def test_hints_survive(flags: frozenset[str]) -> None:
    error = disconnected()
    arrived = carried(error, flags, flags, remote=False)
    assert arrived.message == "Network connection lost."
    assert arrived.__dict__["retryable"] is True
    assert "remote" not in arrived.__dict__


def test_exception_of_python_s_leaves_as_its_traceback() -> None:
    def fails() -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom") as caught:
        fails()
    error = outgoing(caught.value, None)
    assert error.name == "PythonError"
    assert error.__dict__["type"] == "ValueError"
    assert error.message.startswith("Traceback (most recent call last):\n")
    assert 'raise ValueError("boom")\nValueError: boom\n' in error.message
    assert error.message.endswith("ValueError: boom\n")


def test_error_of_javascript_s_that_nobody_caught_is_shown_as_pyodide_shows_it() -> None:
    error = outgoing(JsException("Custom", "cc"), None)
    assert error.__dict__["type"] == "JsException"
    header = "Traceback (most recent call last):\n"
    assert error.message == f"{header}pyodide.ffi.JsException: Custom: cc\n"


def test_before_enhanced_errors_the_name_is_part_of_the_message() -> None:
    arrived = carried(outgoing(KeyError("a"), None), OFF, OFF)
    assert arrived.name == "Error"
    assert arrived.message.startswith("PythonError: Traceback")
    assert not hasattr(arrived, "type")
