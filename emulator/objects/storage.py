"""`ctx.storage` of a Durable Object, as JavaScript has it.

Every operation is done when it is called, and its promise is kept already: awaiting one lets no
other event in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.bindings import calls
from emulator.objects import texts
from emulator.objects.operations import Operations
from emulator.rpc.errors import outgoing
from emulator.runtime.pyproxy import await_given, call_given
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from emulator.objects.live import LiveObject
    from emulator.objects.sql import SqlStorage
    from emulator.objects.sync_kv import SyncKvStorage

# What the local runtime says; it cannot go back in time either.
_BOOKMARK: Final = "-".join(("0" * 8, "0" * 8, "0" * 8, "0" * 32))
_BOOKMARKS: Final = frozenset(
    {"getCurrentBookmark", "getBookmarkForTime", "onNextSessionRestoreBookmark"}
)


class _Promised(HostObject):
    """Operations whose results and errors are a promise's."""

    def __init__(self, live: LiveObject) -> None:
        self._live = live
        self._operations = Operations(live)

    def _check(self, method: str) -> None:
        """Raise `JsException` where the operation cannot be called now."""
        self._live.check_caller()

    def _do(self, method: str, work: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        try:
            self._check(method)
            result = work(*arguments)
        except JsException as error:
            return calls.refuse(error)
        done: asyncio.Future[Any] = self._live.kernel.loop.create_future()
        done.set_result(result)
        return done

    def get(self, keys: Any = UNDEFINED, options: Any = UNDEFINED) -> asyncio.Future[Any]:
        """The value of a key; a Map for several."""
        return self._do("get", self._operations.get, keys)

    def list(self, options: Any = UNDEFINED) -> asyncio.Future[Any]:
        """A Map of the keys in a range, sorted."""
        return self._do("list", self._operations.list, options)

    def put(
        self, first: Any = UNDEFINED, second: Any = UNDEFINED, third: Any = UNDEFINED
    ) -> asyncio.Future[Any]:
        """Store a value, or all properties of an object."""
        return self._do("put", self._operations.put, first, second, third)

    def delete(self, keys: Any = UNDEFINED, options: Any = UNDEFINED) -> asyncio.Future[Any]:
        """Delete a key or several."""
        return self._do("delete", self._operations.delete, keys)

    def deleteAll(self, options: Any = UNDEFINED) -> asyncio.Future[Any]:
        """Delete everything."""
        return self._do("deleteAll", self._operations.delete_all)

    def getAlarm(self, options: Any = UNDEFINED) -> asyncio.Future[Any]:
        """The time of the alarm."""
        return self._do("getAlarm", self._operations.get_alarm)

    def setAlarm(self, time: Any = UNDEFINED, options: Any = UNDEFINED) -> asyncio.Future[Any]:
        """Set the alarm, by a Date or milliseconds."""
        return self._do("setAlarm", self._operations.set_alarm, time)

    def deleteAlarm(self, options: Any = UNDEFINED) -> asyncio.Future[Any]:
        """Delete the alarm."""
        return self._do("deleteAlarm", self._operations.delete_alarm)


_BOTH: Final = frozenset(
    {
        *("get", "list", "put", "delete", "deleteAll"),
        *("getAlarm", "setAlarm", "deleteAlarm"),
    }
)


class DurableObjectStorage(_Promised):
    """All that an object can store."""

    js_class = "DurableObjectStorage"
    js_members = _BOTH | {"transaction", "transactionSync", "sync", "sql", "kv", *_BOOKMARKS}

    def __init__(self, live: LiveObject) -> None:
        super().__init__(live)
        self._sql: SqlStorage | None = None
        self._kv: SyncKvStorage | None = None

    def sync(self) -> asyncio.Future[Any]:
        """Wait until all writes are durable; answers and calls wait for that in any case."""
        return self._do("sync", self._operations.sync)

    def getCurrentBookmark(self) -> asyncio.Future[Any]:
        """The same point in time always."""
        return self._do("getCurrentBookmark", lambda: _BOOKMARK)

    def getBookmarkForTime(self, *_: Any) -> asyncio.Future[Any]:
        """Refused: there is no way back here."""
        return calls.refuse(JsException("Error", texts.NO_RECOVERY))

    def onNextSessionRestoreBookmark(self, *_: Any) -> asyncio.Future[Any]:
        """Refused: there is no way back here."""
        return calls.refuse(JsException("Error", texts.NO_RECOVERY))

    def transaction(
        self, callback: Any = UNDEFINED, options: Any = UNDEFINED
    ) -> asyncio.Future[Any]:
        """Call a function with a transaction: what it writes is kept when it ends, or nothing."""
        if not callable(callback):
            return calls.refuse(texts.wrong_type("transaction", "function"))
        live = self._live
        try:
            live.check_caller()
        except JsException as error:
            return calls.refuse(error)
        is_last = live.meet_first("transaction")
        done: asyncio.Future[Any] = live.kernel.loop.create_future()
        blocked = live.block(lambda: _transact(live, callback, done, is_last=is_last))
        blocked.add_done_callback(lambda end: _pass_refusal(end, done))
        return done

    def transactionSync(self, callback: Any = UNDEFINED) -> Any:
        """Call a function; what it writes is kept, unless it raises."""
        live, stored = self._live, self._live.stored
        live.check_caller()
        if not callable(callback):
            raise texts.wrong_type("transactionSync", "function")
        if not live.space.sqlite and live.kernel.profile == "production":
            raise JsException("Error", texts.NO_SQL_TRANSACTION)
        live.meet("transactionSync", writes=True)
        stored.begin()
        try:
            value = call_given(callback)
        except BaseException:
            if not live.scope.dead:
                live.home.rollback(live)
            raise
        problem = live.home.commit_level(live)
        if problem is not None:
            raise problem
        return value

    @property
    def sql(self) -> SqlStorage:
        """The object's own SQLite database."""
        from emulator.objects.sql import SqlStorage

        live = self._live
        if not live.space.sqlite:
            raise JsException("Error", texts.NO_SQL[live.kernel.profile])
        if self._sql is None:
            self._sql = SqlStorage(live)
        return self._sql

    @property
    def kv(self) -> SyncKvStorage:
        """The values by key, without promises."""
        from emulator.objects.sync_kv import SyncKvStorage

        if not self._live.space.sqlite:
            raise JsException("Error", texts.NO_KV)
        if self._kv is None:
            self._kv = SyncKvStorage(self._live, self._operations)
        return self._kv


class DurableObjectTransaction(_Promised):
    """What the function of a transaction gets."""

    js_class = "DurableObjectTransaction"
    js_members = _BOTH | {"rollback"}

    def __init__(self, live: LiveObject) -> None:
        super().__init__(live)
        self.is_over = False
        self.is_rolled_back = False

    def _check(self, method: str) -> None:
        super()._check(method)
        if self.is_rolled_back:
            raise texts.rolled_back(method)
        if self.is_over:
            raise texts.committed(method)

    def rollback(self) -> object:
        """Undo what the transaction wrote; it can do nothing more."""
        if not self.is_rolled_back:
            self._check("rollback")
            self.is_rolled_back = True
            self._live.home.rollback(self._live)
        return UNDEFINED


async def _transact(
    live: LiveObject, callback: Any, done: asyncio.Future[Any], *, is_last: bool
) -> None:
    """The section of a transaction; an error of its function is the promise's."""
    transaction = DurableObjectTransaction(live)
    live.stored.begin()
    live.transactions += 1
    error: JsException | None = None
    value: Any = UNDEFINED
    try:
        value = await await_given(callback, transaction)
    except BaseException as failure:
        live.pass_on(failure)
        error = outgoing(failure, live.scope.isolate.worker.folder)
    live.transactions -= 1
    if not transaction.is_rolled_back:
        if error is None:
            error = live.home.commit_level(live)
        else:
            live.home.rollback(live)
    transaction.is_over = True
    if is_last:
        live.doom()
    if error is None:
        calls.resolve(done, value)
    else:
        calls.reject(done, error)


def _pass_refusal(end: asyncio.Future[Any], done: asyncio.Future[Any]) -> None:
    """What was not begun, because it nests too deeply, is refused."""
    error = end.exception()
    if error is not None:
        calls.reject(done, error)
