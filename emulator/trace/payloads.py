"""What events carry: the body of a message or a request, a Workflow's params and results.

A payload is kept as the bytes that were sent or stored anyway, and read only when it is looked at
or written. A timeline for people leaves payloads out; JSON lines and the page have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from emulator.values import decode_body

_LARGEST_HTTP: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Payload:
    """Serialized data; `encoding` is a queue's content type, or `http` for text or bytes."""

    encoding: str
    data: bytes

    @property
    def value(self) -> Any:
        """The value that it stands for; its bytes, if they cannot be read."""
        try:
            if self.encoding == "http":
                return self.data.decode("utf-8")
            return decode_body(self.data, self.encoding)
        except Exception:  # whatever a reader raises: a trace must always be written
            return self.data


def http_body(body: object) -> dict[str, Payload]:
    """Return the data that tells an HTTP body: none if it is empty, streamed or over 1 MiB."""
    if isinstance(body, bytes) and 0 < len(body) <= _LARGEST_HTTP:
        return {"body": Payload("http", body)}
    return {}


def socket_message(message: str | bytes) -> dict[str, Payload]:
    """Return the data that tells a message of a WebSocket: none if it is over 1 MiB."""
    data = message.encode() if isinstance(message, str) else message
    return {"message": Payload("http", data)} if len(data) <= _LARGEST_HTTP else {}


def stored(name: str, data: bytes | None) -> dict[str, Payload]:
    """Return the data that tells a Workflow's value, which is stored as a structured clone."""
    return {} if data is None else {name: Payload("v8", data)}
