"""Where a call goes: what an object, or an entrypoint of another Worker, has to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio

    from emulator.invocation import Invocation
    from emulator.runtime.host import WebRequest, WebResponse


class Target(Protocol):
    """The other end of a stub.

    Both methods are called when the caller makes the call, in its own turn, and return at once;
    `bindings.calls.call` lets it take effect when its turn comes, with the faults of its site. The
    future fails with a `JsException` that is the caller's already (`errors.carried`), and never
    resolves where the caller loses its power.
    """

    def call(self, caller: Invocation, method: str, arguments: list[Any]) -> asyncio.Future[Any]:
        """Call a method with arguments that crossed already; the future is its canonical result."""

    def fetch(self, caller: Invocation, request: WebRequest) -> asyncio.Future[WebResponse]:
        """Send a request; a body that is no bytes crossed already."""

    def describe(self) -> str:
        """Say in words what is called, for findings: `the object lobby of ROOMS`."""
