"""Error texts of the platform (workerd, August 2026: `api/actor-state.c++`, `api/actor.c++`).

Most of them were seen in a run of workerd 2026-07-30; production's texts for classes without SQLite
are from its source.
"""

from __future__ import annotations

from typing import Final

from emulator.rpc.errors import disconnected
from emulator.values import JsException

_STORAGE: Final = "DurableObjectStorage"

UNDEFINED_VALUE: Final = "put() called with undefined value."
BAD_PUT_OPTIONS: Final = (
    "put() may only be called with a single key-value pair and optional options as put(key, value, "
    "options) or with multiple key-value pairs and optional options as put(entries, options)"
)
START_TWICE: Final = "list() cannot be called with both start and startAfter values."
BAD_LIMIT: Final = "List limit must be positive."
NO_INT32: Final = "Value out of range. Must be between -2147483648 and 2147483647 (inclusive)."
BAD_ALARM: Final = "setAlarm() cannot be called with an alarm time <= 0"
BAD_DATE: Final = "The value cannot be converted because it is not a valid Date."
DELETE_ALL_INSIDE: Final = "Cannot call deleteAll() within a transaction"
NO_SQL_TRANSACTION: Final = "Durable Object is not backed by SQL."
LIST_AGAIN: Final = (
    "kv.list() iterator was invalidated because a new call to kv.list() was started. Only one "
    "kv.list() iterator can exist at a time."
)
NO_RECOVERY: Final = (
    "This Durable Object's storage back-end does not implement point-in-time recovery."
)
NESTED: Final = "blockConcurrencyWhile() calls are nested too deeply."
BLOCKED_TOO_LONG: Final = (
    "A call to blockConcurrencyWhile() in a Durable Object waited for too long. The call was "
    "canceled and the Durable Object was reset."
)
ABORTED: Final = "Application called abort() to reset Durable Object."
UPDATED: Final = "Durable Object reset because its code was updated."
ALARM_TOO_LONG: Final = "Alarm exceeded its allowed execution time"
OTHER_OBJECT: Final = (
    "Cannot perform I/O on behalf of a different Durable Object. I/O objects (such as streams, "
    "request/response bodies, and others) created in the context of one Durable Object cannot be "
    "accessed from a different Durable Object in the same isolate. This is a limitation of "
    "Cloudflare Workers which allows us to improve overall performance."
)
STUB_STORED: Final = "ServiceStub cannot be serialized in this context."

BAD_ID: Final = "Invalid Durable Object ID: must be 64 hex digits"
FOREIGN_ID: Final = "Durable Object ID is not valid for this namespace."
OTHER_JURISDICTION: Final = (
    "get called on jurisdictional subnamespace with an ID from a different jurisdiction"
)
NO_JURISDICTIONS: Final = "Jurisdiction restrictions are not implemented in workerd."

NO_SQL: Final = {
    "production": (
        "This Durable Object is not backed by SQLite storage, so the SQL API is not available. SQL "
        "can be enabled on a new Durable Object class by using the `new_sqlite_classes` instead of "
        "`new_classes` under `[[migrations]]` in your wrangler.toml, but an already-deployed class "
        "cannot be converted to SQLite (except by deleting the existing data)."
    ),
    "miniflare": (
        "SQL is not enabled for this Durable Object class. To enable it, change `new_classes` to "
        "`new_sqlite_classes` within the 'migrations' field in your wrangler.jsonc or "
        "wrangler.toml file. If using workerd directly,set `enableSql = true` in your workerd "
        "config for the class. Note that this change cannot be made after the class is already "
        "deployed to production."
    ),
}
NO_KV: Final = (
    "The storage.kv (synchronous KV) API is only available for SQLite-backed Durable Objects, but "
    "this object's namespace is not declared to use SQLite. You can use the older, asyncronous "
    "interface via methods of `storage` itself (e.g. `storage.get()`). SQLite can be enabled on a "
    "new Durable Object class by using the `new_sqlite_classes` instead of `new_classes` under "
    "`migrations` in your wrangler.jsonc or wrangler.toml, but an already-deployed class cannot be "
    "converted to SQLite (except by deleting the existing data)."
)


def wrong_type(method: str, wanted: str, of: str = _STORAGE, number: int = 1) -> JsException:
    """The error of an argument of the wrong type."""
    text = f"Failed to execute '{method}' on '{of}': parameter {number} is not of type '{wanted}'."
    return JsException("TypeError", text)


def rolled_back(method: str) -> JsException:
    """The error of using a transaction that was rolled back."""
    return JsException("Error", f"Cannot {method}() on rolled back transaction")


def committed(method: str) -> JsException:
    """The error of using a transaction that is over."""
    return JsException(
        "Error",
        f"Cannot call {method}() on transaction that has already committed: did you move `txn` "
        "outside of the closure?",
    )


def reset_by(error: JsException, *, overloaded: bool = False) -> JsException:
    """What callers see of an object that was reset because of an error."""
    seen = again(error)
    seen.__dict__["durableObjectReset"] = True
    if overloaded:
        seen.__dict__["overloaded"] = True
    return seen


def power_lost() -> JsException:
    """What callers see of an object whose machine is gone."""
    return disconnected()


def again(error: JsException) -> JsException:
    """The same error once more, for another caller."""
    copy = JsException(error.name, error.message)
    copy.__dict__.update({k: v for k, v in vars(error).items() if k not in ("name", "message")})
    return copy
