"""The line of the user's code behind each event of a trace.

The clean runs of a sweep note it, so that the determinism check can name the line on which two of
them parted. An event is put down to

1. the innermost line of the user's code on the stack;
2. where the platform acts on a call of user code (a message that is sent enters its queue later in
   the instant), to the line of that call: the context in which the platform's work runs carries it;
3. where a handler has returned (a response, an ack), to the line on which the handler begins.

All this is done from outside, by an emulator's trace and the `call_soon` and `kernel_soon` of its
loop, so that runs under a fault and all other emulators pay nothing.
"""

from __future__ import annotations

import linecache
from contextvars import Context, ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.location import caller
from emulator.scope import KERNEL, SCOPE
from emulator.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from emulator.emulator import Emulator
    from emulator.location import Location
    from emulator.loop import Handle, SimLoop
    from emulator.trace.events import Values

_PLACE: ContextVar[Location | None] = ContextVar("emulator.place", default=None)


class LocatedTrace(Trace):
    """A trace whose `places` are the lines behind its events, None where there is none."""

    __slots__ = ("places",)

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace.start, masker=trace.masker)
        self._events = trace._events
        self.places: list[Location | None] = [None] * len(trace)

    def add(self, at: int, kind: str, subject: str, data: dict[str, Any]) -> None:
        super().add(at, kind, subject, data)
        self.places.append(_here())

    def record_each(
        self, at: int, kind: str, subject: str, names: tuple[str, ...], rows: Iterable[Values]
    ) -> None:
        super().record_each(at, kind, subject, names, rows)
        self.places += [_here()] * (len(self) - len(self.places))

    def clear(self) -> None:
        super().clear()
        self.places.clear()

    def shown_places(self) -> list[str]:
        """Return the places as `src/entry.py:12: the line`, empty where there is none."""
        folder = Path.cwd()
        shown = {place: _shown(place, folder) for place in self.places if place is not None}
        return [shown[place] if place is not None else "" for place in self.places]


def locate(emulator: Emulator) -> None:
    """Note the line behind each event of this emulator from now on."""
    kernel = emulator._kernel
    kernel.trace = LocatedTrace(kernel.trace)
    _follow(kernel.loop)


def _shown(place: Location, folder: Path) -> str:
    source = linecache.getline(place.file, place.line).strip()
    at = place.relative_to(folder)
    return f"{at}: {source}" if source else at


def _follow(loop: SimLoop) -> None:
    """Let what runs for a call of the user's know the line of that call."""
    call_soon = loop.call_soon
    platforms = loop._kernel_context

    def called_soon(
        callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        if context is platforms:
            context = context.copy()  # there is one for all of the platform's work
        if context is not None and _PLACE not in context and _is_for_another(context):
            place = _here()
            try:
                context.run(_PLACE.set, place)
            except RuntimeError:
                pass  # it is the one that runs now, and what it does has begun without a place
        return call_soon(callback, *args, context=context)

    def kernel_soon(callback: Callable[..., object], *args: Any) -> Handle:
        return called_soon(callback, *args, context=platforms)

    loop.call_soon = called_soon  # type: ignore[method-assign,assignment]
    loop.kernel_soon = kernel_soon  # type: ignore[method-assign]


def _is_for_another(context: Context) -> bool:
    """Whether what runs there is the platform's, or a call of the test's."""
    scope = context.get(SCOPE)
    return scope is KERNEL or getattr(scope, "is_test", False)


def _here() -> Location | None:
    scope, place = SCOPE.get(), _PLACE.get()
    if place is not None and getattr(scope, "is_test", False):
        return place  # what is on the stack now is whoever runs the simulation
    return caller() or place or _handler(scope)


def _handler(scope: Any) -> Location | None:
    """The line on which an invocation's handler begins."""
    isolate = getattr(scope, "isolate", None)
    if isolate is None or scope.is_test:
        return None
    place: Location | None = isolate.script.defined_at(scope.event.partition(" ")[0])
    return place
