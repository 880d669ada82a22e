"""The way of an R2 call to the service: its fault site, its line in the trace, its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.bindings import calls
from emulator.faults.sites import site_name
from emulator.r2 import rules

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from emulator.r2.service import R2
    from emulator.r2.store import Bucket
    from emulator.values import JsException

READS: Final = ("head", "get", "list")
# What an error calls an operation whose method is called otherwise.
_NAMES: Final = {"complete": "completeMultipartUpload", "abort": "abortMultipartUpload"}


class Connection:
    """What a binding needs of the emulator: a bucket, its service, and the way there."""

    def __init__(self, binding: str, bucket: Bucket, service: R2) -> None:
        self.binding = binding
        self.bucket = bucket
        self.service = service

    def close(self) -> None:
        """Let go of the emulator."""
        del self.bucket, self.service

    def call(
        self, operation: str, perform: Callable[[dict[str, Any]], Any], **facts: Any
    ) -> asyncio.Future[Any]:
        """Make a call, and tell the trace of it.

        `perform` may add to what is told, and raises `Refusal` for what the service does not do.
        """
        invocation = calls.caller_of()
        if operation not in READS:
            invocation.effect(f"a change in the R2 bucket {self.binding}")
        told = {"call": operation, **facts, "by": invocation.subject}

        def traced(_: tuple[str, ...]) -> Any:
            try:
                answer = perform(told)
            except rules.Refusal as refusal:
                error = _error(operation, refusal)
                self.service.record(self.binding, **told, error=error.message)
                raise error from None
            self.service.record(self.binding, **told)
            self.service.announce(link=invocation.link_at(invocation.kernel.now))
            return answer

        return calls.call(
            invocation,
            traced,
            site=site_name("r2", self.binding, operation),
            lost=lambda: _error(operation, rules.internal_error()),
        )


def _error(operation: str, refusal: rules.Refusal) -> JsException:
    return refusal.of(_NAMES.get(operation, operation))
