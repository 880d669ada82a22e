"""Bodies of requests and responses that one side makes and the other reads.

Bytes cross as they are. A stream is read by a task of its maker's, for its lines are the maker's,
and the chunks go through a pipe: no side ever awaits a task of the other's.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from emulator.foreign import is_foreign
from emulator.rpc.errors import disconnected

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

    from emulator.invocation import Invocation
    from emulator.runtime.host import Body

# The maker is held back when this many chunks are there to be read.
_MOST_UNREAD = 16


def across(body: Body, maker: Invocation) -> Body:
    """Return a body as the other side may read it."""
    return body if isinstance(body, bytes) else Pipe(body, maker)


class Pipe:
    """Chunks on their way from their maker to whoever reads them."""

    def __init__(self, chunks: AsyncIterator[bytes], maker: Invocation) -> None:
        self._loop = maker.kernel.loop
        self._chunks: deque[bytes] = deque()
        self._done = False
        self._wanted = True
        self._error: BaseException | None = None
        self._changed: asyncio.Future[None] | None = None
        task = self._loop.spawn(maker, self._fill(chunks), "a body on its way")
        task.inner = True
        maker.sends(task)
        maker.at_leave(self._maker_left)

    # -- the reader's side -----------------------------------------------------------------------

    def __aiter__(self) -> Pipe:
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._done:
                raise StopAsyncIteration
            await self._change()
        chunk = self._chunks.popleft()
        self._announce()
        return chunk

    async def aclose(self) -> None:
        """Want no more of it."""
        self._wanted = False
        self._announce()

    # -- the maker's side ------------------------------------------------------------------------

    async def _fill(self, chunks: AsyncIterator[bytes]) -> None:
        try:
            async for chunk in chunks:
                self._chunks.append(chunk)
                self._announce()
                while len(self._chunks) >= _MOST_UNREAD and self._wanted:
                    await self._change()
                if not self._wanted:
                    break
        except BaseException as error:
            if is_foreign(error):
                raise
            self._error = disconnected()
        finally:
            self._done = True
            self._announce()
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    def _maker_left(self) -> None:
        if not self._done:
            self._done, self._error = True, disconnected()
            self._announce()

    async def _change(self) -> None:
        if self._changed is None:
            self._changed = self._loop.create_future()
        await self._changed

    def _announce(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done() and not self._loop.is_closed():
            changed.set_result(None)
