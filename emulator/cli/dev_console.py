"""What the terminal shows of a running server: a line for each thing that happened.

A request is one line, when it is answered; so is a batch, the outcome of its messages, a step, a
log line, and whatever is lost; where the day changes, its date is a line. With `as_json` every
event is a JSON object on a line of its own, and so are the server's own words, as
`{"server": ...}`.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import click

from emulator.clock import MICROSECONDS, moment
from emulator.durations import DAY
from emulator.trace.kinds import brief, tone
from emulator.trace.timeline import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from emulator.server.feed import Feed, Told

# Events that say nothing which another line does not say.
_SILENT: Final = frozenset(
    {
        *("request", "wait_until", "send", "query", "kv", "sleep", "wake", "step", "wait"),
        *("workflow_run", "workflow_hibernated", "object_started", "object_call", "object_stored"),
        *("alarm_set", "alarm", "request_out", "reload", "scheduled"),
    }
)
# Outcomes of messages, of which there may be many in one instant.
_OUTCOMES: Final = frozenset({"ack", "retry", "dead_letter", "dropped", "expired"})
# What a text is put into, by its tone.
_COLOURS: Final = {
    tone: click.style("%s", fg=colour)
    for tone, colour in (("fault", "magenta"), ("lost", "red"), ("bad", "red"), ("done", "green"))
}
_IDS_SHOWN: Final = 3
_MOST_OPEN: Final = 1000
_MOMENT: Final = 0.025
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))


class Console:
    """Writes lines with `write`; secrets are masked before they come here."""

    def __init__(self, write: Callable[[list[str]], None], *, as_json: bool = False) -> None:
        self._write = write
        self.as_json = as_json
        # Told of each queue that something was sent to.
        self.on_send: Callable[[str], None] | None = None
        # When requests on their way began, by their subject.
        self._begun: dict[str, int] = {}
        # That of the line before, in days since the epoch.
        self._day: int | None = None
        # The second of the line before, and how it is written: most lines are of the same one.
        self._second: int | None = None
        self._clock = ""

    def say(self, text: str, *, colour: str | None = None, **facts: Any) -> None:
        """Write what the server itself has to say; `facts` are for programs."""
        if self.as_json:
            self._write([json.dumps({"server": text, **facts})])
            return
        lines = [printable(line) for line in text.splitlines()]
        self._write([click.style(line, fg=colour) for line in lines] if colour else lines)

    async def follow(self, feed: Feed) -> None:
        """Show events from the first on, as they come, until the feed is closed."""
        last = 0
        async for told in feed.follow(last):
            # All that came at once, so that outcomes of one batch are one line.
            if told.number > last:
                new = [told, *feed.since(told.number)]
                last = new[-1].number
                self.show(new)
                # What comes in the next moment is shown together with what follows it.
                await asyncio.sleep(_MOMENT)

    def show(self, events: Iterable[Told]) -> None:
        """Write the lines of some events."""
        if self.as_json:
            lines = [_ENCODER.encode(told.described()) for told in events]
        else:
            lines = list(self._lines(events))
        if lines:
            self._write(lines)  # at once: each call is one of the system

    def _lines(self, events: Iterable[Told]) -> Iterator[str]:
        outcomes: list[Told] = []
        for told in events:
            kind = told.event.kind
            if outcomes and _same(outcomes[0]) != _same(told):
                yield from self._line(outcomes[0], _outcome(outcomes))
                outcomes.clear()
            if kind in _OUTCOMES:
                outcomes.append(told)
                continue
            text = self._text(kind, told)
            if text is not None:
                yield from self._line(told, text)
        if outcomes:
            yield from self._line(outcomes[0], _outcome(outcomes))

    def _text(self, kind: str, told: Told) -> str | None:
        """What the line of an event says; None for one that has no line."""
        event = told.event
        if kind == "request":
            self._begin(event.subject, event.at)
        elif kind == "response":
            took = (event.at - self._begun.pop(event.subject, event.at)) / 1000
            return f"{event.data['status']} in {took:.0f} ms"
        elif kind == "send" and self.on_send is not None:
            self.on_send(event.subject.removeprefix("queue "))
        return None if kind in _SILENT else _words(told)

    def _line(self, told: Told, text: str) -> Iterator[str]:
        """The line for an event, after one with the date where that is another than before.

        A text of several lines goes on below it.
        """
        at = told.event.at
        if at // MICROSECONDS != self._second:
            self._second = at // MICROSECONDS
            now = moment(at)
            self._clock = f"{now:%H:%M:%S}"
            day, self._day = self._day, at // DAY
            if day not in (None, self._day):
                yield f"{now:%Y-%m-%d}"
        milliseconds = at % MICROSECONDS // 1000
        colour = _COLOURS.get(tone(told.event.kind, told.event.data))
        shown = "\n    ".join([printable(line.expandtabs(4)) for line in text.splitlines()])
        yield (
            f"{self._clock}.{milliseconds:03}  {printable(told.trace.masker(told.event.subject))}"
            f"  {colour % shown if colour else shown}"
        )

    def _begin(self, subject: str, at: int) -> None:
        self._begun[subject] = at
        if len(self._begun) > _MOST_OPEN:
            self._begun.pop(next(iter(self._begun)))


def _same(told: Told) -> tuple[str, str, int]:
    """What events have in common that are told together."""
    return told.event.kind, told.event.subject, told.event.at // DAY


def _words(told: Told) -> str:
    event = told.event
    data: Any = told.described(payloads=False)["data"]
    if event.kind == "log":
        return f"{data['level']}: {data['text']}"
    # What names the event first, then the rest.
    names = [*brief(event.kind), *(name for name in data if name not in brief(event.kind))]
    facts = [f"{name}={_shown(data[name])}" for name in names if name in data]
    return " ".join([event.kind.replace("_", " "), *facts])


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _outcome(group: list[Told]) -> str:
    ids = [str(told.event.data["id"]) for told in group]
    more = f" and {len(ids) - _IDS_SHOWN} more" if len(ids) > _IDS_SHOWN else ""
    attempts = {str(told.event.data["attempt"]) for told in group if "attempt" in told.event.data}
    attempt = f", attempt {attempts.pop()}" if len(attempts) == 1 else ""
    kind = group[0].event.kind.replace("_", " ")
    return f"{kind}: {', '.join(ids[:_IDS_SHOWN])}{more}{attempt}"
