"""Errors across both borders of a Workflow's steps (workflows.md P12 to P14, E3, E4)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from worker_files import worker as write_worker
from workflow_host import DATES, EXTERNAL, IMPLICIT, LISTED, Journal, WorkflowStep, worker_of

from emulator import Emulator
from emulator.runtime import frozen_sdk
from emulator.runtime.sdk.workflow_errors import (
    NonRetryableError,
    folded,
    python_error,
    readable,
    run_error,
    step_error,
)
from emulator.runtime.sdk.workflows import wrap_workflow_step
from emulator.values import JsException

HERE = Path(__file__).parent
HEADER = "Traceback (most recent call last):"


class Fatal(NonRetryableError):
    pass


class OutOfStock(Exception):
    pass


# A class of the user's own with the name that the SDK looks for.
Namesake = type("NonRetryableError", (OutOfStock,), {"__module__": "entry"})


NOT_JSON = json.JSONDecodeError("no", "x", 0)


def raised(error: BaseException) -> BaseException:
    """The error with a traceback."""
    try:
        raise error
    except BaseException as caught:
        return caught


def as_pair(error: JsException) -> tuple[str, str]:
    return error.name, error.message


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NonRetryableError("bad"), "bad"),
        (NonRetryableError(), ""),
        (NonRetryableError(""), ""),
        (NonRetryableError("bad: worse"), "bad: worse"),
        (NonRetryableError("bad\nlast: line"), "line"),
        (NonRetryableError("bad\nend"), ""),
        (Namesake("bad"), "bad"),
    ],
)
def test_error_of_exactly_this_name_is_not_retryable(error: Exception, message: str) -> None:
    """P13; of a message with several lines only the last is looked at, as the SDK does."""
    converted = step_error(raised(error))
    assert as_pair(converted) == ("NonRetryableError", message)
    assert as_pair(step_error(error)) == ("NonRetryableError", message)


@pytest.mark.parametrize("kind", [NonRetryableError, Namesake])
def test_frozen_sdk_makes_no_exception_of_that_name(kind: type[Exception]) -> None:
    """workers-py#266: to the engine it is a traceback, as any other."""
    name, message = as_pair(step_error(raised(kind("bad")), HERE, modern=False))
    assert name == "PythonError"
    assert message.startswith(f"{HEADER}\n")
    assert message.endswith(f"\n{kind.__module__}.NonRetryableError: bad")


def test_cause_and_notes_change_nothing_of_a_not_retryable_error() -> None:
    error = NonRetryableError("bad")
    error.add_note("a hint: of the user's")
    error.__cause__ = raised(ValueError("why"))
    assert as_pair(step_error(raised(error))) == ("NonRetryableError", "bad")


@pytest.mark.parametrize(
    ("error", "last"),
    [
        (Fatal("bad"), f"{__name__}.Fatal: bad"),
        (OutOfStock("a"), f"{__name__}.OutOfStock: a"),
        (ValueError("boom"), "ValueError: boom"),
        (TypeError("boom"), "TypeError: boom"),
        (KeyError("x"), "KeyError: 'x'"),
        (RuntimeError(), "RuntimeError"),
        (TimeoutError(), "TimeoutError"),
        (
            json.JSONDecodeError("no", "x", 0),
            "json.decoder.JSONDecodeError: no: line 1 column 1 (char 0)",
        ),
        (asyncio.CancelledError(), "asyncio.exceptions.CancelledError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_every_other_exception_is_a_traceback_to_the_engine(
    error: BaseException, last: str
) -> None:
    """P12 to P14, BaseException included: name `PythonError`, the type in the last line."""
    name, message = as_pair(step_error(raised(error), HERE))
    assert name == "PythonError"
    first, frame, source, *rest = message.split("\n")
    assert first == HEADER
    assert frame.startswith(f'  File "{Path(__file__).name}", line ')
    assert frame.endswith(", in raised")
    assert source == "    raise error"
    assert rest == [last]


def test_traceback_of_no_line_of_the_users_has_its_header() -> None:
    assert as_pair(step_error(ValueError("boom"))) == (
        "PythonError",
        f"{HEADER}\nValueError: boom",
    )


def test_notes_stand_above_the_last_line() -> None:
    """So that what is added to an exception does not change what is made of it."""
    error = ValueError("boom")
    error.add_note("first")
    error.add_note("second: more")
    message = step_error(raised(error), HERE).message
    assert message.split("\n")[-3:] == ["  first", "  second: more", "ValueError: boom"]


def test_cause_comes_first_and_decides_nothing() -> None:
    """Whether the exception itself has lines of the user's or not."""
    error = OutOfStock("a")
    error.__cause__ = raised(TypeError("why"))
    for one in (error, raised(error)):
        converted = step_error(one, HERE)
        assert "\nTypeError: why\n\n" in converted.message
        assert converted.message.endswith(f"\n{__name__}.OutOfStock: a")
        assert as_pair(readable(converted)) == ("OutOfStock", "a")


def test_group_has_its_members_above_the_last_line() -> None:
    group = ExceptionGroup("two", [raised(ValueError("a")), KeyError("b")])
    converted = step_error(raised(group), HERE)
    assert "  | ValueError: a" in converted.message
    assert "  | KeyError: 'b'" in converted.message
    assert as_pair(readable(converted)) == ("ExceptionGroup", "two (2 sub-exceptions)")


def test_error_of_javascript_passes_as_it_is() -> None:
    """E3: Pyodide hands its own error back to JavaScript."""
    error = JsException("RangeError", "too far")
    assert step_error(raised(error)) is error


SEEN = [
    # The engine's name and message, the exception's class and its text.
    ("NonRetryableError", "bad", NonRetryableError, "bad"),
    ("NonRetryableError", "", NonRetryableError, ""),
    ("Error", "NonRetryableError: bad", NonRetryableError, "bad"),
    ("Error", "NonRetryableError: bad: worse", NonRetryableError, "bad: worse"),
    ("Error", "NonRetryableError", NonRetryableError, ""),
    ("PythonError", f"{HEADER}\n  File\nValueError: boom\n", ValueError, "ValueError: boom"),
    ("PythonError", f"{HEADER}\n  File\nTypeError: boom", TypeError, "TypeError: boom"),
    ("Error", f"PythonError: {HEADER}\n  File\nTypeError: boom\n", TypeError, "TypeError: boom"),
    ("Error", f"PythonError: {HEADER}\nValueError", ValueError, "ValueError"),
    (
        "PythonError",
        f"{HEADER}\nworkers.workflows.NonRetryableError: bad",
        NonRetryableError,
        "workers.workflows.NonRetryableError: bad",
    ),
    ("RangeError", "too far", ValueError, "too far"),
    ("TypeError", "no function", TypeError, "no function"),
    ("TypeError", "", TypeError, ""),
]
KEPT = [
    ("Error", f"PythonError: {HEADER}\n  File\nKeyError: 'x'"),
    ("PythonError", f"{HEADER}\n  File\nKeyError: 'x'"),
    ("PythonError", f"{HEADER}\n  File\nUnicodeDecodeError: x"),
    ("PythonError", f"{HEADER}\n  File\nValueError: a\nb"),
    ("PythonError", f"{HEADER}\n  File\nentry.ValueError: a"),
    ("PythonError", "ValueError: boom"),
    ("PythonError", ""),
    ("Error", "PythonError"),
    ("Error", "ValueError: boom"),
    ("Error", "NonRetryableErrors: bad"),
    ("WorkflowTimeoutError", "Execution timed out after 50ms"),
    ("WorkflowFatalError", "x NonRetryableError: y"),
    ("DataCloneError", "Symbol(x) could not be cloned."),
]


@pytest.mark.parametrize(("name", "message", "kind", "text"), SEEN)
def test_stored_error_with_a_class_in_python_is_raised_as_that(
    name: str, message: str, kind: type[Exception], text: str
) -> None:
    """P12."""
    error = python_error(JsException(name, message))
    assert type(error) is kind
    assert str(error) == text


@pytest.mark.parametrize(("name", "message", "kind", "text"), SEEN)
def test_frozen_sdk_knows_only_tracebacks_of_that_error(
    name: str, message: str, kind: type[Exception], text: str
) -> None:
    """P12: what JavaScript calls a NonRetryableError stays a JsException."""
    stored = JsException(name, message)
    error = python_error(stored, modern=False)
    if kind is NonRetryableError and "Traceback" not in message:
        assert error is stored
    else:
        assert (type(error), str(error)) == (kind, text)


@pytest.mark.parametrize(("name", "message"), KEPT)
def test_every_other_stored_error_is_raised_as_it_is(name: str, message: str) -> None:
    """P12: name and message stay, and the text is of both."""
    error = JsException(name, message)
    assert python_error(error) is error
    assert str(error) == (f"{name}: {message}" if message else name)


@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        (ValueError("boom"), "ValueError", "boom"),
        (KeyError("x"), "KeyError", "'x'"),
        (OutOfStock("a\nb"), "OutOfStock", "a\nb"),
        (OutOfStock(), "OutOfStock", ""),
        (NonRetryableError("bad"), "NonRetryableError", "bad"),
        (Fatal("bad"), "Fatal", "bad"),
        (SystemExit(3), "SystemExit", "3"),
        (JsException("WorkflowFatalError", "no"), "WorkflowFatalError", "no"),
        (JsException("PythonError", f"{HEADER}\n  File\nentry.Broken: a\nb"), "Broken", "a\nb"),
    ],
)
def test_uncaught_exception_of_run_is_the_type_and_the_text(
    error: BaseException, name: str, message: str
) -> None:
    """P14."""
    assert as_pair(run_error(raised(error))) == (name, message)


@pytest.mark.parametrize(
    "error", [ValueError("boom"), OutOfStock("a: b\nC: d"), OutOfStock(), Fatal("bad")]
)
def test_stored_traceback_reads_as_the_type_and_the_text(error: Exception) -> None:
    """Folded by RPC or not, with notes or without."""
    expected = (type(error).__name__, str(error))
    for _ in range(2):
        stored = step_error(raised(error))
        assert as_pair(readable(stored)) == expected
        assert as_pair(readable(folded(stored))) == expected
        error.add_note("Hint: do something else")


@pytest.mark.parametrize(
    ("given", "arrives"),
    [
        (("TypeError", "x"), ("TypeError", "x")),
        (("Error", "x"), ("Error", "x")),
        (("WorkflowTimeoutError", "late"), ("Error", "WorkflowTimeoutError: late")),
        (("NonRetryableError", ""), ("Error", "NonRetryableError")),
    ],
)
def test_class_of_its_own_is_folded_into_the_message_by_rpc(
    given: tuple[str, str], arrives: tuple[str, str]
) -> None:
    """E3."""
    assert as_pair(folded(JsException(*given))) == arrives


ROUND_TRIPS: list[tuple[BaseException, type[Exception], str]] = [
    (NonRetryableError("bad"), NonRetryableError, "workers.workflows.NonRetryableError: bad"),
    (ValueError("boom"), ValueError, "ValueError: boom"),
    (TypeError("boom"), TypeError, "TypeError: boom"),
    (JsException("RangeError", "too far"), ValueError, "too far"),
    (JsException("TypeError", "no"), TypeError, "no"),
]


@pytest.mark.asyncio
@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize(("error", "kind", "text"), ROUND_TRIPS)
async def test_step_raises_again_what_its_body_raised(
    date: str, error: BaseException, kind: type[Exception], text: str
) -> None:
    """P12: through the engine, at once and at a replay."""
    journal = Journal(modern=date == EXTERNAL)
    if journal.modern and isinstance(error, NonRetryableError):
        text = "bad"

    async def body() -> None:
        raise error

    with worker_of(date):
        for _ in range(2):
            step = wrap_workflow_step(WorkflowStep(journal))
            with pytest.raises(kind) as caught:
                await step.do("s")(body)()
            assert str(caught.value) == text
            assert type(caught.value) is kind
            assert isinstance(caught.value.__cause__, JsException)
    assert len(journal.tried) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("date", DATES)
@pytest.mark.parametrize(
    "error", [OutOfStock("a"), KeyError("a"), SystemExit("a"), asyncio.CancelledError("a")]
)
async def test_any_other_exception_comes_back_as_one_of_javascript(
    date: str, error: BaseException
) -> None:
    """P12: a class of the user's own cannot be caught as such; `except Exception` does."""

    def body() -> None:
        raise error

    with worker_of(date):
        step = wrap_workflow_step(WorkflowStep(Journal()))
        with pytest.raises(JsException) as caught:
            await step.do("s")(body)()
    assert caught.value.name == "PythonError"
    assert str(caught.value).startswith(f"PythonError: {HEADER}\n")
    assert type(error).__name__ in str(caught.value).split("\n")[-1]
    assert caught.value.__cause__ is None


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (NonRetryableError("bad"), 1),
        (NonRetryableError(), 1),
        (Namesake("bad"), 1),
        (Fatal("bad"), 4),
        (OutOfStock("NonRetryableError"), 4),
        (ValueError("bad"), 4),
    ],
)
async def test_only_the_exact_type_ends_the_attempts(error: Exception, attempts: int) -> None:
    """P13; the SDK from PyPI."""
    journal = Journal(attempts=4)

    async def body() -> None:
        raise error

    with worker_of(EXTERNAL):
        step = wrap_workflow_step(WorkflowStep(journal))
        (outcome,) = await asyncio.gather(step.do("s")(body)(), return_exceptions=True)
    assert isinstance(outcome, Exception)
    assert len(journal.tried) == attempts


@pytest.mark.asyncio
@pytest.mark.parametrize("error", [NonRetryableError("bad"), NonRetryableError(), Namesake("bad")])
async def test_frozen_sdk_lets_every_error_be_retried(error: Exception) -> None:
    """workers-py#266."""
    journal = Journal(attempts=4, modern=False)

    async def body() -> None:
        raise error

    with worker_of(IMPLICIT):
        step = wrap_workflow_step(WorkflowStep(journal))
        with pytest.raises(Exception, match="NonRetryableError"):
            await step.do("s")(body)()
    assert len(journal.tried) == 4


@pytest.mark.asyncio
async def test_error_of_an_inner_step_is_one_of_the_outer_step() -> None:
    """C8: the inner one's last line is the text of what the outer one raises."""
    with worker_of(EXTERNAL):
        step = wrap_workflow_step(WorkflowStep(Journal()))

        @step.do()
        async def inner() -> None:
            raise ValueError("boom")

        @step.do()
        async def outer() -> None:
            await inner()

        with pytest.raises(ValueError, match=r"^ValueError: ValueError: boom$"):
            await outer()


IMPORTS = """
    import workers
    from workers import WorkerEntrypoint, WorkflowEntrypoint
    from workers.workflows import NonRetryableError

    assert workers.workflows.NonRetryableError is NonRetryableError
    assert NonRetryableError.__module__ == "workers.workflows"
    assert issubclass(NonRetryableError, Exception)
    try:
        from workers.workflows import step_error
    except ImportError:
        pass
    else:
        raise AssertionError("a name that the SDK does not have")

    class Default(WorkerEntrypoint): ...
    class Orders(WorkflowEntrypoint):
        async def run(self, event, step): ...
"""


@pytest.mark.parametrize("date", [EXTERNAL, IMPLICIT, LISTED])
def test_module_workflows_is_there_for_both_sdks(tmp_path: Path, date: str) -> None:
    """P1."""
    Emulator(write_worker(tmp_path, IMPORTS, compatibility_date=date)).close()


def test_frozen_sdk_has_the_error_in_its_one_module() -> None:
    assert frozen_sdk.NonRetryableError is NonRetryableError
    assert "NonRetryableError" in frozen_sdk.__all__
