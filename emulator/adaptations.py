"""What the process is taught about loops of a simulation, while there is one.

- asyncio's `Event`, `Lock`, `Queue` and kin bind to the first loop that waits on them and refuse
  any other; a simulation waits on them without binding, so that test and Worker may share one.
- `gather`, `shield` and `wait_for` refuse futures of another loop; between a simulation and any
  other loop they get a copy that is done as soon as the future is (`tasks.mirror`).
- `as_completed` puts coroutines into a set, whose order is that of their addresses: they become
  numbered tasks first, in the order given.
- `asyncio.run` in a simulation waits without `await`, as in Pyodide, instead of refusing.
- A blocking socket of a Worker's code would really leave the process: it is refused.
- `json` writes Pyodide's `jsnull` as null, whatever else an encoder knows, as Pyodide's own does.
- anyio's worker threads: nothing real may be in flight while virtual time passes, so jobs of
  `anyio.to_thread.run_sync`, Starlette's `run_in_threadpool` and synchronous endpoints run at once,
  on the spot. asyncio's own executors end in `SimLoop.run_in_executor`.

Each replacement looks at the running loop and does what it replaced unless that is a simulation.
They are put in place with the first simulation and taken back when the last is closed.
"""

from __future__ import annotations

import asyncio
import functools
import json.encoder
import socket
import sys
import weakref
from asyncio import coroutines, events, futures, mixins, tasks
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from emulator.tasks import mirror

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.loop import SimLoop

# The simulations there are, and what was replaced for them: (owner, name, what it was).
_open: weakref.WeakSet[SimLoop] = weakref.WeakSet()
_replaced: list[tuple[Any, str, Any]] = []
_INHERITED = object()


def install(simulation: SimLoop) -> None:
    """Teach asyncio and `socket`, if no other simulation has."""
    if not _open:
        kind = type(simulation)
        _share_primitives(kind)
        _share_futures(kind)
        _order_completion(kind)
        _run_in_place(kind)
        _refuse_sockets(kind)
        _write_null()
    _open.add(simulation)


def uninstall(simulation: SimLoop) -> None:
    """Put back what was replaced, if no other simulation needs it."""
    _open.discard(simulation)
    while not _open and _replaced:
        owner, name, usual = _replaced.pop()
        if usual is _INHERITED:
            delattr(owner, name)
        else:
            setattr(owner, name, usual)


def _replace(owner: Any, name: str, replacement: Any) -> None:
    _replaced.append((owner, name, vars(owner).get(name, _INHERITED)))
    setattr(owner, name, replacement)


def adapt_anyio(simulation: type[SimLoop]) -> bool:
    """Teach `anyio.to_thread`; False as long as it is not imported."""
    module: Any = sys.modules.get("anyio.to_thread")
    if module is None or not hasattr(module, "get_async_backend"):
        return False
    if not any(owner is module for owner, _, _ in _replaced):
        usual = module.get_async_backend

        def get_async_backend(*args: Any, **options: Any) -> Any:
            backend = usual(*args, **options)
            inside = isinstance(events._get_running_loop(), simulation)
            return _Inline(backend) if inside else backend

        _replace(module, "get_async_backend", get_async_backend)
    return True


class _Inline:
    """The part of anyio's backend that `anyio.to_thread` uses."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    async def run_sync_in_worker_thread(
        self, func: Callable[..., Any], args: tuple[Any, ...], *_: Any, **__: Any
    ) -> Any:
        await self._backend.checkpoint()
        return copy_context().run(func, *args)


def _share_primitives(simulation: type[SimLoop]) -> None:
    mixin: Any = mixins._LoopBoundMixin
    usual = mixin._get_loop

    def _get_loop(self: Any) -> Any:
        running = events._get_running_loop()
        return running if isinstance(running, simulation) else usual(self)

    _replace(mixin, "_get_loop", _get_loop)


def _share_futures(simulation: type[SimLoop]) -> None:
    module: Any = tasks
    name = "_ensure_future" if hasattr(module, "_ensure_future") else "ensure_future"
    usual = getattr(module, name)

    @functools.wraps(usual)
    def ensure_future(coro_or_future: Any, **options: Any) -> Any:
        if futures.isfuture(coro_or_future):
            running, loop = events._get_running_loop(), coro_or_future.get_loop()
            crossing = isinstance(running, simulation) or isinstance(loop, simulation)
            if crossing and running is not None and running is not loop:
                coro_or_future = mirror(coro_or_future, running)
        return usual(coro_or_future, **options)

    _replace(module, name, ensure_future)


def _order_completion(simulation: type[SimLoop]) -> None:
    module: Any = tasks
    usual = module.as_completed

    @functools.wraps(usual)
    def as_completed(fs: Any, **options: Any) -> Any:
        one = futures.isfuture(fs) or coroutines.iscoroutine(fs)
        if isinstance(events._get_running_loop(), simulation) and not one:
            fs = [tasks.ensure_future(each) for each in dict.fromkeys(fs)]
        return usual(fs, **options)

    _replace(module, "as_completed", as_completed)
    _replace(asyncio, "as_completed", as_completed)


def _run_in_place(simulation: type[SimLoop]) -> None:
    usual = asyncio.run

    @functools.wraps(usual)
    def run(main: Any, **options: Any) -> Any:
        running = events._get_running_loop()
        if isinstance(running, simulation):
            return running.run_until_complete(main)
        return usual(main, **options)

    _replace(asyncio, "run", run)


def _refuse_sockets(simulation: type[SimLoop]) -> None:
    kind: Any = socket.socket
    connect, connect_ex, getaddrinfo = kind.connect, kind.connect_ex, socket.getaddrinfo

    def check(host: Any, port: Any) -> None:
        running = events._get_running_loop()
        if isinstance(running, simulation):
            running.check_socket(host, port)

    def guarded_connect(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple):
            check(*address[:2])
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        if isinstance(address, tuple):
            check(*address[:2])
        code: int = connect_ex(self, address)
        return code

    def guarded_getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        check(host, port)
        return getaddrinfo(host, port, *args, **options)

    _replace(kind, "connect", guarded_connect)
    _replace(kind, "connect_ex", guarded_connect_ex)
    _replace(socket, "getaddrinfo", guarded_getaddrinfo)


def _write_null() -> None:
    from emulator.runtime.pyproxy import jsnull

    def knowing_null(default: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: None if value is jsnull else default(value)

    def replace(name: str) -> None:
        usual = vars(json.encoder)[name]

        def make(markers: Any, default: Callable[[Any], Any], *rest: Any) -> Any:
            return usual(markers, knowing_null(default), *rest)

        _replace(json.encoder, name, make)

    for name in ("c_make_encoder", "_make_iterencode"):
        if vars(json.encoder).get(name) is not None:
            replace(name)
