"""How the modules that user code imports reach the Worker they run in.

`current()` is the invocation that is running now. The runtime package knows only this protocol;
`emulator.isolate` implements it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from emulator.errors import OutsideWorker
from emulator.scope import KERNEL
from emulator.scope import SCOPE as _current

if TYPE_CHECKING:
    from emulator.location import Location

# The whole body, or its chunks as they come.
Body = bytes | AsyncIterator[bytes]


class Close(NamedTuple):
    """The end of a WebSocket connection; one that was not `clean` broke."""

    code: int
    reason: str = ""
    clean: bool = True


# The code of a frame that has none, and of a connection that broke.
NO_CODE: Final = 1005
BROKEN: Final = Close(1006, "WebSocket disconnected without sending Close frame.", clean=False)


class Refused(NamedTuple):
    """A frame that breaks the protocol, as the runtime tells of it: it closes with this code."""

    code: int
    reason: str

    def __str__(self) -> str:
        return (
            f"WebSocket protocol error; protocolError.statusCode = {self.code}; "
            f"protocolError.description = {self.reason}"
        )


# What goes over a WebSocket connection.
Frame = str | bytes | Close | Refused


class SocketEnd(Protocol):
    """One end of a WebSocket connection, whoever has it."""

    def send(self, frame: Frame) -> None:
        """Send a frame to the other end, when what the code wrote before is durable."""

    def listen(self, receiver: Callable[[Frame], None]) -> None:
        """Hand on the frames that arrived and those that will; none comes before this returns."""

    def held_by(self, host: Host | None) -> None:
        """Belong to code from now on: where that ends the connection breaks."""

    def drop(self) -> None:
        """Break the connection."""


# These two are made for each request, and not changed: to have them `frozen` would cost the time of
# a call for each of their fields.
@dataclass(slots=True)
class WebRequest:
    """A request as it crosses the boundary: `headers` in order, names lower-case."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: Body
    redirect: str = "follow"


@dataclass(slots=True)
class WebResponse:
    """A response as it crosses the boundary; `url` is the final one after redirects."""

    status: int
    status_text: str
    headers: tuple[tuple[str, str], ...]
    body: Body
    url: str = ""
    redirected: bool = False
    socket: SocketEnd | None = None


class CacheLookup(NamedTuple):
    """What an entry of a cache is looked up by; the headers are those of the request."""

    key: str
    url: str
    headers: tuple[tuple[str, str], ...]


class CacheService(Protocol):
    """What stands behind `caches`; `cache` is a cache's name, None for the default one."""

    def match(self, cache: str | None, lookup: CacheLookup) -> Awaitable[WebResponse | None]:
        """Ask for an entry, or a part of it, or whether it has changed."""

    def put(self, cache: str | None, lookup: CacheLookup, response: WebResponse) -> Awaitable[Any]:
        """Store a response, if it may be stored; the answer does not tell."""

    def delete(self, cache: str | None, lookup: CacheLookup) -> Awaitable[bool]:
        """Delete an entry; tells whether it was there."""


class Host(Protocol):
    """What user code's modules may ask of the invocation they run in."""

    @property
    def env(self) -> dict[str, Any]:
        """The Worker's bindings by name: canonical values and `HostObject`s."""

    @property
    def flags(self) -> frozenset[str]:
        """Enabled compatibility flags, those implied by the date included."""

    @property
    def caches(self) -> CacheService:
        """What stands behind `caches`."""

    @property
    def profile(self) -> str:
        """Which Cloudflare this is: `production`, or the local simulator, `miniflare`."""

    def missing_binding(self, name: str) -> str:
        """Say why `env` lacks a name that was looked up; empty if that is the code's affair."""

    def wait_until(self, work: Awaitable[Any]) -> None:
        """Keep the invocation alive until `work` is done (`ctx.waitUntil`)."""

    def fetch(self, request: WebRequest) -> Awaitable[WebResponse]:
        """Send a request to the outside; raises `OSError` on network failure."""

    def socket_pair(self) -> tuple[SocketEnd, SocketEnd]:
        """Return the two ends of a new WebSocket connection, both held by this invocation."""

    def log(self, level: str, text: str, arguments: Sequence[Any] | None = None) -> None:
        """Write a line to the Worker's log (`log`, `debug`, `info`, `warn`, `error`).

        `arguments` are canonical values that `console` was given to make the line of.
        """

    def report(self, error: BaseException) -> None:
        """Tell of an exception of user code's that nobody takes."""

    def find(self, code: str, message: str, location: Location | None) -> None:
        """Add a finding about the line of user code."""

    def track(self, call: Any) -> None:
        """Note a call of a binding (`runtime.rpc.BindingCall` or a promise) when it is made.

        The call knows `js_class`, `method`, `created` (the user's line) and, later, `awaited`.
        """

    def track_promise(self, promise: Any) -> None:
        """Note a promise (`runtime.promises.PyodideFuture`) whose work begins."""

    def urandom(self, size: int) -> bytes:
        """Bytes from the emulator's seeded stream."""

    def forbid_in_global_scope(self) -> None:
        """Raise production's error if it is a module's top level that runs."""


def running() -> Host | None:
    """Return the running invocation, if a Worker's code runs."""
    host: Any = _current.get()
    return None if host is KERNEL else host


def current() -> Host:
    """Return the running invocation; raises `OutsideWorker` outside a Worker's code."""
    host: Any = _current.get()
    if host is None or host is KERNEL:
        raise OutsideWorker(
            "this needs a running Worker: use it in a handler, or through the `emulator` fixture"
        )
    return host  # type: ignore[no-any-return]


def forbid_in_global_scope() -> None:
    """Raise production's error if it is a module's top level that runs."""
    host = running()
    if host is not None:
        host.forbid_in_global_scope()
