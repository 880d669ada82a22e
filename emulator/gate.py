"""Input gates: which of a Durable Object's events may run now.

Theory of operation (workerd, `io/io-gate.c++`). All that happens to an object is an *event*: a
request, an answer to one of its own requests, a timer. The loop runs an event together with all
that it makes ready in the object, its *turn*, as JavaScript runs microtasks; no other event of the
object comes in between, and storage operations are part of the turn that makes them. So what a
turn reads and writes is one, and what waits for the outside is not.

A *section* (`blockConcurrencyWhile`, a transaction) keeps all events out that were not begun in it,
however long it lasts. Sections nest; each is a gate for the events begun in it, and one that is
over leaves what still waits to the section it was in.

    waiting ── the turn that asked for it ended, no other section runs ──> running ──> over
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.loop import SimLoop

# How deep sections may nest.
MOST_SECTIONS = 64


class Section:
    """A stretch of an object's life in which only what it began may run; the root is all of it."""

    __slots__ = ("_outer", "begin", "depth", "events", "over", "running", "sections")

    def __init__(self, outer: Section | None, begin: Callable[[Section], None] | None = None):
        self._outer = outer
        self.begin = begin
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.over = False
        self.running: Section | None = None  # the one that keeps others out
        self.sections: deque[Section] = deque()
        self.events: deque[Any] = deque()

    @property
    def current(self) -> Section:
        """This section, or the one it left its events to."""
        section = self
        while section.over and section._outer is not None:
            section = section._outer
        return section

    @property
    def outer(self) -> Section:
        """The section around this one, as far as it is not over."""
        assert self._outer is not None
        return self._outer.current


# The section in which code runs, or was begun; to be set where a task of a section is started.
SECTION: ContextVar[Section | None] = ContextVar("emulator.section", default=None)


class InputGate:
    """The gate of one object in memory."""

    def __init__(self, loop: SimLoop, on_turn_end: Callable[[], None]) -> None:
        self._loop = loop
        self._on_turn_end = on_turn_end
        self.root = Section(None)
        # Where something may start, or may be let in, when the turn is over.
        self._changed: dict[Section, None] = {}

    # -- for the loop ----------------------------------------------------------------------------

    def admit(self, handle: Any) -> bool:
        """Whether an event may run now; if not it is kept until it may."""
        section = (handle._context.get(SECTION) or self.root).current
        if section.running is None:
            return True
        section.events.append(handle)
        return False

    def end_turn(self) -> None:
        """A turn is over: what it left to be done is done, and what waited may come."""
        self._on_turn_end()
        changed, self._changed = self._changed, {}
        for section in changed:
            self._let_in(section.current)

    def close(self) -> None:
        """Nothing comes in any more."""
        self.root = Section(None)
        self._changed.clear()

    # -- sections --------------------------------------------------------------------------------

    def enter(self, begin: Callable[[Section], None]) -> Section:
        """Ask for a section; `begin` is called, with it, when it may run.

        Raises `OverflowError` for sections that nest too deeply.
        """
        outer = self.section
        section = Section(outer, begin)
        if section.depth > MOST_SECTIONS:
            raise OverflowError
        outer.sections.append(section)
        self._changed[outer] = None
        return section

    def leave(self, section: Section) -> None:
        """A section is over, in the turn that runs."""
        outer = section.outer
        section.over = True
        outer.running = section.running
        outer.sections.extend(section.sections)
        outer.events.extend(section.events)
        self._changed[outer] = None

    @property
    def section(self) -> Section:
        """The section of the code that runs."""
        return (SECTION.get() or self.root).current

    def _let_in(self, section: Section) -> None:
        if section.running is not None:
            return
        if section.sections:
            section.running = started = section.sections.popleft()
            assert started.begin is not None
            started.begin(started)
            return
        events, section.events = section.events, deque()
        self._loop.admit_again(events)
