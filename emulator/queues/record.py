"""What the runtime records of a consumer's calls on its batch, by the table of 2.9.

Numbers such as 2.9 are rules of the reference on Cloudflare Queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.queues.model import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.queues.model import Duration


class BatchRecord:
    """The calls on one batch and its messages.

    The first call on a message wins; a later one that contradicts it is ignored with the
    platform's warning, handed to `warn`. `allow` is asked before each call, and raises where the
    batch is another event's.

        >>> record = BatchRecord(print)
        >>> record.retry("m1", None)
        >>> record.ack("m1")  # doctest: +ELLIPSIS
        Received a call to ack() on message m1 after retry() was already called. ...
        >>> record.result("ok").retries
        {'m1': None}
    """

    def __init__(
        self, warn: Callable[[str], None], allow: Callable[[], None] | None = None
    ) -> None:
        self._warn = warn
        self._allow = allow or _allowed
        self._ack_all = False
        self._retry_batch = False
        self._retry_batch_delay: Duration | None = None
        self._acks: dict[str, None] = {}
        self._retries: dict[str, Duration | None] = {}

    def ack(self, message: str) -> None:
        """`message.ack()`."""
        self._allow()
        if self._ack_all:
            return
        if self._retry_batch:
            self._ignored("ack", "retryAll", message)
        elif message in self._retries:
            self._ignored("ack", "retry", message)
        else:
            self._acks[message] = None

    def retry(self, message: str, delay: Duration | None) -> None:
        """`message.retry()`; a later one without a delay takes the earlier delay back."""
        self._allow()
        if self._ack_all:
            self._ignored("retry", "ackAll", message)
        elif message in self._acks:
            self._ignored("retry", "ack", message)
        else:
            self._retries[message] = delay

    def acknowledge_all(self) -> None:
        """`batch.ackAll()`."""
        self._allow()
        if self._retry_batch:
            self._ignored("ackAll", "retryAll")
        else:
            self._ack_all = True

    def retry_all(self, delay: Duration | None) -> None:
        """`batch.retryAll()`; a later one without a delay keeps the earlier delay."""
        self._allow()
        if self._ack_all:
            self._ignored("retryAll", "ackAll")
            return
        self._retry_batch = True
        if delay is not None:
            self._retry_batch_delay = delay

    def result(self, outcome: str) -> Result:
        """The record as the service gets it when the run ends with `outcome`."""
        return Result(
            outcome=outcome,
            ack_all=self._ack_all,
            retry_batch=self._retry_batch,
            retry_batch_delay=self._retry_batch_delay,
            explicit_acks=tuple(self._acks),
            retries=dict(self._retries),
        )

    def _ignored(self, call: str, earlier: str, message: str | None = None) -> None:
        where = f" on message {message}" if message is not None else ""
        target = " on a message" if message is not None else ""
        self._warn(
            f"Received a call to {call}(){where} after {earlier}() was already called. "
            f"Calling {call}(){target} after calling {earlier}() has no effect."
        )


def _allowed() -> None:
    """The default of `allow`."""
