"""`Emulator`: the public face of one simulation; what is behind it is `platform.Platform`.

It is over 400 lines because a class of documented small members is one idea.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from inspect import isawaitable
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import httpx

from emulator import client as http
from emulator import importer
from emulator.analytics.service import Points
from emulator.caller import Caller, TestEnv, fail
from emulator.checks import Checks
from emulator.clock import LATEST, check_reach, instant, moment
from emulator.deployment import Deployment, deploy
from emulator.durations import describe, microseconds
from emulator.errors import (
    ConfigError,
    EmulatorClosed,
    InsideSimulation,
    LoopRunning,
    WorkerCrashed,
    WorkerLoadError,
)
from emulator.ingress import Exchange, ReplyLost
from emulator.objects.control import DurableObjects
from emulator.platform import ClockKind, Platform
from emulator.pump import Goal
from emulator.queues.control import Queue, QueueViews
from emulator.registry import Registry
from emulator.scheduled import ScheduledOutcome
from emulator.timers import ClockView
from emulator.websockets.client import Connecting, WebSocket, refused
from emulator.websockets.handshake import headers_of
from emulator.workflows.control import Workflow

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from email.message import EmailMessage
    from pathlib import Path
    from types import TracebackType

    from emulator.background import BackgroundTask
    from emulator.cache.control import CacheControls
    from emulator.d1.control import D1Control
    from emulator.emails.incoming import Receipt
    from emulator.emails.message import Email
    from emulator.faults import Fault, Faults
    from emulator.findings import Findings
    from emulator.isolate import Worker
    from emulator.kernel import Profile
    from emulator.kv.control import KvControl
    from emulator.logs import Log
    from emulator.r2.control import R2Control
    from emulator.runtime.host import WebRequest
    from emulator.trace import Trace

_T = TypeVar("_T")

# pytest leaves these frames out of a failing test's traceback.
__tracebackhide__ = True

Duration = timedelta | float | str
"""A `timedelta`, a number of seconds, or text such as "30 seconds" or "3 days"."""

Config = str | PathLike[str] | Mapping[str, Any]
START = datetime(2026, 1, 1, tzinfo=UTC)

# So that a script may say `from workers import …` as soon as it has imported `Emulator`.
importer.install()


class Emulator:
    """A local Cloudflare: Workers, their queues and the outside world, on a virtual clock.

        async with Emulator("wrangler.jsonc") as emulator:
            response = await emulator.fetch("/signup", method="POST", json={"email": "a@b.example"})
            await emulator.settle()

    `config` is the path of a wrangler config, a mapping of the same shape, or a list of these;
    `start` the aware datetime at which virtual time begins; `seed` decides every choice the
    emulator makes; `faults` are plan texts or `Fault`s; `state` is the path of a file that keeps
    what is durable, None keeps it in memory; `bindings` are extra objects on `env`;
    `queue_settings` are the settings production keeps on a queue, by the REST API's names, in
    seconds; `environment` names a section of `env` in the config. `apply_migrations=False` leaves
    D1 databases empty. `wall_clock="test"` makes `time.time()` and its kin virtual in the test as
    well. With `clock="real"` time is the machine's and passes by itself while `pump.drive` runs (as
    in `workers-emulator dev`), and `advance` adds to it; with `start=None` it begins at the
    machine's present. With `history` the trace keeps so many events.

    Raises `ConfigError` for a wrong config and `WorkerLoadError` for code that cannot be imported.
    """

    def __init__(
        self,
        config: Config | Sequence[Config] | Deployment,
        *,
        start: datetime | None = START,
        seed: int = 0,
        faults: Fault | Iterable[str | Fault] = (),
        state: str | PathLike[str] | None = None,
        profile: Profile = "production",
        plan: Literal["paid", "free"] = "paid",
        outbound: Literal["deny", "allow"] = "deny",
        bindings: Mapping[str, Any] | None = None,
        queue_settings: Mapping[str, Any] | None = None,
        environment: str | None = None,
        apply_migrations: bool = True,
        wall_clock: Literal["worker", "test"] = "worker",
        clock: ClockKind = "virtual",
        history: int | None = None,
        base: Path | None = None,
    ) -> None:
        _check_start(start)
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise ConfigError(f"seed is {seed!r}; give a whole number")
        _check_choice("outbound", outbound, ("deny", "allow"))
        _check_choice("wall_clock", wall_clock, ("worker", "test"))
        _check_choice("clock", clock, ("virtual", "real"))
        self._closed = False
        self._runner: asyncio.Runner | None = None
        self._client: httpx.AsyncClient | None = None
        self._sometimes: dict[str, bool] = {}
        self._extra = dict(bindings or {})
        if not isinstance(config, Deployment):
            config = deploy(
                config,
                base=base,
                profile=profile,
                plan=plan,
                queue_settings=queue_settings,
                environment=environment,
            )
        self._platform = platform = Platform(
            config,
            start=start,
            seed=seed,
            faults=faults,
            profile=profile,
            state=state,
            outbound=outbound,
            bindings=self._extra,
            time_in_tests=wall_clock == "test",
            apply_migrations=apply_migrations,
            clock=clock,
            history=history,
        )
        self._kernel = platform.kernel
        self._callers = {name: Caller(worker) for name, worker in platform.workers.items()}
        caller = next(iter(self._callers.values()))
        self.queues: Mapping[str, Queue] = Registry("queue", QueueViews(platform.queues, caller))
        self.workflows: Mapping[str, Workflow] = Registry(
            "Workflow",
            {
                name: Workflow(platform.workflows, name, caller)
                for name in platform.workflows.engine.workflows
            },
        )
        self.durable_objects: Mapping[str, DurableObjects] = Registry(
            "Durable Object binding",
            {
                binding: DurableObjects(platform.objects, binding, space, self._callers[worker])
                for binding, (worker, space) in platform.objects.named.items()
            },
        )
        self.clock = ClockView(self._kernel)

    # -- requests --------------------------------------------------------------------------------

    async def fetch(
        self,
        url: str | httpx.URL,
        *,
        method: str = "GET",
        headers: Any = None,
        params: Any = None,
        json: Any = None,
        content: Any = None,
        data: Any = None,
        worker: str | None = None,
        advance: bool = True,
        retries: int = 0,
        wait: Duration = "10 seconds",
    ) -> httpx.Response:
        """Send a request to a Worker and return its answer, the whole body read.

        A path is resolved against `http://localhost`; redirects are not followed. Work that is due
        at this instant has run when it returns, background work goes on. The answer's `elapsed` is
        virtual time. With `retries` the request is repeated, after `wait` of virtual time, on a 5xx
        answer, a crash or a lost reply. `advance=False` keeps the clock from moving by itself
        meanwhile. Cancelling it is the client's disconnect: the handler goes on.

        Raises `WorkerCrashed` when a fault cuts the isolate's power, `Stuck` when the handler can
        never answer, `KeyError` for an unknown Worker.
        """
        if retries < 0:
            raise ValueError(f"retries is {retries}; give 0 or more")
        self._check_open("fetch")
        request = await http.web_request(
            url,
            method=method,
            headers=headers,
            params=params,
            json=json,
            content=content,
            data=data,
        )
        target = self._platform.worker(worker)
        pause = microseconds(wait) if retries else 0
        for left in range(retries, -1, -1):
            try:
                answer = await self._send(target, request, advance=advance)
            except (WorkerCrashed, ReplyLost):
                if not left:
                    raise
            else:
                if answer.status_code < 500 or not left:
                    return answer
            await self._pass(pause, advance=advance)
        raise AssertionError("unreachable: the last try returns or raises")

    def websocket(
        self,
        url: str | httpx.URL,
        *,
        headers: Any = None,
        params: Any = None,
        subprotocols: Sequence[str] = (),
        worker: str | None = None,
    ) -> Connecting:
        """Open a WebSocket to a Worker.

            async with emulator.websocket("/chat") as ws:
                await ws.send("hello")
                assert await ws.receive() == "hello, too"

        It may be awaited instead. A path is resolved against `http://localhost`; `ws:` and `wss:`
        stand for `http:` and `https:`. Raises `WebSocketRefused` when the Worker's answer is not
        101, and what `fetch` raises.
        """
        self._check_open("websocket")
        target = self._platform.worker(worker)
        return Connecting(lambda: self._open(target, url, headers, params, subprotocols))

    def mock_websocket(self, url: str, handler: Callable[[WebSocket], Awaitable[object]]) -> None:
        """Stand in for a WebSocket server outside, to which Workers connect.

        `handler(ws)` is a coroutine function that runs in the simulation, once for each connection;
        it sends and receives as a test does. Its end closes the connection, and what it raises
        reaches the test. The query of the URL does not count.
        """
        self._kernel.outbound.servers.add(url, handler)

    async def _open(
        self, worker: Worker, url: str | httpx.URL, headers: Any, params: Any, protocols: Any
    ) -> WebSocket:
        asked = [*httpx.Headers(headers).multi_items(), *headers_of(protocols)]
        address = str(url)
        if address.startswith(("ws:", "wss:")):
            address = f"http{address[2:]}"
        request = await http.web_request(address, headers=asked, params=params)
        exchange = self._dispatch(worker, request, socket=True)
        pump, name = self._kernel.pump, f"websocket({request.url})"
        await http.reach(pump, exchange, name, lambda: exchange.answered)
        response = http.response(request, exchange.response)
        if exchange.socket is None:
            raise refused(request.url, response)
        socket = WebSocket(self._kernel, exchange.socket, exchange.subject, request.url, response)
        return await socket.opened()

    async def _send(self, worker: Worker, request: WebRequest, *, advance: bool) -> httpx.Response:
        exchange = self._dispatch(worker, request)
        name = f"fetch({request.method} {request.url})"
        sent = self._kernel.now
        pump = self._kernel.pump
        await http.reach(pump, exchange, name, lambda: exchange.answered, advance=advance)
        answer = http.response(request, exchange.response)
        answer.elapsed = timedelta(microseconds=self._kernel.now - sent)
        return answer

    def _dispatch(
        self,
        worker: Worker,
        request: WebRequest,
        *,
        streaming: bool = False,
        socket: bool = False,
    ) -> Exchange:
        self._check_open("fetch")
        exchange = Exchange(self._kernel, request, streaming=streaming)
        exchange.wants_socket = socket
        self._kernel.loop.kernel_soon(self._platform.ingress.dispatch, worker, exchange)
        return exchange

    async def _pass(self, duration: int, *, advance: bool) -> None:
        """Let virtual time pass as a patient client does: by itself, if nothing forbids it."""
        passed = self._kernel.loop.create_future()
        due = self._kernel.now + duration
        self._kernel.loop.kernel_at(
            due, lambda: passed.set_result(None), owner="a client's pause before it tries again"
        )
        if self._kernel.pump.inside:
            await passed
        else:
            name = "fetch: the pause before a retry"
            await self._kernel.pump.reach(Goal(name, passed.done, advance=advance))

    @property
    def client(self) -> httpx.AsyncClient:
        """An `httpx.AsyncClient` whose requests go to the first Worker; `stream()` streams.

        The same one each time; a new one after `async with emulator.client` has closed it.
        """
        if self._client is None or self._client.is_closed:
            transport = http.WorkerTransport(self._kernel.pump, self._dispatch_first)
            # No proxies and certificates of the environment: nothing leaves the process.
            self._client = httpx.AsyncClient(
                transport=transport, base_url=http.BASE_URL, trust_env=False
            )
        return self._client

    def _dispatch_first(self, request: WebRequest) -> Exchange:
        return self._dispatch(self._platform.worker(None), request, streaming=True)

    async def scheduled(
        self,
        cron: str | None = None,
        time: datetime | None = None,
        worker: str | None = None,
    ) -> ScheduledOutcome:
        """Run the `scheduled` handler; returns the outcome (`ok`, `exception`) and the error.

        What is returned has `no_retry`, too: whether the handler called `noRetry()`.

        Workflows that have this cron among their `schedules` get an instance each. The handler is
        not called for a cron that only they have.
        """
        self._check_open("scheduled")
        of = self._platform.worker(worker)
        trigger = self._platform.cron.trigger(of, cron, time)
        if self._platform.workflows.is_scheduled(of, trigger.cron):
            await self._do("scheduled", lambda: self._platform.workflows.fire(of, *trigger))
            if trigger.cron not in of.config.crons:
                return ScheduledOutcome("ok", None)
        try:
            run = self._platform.cron.dispatch(of, trigger)
        except WorkerLoadError as error:
            return ScheduledOutcome("exception", error)
        await self._kernel.pump.reach(Goal("scheduled()", lambda: run.outcome is not None))
        return ScheduledOutcome(run.outcome or "", run.error, no_retry=run.no_retry)

    async def email(
        self,
        message: EmailMessage | str | bytes,
        *,
        sender: str | None = None,
        to: str | None = None,
        worker: str | None = None,
    ) -> Receipt:
        """Let a mail arrive at the `email` handler; returns what became of it.

        `message` is MIME, as text, bytes or the standard library's `EmailMessage`; `sender` and
        `to` are the envelope's addresses, by default those of its headers. Returns when the
        handler, and its background work, is done; never raises for it.
        """
        from emulator.emails.incoming import Arrival, bytes_of

        self._check_open("email")
        arrival = Arrival(bytes_of(message), sender, to)
        run = self._platform.emails.deliver(self._platform.worker(worker), arrival)
        await self._kernel.pump.reach(Goal("email()", lambda: run.outcome is not None))
        return run.receipt

    # -- time ------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """Virtual now, aware."""
        return moment(self._kernel.now)

    async def advance(self, duration: Duration) -> None:
        """Move virtual time forward by exactly this.

        All that is due on the way runs in order of due time, what is due at the end included;
        `advance(0)` runs what is due now. Raises `DurationError`, a `ValueError`, for what would
        pass the year 9998, and moves nothing then.
        """
        self._check_open("advance")
        span = microseconds(duration)
        check_reach(self._kernel.now, span, f"advance({describe(span)})")
        until = self._kernel.now + span
        goal = Goal(
            f"advance({describe(span)})",
            lambda: self._kernel.now >= until,
            horizon=until,
            stop_at=until,
        )
        await self._kernel.pump.reach(goal)

    async def settle(self, limit: Duration = "365 days", sleeps: bool = True) -> None:
        """Run until nothing is left to do.

        Passes sleeps, retry delays, batch time-outs and delayed messages; does not wait for
        retention, cron, paused queues, queues without a consumer, paused Workflows and those that
        wait for an event. An object's alarm runs at most 100 times. The clock stops at the last
        thing that happened. `sleeps=False` stops where nothing but sleeps of Workflows is left.
        Raises `NotSettled`, naming what is pending, past `limit` of virtual time.
        """
        self._check_open("settle")
        end = self._kernel.limit(microseconds(limit))
        loop, workflows = self._kernel.loop, self._platform.workflows

        def settled() -> bool:
            return not loop.has_work or (not sleeps and workflows.only_sleeps)

        goal = Goal("settle()", settled, horizon=end, limit=end)
        with self._platform.objects.alarms.settling():
            await self._kernel.pump.reach(goal)

    async def run_until(
        self, predicate: Callable[[], object], limit: Duration = "365 days"
    ) -> None:
        """Run until `predicate()` is true; it is asked before and after each event.

        Raises `NotSettled` at `limit` of virtual time, `TypeError` for an asynchronous predicate.
        """
        self._check_open("run_until")
        if self._kernel.pump.inside:
            raise InsideSimulation("run_until() cannot be called from inside the simulation")
        met = predicate()
        if isawaitable(met):
            if isinstance(met, Coroutine):
                met.close()
            raise TypeError("run_until() takes a synchronous predicate, this one is a coroutine")
        if met:
            return
        end = self._kernel.limit(microseconds(limit))
        goal = Goal(
            "run_until()", lambda: bool(predicate()), each_event=True, horizon=end, limit=end
        )
        await self._kernel.pump.reach(goal)

    def hold(self) -> AbstractContextManager[None]:
        """A context manager in which the clock does not move by itself."""
        self._check_open("hold")
        return self._kernel.pump.hold()

    # -- what a test looks at --------------------------------------------------------------------

    @property
    def env(self) -> TestEnv:
        """The bindings as the first Worker sees them; calls from the test are no fault sites."""
        return self._env_of(next(iter(self._platform.workers)))

    @property
    def envs(self) -> Mapping[str, TestEnv]:
        """The bindings of each Worker, by its name."""
        return Registry("Worker", {name: self._env_of(name) for name in self._platform.workers})

    def _env_of(self, name: str) -> TestEnv:
        return TestEnv(self._callers[name], self._extra)

    @property
    def d1(self) -> Mapping[str, D1Control]:
        """The D1 databases, by their bindings and by their names."""
        return self._controls("D1 database", self._platform.d1, "d1", "D1Control")

    def _controls(self, kind: str, service: Any, product: str, control: str) -> Registry[Any]:
        """What tests see of a product's things, by name; its module is loaded if there are any."""
        names = list(service.names)
        if not names:
            return Registry(kind, {})
        make = getattr(import_module(f"emulator.{product}.control"), control)
        caller = next(iter(self._callers.values()))
        return Registry(kind, {name: make(service, name, caller) for name in names})

    @property
    def caches(self) -> CacheControls:
        """What the Workers put into caches, by the name of the cache; `"default"` is one."""
        from emulator.cache.control import CacheControls

        return CacheControls(self._platform.caches)

    @property
    def analytics_engine(self) -> Mapping[str, Points]:
        """The points of each Analytics Engine dataset, by binding and by name."""
        service = self._platform.analytics
        points = {name: Points(service, dataset) for name, dataset in service.names.items()}
        return Registry("Analytics Engine dataset", points)

    @property
    def emails(self) -> Sequence[Email]:
        """All mail that Workers sent, in order."""
        return self._platform.emails.sent

    @property
    def kv(self) -> Mapping[str, KvControl]:
        """The KV namespaces, by their bindings and by their ids."""
        return self._controls("KV namespace", self._platform.kv, "kv", "KvControl")

    @property
    def r2(self) -> Mapping[str, R2Control]:
        """The R2 buckets, by their bindings and by their names."""
        return self._controls("R2 bucket", self._platform.r2, "r2", "R2Control")

    @property
    def faults(self) -> Faults:
        """The fault plan, what fired of it, and the sites met so far."""
        return self._kernel.faults

    @property
    def findings(self) -> Findings:
        """What is wrong, or probably not meant, computed when read."""
        return self._kernel.findings

    @property
    def trace(self) -> Trace:
        """All that happened."""
        return self._kernel.trace

    @property
    def check(self) -> Checks:
        """Assertions over the whole run, such as `exactly_once`; see `emulator.checks`."""
        kernel = self._kernel
        purged = self._platform.queues.purged
        return Checks(kernel.trace, self.queues, sent=kernel.outbound.sent, purged=purged)

    @property
    def logs(self) -> Sequence[Log]:
        """What the Workers and the platform logged."""
        return self._kernel.logs

    @property
    def background(self) -> Sequence[BackgroundTask]:
        """Each task given to `waitUntil`, in order."""
        return self._kernel.background

    def sometimes(self, name: str, condition: object) -> None:
        """Record that something was true at least once; a sweep reports a name that never was."""
        self._sometimes[name] = self._sometimes.get(name, False) or bool(condition)

    # -- crashes and restarts --------------------------------------------------------------------

    async def evict(self) -> None:
        """Drop the memory of every Worker; what is durable stays, what is in flight finishes."""
        await self._do("evict", self._platform.evict)

    async def crash(self) -> None:
        """Cut the power of every isolate now; what was in flight is lost, and redelivered or
        re-run as the platform would."""
        await self._do("crash", self._platform.crash)

    async def restart(self) -> None:
        """As a killed process that comes back: `crash()`, and the platform's own state is rebuilt
        from the store."""
        await self._do("restart", self._platform.restart)

    async def reload(self) -> None:
        """Load the Workers' code again; durable state stays.

        Raises `WorkerLoadError` and goes on with the old code if that fails.
        """
        await self._do("reload", self._platform.reload)

    async def _do(self, name: str, action: Callable[[], Any]) -> None:
        self._check_open(name)
        if self._kernel.pump.inside:
            raise InsideSimulation(
                f"{name}() would act on the code that calls it; call it from the test"
            )
        outcome: asyncio.Future[None] = self._kernel.loop.create_future()
        self._kernel.loop.kernel_soon(_attempt, action, outcome)
        await self._kernel.pump.reach(Goal(f"{name}()", outcome.done))
        outcome.result()

    # -- life ------------------------------------------------------------------------------------

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine from synchronous code, on an event loop of the emulator's own."""
        if asyncio._get_running_loop() is not None:
            coroutine.close()
            raise LoopRunning(
                "emulator.run() was called while an event loop runs; await the coroutine instead"
            )
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(coroutine)

    async def reset(self) -> None:
        """Go back to the start: time, seed, counters, empty state."""
        await self._do("reset", self._reset)

    def _reset(self) -> None:
        self._sometimes.clear()
        self._platform.reset()

    def close(self) -> None:
        """Stop everything; what is in flight is lost. Closing twice does nothing."""
        if self._kernel.pump.inside:
            raise InsideSimulation("an emulator cannot be closed from inside the simulation")
        try:
            if not self._closed:
                self._closed = True
                self._platform.close()
        finally:
            # A coroutine that `run` runs may close the emulator; its loop is closed the next time.
            if self._runner is not None and asyncio._get_running_loop() is None:
                self._runner.close()
                self._runner = None

    async def aclose(self) -> None:
        """Like `close`."""
        self.close()

    def __enter__(self) -> Emulator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Emulator:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        names = ", ".join(worker.name for worker in self._platform.settings.workers)
        return f"<Emulator of {names} at {self.now:%Y-%m-%d %H:%M:%S.%f}>"

    # -- details ---------------------------------------------------------------------------------

    def _check_open(self, call: str) -> None:
        if self._closed:
            raise EmulatorClosed(f"{call}(): this emulator is closed; make a new one")


def _attempt(action: Callable[[], Any], outcome: asyncio.Future[None]) -> None:
    try:
        action()
    except Exception as error:
        fail(outcome, error)
    else:
        outcome.set_result(None)


def _check_start(start: datetime | None) -> None:
    if start is not None and (not isinstance(start, datetime) or start.tzinfo is None):
        raise ConfigError(
            f"start is {start!r}; give an aware datetime, such as datetime(2026, 1, 1, tzinfo=UTC)"
        )
    if start is not None and instant(start) > LATEST:
        raise ConfigError(f"start is {start}; no clock goes past {moment(LATEST)}")


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; it may be {' or '.join(map(repr, choices))}")
