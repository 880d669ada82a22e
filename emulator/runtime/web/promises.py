"""Promises of the platform's own.

`Resolved` and `Rejected` are settled already and need no task, future or loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

T = TypeVar("T")


class Resolved(Generic[T]):
    """A promise fulfilled with a value."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def __await__(self) -> Generator[Any, None, T]:
        return self._value
        yield  # makes this a generator, which `await` wants


class Rejected:
    """A promise rejected with an error; nobody is told if it is never awaited."""

    __slots__ = ("_error",)

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __await__(self) -> Generator[Any, None, NoReturn]:
        raise self._error
        yield  # as above


def unwatched_future() -> asyncio.Future[Any]:
    """Return a future that may fail with nobody waiting for it: its stream tells."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.add_done_callback(look_at)
    return future


def look_at(future: asyncio.Future[Any]) -> None:
    """Count a future's failure as seen."""
    if not future.cancelled():
        future.exception()
