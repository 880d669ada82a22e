"""WebSockets that an object holds whether it is in memory or not (workerd, `hibernation-manager`).

Theory of operation. A socket that was accepted with `ctx.acceptWebSocket` belongs to this list and
not to the object's memory. A frame that arrives brings the object to life and is an event of its
own, which waits for no other's end. What outlives the memory is the connection, the tags and the
attachment; the JavaScript object is made anew. A reset or a crash breaks all connections.

    open ──┬── a Close arrives ─> webSocketClose, and off the list
           ├── a frame breaks the protocol ─> webSocketError, and off the list
           ├── the connection breaks ─> webSocketClose with 1006, and off the list
           └── the object is reset, crashes, or gets new code ─> the client sees it break
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from emulator.errors import WorkerLoadError
from emulator.faults.sites import site_name
from emulator.objects.event import Event, over
from emulator.runtime.host import BROKEN, Close, Refused
from emulator.runtime.web.websocket import WebSocket
from emulator.values import ArrayBuffer, JsException, from_milliseconds, from_v8
from emulator.values.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from emulator.objects.bindings import DurableObjectId
    from emulator.objects.live import LiveObject
    from emulator.objects.service import Objects
    from emulator.objects.space import Space
    from emulator.runtime.host import Frame
    from emulator.websockets.line import End

MOST_SOCKETS: Final = 32_768
MOST_TAGS: Final = 10
LONGEST_TAG: Final = 256
_TOO_MANY: Final = (
    f"only {MOST_SOCKETS} websockets can be accepted on a single Durable Object instance"
)
_TOO_MANY_TAGS: Final = f"a Hibernatable WebSocket cannot have more than {MOST_TAGS} tags"
_ACCEPTED: Final = (
    "Cannot call `acceptWebSocket()` if the WebSocket was already accepted via `accept()`"
)
_PAIR_USED: Final = (
    "Cannot call `acceptWebSocket()` on this WebSocket because its pair has already been accepted "
    "or used in a Response."
)
_HANDLERS: Final = {
    "message": "webSocketMessage",
    "close": "webSocketClose",
    "error": "webSocketError",
}


@dataclass(slots=True, eq=False)
class Held:
    """A socket on the list; `socket` is what the object in memory has of it."""

    end: End
    tags: tuple[str, ...]
    socket: WebSocket | None
    attachment: bytes | None = None
    closed_out: bool = False
    answered: int | None = None  # when a message was answered without the object


class Sockets:
    """The sockets of one object."""

    def __init__(self, home: Objects, space: Space, id: DurableObjectId) -> None:
        self.auto: tuple[str, str] | None = None
        self.timeout: int | None = None
        self._home = home
        self._space = space
        self._named = id
        self._id = id.id
        self._held: list[Held] = []
        # Off the list, but the object may still answer the Close.
        self._closing: list[Held] = []

    # -- for the object --------------------------------------------------------------------------

    def accept(self, socket: WebSocket, tags: list[str]) -> None:
        """Take a socket; raises the runtime's errors."""
        if socket.state in ("accepted", "hibernatable") and not socket.closed_out:
            raise JsException("Error", _ACCEPTED)
        if socket.peer is None or socket.peer.state != "fresh" or socket.state != "fresh":
            raise JsException("Error", _PAIR_USED)
        distinct = _checked_tags(tags)
        if len(self._held) >= MOST_SOCKETS:
            raise JsException("Error", _TOO_MANY)
        end: Any = socket.hibernatable()
        held = Held(end, distinct, socket)
        socket.tags = distinct
        end.held_by(None)
        end.on_arrival = lambda frame: self._arrived(held, frame)
        self._held.append(held)

    def list(self, tag: str | None) -> list[WebSocket]:
        """The open sockets, the newest first; those with a tag, the oldest first."""
        if tag is None:
            return [_awake(held) for held in reversed(self._held)]
        return [_awake(held) for held in self._held if tag in held.tags]

    def find(self, socket: WebSocket) -> Held | None:
        """What is known of a socket, if it is one of these."""
        known = (held for held in (*self._held, *self._closing) if held.socket is socket)
        return next(known, None)

    def answered(self, socket: WebSocket) -> datetime | None:
        """When a message on a socket was last answered without the object."""
        held = self.find(socket)
        at = None if held is None else held.answered
        return None if at is None else from_milliseconds(at // 1000)

    # -- for the platform ------------------------------------------------------------------------

    def shown(self) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Yield tags and attachment of each that is open."""
        for held in self._held:
            data = held.attachment if held.socket is None else held.socket.attachment
            yield held.tags, None if data is None else plain(from_v8(data))

    def sleep(self) -> None:
        """The object's memory is dropped; the connections stay."""
        for held in self._held:
            if held.socket is not None:
                held.attachment = held.socket.attachment
                held.closed_out = held.socket.closed_out
                held.socket = None
        closing, self._closing = self._closing, []
        for held in closing:
            held.end.drop()

    def drop(self) -> None:
        """Break all connections; the object is told of none."""
        held, self._held, self._closing = [*self._held, *self._closing], [], []
        for one in held:
            one.end.drop()

    # -- frames ----------------------------------------------------------------------------------

    def _arrived(self, held: Held, frame: Frame) -> bool:
        if self._answers(held, frame) or held not in self._held:
            return True
        kind = _kind(frame)
        struck = () if frame is BROKEN or kind == "error" else self._meet(kind)
        if "disconnect" in struck:
            held.end.line.cut()
        elif "crash_before" in struck:
            self._crash()
        else:
            self._deliver(held, frame, kind, crash="crash_after" in struck)
        return True

    def _answers(self, held: Held, frame: Frame) -> bool:
        """Whether a message is answered while the object sleeps on."""
        if self.auto is None or frame != self.auto[0]:
            return False
        closed = held.closed_out if held.socket is None else held.socket.closed_out
        if not closed:
            held.answered = self._home.kernel.now
            held.end.send_now(self.auto[1])
        return True

    def _meet(self, kind: str) -> tuple[str, ...]:
        live = self._space.live.get(self._id)
        may_sleep = live is not None and not live.busy
        possible = (*(("evict",) if may_sleep else ()), "disconnect", "crash_before", "crash_after")
        site = site_name("websocket", self._space.label, kind)
        faults = self._home.kernel.faults.meet(site, in_request=True, available=possible)
        struck = tuple(fault.action for fault in faults)
        if "evict" in struck and live is not None:
            live.evict()
        return struck

    def _crash(self) -> None:
        live = self._space.live.get(self._id)
        if live is None:
            self.drop()
        else:
            live.crash()

    def _deliver(self, held: Held, frame: Frame, kind: str, *, crash: bool) -> None:
        live = self._live()
        if live is None:
            held.end.drop()
            return
        method = _HANDLERS[kind]
        if kind != "message":
            self._forget(held)
        kernel = self._home.kernel
        event = Event(method, over, in_request=True)
        if crash:
            event.struck = True
            # When what the handler sent has left.
            event.finish = lambda _: _crash_soon(live)
        kernel.record("object_call", live.subject, method=method, by=held.end.line.name)
        live.begin(event, live.socket_event(event, method, lambda: _arguments(held, frame)))

    def _live(self) -> LiveObject | None:
        try:
            return self._home.live(self._space, self._named)
        except WorkerLoadError:
            return None

    def _forget(self, held: Held) -> None:
        if held in self._held:
            self._held.remove(held)
            if not held.end.line.over:
                self._closing.append(held)


def _kind(frame: Frame) -> str:
    if isinstance(frame, Close):
        return "close"
    return "error" if isinstance(frame, Refused) else "message"


def _crash_soon(live: LiveObject) -> None:
    live.kernel.loop.kernel_soon(live.crash)


def _awake(held: Held) -> WebSocket:
    """What the object in memory has of a socket; made anew where it has slept since."""
    if held.socket is None:
        held.socket = WebSocket.awakened(held.end)
        held.socket.tags = held.tags
        held.socket.attachment = held.attachment
        held.socket.closed_out = held.closed_out
    return held.socket


def _arguments(held: Held, frame: Frame) -> list[Any]:
    """What a handler gets; called where the object's code runs."""
    socket = _awake(held)
    if isinstance(frame, Close):
        socket.closed_in = True
        return [socket, frame.code, frame.reason, frame.clean]
    if isinstance(frame, Refused):
        error = JsException("Error", str(frame))
        socket.closed_in, socket.error = True, error
        return [socket, error]
    return [socket, ArrayBuffer(frame) if isinstance(frame, bytes) else frame]


def _checked_tags(tags: list[str]) -> tuple[str, ...]:
    distinct: dict[str, None] = {}
    for tag in tags:
        if len(distinct) >= MOST_TAGS:
            raise JsException("Error", _TOO_MANY_TAGS)
        if len(tag.encode()) > LONGEST_TAG:
            text = f'"{tag}" is longer than the max tag length ({LONGEST_TAG} characters).'
            raise JsException("Error", text)
        distinct[tag] = None
    return tuple(distinct)
