"""Where in the user's code something happened.

What a task of the simulation does happens where the user's code stands on its stack. Where none
does (the task runs a coroutine of a library's, or of the emulator's), it is put down to the line
that made the task: the lines of the test below the simulation's loop have nothing to do with it.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import linecache
import os
import sys
import sysconfig
import textwrap
import traceback
from asyncio import events
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from emulator.scope import SCOPE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import CodeType, FrameType, TracebackType

_LIBRARIES = {sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")}
# Code made at run time (`<string>`, of a dataclass) has no line that anybody could look at.
_MADE = ("<frozen", "<string>", "<attrs ", "<template>")
_NOT_USERS = (os.path.dirname(__file__) + os.sep, *_MADE, *sorted(_LIBRARIES))
# Installed packages lie in such folders, those of another environment on `sys.path` too.
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
# Through which files user code asks for the time and for randomness.
_GIVE_TIME_AND_CHANCE = tuple(
    os.path.join("", *parts)
    for parts in (("time_machine", "__init__.py"), ("random.py",), ("uuid.py",), ("secrets.py",))
)
# The name of the function of the loop whose code is the `bottom`: most frames have another.
_BOTTOM = "enter"
# As often as Python shows the same line of a recursion, and as deep as it shows groups in groups.
_REPEATS = 3
_GROUPS = 10
_CAUSES = 50
# What an exception is made of, whatever its class says of these names.
_cause_of: Any = vars(BaseException)["__cause__"].__get__
_context_of: Any = vars(BaseException)["__context__"].__get__
_hides_context: Any = vars(BaseException)["__suppress_context__"].__get__
_traceback_of: Any = vars(BaseException)["__traceback__"].__get__


class Location(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int

    def relative_to(self, folder: Path | None) -> str:
        """`src/entry.py:12`, from `folder` where the file lies below it."""
        name = self.file
        if folder is not None and name.startswith(str(folder) + os.sep):
            name = os.path.relpath(name, folder)
        return f"{name}:{self.line}"


@functools.lru_cache(maxsize=4096)
def is_users_file(name: str) -> bool:
    """Whether this is a file of the user's own, and of no library."""
    return not (name.startswith(_NOT_USERS) or any(folder in name for folder in _INSTALLED))


def is_users(code: CodeType) -> bool:
    """Whether this is the user's own code, and no library's."""
    return is_users_file(code.co_filename)


Place: TypeAlias = "tuple[CodeType, int] | Location | None"
"""A line of the user's code by its code and the instruction: cheaper to note than to look up."""


def caller() -> Location | None:
    """The innermost line of the user's code that led here.

    Inside the simulation that is a line of the Worker's, or of the test that called in.
    """
    return location(calling())


def calling(above: int = 1) -> Place:
    """`caller`, for what is noted far more often than it is told: see `location`.

    The nearest frames `above` it are those of the emulator's that are there in any case: frames are
    cheap to pass over, and dear to look at.
    """
    frame: FrameType | None = sys._getframe(above)
    while frame is not None:
        code = frame.f_code
        if is_users_file(code.co_filename):
            return code, frame.f_lasti
        if code.co_name == _BOTTOM and code is _bottom():
            break
        frame = frame.f_back
    return running_at()


def location(place: Place) -> Location | None:
    """The line that `calling` noted."""
    if place is None or isinstance(place, Location):
        return place
    code, instruction = place
    lines = (line for start, end, line in code.co_lines() if start <= instruction < end)
    return Location(code.co_filename, next(lines, None) or code.co_firstlineno)


def _bottom() -> CodeType | None:
    """Where the simulation's part of the stack ends, unless the test is what called in."""
    if getattr(SCOPE.get(), "is_test", False):
        return None
    return getattr(events._get_running_loop(), "bottom", None)


def asked_by() -> Location | None:
    """The line of the user's code that asked for the time or for randomness itself.

    None where a library did, such as `logging`, which stamps its records.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if is_users_file(name):
            return Location(name, frame.f_lineno)
        if not (name.startswith(_NOT_USERS[0]) or name.endswith(_GIVE_TIME_AND_CHANCE)):
            return None
        frame = frame.f_back
    return None


def running_at() -> Location | None:
    """The line that made the task which runs now, or else the one on which it waits."""
    loop = events._get_running_loop()
    task = asyncio.current_task(loop) if loop is not None else None
    if task is None:
        return None
    return getattr(task, "created", None) or waiting_at(task.get_coro())


def raised_at(error: BaseException) -> Location | None:
    """The innermost line of the user's code in a traceback, or in that of the cause."""
    for one in _with_causes(error):
        found = None
        traceback: TracebackType | None = _traceback_of(one)
        while traceback is not None:
            if is_users(traceback.tb_frame.f_code):
                found = Location(traceback.tb_frame.f_code.co_filename, traceback.tb_lineno)
            traceback = traceback.tb_next
        if found is not None:
            return found
    return None


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, which may go round in a circle."""
    seen: dict[int, None] = {}
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen[id(one)] = None
        yield one
        one = _cause_of(one)


def waiting_at(coroutine: object) -> Location | None:
    """The innermost line of the user's code on which a suspended coroutine waits."""
    found = None
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None and is_users(frame.f_code):
            found = Location(frame.f_code.co_filename, frame.f_lineno)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return found


def format_error(error: BaseException, folder: Path | None) -> str:
    """A traceback of the user's own lines, the same on every Python.

    The cause comes first, the exceptions of a group last and indented.
    """
    return _format(error, folder, {}, 0)


def _format(error: BaseException, folder: Path | None, seen: dict[int, None], depth: int) -> str:
    """`seen` has the errors whose cause this one is, `depth` is that of groups in groups."""
    cause = _cause_of(error)
    if cause is None and not _hides_context(error):
        cause = _context_of(error)
    seen = {**seen, id(error): None}
    if cause is not None and (id(cause) in seen or len(seen) > _CAUSES or raised_at(cause) is None):
        cause = None  # shown already, or how the emulator got there: not the user's concern
    lines = [] if cause is None else [_format(cause, folder, seen, depth), ""]
    frames = _frames(error, folder)
    if frames:
        lines.append("Traceback (most recent call last):")
    for frame, repeats in itertools.groupby(frames):
        same = len(list(repeats))
        lines += [frame] * min(same, _REPEATS)
        if same > _REPEATS:
            lines.append(f"  [Previous line repeated {same - _REPEATS} more times]")
    if isinstance(error, BaseExceptionGroup):
        members = (
            [_format(member, folder, seen, depth + 1) for member in error.exceptions]
            if depth < _GROUPS
            else ["..."]
        )
        lines += [textwrap.indent(member, "  | ", lambda _: True) for member in members]
    lines.append(describe_error(error))
    return "\n".join(lines)


def _frames(error: BaseException, folder: Path | None) -> list[str]:
    """The user's frames of a traceback, each as Python prints it."""
    shown = []
    for frame, number in traceback.walk_tb(_traceback_of(error)):
        code = frame.f_code
        if is_users(code):
            file = Location(code.co_filename, number).relative_to(folder).rpartition(":")[0]
            source = linecache.getline(code.co_filename, number).strip()
            line = f'  File "{file}", line {number}, in {code.co_name}'
            shown.append(f"{line}\n    {source}" if source else line)
    return shown


def describe_error(error: BaseException) -> str:
    """An exception's type, text and notes, as the end of a traceback has them."""
    try:
        shown = traceback.TracebackException(type(error), error, None)
        return "".join(shown.format_exception_only()).rstrip()
    except Exception:  # its class may define anything, `__bool__` for one
        return f"{type(error).__qualname__}: (the exception cannot be described)"
