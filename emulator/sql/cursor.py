"""The cursor that `storage.sql.exec` of a Durable Object returns (`workerd/api/sql.c++`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.sql.errors import SqlError
from emulator.sql.values import javascript_row
from emulator.values import UNDEFINED, ArrayBuffer, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.sql.reading import Reading

_NO_RESULT: Final = "Expected exactly one result from SQL query, but got no results."
_MORE: Final = "Expected exactly one result from SQL query, but got multiple results."


class SqlStorageCursor(HostObject):
    """A cursor over the rows of a statement; whoever reads on, reads from where it stands.

    Rows are objects, in which the last of columns with one name counts; `raw` gives arrays. A blob
    is an ArrayBuffer.
    """

    js_class = "Cursor"
    js_members = frozenset(
        {"next", "toArray", "one", "raw", "columnNames", "rowsRead", "rowsWritten"}
    )

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    @property
    def columnNames(self) -> list[str]:
        """The names of the columns, duplicates included."""
        return list(self._reading.columns)

    @property
    def rowsRead(self) -> int:
        """How many rows the statement read."""
        return self._reading.read

    @property
    def rowsWritten(self) -> int:
        """How many rows the statement wrote, indexes included."""
        return self._reading.written

    def next(self, *_: Any) -> dict[str, Any]:
        """The next row as `{done, value}`."""
        values = self._values()
        if values is None:
            return {"done": True}
        return {"done": False, "value": self._object(values)}

    def toArray(self, *_: Any) -> list[dict[str, Any]]:
        """All rows from here on."""
        return list(self)

    def one(self, *_: Any) -> dict[str, Any]:
        """The only row; an error where there is none, or another."""
        values = self._values()
        if values is None:
            raise JsException("Error", _NO_RESULT)
        if self._values() is not None:
            self._reading.close()
            raise JsException("Error", _MORE)
        return self._object(values)

    def raw(self, *_: Any) -> RawIterator:
        """An iterator of arrays of values, over the rows from here on."""
        return RawIterator(self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while (values := self._values()) is not None:
            yield self._object(values)

    def _values(self) -> list[Any] | None:
        try:
            row = self._reading.fetch()
        except SqlError as error:
            raise JsException("Error", str(error)) from None
        return None if row is None else javascript_row(row, ArrayBuffer)

    def _object(self, values: list[Any]) -> dict[str, Any]:
        return dict(zip(self._reading.columns, values, strict=True))


class RawIterator(HostObject):
    """The iterator that `raw` returns."""

    js_class = "RawIterator"
    js_members = frozenset({"next"})

    def __init__(self, cursor: SqlStorageCursor) -> None:
        self._cursor = cursor

    def next(self, *_: Any) -> dict[str, Any]:
        """The next row as `{done, value}`."""
        values = self._cursor._values()
        return {"done": values is None, "value": UNDEFINED if values is None else values}

    def __iter__(self) -> Iterator[list[Any]]:
        while (values := self._cursor._values()) is not None:
            yield values
