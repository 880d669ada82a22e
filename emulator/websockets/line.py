"""A connection between two ends.

Theory of operation. A frame leaves an end when the code that sent it has had its turn, so that what
a Durable Object wrote before is durable, and arrives at once. It waits at the other end until
somebody listens. An end belongs to the code of an invocation, to a Durable Object's list of sockets
or to the test; where it is given up without a Close the other end hears that the connection broke.

    open ──┬── a Close from both ends ──> over
           └── an end is dropped ───────> over
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from emulator.faults.sites import site_name
from emulator.runtime.host import BROKEN, Close, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.invocation import Invocation
    from emulator.kernel import Kernel
    from emulator.runtime.host import Frame

# What can strike a frame on its way to code that is in memory.
_OF_CODE = ("crash_before", "disconnect")


class Line:
    """Two ends, and who is told of what goes between them."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.name = "a WebSocket"  # what traces call it
        self.first = End(self)
        self.second = End(self)
        self.first.other, self.second.other = self.second, self.first
        self._at_end: list[Callable[[], None]] = []

    @property
    def over(self) -> bool:
        """Whether nothing can come any more."""
        ends = (self.first, self.second)
        return any(end.dropped for end in ends) or all(end.closed for end in ends)

    def at_end(self, callback: Callable[[], None]) -> None:
        """Call back when nothing can come any more."""
        if self.over:
            callback()
        else:
            self._at_end.append(callback)

    def cut(self) -> None:
        """Break the connection, as a network does that fails: both ends hear it."""
        ends = (self.first, self.second)
        for end in [end for end in ends if not (end.dropped or end.other.closed or self.over)]:
            end.arrive(BROKEN)
        for end in ends:
            end.give_up()
        self.changed()

    def changed(self) -> None:
        """An end was closed or dropped."""
        if self.over:
            callbacks, self._at_end = self._at_end, []
            for callback in callbacks:
                callback()


class End:
    """One end of a connection."""

    other: End

    def __init__(self, line: Line) -> None:
        self.line = line
        self.holder: Invocation | None = None
        self.closed = False  # its Close has left
        self.dropped = False
        self.site = ""  # of the frames that arrive, where a fault may strike them
        # Takes frames before anybody listens; whether it took this one.
        self.on_arrival: Callable[[Frame], bool] | None = None
        self._waiting: deque[Frame] = deque()
        self._receiver: Callable[[Frame], None] | None = None

    def send(self, frame: Frame) -> None:
        """Send a frame to the other end, when the code that runs has had its turn."""
        self.line.kernel.loop.kernel_soon(self._leave, frame, self.holder)

    def send_now(self, frame: Frame) -> None:
        """Send a frame that the platform or the test sends."""
        self._leave(frame, None)

    def _leave(self, frame: Frame, sender: Invocation | None) -> None:
        if self.closed or self.dropped or (sender is not None and sender.dead and sender.gone):
            return
        if isinstance(frame, Close):
            self.closed = True
        self.other.arrive(frame)
        if isinstance(frame, Close):
            self.line.changed()

    def refuse(self, refused: Refused) -> None:
        """The other side's runtime takes nothing more of this end: its code has an error."""
        if self.closed or self.dropped:
            return
        self.closed = self.other.closed = True
        self.other.arrive(refused)
        self.line.changed()

    def arrive(self, frame: Frame) -> None:
        """A frame is here."""
        if self.dropped or not self._survives(frame):
            return
        if self.on_arrival is not None and self.on_arrival(frame):
            return
        if self._receiver is None:
            self._waiting.append(frame)
        else:
            self._receiver(frame)

    def _survives(self, frame: Frame) -> bool:
        """Whether a frame arrives, past the fault that may strike it on its way to code."""
        holder = self.holder
        if holder is None or not self.site or frame is BROKEN or isinstance(frame, Refused):
            return True
        event = "close" if isinstance(frame, Close) else "message"
        site = site_name("websocket", self.site, event)
        faults = holder.kernel.faults.meet(site, in_request=True, available=_OF_CODE)
        if not faults:
            return True
        holder.struck = True
        if faults[0].action == "crash_before":
            holder.cut_power()
        else:
            self.line.cut()
        return False

    def listen(self, receiver: Callable[[Frame], None]) -> None:
        """Hand on the frames that arrived and those that will; none comes before this returns."""
        self.line.kernel.loop.kernel_soon(self._open, receiver)

    def _open(self, receiver: Callable[[Frame], None]) -> None:
        if self.dropped:
            return
        self._receiver = receiver
        while self._waiting:
            receiver(self._waiting.popleft())

    def held_by(self, host: Any) -> None:
        """Belong to an invocation from now on; the connection breaks where that ends."""
        holder: Invocation | None = host
        self.holder = holder
        if holder is not None:
            holder.at_leave(lambda: self._left(holder))

    def _left(self, holder: Invocation) -> None:
        if self.holder is holder and not self.dropped:
            self._receiver = None  # no line of it runs any more
            # After what it sent in its last turn.
            self.line.kernel.loop.kernel_soon(self._abandoned, holder)

    def _abandoned(self, holder: Invocation) -> None:
        if self.holder is holder:
            self.drop()

    def drop(self) -> None:
        """Give this end up: the other one hears that the connection broke, if it is not over."""
        if self.dropped:
            return
        tells = not (self.line.over or self.closed or self.line.kernel.loop.is_closed())
        self.give_up()
        if tells:
            self.other.arrive(BROKEN)
        self.line.changed()

    def give_up(self) -> None:
        """Let go of this end without a word."""
        self.dropped = True
        self._receiver = self.on_arrival = None
        self._waiting.clear()


def pair(invocation: Invocation) -> tuple[End, End]:
    """The two ends of a new connection that an invocation makes, and holds."""
    line = Line(invocation.kernel)
    line.first.held_by(invocation)
    line.second.held_by(invocation)
    return line.first, line.second


async def stay_for(end: End, invocation: Invocation) -> None:
    """Go on as long as a connection does whose other end an invocation has accepted."""
    if end.other.holder is not invocation:
        return
    end.other.site = invocation.worker
    over = invocation.kernel.loop.create_future()
    end.line.at_end(lambda: None if over.done() else over.set_result(None))
    await over
    await asyncio.sleep(0)  # the last event comes first
