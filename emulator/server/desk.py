"""The running emulator of a server: what requests and control pages work with.

A `Desk` lives as long as the server. Its emulator is replaced when a config changes, and there is
none while the code cannot be loaded; `problem` then says why. Everything here runs on the server's
event loop, so that nothing has to be locked:

    response = await desk.emulator.fetch("/")           # any method of `Emulator`
    await desk.act("pause", queue.pause)                # a function, inside the simulation
    async for told in desk.feed.follow(): ...           # events as they happen

The emulator's methods return when what they did is durable.

Reloads. New code is loaded into the emulator that runs; if it cannot be loaded the old one stays,
for the queues, alarms and Workflows, while requests are answered with the problem. Batches that the
old code handles are cut off and delivered again; its requests have some seconds to finish, then
they are cut off too. New settings are tried on an emulator in memory first, then the running one is
closed and another one made over the same state: the recovery after a `kill -9`, without the kill.
"""

from __future__ import annotations

import asyncio
import secrets
import warnings
from typing import TYPE_CHECKING, Any, Final, TypeVar

from emulator import dotenv
from emulator.clock import MICROSECONDS, RealClock
from emulator.deployment import deploy
from emulator.durations import describe
from emulator.emulator import Emulator
from emulator.errors import (
    ConfigError,
    DamagedState,
    EmulatorError,
    RecordingError,
    StateError,
    WorkerLoadError,
)
from emulator.isolate import pending_calls
from emulator.queues.run import ConsumerRun
from emulator.secrets import Masker
from emulator.section import ConfigWarning
from emulator.server.feed import Feed
from emulator.server.problem import NotRunning, Problem
from emulator.server.routing import Routing
from emulator.server.watched import Seen, Watched
from emulator.workflows.run import WorkflowRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from emulator.config import Settings
    from emulator.deployment import Deployment
    from emulator.ingress import Exchange
    from emulator.platform import Platform
    from emulator.recording.recorder import Recorder
    from emulator.runtime.host import WebRequest
    from emulator.server.options import Options
    from emulator.trace.live import LiveTrace
    from emulator.websockets.client import WebSocket

_T = TypeVar("_T")
# Things of the past of each kind that are kept to be looked at, and how often the rest is dropped.
_KEPT: Final = 1000
_FORGET_EVERY: Final = 2000
# Seconds that requests on their way have to finish before new settings count.
_PATIENCE: Final = 1.0
_LOOK: Final = 0.01


class Desk:
    """The emulator of one server, whichever it is at the moment."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.feed = Feed(options.history)
        self.routing = Routing(())
        self.settings: Settings | None = None
        # The files as they were before they were last read as settings name them.
        self.seen = Seen({})
        # Why there is no emulator, or why it runs the code of before.
        self.problem: Problem | None = None
        # Requests on their way, each with the words for it.
        self.open: dict[Exchange, str] = {}
        self.sockets: dict[WebSocket, None] = {}
        # Told, in words, of reloads and problems; `bad` if something is wrong.
        self.on_news: Callable[[str, bool], None] = _unheard
        # Moves a damaged state out of the way and says where it is; without it that is an error.
        self.set_aside: Callable[[], str] | None = None
        # Writes down what comes in, if somebody asked for it.
        self.recorder: Recorder | None = None
        self._seed = secrets.randbits(63) if options.seed is None else options.seed
        self._emulator: Emulator | None = None
        self._forgotten = 0
        # What the platform failed with last, if nothing was durable since, and whether the state
        # could not be written.
        self._failure = ""
        self._is_unwritten = False
        # Whether the settings on disk could not be taken, and those of before count.
        self._settings_are_old = False
        self._warned: tuple[str, ...] = ()
        self._ending: asyncio.TimerHandle | None = None

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

    def watched(self) -> Watched:
        """The files that matter to what runs, or, where nothing does, might matter."""
        return Watched.of(self.options.configs, self.options.environment, self.settings)

    def dispatch(self, worker: str, request: WebRequest, *, socket: bool = False) -> Exchange:
        """Send a request to a Worker; the answer's body can be read while it is made."""
        emulator = self.emulator
        target = emulator._platform.worker(worker)
        return emulator._dispatch(target, request, streaming=True, socket=socket)

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load everything, on the running event loop; what goes wrong becomes the `problem`.

        Raises `StateError` where the state cannot be used.
        """
        try:
            deployment = self._deploy()
            self._take(self._open_state(deployment))
        except (ConfigError, WorkerLoadError) as error:
            self._fail(error)

    async def reload(self, *, settings: bool, paths: Sequence[str] = ()) -> None:
        """Load code, or settings and code, again; `paths` are what has changed, to be told."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            if self._emulator is None:
                self._take(self._open_state(self._deploy()))
            elif settings or self._settings_are_old:
                self._settings_are_old = True
                await self._change_settings()
            else:
                await self._change_code()
        except EmulatorError as error:
            self._fail(error)
            return
        self.problem = None
        took = (loop.time() - begun) * 1000
        what = f": {', '.join(paths)}" if paths else ""
        self.on_news(f"reloaded in {took:.0f} ms{what}", False)

    def close(self) -> None:
        """Stop everything; what is in flight is lost, what is durable stays."""
        try:
            if self.recorder is not None and self._emulator is not None:
                self.recorder.end(self._emulator)
        finally:
            try:
                self._close_emulator()
            finally:
                self.feed.close()

    # -- details ---------------------------------------------------------------------------------

    async def _change_code(self) -> None:
        await self.emulator.reload()
        if self.recorder is not None:
            self.recorder.reloaded()
        platform = self.platform
        await self.act("reload", lambda: platform.end_replaced(ConsumerRun))
        if self._ending is not None:
            self._ending.cancel()
        loop = asyncio.get_running_loop()
        self._ending = loop.call_later(self.options.grace, self._end_replaced, platform)

    def _end_replaced(self, platform: Platform) -> None:
        self._ending = None
        if not platform.kernel.loop.is_closed():
            platform.kernel.loop.kernel_soon(platform.end_replaced)

    async def _change_settings(self) -> None:
        deployment = self._deploy()
        # Tried before the emulator that runs is closed: it goes on if this fails.
        self._make(deployment, None).close()
        loop = asyncio.get_running_loop()
        end = loop.time() + _PATIENCE
        while self.open and loop.time() < end:  # noqa: ASYNC110 (nothing tells when all are over)
            await asyncio.sleep(_LOOK)
        self._close_emulator()
        self._take(self._open_state(deployment))

    def _deploy(self) -> Deployment:
        options = self.options
        self.seen = Seen.of(self.watched())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConfigWarning)
            deployment = deploy(
                list(options.configs),
                profile=options.profile,
                plan=options.plan,
                environment=options.environment,
            )
        self.settings = deployment.settings
        self.seen = self.seen.before(Seen.of(self.watched()))
        self._warn([str(warning.message) for warning in caught])
        return deployment

    def _warn(self, texts: Sequence[str]) -> None:
        """Tell the warnings that were not told of the config before."""
        for text in texts:
            if text not in self._warned:
                self.on_news(f"warning: {self.masker()(text)}", False)
        self._warned = tuple(texts)

    def _open_state(self, deployment: Deployment) -> Emulator:
        try:
            return self._make(deployment, self.options)
        except DamagedState as error:
            if self.set_aside is None:
                raise
            place = self.set_aside()
            self.on_news(f"{error}\nIt was moved to {place}; a new state begins.", True)
            return self._make(deployment, self.options)

    def _make(self, deployment: Deployment, kept: Options | None) -> Emulator:
        options = self.options
        return Emulator(
            deployment,
            start=None,
            seed=self._seed,
            state=None if kept is None else kept.state,
            profile=options.profile,
            plan=options.plan,
            outbound=options.outbound,
            clock=options.clock,
            history=options.history,
        )

    def _take(self, emulator: Emulator) -> None:
        self._emulator, self.problem, self._failure = emulator, None, ""
        self._is_unwritten = False
        self._settings_are_old = False
        platform = emulator._platform
        self.routing = Routing(platform.settings.workers)
        trace: LiveTrace = platform.kernel.trace  # type: ignore[assignment]
        self.feed.attach(trace)
        platform.kernel.on_commit(self._committed)
        platform.kernel.pump.on_error = self._went_wrong
        if isinstance(platform.kernel.clock, RealClock):
            platform.kernel.clock.on_step_back = self._machine_went_back
        platform.kernel.pump.drive(asyncio.get_running_loop())
        if self.recorder is not None:
            try:
                self.recorder.attach(emulator)
            except RecordingError:
                self._close_emulator()
                raise

    def _close_emulator(self) -> None:
        emulator, self._emulator = self._emulator, None
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None
        if emulator is not None:
            try:
                emulator.close()
            finally:
                self.feed.publish()

    def _committed(self) -> None:
        """What happened so far is durable."""
        self.feed.publish()
        self._failure = ""
        if self._is_unwritten:
            self._is_unwritten = False
            self.on_news("the state is written again", False)
        if self.feed.last - self._forgotten > _FORGET_EVERY and self._emulator is not None:
            self._forgotten = self.feed.last
            self.platform.forget(_KEPT)

    def _went_wrong(self, error: BaseException) -> None:
        """The platform itself failed, as when the disk is full; it is tried again."""
        self._is_unwritten = self._is_unwritten or isinstance(error, StateError)
        text = str(error) or type(error).__name__
        if text != self._failure:
            self._failure = text
            self.on_news(text, True)

    def _machine_went_back(self, step: int) -> None:
        if step >= MICROSECONDS:
            self.on_news(
                f"the machine's clock was put back by {describe(step)}; the emulator's goes on "
                "from where it was",
                False,
            )

    def _fail(self, error: EmulatorError) -> None:
        self.problem = Problem.of(error, self.masker())
        self.on_news(f"{self.problem.title}: {self.problem.text}", True)

    def masker(self) -> Masker:
        """What masks the secrets, though the config may be wrong."""
        found: list[tuple[str, str]] = []
        for folder in dict.fromkeys(path.parent for path in self.options.configs):
            try:
                found += dotenv.secrets(folder, environment=self.options.environment).items()
            except (dotenv.Unreadable, OSError):
                continue  # that is told as the problem
        return Masker(found)


def _unheard(text: str, bad: bool) -> None:
    """Nobody listens."""
