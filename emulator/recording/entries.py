"""What a recording consists of.

The file is one JSON object a line. The first has `recording`, the version of the format, and the
head's facts; each other one has a `kind`, and `at`, the virtual instant at which it took effect:

    state       what was durable when it began (`start_state.py`)
    request     an HTTP request to a Worker, with its `n`umber; `body` follows if it was streamed
    response    the answer to number `of`; `left` where the client went away first
    socket      a WebSocket connection; message, close: of the client; sent, closed: of the Worker
    action      a request for a control page that changes something, and its response
    outbound    a request of a Worker's to the outside; `answer` is what came back
    reload      new code was loaded
    restart     the server stopped, or its settings changed, and it went on over the same state
    end         the server was stopped

A reader has what belongs together as one object, in the order in which things came in.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

# The control pages that move the clock, behind their prefix.
_CLOCK: Final = ("/emulator/clock", "/dashboard/clock/advance", "/dashboard/clock/next")

_ERROR_PAGE: Final = b"Error: PythonError: "

Headers: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Head:
    """The first line; `origin` is where the clock stood, in microseconds since the epoch."""

    origin: int
    configs: tuple[str, ...]
    workers: Mapping[str, str]
    seed: int
    process: int
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """How something that came in was answered, at an instant.

    `body` is None where only its digest is kept (`sha256`, `size`), or nothing (`cut`).
    """

    line: int
    at: int
    status: int
    type: str = ""
    body: bytes | None = b""
    sha256: str = ""
    size: int = 0
    cut: bool = False


def raised(body: bytes) -> str | None:
    """Return the exception that an error page of the platform's tells, None for other bodies.

    Its traceback says where that was raised, and a line further down is no other answer.
    """
    if not body.startswith(_ERROR_PAGE):
        return None
    return body.decode("utf-8", "replace").rstrip().rpartition("\n")[2]


@dataclass(frozen=True, slots=True)
class Left:
    """The client went away before it had the answer."""

    line: int
    at: int


@dataclass(slots=True)
class Request:
    """An HTTP request; `missing` says why its body is not there."""

    line: int
    number: int
    at: int
    worker: str
    method: str
    url: str
    headers: Headers
    body: bytes = b""
    missing: str = ""
    # Whether the client had more to send, which nobody waited for.
    open: bool = False
    answer: Answer | None = None
    left: Left | None = None

    def __str__(self) -> str:
        return f"{self.method} {path_of(self.url)}"


@dataclass(frozen=True, slots=True)
class Message:
    """What one side of a WebSocket sent: text, bytes, or the end with its code and reason."""

    line: int
    at: int
    data: str | bytes | tuple[int, str]


@dataclass(slots=True)
class Socket:
    """A WebSocket connection: what the client sent, and what the Worker did."""

    line: int
    number: int
    at: int
    worker: str
    url: str
    headers: Headers
    answer: Answer | None = None
    sent: list[Message] = field(default_factory=list)
    received: list[Message] = field(default_factory=list)

    def __str__(self) -> str:
        return f"WebSocket {path_of(self.url)}"


@dataclass(slots=True)
class Action:
    """A request for a control page."""

    line: int
    number: int
    at: int
    method: str
    path: str
    query: str
    headers: Headers
    body: bytes = b""
    missing: str = ""
    answer: Answer | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def moves_clock(self) -> bool:
        """Whether it does nothing but move the clock, which the instants of what follows tell."""
        return self.path.endswith(_CLOCK)


@dataclass(frozen=True, slots=True)
class Reload:
    """New code was loaded."""

    line: int
    at: int


@dataclass(frozen=True, slots=True)
class Restart:
    """The server went on as another process."""

    line: int
    at: int
    process: int
    seed: int
    cause: str


@dataclass(slots=True)
class Outgoing:
    """A request to the outside, and what came back after `took` microseconds."""

    number: int
    method: str
    url: str
    digest: str = ""
    took: int = 0
    status: int | None = None
    headers: Headers = ()
    body: bytes = b""
    missing: str = ""
    error: tuple[str, str] | None = None


Entry: TypeAlias = Request | Socket | Action | Reload | Restart


@dataclass(frozen=True, slots=True)
class Recording:
    """A whole recording; `notes` are about what is wrong with the file and does no harm.

    `ended` is when the server was stopped, None where it was killed; `idle`, whether it had nothing
    left to do then. `reactions` are the lines of what a Worker did: between two of them things came
    in together, before the simulation went on.
    """

    head: Head
    state: tuple[Mapping[str, Any], ...]
    entries: tuple[Entry, ...]
    outgoing: tuple[Outgoing, ...]
    notes: tuple[str, ...]
    last: int
    ended: int | None
    idle: bool
    last_number: int
    last_process: int
    reactions: tuple[int, ...] = ()

    def together(self, earlier: int, later: int) -> bool:
        """Whether no Worker did anything between two lines."""
        place = bisect(self.reactions, earlier)
        return place == len(self.reactions) or self.reactions[place] > later


def path_of(url: str) -> str:
    """Return what follows the host of a URL.

    >>> path_of("http://localhost:8787/orders?a=1")
    '/orders?a=1'
    """
    _, found, rest = url.partition("://")
    return f"/{rest.partition('/')[2]}" if found else url
