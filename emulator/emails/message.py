"""Mail as a test reads it: `emulator.emails`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that a mail carries."""

    filename: str
    type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a mail says; addresses are bare, without names. `raw` is a mail that came as MIME."""

    sender: str
    to: tuple[str, ...]
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    subject: str = ""
    text: str | None = None
    html: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    attachments: tuple[Attachment, ...] = ()
    raw: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Email(Content):
    """A mail that a Worker sent: what it says, when it left, by which Worker and binding.

    `binding` is empty for one that an `email` handler forwarded (`forward`) or replied (`reply`);
    `kind` says which.
    """

    at: datetime
    worker: str
    binding: str
    message_id: str
    kind: str = "send"
