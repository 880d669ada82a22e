"""The trace of a simulation: what happened, when and to whom."""

from emulator.trace.events import Event, Trace
from emulator.trace.payloads import Payload, http_body, socket_message, stored
from emulator.trace.timeline import write_offset
from emulator.trace.written import Json, write_time, written

__all__ = [
    "Event",
    "Json",
    "Payload",
    "Trace",
    "http_body",
    "socket_message",
    "stored",
    "write_offset",
    "write_time",
    "written",
]
