"""The way of a query to a database: its fault site, its trace, its errors, its bookmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.bindings import calls
from emulator.d1 import texts
from emulator.faults.sites import site_name
from emulator.sql import SqlError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from emulator.d1.results import Answer
    from emulator.d1.service import D1
    from emulator.d1.store import Query, Store
    from emulator.invocation import Invocation
    from emulator.values import JsException

_CONSTRAINTS: Final = frozenset({"first-primary", "first-unconstrained"})


class Session:
    """What queries go through: the binding itself, or a session that was started from it.

    `position` is the bookmark or constraint of a started session. The binding has none: its
    queries always go to the primary.
    """

    def __init__(
        self, binding: str, store: Store, service: D1, position: str | None = None
    ) -> None:
        self._binding = binding
        self._store = store
        self._service = service
        self._position = position
        self._sites: dict[str, str] = {}
        self._subject = f"d1 {binding}"  # in the trace

    def disconnect(self) -> None:
        """Let go of the emulator."""
        del self._store, self._service

    def start(self, position: str) -> Session:
        """A session of its own."""
        return Session(self._binding, self._store, self._service, position)

    @property
    def bookmark(self) -> str | None:
        """The latest bookmark; None before the first answer, unless one was given."""
        return None if self._position in _CONSTRAINTS else self._position

    def query(
        self,
        operation: str,
        queries: Sequence[Query],
        shape: Callable[[list[Answer]], Any],
        *,
        error: Callable[[str], JsException] = texts.d1_error,
    ) -> asyncio.Future[Any]:
        """Send queries as one transaction; `shape` makes the result, `error` the error."""
        invocation = calls.caller_of()
        if invocation.minds_effects and any(query.writes for query in queries):
            invocation.effect(f"a change in the database {self._binding}")
        return calls.call(
            invocation,
            lambda _: shape(self._perform(invocation, operation, queries, error)),
            site=self._sites.get(operation) or self._site(operation),
            lost=lambda: error(texts.CONNECTION_LOST),
        )

    def _perform(
        self,
        invocation: Invocation,
        operation: str,
        queries: Sequence[Query],
        error: Callable[[str], JsException],
    ) -> list[Answer]:
        facts: dict[str, Any] = {
            "call": operation,
            "sql": _shown(queries[0]) if len(queries) == 1 else list(map(_shown, queries)),
            "by": invocation.subject,
        }
        try:
            answers = self._store.query(queries)
        except SqlError as problem:
            facts["error"] = str(problem)
            self._service.record(self._subject, facts)
            raise error(str(problem)) from None
        changes = 0
        for answer in answers:
            changes += answer.outcome.changes
        facts["changes"] = changes
        self._service.record(self._subject, facts)
        if self._position is not None:
            self._move_to(self._store.bookmark())
        return answers

    def _move_to(self, bookmark: str) -> None:
        """A session that was started goes forward, never back."""
        self._position = max(self.bookmark or "", bookmark)

    def _site(self, operation: str) -> str:
        name = self._sites[operation] = site_name("d1", self._binding, operation)
        return name


def _shown(query: Query) -> str:
    """The SQL as the trace has it."""
    return query.statement if isinstance(query.statement, str) else ""
