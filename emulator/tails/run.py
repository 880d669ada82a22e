"""One run of a `tail` handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.entrypoints import awaited
from emulator.event_record import Onset
from emulator.foreign import is_foreign
from emulator.invocation import Invocation
from emulator.runtime.proxies import wrap

if TYPE_CHECKING:
    from emulator.isolate import Isolate
    from emulator.tails.items import TraceItem

_NO_HANDLER = (
    "Attempted to send events but we lack a handler, did you remember to export a tail() function?"
)


class TailRun(Invocation):
    """A delivery of what happened in another Worker's event.

    Nobody waits for it, and nobody but its own findings learns that it failed. `chain` are the
    Workers whose tails it is the tail of, its own included.
    """

    def __init__(self, isolate: Isolate, chain: tuple[str, ...]) -> None:
        about = f"tail {isolate.worker.name}"
        super().__init__(isolate, about, subject=isolate.kernel.numbered(about), about=about)
        self.chain = chain

    def begin(self, item: TraceItem, *, crash_after: bool) -> None:
        """Run the handler."""
        self.watch(Onset({"consumedEvents": [{"scriptName": item.js_lookup("scriptName")}]}))
        self.start(self._serve(item, crash_after=crash_after))

    async def _serve(self, item: TraceItem, *, crash_after: bool) -> None:
        script = self.isolate.script
        event = "trace" if script.handles("trace") and not script.handles("tail") else "tail"
        try:
            if not script.handles(event):
                self.log("warn", _NO_HANDLER)
            await awaited(self.isolate.handler(event, self)(wrap([item])))
        except BaseException as error:
            if is_foreign(error):
                raise
            self.report(error)
            self.fails()
        if crash_after:
            self.isolate.worker.crash()
