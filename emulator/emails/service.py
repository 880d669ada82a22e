"""The mail of one emulator: who sends, and all that left."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from emulator.clock import instant, moment
from emulator.emails.message import Attachment, Content, Email

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.emails.bindings import SendEmail
    from emulator.emails.incoming import Arrival, EmailRun
    from emulator.invocation import Invocation
    from emulator.isolate import Worker
    from emulator.kernel import Kernel
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

Record = dict[str, Any]

_FIELDS: Final = tuple(field.name for field in fields(Content))
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_ID_LENGTH: Final = 36


class Emails:
    """All mail that Workers sent, in the order it left.

    A record is a mail, by the names of its fields.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._bindings: list[SendEmail] = []
        self._records: list[Record] = []
        self.sent: list[Email] = []

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """What a Worker sends mail by, by binding."""
        if not config.senders:
            return {}
        from emulator.emails.bindings import SendEmail

        found = {one.binding: SendEmail(one, self) for one in config.senders}
        self._bindings += found.values()
        return {**found}

    def take(
        self, content: Content, invocation: Invocation, *, binding: str, kind: str = "send"
    ) -> str:
        """Let a mail leave; its message id, as production makes it."""
        kernel = self.kernel
        random = "".join(kernel.random.choices(_ALPHABET, k=_ID_LENGTH))
        id = f"<{random}@{content.sender.rpartition('@')[2]}>"
        mail = Email(
            **{name: getattr(content, name) for name in _FIELDS},
            at=moment(kernel.now),
            worker=invocation.worker,
            binding=binding,
            message_id=id,
            kind=kind,
        )
        self.sent.append(mail)
        self._records.append(_written(mail))
        subject = f"email {binding or invocation.worker}"
        kernel.record(
            "email", subject, id=id, to=list(mail.to), title=mail.subject, by=invocation.subject
        )
        return id

    def deliver(self, worker: Worker, arrival: Arrival) -> EmailRun:
        """Let a mail arrive; raises `WorkerLoadError` for code that cannot be loaded."""
        from emulator.emails.incoming import EmailRun

        run = EmailRun(worker.isolate, arrival)
        title = str(arrival.mime["Subject"] or "")
        self.kernel.record(
            "email_in", run.subject, sender=arrival.sender, to=arrival.to, title=title
        )
        run.begin(arrival, self)
        return run

    # -- life ------------------------------------------------------------------------------------

    def take_records(self) -> list[Record]:
        """The records of all mail since the last call."""
        records, self._records = self._records, []
        return records

    def snapshot(self) -> list[Record]:
        """All mail."""
        return list(map(_written, self.sent))

    @property
    def stored(self) -> int:
        """How many mails there are."""
        return len(self.sent)

    def rebuild(self, snapshot: list[Record] | None, records: Iterable[Record]) -> None:
        """Start again from stored mail."""
        self.sent[:] = map(_read, (*(snapshot or ()), *records))

    def reset(self) -> None:
        """Forget all mail."""
        self._records.clear()
        self.sent.clear()

    def close(self) -> None:
        """Let go of what user code may still hold."""
        while self._bindings:
            self._bindings.pop().disconnect()


def _written(mail: Email) -> Record:
    record = {field.name: getattr(mail, field.name) for field in fields(mail)}
    files = [[one.filename, one.type, one.content] for one in mail.attachments]
    return {**record, "at": instant(mail.at), "attachments": files}


def _read(record: Record) -> Email:
    made = {name: tuple(record[name]) for name in ("to", "cc", "bcc")}
    files = tuple(Attachment(*one) for one in record["attachments"])
    return Email(**{**record, **made, "at": moment(record["at"]), "attachments": files})
