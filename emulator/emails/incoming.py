"""Runs of an `email` handler: a mail arrives, and is rejected, forwarded, answered or dropped.

The checks of a reply and their texts are those of the local runtime (miniflare, `validate.ts`),
which says that they are production's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from email import message_from_bytes, policy
from email.message import EmailMessage as Mime
from email.utils import parseaddr
from typing import TYPE_CHECKING, Any, Final

from emulator.bindings import calls
from emulator.email_config import SenderConfig
from emulator.emails.bindings import read_mail
from emulator.emails.reading import built, failed, read
from emulator.entrypoints import awaited
from emulator.event_record import Onset
from emulator.foreign import is_foreign
from emulator.invocation import Invocation
from emulator.runtime.email_message import EmailMessage
from emulator.runtime.js_text import display
from emulator.runtime.proxies import wrap
from emulator.runtime.web.headers import Headers
from emulator.runtime.web.streams import ReadableStream
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from emulator.emails.message import Content, Email
    from emulator.emails.service import Emails
    from emulator.isolate import Isolate

_MOST_REFERENCES: Final = 100


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a mail: the handler's outcome (`ok`, `exception`, `canceled`) and its error,
    the reason it was rejected with, and what was forwarded and replied."""

    outcome: str
    error: BaseException | None
    rejected: str | None
    forwarded: tuple[Email, ...]
    replies: tuple[Email, ...]


class Arrival:
    """A mail on its way in: its envelope, its bytes and its headers."""

    def __init__(self, raw: bytes, sender: str | None, to: str | None) -> None:
        mime: Any = message_from_bytes(raw, policy=policy.default)
        self.raw = raw
        self.mime: Mime = mime
        self.sender = sender or parseaddr(str(mime["From"] or ""))[1]
        self.to = to or parseaddr(str(mime["To"] or ""))[1]
        if not self.sender or not self.to:
            raise ValueError("the mail has no address in From or To; give sender= and to=")


def bytes_of(message: Mime | str | bytes) -> bytes:
    """The bytes of a mail as a test gives it."""
    if isinstance(message, Mime):
        return message.as_bytes(policy=policy.SMTP)
    return message.encode() if isinstance(message, str) else message


class EmailRun(Invocation):
    """One run of an `email` handler; `outcome` is None until it ended."""

    def __init__(self, isolate: Isolate, arrival: Arrival) -> None:
        about = f"email to {arrival.to}"
        super().__init__(isolate, about, subject=isolate.kernel.numbered(about), about=about)
        self.on_end, self.on_killed = self._finish, self._cut
        self.outcome: str | None = None
        self.error: BaseException | None = None
        self.rejected: str | None = None
        self.left: list[Email] = []

    @property
    def receipt(self) -> Receipt:
        """What became of the mail."""
        kinds = ("forward", "reply")
        forwarded, replies = (tuple(m for m in self.left if m.kind == kind) for kind in kinds)
        return Receipt(self.outcome or "", self.error, self.rejected, forwarded, replies)

    def begin(self, arrival: Arrival, emails: Emails) -> None:
        """Run the handler."""
        size = len(arrival.raw)
        facts = {"mailFrom": arrival.sender, "rcptTo": arrival.to, "rawSize": size}
        self.watch(Onset(facts))
        self.start(self._serve(ForwardableEmailMessage(arrival, self, emails)))

    async def _serve(self, message: ForwardableEmailMessage) -> None:
        try:
            await awaited(self.isolate.handler("email", self)(wrap(message)))
        except BaseException as error:
            if is_foreign(error):
                raise
            self.error = error
            self.threw(error)
            self.fails()

    def _finish(self) -> None:
        self.outcome = "exception" if self.error is not None else "ok"

    def _cut(self) -> None:
        self.outcome = self.outcome or "canceled"


class ForwardableEmailMessage(HostObject):
    """The mail that an `email` handler gets."""

    js_class = "ForwardableEmailMessage"
    js_members = frozenset(
        {
            *("from", "to", "headers", "raw", "rawSize"),
            *("canBeForwarded", "setReject", "forward", "reply"),
        }
    )

    def __init__(self, arrival: Arrival, run: EmailRun, emails: Emails) -> None:
        self._arrival = arrival
        self._run = run
        self._emails = emails
        self.to = arrival.to
        self.headers = Headers([(name.lower(), str(value)) for name, value in arrival.mime.items()])
        self.raw = ReadableStream.of_bytes(arrival.raw)
        self.rawSize = len(arrival.raw)
        self.canBeForwarded = True

    def js_lookup(self, name: str) -> Any:
        """Return a member; `from` is no name in Python."""
        return self._arrival.sender if name == "from" else super().js_lookup(name)

    def setReject(self, reason: Any = UNDEFINED, *_: Any) -> object:
        """Let the sending server have an error."""
        self._run.rejected = display(reason)
        return UNDEFINED

    def forward(self, to: Any = UNDEFINED, headers: Any = UNDEFINED, *_: Any) -> Awaitable[Any]:
        """Send it on, with headers that start with `X-` added."""
        arrival = self._arrival
        content = read(arrival.sender, display(to), arrival.raw, arrival.mime)
        if isinstance(headers, Headers):
            added = {**content.headers, **dict(headers.pairs)}
            content = replace(content, headers=added)
        return self._leave(content, "forward")

    def reply(self, message: Any = UNDEFINED, *_: Any) -> Awaitable[Any]:
        """Answer the sender, with a mail that refers to this one."""
        if isinstance(message, EmailMessage):
            return self._reply_raw(message)
        try:
            self._check_replyable()
            content = built(message, SenderConfig(binding="", destination=self._arrival.sender))
        except JsException as error:
            return calls.refuse(error)
        id = str(self._arrival.mime["Message-ID"] or "")
        threads = {"In-Reply-To": id, "References": id}
        return self._leave(replace(content, headers={**content.headers, **threads}), "reply")

    async def _reply_raw(self, message: EmailMessage) -> Any:
        self._check_replyable()
        raw = await read_mail(message)
        mime: Any = message_from_bytes(raw, policy=policy.default)
        problem = _problem(mime, message.sender, self._arrival.mime)
        if problem:
            raise failed("E_VALIDATION_ERROR", problem)
        return await self._leave(read(message.sender, message.to, raw, mime), "reply")

    def _check_replyable(self) -> None:
        mime = self._arrival.mime
        automatic = str(mime["Auto-Submitted"] or "no").lower() != "no"
        suppressed = str(mime["X-Auto-Response-Suppress"] or "none").lower() != "none"
        references = str(mime["References"] or "")
        half = (mime["In-Reply-To"] is None) != (mime["References"] is None)
        if automatic or suppressed or half or references.count("@") >= _MOST_REFERENCES:
            raise failed("E_VALIDATION_ERROR", "Original email is not replyable")

    def _leave(self, content: Content, kind: str) -> asyncio.Future[Any]:
        run, emails = self._run, self._emails

        def perform(_: object) -> dict[str, Any]:
            id = emails.take(content, run, binding="", kind=kind)
            run.left.append(emails.sent[-1])
            return {"messageId": id}

        return calls.call(calls.caller_of(), perform, site="", lost=_never)


def _problem(reply: Any, sender: str, original: Any) -> str:
    """What is wrong with a reply; empty if nothing is."""
    if parseaddr(str(reply["From"] or ""))[1] != sender:
        return "From: header does not match mail from"
    if reply["Message-ID"] is None:
        return "invalid message-id"
    if reply["Received"] is not None:
        return "invalid headers set"
    if reply["In-Reply-To"] is None:
        return "no In-Reply-To header found in reply message"
    id = str(original["Message-ID"] or "")
    if str(reply["In-Reply-To"]) != id:
        return "In-Reply-To does not match original Message-ID"
    references = str(reply["References"] or id)
    earlier = str(original["References"] or "")
    if id not in references or earlier not in references:
        return "provided References header is invalid"
    return ""


def _never() -> Exception:
    raise AssertionError("unreachable: the call has no fault site")
