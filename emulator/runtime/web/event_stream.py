"""The format `text/event-stream`, as workerd reads it (`api/eventsource.c++`, `EventSourceSink`).

Pure: bytes go in as they come, messages come out. A line ends with LF, CR or CR LF, but a CR at the
end of what came ends it alone: an LF that comes next is an empty line, as in the runtime. What has
no end yet when the stream ends is dropped.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_END_OF_LINE: Final = re.compile(rb"\r\n|\n|\r")
_NUMBER: Final = re.compile(r"\d{1,10}")
_BOM: Final = b"\xef\xbb\xbf"
_LARGEST: Final = 2**32 - 1


class Message(NamedTuple):
    """A message: its data, its type, and the last event id when it was complete."""

    data: str
    kind: str
    last_id: str


class EventStream:
    """One connection's stream; the last event id goes on from the connection before."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry: int | None = None  # milliseconds, as the server wants them
        self._kept = b""
        self._is_first = True
        self._has_begun = False
        self._data: list[str] = []
        self._kind: str | None = None

    def feed(self, chunk: bytes) -> list[Message]:
        """Take what came, and return the messages that are complete."""
        if self._is_first:
            self._is_first = False
            chunk = chunk.removeprefix(_BOM)
        lines = _END_OF_LINE.split(chunk)
        lines[0], self._kept = self._kept + lines[0], b""
        self._kept = lines.pop()
        found = [self._line(line.decode("utf-8", "replace")) for line in lines]
        return [message for message in found if message is not None]

    def _line(self, line: str) -> Message | None:
        if not line:
            return self._complete()
        field, _, value = line.partition(":")
        if field:  # without one it is a comment
            self._has_begun = True
            self._field(field, value.removeprefix(" "))
        return None

    def _field(self, field: str, value: str) -> None:
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._kind = value
        elif field == "id":
            self.last_id = value
        elif field == "retry" and _NUMBER.fullmatch(value) and int(value) <= _LARGEST:
            self.retry = int(value)

    def _complete(self) -> Message | None:
        if not self._has_begun:
            return None
        kind = "message" if self._kind is None else self._kind
        message = Message("\n".join(self._data), kind, self.last_id)
        self._has_begun, self._data, self._kind = False, [], None
        return message if message.data else None
