"""The private names of CPython, asyncio and libraries that the kernel is built on.

A new Python that renames one fails here, with the name and the place that needs it, and not with a
strange error in somebody's test.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import signal
import socket
import sys
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

# Where it is, what it is, who needs it and what for.
NAMES = [
    ("asyncio.events", "_get_running_loop", "loop.py: entering and leaving the simulation"),
    ("asyncio.events", "_set_running_loop", "loop.py: entering and leaving the simulation"),
    ("asyncio", "_unregister_task", "loop.py: a frozen task is none of `all_tasks`"),
    ("asyncio", "_leave_task", "loop.py: a task whose greenlet is frozen is not current"),
    ("asyncio.mixins", "_LoopBoundMixin._get_loop", "adaptations.py: primitives of both sides"),
    ("asyncio.tasks", "ensure_future", "adaptations.py: gather and wait_for of both sides"),
    ("asyncio.tasks", "as_completed", "adaptations.py: coroutines in a set"),
    ("asyncio.base_events", "BaseEventLoop._check_closed", "loop.py"),
    ("asyncio.base_events", "BaseEventLoop._asyncgen_firstiter_hook", "loop.py"),
    ("asyncio.base_events", "BaseEventLoop._asyncgen_finalizer_hook", "loop.py"),
    ("warnings", "_warn_unawaited_coroutine", "unawaited.py: coroutines user code dropped"),
    ("weakref", "finalize._registry", "immortal.py: finalizers of user code at exit"),
    ("random", "_urandom", "surroundings.py: seeded `SystemRandom`"),
    ("ctypes", "pythonapi.Py_IncRef", "immortal.py: objects that are never collected"),
]


@pytest.mark.parametrize(("module", "name", "used"), NAMES, ids=[name for _, name, _ in NAMES])
def test_a_private_name_exists(module: str, name: str, used: str) -> None:
    owner: Any = importlib.import_module(module)
    for part in name.split("."):
        assert hasattr(owner, part), f"this Python has no {module}.{name}, which {used} needs"
        owner = getattr(owner, part)


@pytest.mark.parametrize("name", ["_ready", "_closed", "_thread_id", "_exception_handler"])
def test_a_loop_has_the_attribute_that_simloop_shares(name: str) -> None:
    loop = asyncio.BaseEventLoop()
    assert hasattr(loop, name), f"BaseEventLoop has no {name}, which loop.py needs"
    loop.close()


def test_handles_have_the_attributes_that_ours_set_themselves() -> None:
    expected = {
        "_callback", "_args", "_cancelled", "_loop", "_source_traceback", "_repr", "__weakref__",
        "_context",
    }  # fmt: skip
    assert set(asyncio.Handle.__slots__) == expected, (
        "asyncio.Handle has other attributes; `Handle.__init__` in loop.py sets them one by one"
    )
    assert set(asyncio.TimerHandle.__slots__) == {"_scheduled", "_when"}, (
        "asyncio.TimerHandle has other attributes; `Timer.__init__` in loop.py sets them one by one"
    )


def test_a_future_tells_its_loop_and_what_blocks_on_it() -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        assert future._loop is asyncio.get_running_loop(), "tasks.py needs Future._loop"
        assert future._asyncio_future_blocking is False, (
            "tasks.py needs Future._asyncio_future_blocking"
        )

    asyncio.run(main())


def test_a_task_may_be_given_a_coroutine_that_has_begun() -> None:
    async def begun() -> str:
        await asyncio.sleep(0)
        return "ended"

    async def main() -> str:
        coroutine = begun()
        coroutine.send(None)
        return await asyncio.get_running_loop().create_task(coroutine)

    assert asyncio.run(main()) == "ended", "tasks.py starts the coroutines it gives to tasks"


def test_the_callers_loop_shows_what_it_waits_for() -> None:
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        ready, timers = loop._ready, loop._scheduled
        soon, later = loop.call_soon(print), loop.call_later(60, print)
        assert soon in ready, "outer.py needs BaseEventLoop._ready"
        assert later in timers, "outer.py needs BaseEventLoop._scheduled"
        assert later._callback is print
        soon.cancel()
        later.cancel()
        if sys.platform != "win32":
            assert len(loop._selector.get_map()) == 1, "outer.py needs the selector's map"
        assert loop._default_executor is None

    asyncio.run(main())


def test_a_thread_pool_shows_how_many_threads_are_idle() -> None:
    started, stop = threading.Event(), threading.Event()

    def job() -> None:
        started.set()
        stop.wait()

    with ThreadPoolExecutor() as pool:
        busy = pool.submit(job)
        started.wait()
        assert (pool._idle_semaphore._value, len(pool._threads)) == (0, 1), (
            "outer.py needs ThreadPoolExecutor._idle_semaphore and _threads"
        )
        stop.set()
        busy.result()
        deadline = time.monotonic() + 5
        while pool._idle_semaphore._value == 0 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert pool._idle_semaphore._value == 1


def test_finalizers_are_kept_in_order_with_an_index() -> None:
    class Thing: ...

    things = [Thing(), Thing()]
    finalizers = [weakref.finalize(thing, list) for thing in things]
    registry: Any = weakref.finalize._registry  # type: ignore[attr-defined]
    assert list(registry)[-2:] == finalizers, "immortal.py needs the order of finalize._registry"
    first, second = (registry[finalizer].index for finalizer in finalizers)
    assert first < second


def test_an_unawaited_coroutine_has_its_origin_and_goes_through_warnings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    async def dropped() -> None: ...

    monkeypatch.setattr(
        warnings, "_warn_unawaited_coroutine", lambda coro: seen.append(coro.cr_origin)
    )
    before = sys.get_coroutine_origin_tracking_depth()
    sys.set_coroutine_origin_tracking_depth(1)
    frame = sys._getframe()
    line = frame.f_lineno + 1
    dropped()  # type: ignore[unused-coroutine]
    sys.set_coroutine_origin_tracking_depth(before)
    assert seen == [((__file__, line, frame.f_code.co_name),)], (
        "unawaited.py needs the frame that made a coroutine"
    )


def test_the_callback_of_a_weak_reference_comes_before_the_finalizer_hook() -> None:
    order: list[str] = []

    async def numbers() -> Any:
        yield 1

    async def main() -> None:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=lambda agen: order.append("hook"))
        agen = numbers()
        reference = weakref.ref(agen, lambda _: order.append("callback"))
        await anext(agen)
        del agen
        sys.set_asyncgen_hooks(*hooks)
        del reference

    asyncio.run(main())
    assert order == ["callback", "hook"], "loop.py finds a dying generator's scope that way"


def test_a_socket_connects_by_methods_that_can_be_replaced() -> None:
    for name in ("connect", "connect_ex"):
        assert callable(getattr(socket.socket, name)), f"adaptations.py needs socket.{name}"


def test_the_quick_getsignal_is_the_documented_one() -> None:
    from emulator import foreign

    for number in (signal.SIGINT, signal.SIGTERM):
        assert vars(foreign)["_getsignal"](number) == signal.getsignal(number)


def test_anyio_asks_for_its_backend_by_a_name_that_can_be_replaced() -> None:
    pytest.importorskip("anyio")
    import anyio.to_thread
    from anyio._backends import _asyncio as backend

    assert hasattr(anyio.to_thread, "get_async_backend"), "adaptations.py needs it"
    assert hasattr(backend.AsyncIOBackend, "run_sync_in_worker_thread"), "adaptations.py needs it"
    source = inspect.getsource(backend.WorkerThread.__init__)
    for name in ("loop", "idle_workers"):
        assert f"self.{name}" in source, f"outer.py needs WorkerThread.{name}"


def test_time_machine_shows_its_journeys() -> None:
    import _time_machine  # type: ignore[import-not-found]
    import time_machine

    assert isinstance(time_machine.traveller_stack, list), "wallclock.py ends its own journey there"
    assert callable(_time_machine.original_time_ns), "wallclock.py needs the real clock"
    with time_machine.travel(0, tick=False) as traveller:
        traveller.time_ns = lambda: 7_000_000_000  # type: ignore[method-assign]
        assert time.time() == 7, "wallclock.py answers by replacing Traveller.time_ns"
