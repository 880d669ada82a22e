"""`ctx.storage.sql`: an object's own SQLite database (workerd, `api/sql.c++`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.objects import texts
from emulator.runtime.js_text import display
from emulator.sql import SqlError, SqlStorageCursor
from emulator.sql.values import storage_value
from emulator.values import UNDEFINED, HostObject, JsException

if TYPE_CHECKING:
    from emulator.objects.live import LiveObject


class SqlStorage(HostObject):
    """Runs SQL, synchronously."""

    js_class = "SqlStorage"
    js_members = frozenset({"exec", "databaseSize"})

    def __init__(self, live: LiveObject) -> None:
        self._live = live

    def exec(self, query: Any = UNDEFINED, *bindings: Any) -> SqlStorageCursor:
        """Run statements; the last one has the parameters, and its rows are the cursor's."""
        live = self._live
        live.check_caller()
        if query is UNDEFINED:
            raise texts.wrong_type("exec", "JsString", self.js_class)
        values = [storage_value(value) for value in bindings]
        live.meet("sql.exec", writes=True)
        database = live.home.open_database(live)
        try:
            reading = database.open(
                live.stored, display(query), values, lasting=bool(live.transactions)
            )
        except SqlError as error:
            raise JsException("Error", str(error)) from None
        return SqlStorageCursor(reading)

    @property
    def databaseSize(self) -> int:
        """Bytes that the database takes."""
        live = self._live
        live.check_caller()
        database = live.home.open_database(live)
        return database.size(live.stored, lasting=bool(live.transactions))
