"""Assertions over a whole run, for scenarios that are tried under faults (`emulator.check`).

Each raises `AssertionError` and says what happened. They count effects, not calls: whoever may
repeat a call, and does so with the same key, is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from emulator.bindings.outbound_site import KEY, target_of
from emulator.faults.plan import parse_site

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from emulator.bindings.sent import SentRequest
    from emulator.queues.control import Queue
    from emulator.trace import Trace

By: TypeAlias = str | Callable[[Any], Any]

_SHOWN: Final = 5
_REFUSED: Final = 400  # from this status on, a write did not happen


class Checks:
    """`emulator.check`: what must hold of a run, whatever faults there were."""

    # No assertion of the caller's own hides behind these lines.
    __tracebackhide__ = True

    def __init__(
        self,
        trace: Trace,
        queues: Mapping[str, Queue],
        *,
        sent: Sequence[SentRequest],
        purged: Collection[str],
    ) -> None:
        self._trace = trace
        self._queues = queues
        self._sent = sent
        self._purged = purged

    def exactly_once(self, target: Any, by: By = KEY, *, times: int = 1) -> None:
        """Assert that an outside effect happened once, or so many `times`.

        `target` is a respx route, or a fetch site (`"fetch.POST.mail.example/send"`, globs
        allowed). Requests with one key are one effect: `by` names the header that has it, or is a
        function of the `httpx.Request`; one without a key (None) is an effect of its own. A request
        that was sent and whose answer a fault took away counts, one that a fault kept from being
        sent does not.

        Raises `AssertionError` for another number of effects, `PlanError` for what is no site,
        `TypeError` and `ValueError` for other arguments.
        """
        __tracebackhide__ = True
        name, keys = self._keys(target, by)
        effects = _effects(keys)
        if len(effects) != times:
            requests = "1 request" if len(keys) == 1 else f"{len(keys)} requests"
            listed = f": {_listed(effects)}" if effects else ""
            raise AssertionError(
                f"exactly_once: {name} happened {_times(len(effects))}, not {_times(times)} "
                f"({requests}){listed}"
            )

    def no_lost_message(self) -> None:
        """Assert that each message was processed, or is there still.

        One that was acked, waits in a queue (a dead letter queue too) or was purged is not lost;
        one that was dropped after its last retry, or expired, is. To be asked after `settle()`.
        """
        __tracebackhide__ = True
        lost = self._lost()
        if lost:
            raise AssertionError(
                f"no_lost_message: {len(lost)} of {self._messages} messages are lost: "
                f"{_listed(lost)}"
            )

    def no_lost_update(
        self,
        resource: str,
        *,
        reads: Iterable[str] = ("GET",),
        writes: Iterable[str] = ("PUT", "POST", "PATCH"),
    ) -> None:
        """Assert that nobody overwrote what he had not seen in an outside store.

        `resource` is its host and path (`"store.example/balance"`). An invocation that reads it
        and writes it later has lost an update if another one wrote in between. Writes that were
        answered with 400 or more did not happen: a store that checks `If-Match` is safe.
        """
        __tracebackhide__ = True
        read_as, written_as = frozenset(reads), frozenset(writes)
        version, writer = 0, ""
        seen: dict[object, int] = {}
        for sent in self._sent:
            method = sent.request.method
            if not _is_at(sent, resource):
                continue
            if method in read_as:
                seen[sent.sender] = version
            elif method in written_as and (sent.status or 0) < _REFUSED:
                if seen.get(sent.sender, version) != version:
                    other = f"another {writer}" if writer == sent.subject else writer
                    raise AssertionError(
                        f"no_lost_update: {sent.subject} wrote {resource} without having seen "
                        f"what {other} wrote there since it was read"
                    )
                version, writer = version + 1, sent.subject
                seen[sent.sender] = version

    # -- effects ---------------------------------------------------------------------------------

    def _keys(self, target: Any, by: By) -> tuple[str, list[Any]]:
        """The target's name, and the key of each request that was sent there."""
        if not callable(by) and not isinstance(by, str):
            raise TypeError(f"by is the name of a header, or a function of the request, not {by!r}")
        name, requests = self._requests(target)
        key = by if callable(by) else lambda request: request.headers.get(by)
        return name, [key(request) for request in requests]

    def _requests(self, target: Any) -> tuple[str, list[Any]]:
        if isinstance(target, str):
            return target, self._requests_at(target)
        calls = getattr(target, "calls", None)
        if calls is None:
            raise TypeError(f"exactly_once() takes a respx route or a fetch site, not {target!r}")
        return repr(target), [call.request for call in calls]

    def _requests_at(self, site: str) -> list[Any]:
        pattern = parse_site(site)
        if not pattern.text.startswith("fetch."):
            raise ValueError(f"exactly_once() takes fetch sites, not {site!r}")
        return [sent.request for sent in self._sent if pattern.matches(sent.site)]

    # -- messages --------------------------------------------------------------------------------

    @property
    def _messages(self) -> int:
        return sum(event.kind == "send" for event in self._trace)

    def _lost(self) -> list[str]:
        queue_of: dict[str, str] = {}
        given_up: dict[str, str] = {}
        acked: dict[str, None] = {}
        for event in self._trace:
            if event.kind == "send":
                queue_of[event.data["id"]] = event.subject
            elif event.kind == "ack":
                acked[event.data["id"]] = None
            elif event.kind in ("dropped", "expired"):
                given_up[event.data["id"]] = f"{event.subject} ({event.kind})"
        there = {
            message.id
            for queue in self._queues.values()
            for message in (*queue.backlog, *queue.in_flight)
        }
        return [
            f"{id} of {given_up.get(id, f'{queue} (never seen again)')}"
            for id, queue in queue_of.items()
            if id not in acked and id not in there and (id in given_up or id not in self._purged)
        ]


def _is_at(sent: SentRequest, resource: str) -> bool:
    parts = urlsplit(str(sent.request.url))
    return resource in (
        target_of(str(sent.request.url)),
        f"{parts.scheme}://{parts.netloc}{parts.path}",
    )


def _effects(keys: list[Any]) -> list[str]:
    """The effects as a person reads them: each key once, and each request without one."""
    known = dict.fromkeys(repr(key) for key in keys if key is not None)
    return [*known, *("(no key)" for key in keys if key is None)]


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _listed(items: list[str]) -> str:
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
