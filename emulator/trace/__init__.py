"""The trace of a simulation: what happened, when and to whom."""

from emulator.trace.events import Event, Trace
from emulator.trace.timeline import write_offset
from emulator.trace.written import Json, write_time, written

__all__ = ["Event", "Json", "Trace", "write_offset", "write_time", "written"]
