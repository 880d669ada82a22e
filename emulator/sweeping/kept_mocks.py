"""What respx replaces in httpcore stays replaced between the runs of a sweep.

respx looks up and wraps all of it whenever a first router starts, which took 6 % of a run's time,
and leaves it alone while a router is registered. Here one is that answers nothing: a request that
no other router can have, for there is none, goes the way it would have gone without respx.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx


@contextmanager
def kept_mocks() -> Iterator[None]:
    """Keep what is replaced; does nothing where respx was not imported."""
    mocks: Any = sys.modules.get("respx.mocks")
    if mocks is None:
        yield
        return
    mocker = mocks.Mocker.registry[mocks.DEFAULT_MOCKER]
    idle = _Idle(mocker)
    # The first one, so that what another says of a request is what counts.
    mocker.routers.insert(0, idle)
    mocker.start()
    try:
        yield
    finally:
        mocker.unregister(idle)
        mocker.stop()


class _Idle:
    """A router without routes."""

    def __init__(self, mocker: Any) -> None:
        self._mocker = mocker

    def handler(self, request: httpx.Request) -> NoReturn:
        """Leave a request to the other routers, or to httpcore."""
        models: Any = sys.modules["respx.models"]
        if len(self._mocker.routers) > 1:
            raise models.AllMockedAssertionError
        raise models.PassThrough("nothing is mocked", request=request, origin=None)

    async def async_handler(self, request: httpx.Request) -> NoReturn:
        """Do so where the request is awaited."""
        self.handler(request)
