"""What user code sees of D1: the database, a prepared statement, a session.

A call does its work at the next turn of the loop, like every call that leaves a Worker; `prepare`
and `bind` leave nothing, and `bind` refuses a value at once. Shapes and errors are those of the
runtime's own JavaScript (`cloudflare-internal:d1-api`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from emulator.bindings import calls
from emulator.d1 import texts
from emulator.d1.parameters import UNCHANGED, bound
from emulator.d1.results import converted_result, converted_results
from emulator.d1.session import Session
from emulator.d1.store import Query
from emulator.runtime.js_text import display
from emulator.values import UNDEFINED, HostObject, JsException, LiteralMap

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from emulator.d1.results import Answer
    from emulator.d1.service import D1
    from emulator.d1.store import Store

_UNCONSTRAINED: Final = "first-unconstrained"
# What JavaScript's `trim` takes off besides what Python's `strip` does.
_BOM: Final = "\ufeff"


class D1Database(HostObject):
    """A D1 binding."""

    js_class = "D1Database"
    js_members = frozenset({"prepare", "batch", "exec", "withSession", "dump"})
    sdk_results = MappingProxyType({"batch": converted_results})

    def __init__(self, binding: str, store: Store, service: D1) -> None:
        self._session = Session(binding, store, service)

    def disconnect(self) -> None:
        """Let go of the emulator: code whose power was cut may hold this for ever."""
        self._session.disconnect()

    def prepare(self, query: Any = UNDEFINED, *_: Any) -> D1PreparedStatement:
        """A statement that can be bound and run."""
        return _statement(self._session, query, [])

    def batch(self, statements: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Run statements in order, all or none of them."""
        return _batch(self._session, statements)

    def exec(self, query: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Run each line as a statement, all or none of them."""
        if not isinstance(query, str):
            return calls.refuse(_no_method(query, "query", "trim"))
        lines = query.strip().strip(_BOM).split("\n")
        queries = [Query(line) for line in lines]

        def shape(answers: list[Answer]) -> dict[str, Any]:
            return {"count": len(answers), "duration": 0}

        return self._session.query(
            "exec", queries, shape, error=lambda text: texts.exec_error(lines[0], text)
        )

    def withSession(self, constraint: Any = UNDEFINED, *_: Any) -> D1DatabaseSession:
        """A session, which begins at a bookmark or by a constraint (`first-primary`)."""
        if constraint is None or constraint is UNDEFINED:
            constraint = ""
        if not isinstance(constraint, str):
            raise JsException("TypeError", "constraintOrBookmark?.trim is not a function")
        given = constraint.strip().strip(_BOM) or _UNCONSTRAINED
        return D1DatabaseSession(self._session.start(given))

    def dump(self, *_: Any) -> asyncio.Future[Any]:
        """Refused: only databases of D1's alpha could be dumped."""
        profile = calls.caller_of().kernel.profile
        return calls.refuse(texts.no_dump(texts.NO_DUMP[profile]))


class D1DatabaseSession(HostObject):
    """A session: what it is told of the database never goes back in time."""

    js_class = "D1DatabaseSession"
    js_members = frozenset({"prepare", "batch", "getBookmark"})
    sdk_results = MappingProxyType({"batch": converted_results})

    def __init__(self, session: Session) -> None:
        self._session = session

    def prepare(self, query: Any = UNDEFINED, *_: Any) -> D1PreparedStatement:
        """A statement that can be bound and run in this session."""
        return _statement(self._session, query, [])

    def batch(self, statements: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """Run statements in order, all or none of them."""
        return _batch(self._session, statements)

    def getBookmark(self, *_: Any) -> str | None:
        """The latest bookmark, null before the first query."""
        return self._session.bookmark


class D1PreparedStatement(Query, HostObject):
    """A statement, with its parameters once it is bound: what is sent of it is itself."""

    js_class = "D1PreparedStatement"
    js_members = frozenset({"bind", "first", "run", "all", "raw", "statement", "params"})
    sdk_results = MappingProxyType({"run": converted_result, "all": converted_result})

    __init__ = object.__init__
    _session: Session

    def js_keys(self) -> Iterable[str]:
        return ("statement", "params")

    def bind(self, *values: Any) -> D1PreparedStatement:
        """The statement with these parameters; raises `D1_TYPE_ERROR`."""
        params = [value if type(value) in UNCHANGED else bound(value) for value in values]
        return _statement(self._session, self.statement, params)

    def first(self, column: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """The first row, or one column of it; null where there is no row."""

        def shape(answers: list[Answer]) -> Any:
            rows = answers[0].objects
            if not rows:
                return None
            if column is UNDEFINED:
                return rows[0]
            name = display(column)
            if name not in rows[0]:
                raise texts.no_column(name)
            return rows[0][name]

        return self._session.query("first", (self,), shape)

    def run(self, *_: Any) -> asyncio.Future[Any]:
        """Run it; the rows are there too."""
        return self._session.query("run", (self,), _one_result)

    def all(self, *_: Any) -> asyncio.Future[Any]:
        """Run it, for its rows."""
        return self._session.query("all", (self,), _one_result)

    def raw(self, options: Any = UNDEFINED, *_: Any) -> asyncio.Future[Any]:
        """The rows as lists, after one of the columns' names if `columnNames` asks for it."""
        named = _option(options, "columnNames")

        def shape(answers: list[Answer]) -> list[list[Any]]:
            names = [list(answers[0].outcome.columns)] if named else []
            return [*names, *answers[0].rows]

        return self._session.query("raw", (self,), shape)


def _statement(session: Session, statement: Any, params: list[Any]) -> D1PreparedStatement:
    """Make a statement, without a constructor, which Python calls by way of C."""
    made: D1PreparedStatement = D1PreparedStatement()
    made._session = session
    made.statement = statement
    made.params = params
    return made


def _one_result(answers: list[Answer]) -> dict[str, Any]:
    return answers[0].result()


def _batch(session: Session, statements: Any) -> asyncio.Future[Any]:
    if not isinstance(statements, list):
        return calls.refuse(_no_method(statements, "statements", "map"))
    if any(item is None or item is UNDEFINED for item in statements):
        missing = next(item for item in statements if item is None or item is UNDEFINED)
        return calls.refuse(_no_method(missing, "", "statement"))
    queries = [
        item if isinstance(item, D1PreparedStatement) else Query(UNDEFINED) for item in statements
    ]
    return session.query("batch", queries, lambda answers: [answer.result() for answer in answers])


def _no_method(value: Any, name: str, method: str) -> JsException:
    if value is None or value is UNDEFINED:
        text = f"Cannot read properties of {display(value)} (reading '{method}')"
    else:
        text = f"{name}.{method} is not a function"
    return JsException("TypeError", text)


def _option(options: Any, name: str) -> bool:
    if isinstance(options, (Mapping, LiteralMap)):
        value = options.get(name)
        return value is not UNDEFINED and bool(value)
    return False
