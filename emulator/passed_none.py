"""The `env` and `ctx` of a class's handlers, which production passes as None (python-api.md 2.2).

JavaScript's handlers find their bindings there, so this is how many a first Worker fails:
`'NoneType' object has no attribute 'DB'`. A note says what to write, and `workers-emulator check`
finds it before.
"""

from __future__ import annotations

import dis
import inspect
import linecache
import re
import traceback
from typing import TYPE_CHECKING, Any, Final

from emulator.location import Location, is_users

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

# The event's own argument, after `self`, is none of them.
_FIRST: Final = 2
# What a handler's parameters are called where it passes them on.
_USUAL: Final = ("env", "ctx")
# What stands between a name and the jump that asks for its truth, from Python 3.12 on.
_BEFORE_JUMPS: Final = ("COPY", "TO_BOOL")


def explain(error: BaseException, handler: Callable[..., Any]) -> None:
    """Add to an error that comes of a None in place of `env` or `ctx` what to write instead."""
    if not isinstance(error, AttributeError | TypeError) or "NoneType" not in str(error):
        return
    code = getattr(inspect.unwrap(handler), "__code__", None)
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if not is_users(frame.f_code):
            continue
        name = next((n for n in _nones(frame, code) if _is_used(n, frame.f_code, line)), None)
        if name is not None:
            error.add_note(
                f"Production passes None as `{name}` here: use `self.{_own(name, frame, code)}`."
            )
        return


def used(handler: Callable[..., Any]) -> Iterator[tuple[str, str, Location]]:
    """Yield the parameters of a handler that are None and whose attributes it asks for.

    With each comes what to write instead, and the line. One that is assigned to, or looked at
    first, is left out.
    """
    code: CodeType | None = getattr(inspect.unwrap(handler), "__code__", None)
    if code is None or not is_users(code):
        return
    for index, name in enumerate(_parameters(code)[_FIRST : _FIRST + len(_USUAL)]):
        line = _asked(code, name)
        if line is not None:
            yield name, _USUAL[index], Location(code.co_filename, line)


def _parameters(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount]


def _nones(frame: FrameType, handler: CodeType | None) -> list[str]:
    """The parameters of a frame that may be what production passes as None."""
    names = _parameters(frame.f_code)
    mine = names[_FIRST:] if frame.f_code is handler else [n for n in names if n in _USUAL]
    values = frame.f_locals
    return [name for name in mine if name in values and values[name] is None]


def _own(name: str, frame: FrameType, handler: CodeType | None) -> str:
    if frame.f_code is not handler:
        return name
    return _USUAL[min(_parameters(frame.f_code).index(name) - _FIRST, 1)]


def _is_used(name: str, code: CodeType, line: int) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", linecache.getline(code.co_filename, line)))


def _asked(code: CodeType, name: str) -> int | None:
    """The first line on which an attribute of a parameter is asked for, if nothing is in doubt."""
    found: int | None = None
    line = code.co_firstlineno
    is_loaded = False
    for instruction in dis.get_instructions(code):
        if instruction.opname in _BEFORE_JUMPS:
            continue
        positions = instruction.positions
        line = (positions.lineno if positions else None) or line
        if is_loaded:
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                found = found or line
            elif "JUMP" in instruction.opname or instruction.argrepr == "None":
                return None  # whether it is None is asked
        given = (
            instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        )
        if instruction.opname.startswith("STORE") and name in given:
            return None
        is_loaded = instruction.opname.startswith("LOAD_FAST") and given[-1] == name
    return found
