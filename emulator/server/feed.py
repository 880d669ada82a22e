"""What happens, as it happens: the events of a trace for those who follow it.

A feed outlives the emulator it listens to: numbers go on after a reload, and followers stay. An
event is told when what it is about is durable.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from emulator.trace.events import Event
    from emulator.trace.live import LiveTrace


class Told(NamedTuple):
    """An event with its number, from 1, and as the JSON object that may be shown of it."""

    number: int
    event: Event
    trace: LiveTrace

    def described(self, *, payloads: bool = True) -> dict[str, Any]:
        """Return it as `Trace.to_jsonl` writes it, secrets masked, with its `number` first."""
        return {"number": self.number, **self.trace.described(self.event, payloads=payloads)}


class Feed:
    """Keeps the latest events, `keep` of them, and tells new ones to followers."""

    def __init__(self, keep: int) -> None:
        self._events: deque[Told] = deque(maxlen=keep)
        self._trace: LiveTrace | None = None
        self._seen = 0
        self._before = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._closed = False

    @property
    def last(self) -> int:
        """The number of the latest event."""
        return self._events[-1].number if self._events else 0

    def attach(self, trace: LiveTrace) -> None:
        """Listen to this trace from now on; its first event follows the last one of the feed."""
        self._trace, self._seen, self._before = trace, 0, self.last

    def publish(self) -> None:
        """Take in what happened since the last time; called when it is durable."""
        trace = self._trace
        if trace is None or trace.total == self._seen:
            return
        if trace.total < self._seen:
            self._seen = 0  # the emulator was reset
        for number, event in trace.since(self._seen):
            # As `Told(...)`, but at C speed.
            self._events.append(tuple.__new__(Told, (self._before + number, event, trace)))
        self._seen = trace.total
        self._wake()

    def since(self, number: int) -> list[Told]:
        """Return the events after this one, as far as they are kept."""
        new: list[Told] = []
        for told in reversed(self._events):
            if told.number <= number:
                break
            new.append(told)
        return new[::-1]

    async def follow(self, since: int | None = None) -> AsyncIterator[Told]:
        """Yield events as they come, at first those after the number `since`; ends with the server.

        A follower that is too slow misses what is no longer kept; the numbers show it.
        """
        last = self.last if since is None else since
        while True:
            for told in self.since(last):
                last = told.number
                yield told
            if self._closed:
                return
            if self.last <= last:
                await self._news()

    def close(self) -> None:
        """Let followers end."""
        self._closed = True
        self._wake()

    async def _news(self) -> None:
        news = asyncio.get_running_loop().create_future()
        self._waiting.append(news)
        try:
            await news
        finally:
            if news in self._waiting:
                self._waiting.remove(news)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for news in waiting:
            if not news.done():
                news.set_result(None)
