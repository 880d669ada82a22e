"""Assertions over a whole run, for scenarios that are tried under faults (`emulator.check`).

Each raises `AssertionError` and says what happened. They count effects, not calls: whoever may
repeat a call, and does so with the same key, is right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

from emulator.bindings.outbound_site import KEY, target_of
from emulator.faults.plan import parse_site
from emulator.faults.sites import site_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from emulator.queues.control import Queue
    from emulator.trace import Event, Trace

By: TypeAlias = str | Callable[[Any], Any]

_SHOWN: Final = 5
_REFUSED: Final = 400  # from this status on, a write did not happen


class Checks:
    """`emulator.check`: what must hold of a run, whatever faults there were."""

    # No assertion of the caller's own hides behind these lines.
    __tracebackhide__ = True

    def __init__(self, trace: Trace, queues: Mapping[str, Queue]) -> None:
        self._trace = trace
        self._queues = queues

    def exactly_once(self, target: Any, by: By = KEY, *, times: int = 1) -> None:
        """Assert that an outside effect happened once, or so many `times`.

        `target` is a respx route, or a fetch site (`"fetch.POST.mail.example/send"`, globs
        allowed). Requests with one key are one effect: `by` names the header that has it, or is a
        function of the request; a request without a key is an effect of its own. A request that
        was sent and whose answer a fault took away counts, one that a fault kept from being sent
        does not. Sites know the header `idempotency-key` only.

        Raises `AssertionError` for another number of effects, `PlanError` for what is no site,
        `TypeError` and `ValueError` for other arguments.
        """
        __tracebackhide__ = True
        name, keys = self._keys(target, by)
        effects = _effects(keys)
        if len(effects) != times:
            raise AssertionError(
                f"exactly_once: {name} happened {_times(len(effects))}, not {_times(times)} "
                f"({len(keys)} requests): {_listed(effects)}"
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
                f"no_lost_message: {len(lost)} of {self._sent} messages are lost: {_listed(lost)}"
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
        seen: dict[str, int] = {}
        for subject, method, happened in self._requests(resource):
            if method in read_as:
                seen[subject] = version
            elif method in written_as and happened:
                if seen.get(subject, version) != version:
                    raise AssertionError(
                        f"no_lost_update: {subject} wrote {resource} without having seen what "
                        f"{writer} wrote there since it was read"
                    )
                version, writer = version + 1, subject
                seen[subject] = version

    # -- effects ---------------------------------------------------------------------------------

    def _keys(self, target: Any, by: By) -> tuple[str, list[Any]]:
        """The target's name, and the key of each request that was sent there."""
        if isinstance(target, str):
            return target, self._keys_at(target, by)
        calls = getattr(target, "calls", None)
        if calls is None:
            raise TypeError(f"exactly_once() takes a respx route or a fetch site, not {target!r}")
        key = by if callable(by) else lambda request: request.headers.get(by)
        return repr(target), [key(call.request) for call in calls]

    def _keys_at(self, site: str, by: By) -> list[Any]:
        if not isinstance(by, str) or by.lower() != KEY:
            raise ValueError(
                f"the trace knows the header {KEY} only: for by={by!r} give the respx route"
            )
        pattern = parse_site(site)
        if not pattern.text.startswith("fetch."):
            raise ValueError(f"exactly_once() takes fetch sites, not {site!r}")
        return [
            event.data.get("key")
            for event in self._trace
            if event.kind == "request_out"
            and pattern.matches(
                site_name("fetch", event.data["method"], target_of(event.data["url"]))
            )
        ]

    # -- messages --------------------------------------------------------------------------------

    @property
    def _sent(self) -> int:
        return sum(event.kind == "send" for event in self._trace)

    def _lost(self) -> list[str]:
        left: dict[str, str] = {}
        for event in self._trace:
            if event.kind == "send":
                left[event.data["id"]] = f"{event.data['id']} of {event.subject} (never seen again)"
            elif event.kind in ("dropped", "expired") and "id" in event.data:
                id = event.data["id"]
                left[id] = f"{id} of {event.subject} ({event.kind})"
            elif event.kind == "ack":
                left.pop(event.data["id"], None)
            elif event.kind == "purge":
                left = {id: text for id, text in left.items() if event.subject not in text}
        for queue in self._queues.values():
            for message in (*queue.backlog, *queue.in_flight):
                left.pop(message.id, None)
        return list(left.values())

    # -- updates ---------------------------------------------------------------------------------

    def _requests(self, resource: str) -> list[tuple[str, str, bool]]:
        """Who asked what of it, in order, and whether it happened."""
        answers = _answers(self._trace)
        return [
            (event.subject, event.data["method"], answers.get(index, 0) < _REFUSED)
            for index, event in enumerate(self._trace)
            if event.kind == "request_out" and _of(event, resource)
        ]


def _of(event: Event, resource: str) -> bool:
    parts = urlsplit(event.data["url"])
    return resource in (
        target_of(event.data["url"]),
        f"{parts.scheme}://{parts.netloc}{parts.path}",
    )


def _answers(trace: Trace) -> dict[int, int]:
    """The status of each request's answer, by the request's place in the trace."""
    waiting: dict[tuple[str, str], list[int]] = {}
    answers: dict[int, int] = {}
    for index, event in enumerate(trace):
        if event.kind == "request_out":
            waiting.setdefault((event.subject, event.data["url"]), []).append(index)
        elif event.kind == "response_in":
            asked = waiting.get((event.subject, event.data["url"]))
            if asked:
                answers[asked.pop(0)] = cast("int", event.data["status"])
    return answers


def _effects(keys: list[Any]) -> list[str]:
    """The effects as a person reads them: each key once, and each request without one."""
    known = dict.fromkeys(repr(key) for key in keys if key is not None)
    return [*known, *("(no key)" for key in keys if key is None)]


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _listed(items: list[str]) -> str:
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
