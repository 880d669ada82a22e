"""What was sent to the outside, for the checkers: the requests themselves, which no trace holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


@dataclass(slots=True)
class SentRequest:
    """A request that left, at its fault site.

    `sender` tells invocations apart where their `subject` is the same; the runs of an instance of a
    Workflow are one sender, since what a step has read outlives a run. `status` is what the outside
    answered, whatever a fault let the sender see; None without an answer.
    """

    site: str
    sender: object
    subject: str
    request: httpx.Request
    status: int | None = None
