"""SQL for D1 databases: `/accounts/{account}/d1/database`.

Databases are those of the configs, with their migrations applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.d1.parameters import bound
from emulator.d1.store import Query
from emulator.server.rest.answers import ApiError, Page, not_found, time
from emulator.server.rest.fields import Fields, body, invalid, kind_of, paged
from emulator.sql import SqlError
from emulator.sql.statements import split
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.d1.results import Answer
    from emulator.d1.store import Store
    from emulator.d1_config import D1Config
    from emulator.server.rest.calls import Call, Operations

_NO_DATABASE: Final = 7404
_FAILED: Final = 7500


def _databases(call: Call) -> dict[str, D1Config]:
    found: dict[str, D1Config] = {}
    for worker in call.platform.settings.workers:
        for database in worker.databases:
            found.setdefault(database.id, database)
    return found


def _find(call: Call) -> tuple[D1Config, Store]:
    id = call.path["database"]
    known = _databases(call)
    config = known.get(id)
    if config is None:
        error = ApiError(404, _NO_DATABASE, f"The database {id} could not be found")
        raise not_found(error, "database", id, {one.name: one.id for one in known.values()})
    return config, call.platform.d1.stores[id]


def _described(call: Call, config: D1Config) -> dict[str, Any]:
    return {
        "uuid": config.id,
        "name": config.name,
        "created_at": time(call.kernel.clock.start),
        "version": "production",
    }


def list_databases(call: Call) -> Page:
    """Return the databases whose names begin as `name` says."""
    wanted = call.query.get("name", "")
    known = [one for one in _databases(call).values() if one.name.startswith(wanted)]
    page = paged(known, call.query, per_page=100)
    return page._replace(items=[_described(call, config) for config in page.items])


def get_database(call: Call) -> Any:
    """Return a database, its size included."""
    config, store = _find(call)
    tables = store.database.own("SELECT name FROM sqlite_schema WHERE type = 'table'")
    names = [str(row[0]) for row in tables]
    return {
        **_described(call, config),
        "file_size": store.database.size(),
        "num_tables": sum(not name.startswith(("sqlite_", "_cf_")) for name in names),
    }


def query_database(call: Call) -> Any:
    """Run SQL; a result for each statement, with rows as objects."""
    return [answer.result() for answer in _run(call, "query")]


def query_database_raw(call: Call) -> Any:
    """Run SQL; a result for each statement, with rows as lists."""
    return [
        {
            "success": True,
            "meta": answer.meta(),
            "results": {"columns": list(answer.outcome.columns), "rows": answer.rows},
        }
        for answer in _run(call, "raw")
    ]


def _run(call: Call, name: str) -> Sequence[Answer]:
    """Run all statements as one transaction."""
    config, store = _find(call)
    queries = _queries(body(call))
    try:
        answers = store.query(queries)
    except SqlError as error:
        raise ApiError(400, _FAILED, str(error)) from None
    except JsException as error:
        raise ApiError(400, _FAILED, error.message) from None
    if any(query.writes for query in queries):
        sql = "; ".join(str(query.statement) for query in queries)
        call.platform.d1.record(config.binding, {"call": name, "sql": sql, "by": "rest"})
    return answers


def _queries(given: Fields) -> list[Query]:
    """The statements of a body: of its `sql`, or of each item of its `batch`."""
    if "batch" in given.values:
        items = given.items("batch", required=True)
        if not items:
            raise invalid('Array must contain at least 1 element(s) at "batch"')
        return [query for item in items for query in _statements(item)]
    return _statements(given)


def _statements(given: Fields) -> list[Query]:
    """Several statements in one text; the parameters are the last one's."""
    sql = given.text("sql", required=True) or ""
    params = given.values.get("params")
    params = [] if params is None else params
    if not isinstance(params, list):
        raise invalid(f'Expected array, received {kind_of(params)} at "{given.path("params")}"')
    *before, last = split(sql) or [sql]
    try:
        return [*map(Query, before), Query(last, [bound(value) for value in params])]
    except JsException as error:
        raise ApiError(400, _FAILED, error.message) from None


_ALL = "/d1/database"
_ONE = f"{_ALL}/{{database}}"
OPERATIONS: Operations = (
    ("GET", _ALL, list_databases),
    ("GET", _ONE, get_database),
    ("POST", f"{_ONE}/query", query_database),
    ("POST", f"{_ONE}/raw", query_database_raw),
)
