"""Messages on their way in: what a `send` does when its turn comes, and the faults on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.bindings import calls
from emulator.faults.sites import site_name
from emulator.queues.bindings import metrics
from emulator.queues.limits import Refused, Verb, as_error, check, internal_error
from emulator.tasks import Answer
from emulator.values import JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from emulator.invocation import Invocation
    from emulator.kernel import Kernel
    from emulator.queues.chain import Chain
    from emulator.queues.model import Backlog, Duration, Outgoing

Copies = list[tuple[str, "Duration"]]
"""Copies of messages to make: id and delay."""


class Sending:
    """The way into the queues of one emulator."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        is_checked: Callable[[str], bool],
        store: Callable[[str, Sequence[Outgoing], Copies, int], None],
        backlog: Callable[[str], Backlog],
        default_delay: Callable[[str], Duration],
        chain: Chain,
    ) -> None:
        self._kernel = kernel
        self._default_delay = default_delay
        self._is_checked = is_checked
        self._store = store
        self._backlog = backlog
        self._chain = chain
        self._sites: dict[tuple[str, str], str] = {}

    def send(
        self, queue: str, verb: Verb, messages: list[Outgoing], invocation: Invocation
    ) -> asyncio.Future[Any]:
        """Take serialised messages; the send takes effect when its turn comes.

        Its future never resolves where the platform would not make the call any more.
        """
        loop = self._kernel.loop
        answer = Answer(loop=loop)
        facts = (invocation, invocation.repeats())
        loop.kernel_soon(self._perform, queue, verb, messages, facts, answer)
        return answer

    def metrics(self, queue: str, invocation: Invocation) -> asyncio.Future[Any]:
        """What waits in the queue, the sends before this call included."""
        loop = self._kernel.loop
        answer = Answer(loop=loop)
        loop.kernel_soon(lambda: calls.resolve(answer, metrics(self._backlog(queue))))
        return answer

    def _perform(
        self,
        queue: str,
        verb: Verb,
        messages: list[Outgoing],
        caller: tuple[Invocation, bool],
        answer: asyncio.Future[Any],
    ) -> None:
        invocation, repeats = caller
        if not calls.takes_effect(invocation):
            return
        try:
            self.check(queue, verb, messages, invocation.flags)
        except JsException as refused:
            calls.reject(answer, refused)
            return
        action = calls.meet(invocation, self._site("send", queue), repeats=repeats).ending
        if action == "crash_before":
            invocation.cut_power()
            return
        if action == "fail":
            calls.reject(answer, internal_error(verb, invocation.flags))
            return
        # The answer tells of the queue as it was before these messages (1.3).
        before = {"metadata": {"metrics": metrics(self._backlog(queue))}}
        now = self._kernel.clock.now
        self.enter(queue, messages, by=invocation.subject, link=invocation.link_at(now))
        if action == "crash_after":
            invocation.cut_power()
        elif action == "lose_reply":
            calls.reject(answer, internal_error(verb, invocation.flags))
        else:
            calls.resolve(answer, before)

    def check(
        self, queue: str, verb: Verb, messages: Sequence[Outgoing], flags: frozenset[str]
    ) -> None:
        """Raise the `JsException` a caller gets for messages the service refuses (1.12, 1.13)."""
        profile = self._kernel.profile
        if not self._is_checked(queue):
            return
        try:
            check(verb, messages, profile)
        except Refused as refused:
            raise as_error(refused, verb, profile, flags) from None

    def _site(self, kind: str, queue: str) -> str:
        name = self._sites.get((kind, queue))
        if name is None:
            name = self._sites[kind, queue] = site_name(kind, queue)
        return name

    def enter(self, queue: str, messages: Sequence[Outgoing], *, by: str, link: int = 0) -> None:
        """Let messages enter a queue at this instant.

        `link` is `Invocation.link_at` of what led to them.
        """
        self._chain.sent(messages, link, self._kernel.clock.now)
        sent = [(message.id, by, message.body, message.content_type) for message in messages]
        names = ("id", "by", "body", "content_type")
        self._kernel.record_each("send", f"queue {queue}", names, sent)
        admitted, copies = self.admit(queue, messages)
        self._store(queue, admitted, copies, len(messages) - len(admitted))

    def admit(self, queue: str, messages: Sequence[Outgoing]) -> tuple[list[Outgoing], Copies]:
        """Apply the faults of `message.<queue>`; return what enters, and the copies to make."""
        site = self._site("message", queue)
        if self._kernel.faults.pass_by(site, len(messages), retried=True):
            return list(messages), []
        admitted: list[Outgoing] = []
        copies: Copies = []
        meet = self._kernel.faults.meet
        for message in messages:
            entering: Outgoing | None = message
            for fault in meet(site, retried=True):
                argument = fault.argument or 0
                if fault.action == "duplicate":
                    copies.append((message.id, argument))
                elif fault.action == "delay":
                    entering = self._later(queue, entering or message, argument)
                elif fault.action == "drop":
                    entering = None
                    self._kernel.record("dropped", f"queue {queue}", id=message.id, attempt=0)
            if entering is not None:
                admitted.append(entering)
        return admitted, copies

    def _later(self, queue: str, message: Outgoing, delay: Duration) -> Outgoing:
        """The message, held back by this much more than it would have been."""
        own = self._default_delay(queue) if message.delay is None else message.delay
        return message._replace(delay=own + delay)
