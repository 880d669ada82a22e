"""The running emulator of a server: what requests and control pages work with.

A `Desk` lives as long as the server. Its emulator is replaced when a config changes, and there is
none while the code cannot be loaded; `problem` then says why. Everything here runs on the server's
event loop, so that nothing has to be locked:

    response = await desk.emulator.fetch("/")           # any method of `Emulator`
    await desk.act("pause", queue.pause)                # a function, inside the simulation
    async for told in desk.feed.follow(): ...           # events as they happen

The emulator's methods return when what they did is durable.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, TypeVar

from emulator.emulator import Emulator
from emulator.errors import ConfigError, StateError, WorkerLoadError
from emulator.isolate import pending_calls
from emulator.server.feed import Feed
from emulator.server.problem import NotRunning, Problem
from emulator.server.routing import Routing
from emulator.workflows.run import WorkflowRun

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.ingress import Exchange
    from emulator.platform import Platform
    from emulator.runtime.host import WebRequest
    from emulator.server.options import Options
    from emulator.trace.live import LiveTrace

_T = TypeVar("_T")


class Desk:
    """The emulator of one server, whichever it is at the moment."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.feed = Feed(options.history)
        self.routing = Routing(())
        # Why there is no emulator, or why it runs the code of before.
        self.problem: Problem | None = None
        # Told of errors of the platform itself, such as a full disk.
        self.on_error: Callable[[BaseException], None] | None = None
        self._seed = secrets.randbits(63) if options.seed is None else options.seed
        self._emulator: Emulator | None = None

    # -- for requests and pages ------------------------------------------------------------------

    @property
    def emulator(self) -> Emulator:
        """The emulator that runs; raises `NotRunning`, with the reason, if there is none."""
        if self._emulator is None:
            raise NotRunning(self.problem)
        return self._emulator

    @property
    def platform(self) -> Platform:
        """What is behind the emulator; raises `NotRunning`."""
        return self.emulator._platform

    @property
    def is_running(self) -> bool:
        """Whether there is an emulator."""
        return self._emulator is not None

    @property
    def in_flight(self) -> list[str]:
        """What would be cut off now, a line each; Workflows go on where they are in any case."""
        if self._emulator is None:
            return []
        return [
            line
            for worker in self.platform.workers.values()
            for line in pending_calls(worker, besides=WorkflowRun)
        ]

    async def act(self, name: str, function: Callable[[], _T]) -> _T:
        """Call a function inside the simulation; return its result when all that is due has run.

        An awaitable that it returns is awaited there. `name` says in messages what this is.
        """
        caller = next(iter(self.emulator._callers.values()))
        result: Any = await caller.at_once(name, function)
        return result  # type: ignore[no-any-return]

    def dispatch(self, worker: str, request: WebRequest) -> Exchange:
        """Send a request to a Worker; the answer's body can be read while it is made."""
        emulator = self.emulator
        return emulator._dispatch(emulator._platform.worker(worker), request, streaming=True)

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load everything, on the running event loop; what goes wrong becomes the `problem`.

        Raises `StateError` where the state cannot be used.
        """
        try:
            self._take(self._make())
        except StateError:
            raise
        except (ConfigError, WorkerLoadError) as error:
            self.problem = Problem.of(error)

    def close(self) -> None:
        """Stop everything; what is in flight is lost, what is durable stays."""
        emulator, self._emulator = self._emulator, None
        try:
            if emulator is not None:
                emulator.close()
        finally:
            self.feed.publish()
            self.feed.close()

    def _make(self) -> Emulator:
        options = self.options
        configs = list(options.configs)
        return Emulator(
            configs if len(configs) > 1 else configs[0],
            start=None,
            seed=self._seed,
            state=options.state,
            profile=options.profile,
            plan=options.plan,
            outbound=options.outbound,
            environment=options.environment,
            clock=options.clock,
            history=options.history,
        )

    def _take(self, emulator: Emulator) -> None:
        self._emulator, self.problem = emulator, None
        platform = emulator._platform
        self.routing = Routing(platform.settings.workers)
        trace: LiveTrace = platform.kernel.trace  # type: ignore[assignment]
        self.feed.attach(trace)
        platform.kernel.on_commit(self.feed.publish)
        platform.kernel.pump.on_error = self._failed
        platform.kernel.pump.drive(asyncio.get_running_loop())

    def _failed(self, error: BaseException) -> None:
        if self.on_error is not None:
            self.on_error(error)
