"""One simulated platform: its Workers, their queues and bindings, and what connects them.

`Platform` is everything behind `Emulator`: it builds the parts from the settings, starts them, and
takes them down again.
"""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

from emulator.analytics.service import Analytics
from emulator.assets.service import Assets
from emulator.bindings.outbound import Outbound
from emulator.cache.service import Caches
from emulator.clock import Clock, RealClock, instant, moment
from emulator.cron import Cron
from emulator.d1.service import D1
from emulator.durability import Durability, Product
from emulator.durations import DAY, describe
from emulator.emails.service import Emails
from emulator.findings import Finding
from emulator.flaws import handler_flaws, option_flaws, own_workflows
from emulator.ingress import Ingress
from emulator.invocation import Invocation
from emulator.isolate import Worker, pending_calls
from emulator.kernel import Kernel, Profile
from emulator.kv.service import Kv
from emulator.objects.service import Objects
from emulator.queues.model import ConsumerRules, QueueRules
from emulator.queues.service import Queues
from emulator.r2.service import R2
from emulator.ratelimit.service import RateLimits
from emulator.runtime.pyproxy import PyProxy
from emulator.secrets import Masker
from emulator.services.service import Services
from emulator.tails.service import Tails
from emulator.timers import describe as describe_timer
from emulator.trace.live import LiveTrace
from emulator.values import HostObject
from emulator.version_metadata import version_metadata
from emulator.wallclock import wall_clock
from emulator.workflows.model import Retention, WorkflowRules
from emulator.workflows.run import workflow_class
from emulator.workflows.service import Workflows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from os import PathLike

    from emulator.config import Consumer, Settings, WorkerConfig
    from emulator.deployment import Deployment
    from emulator.faults import Fault
    from emulator.sql import DatabaseFolder


class BoundProduct(Product, Protocol):
    """A product that Workers reach through bindings."""

    def bindings(self, config: WorkerConfig) -> Mapping[str, HostObject]:
        """What a Worker's `env` has of it, by name."""

    def reset(self) -> None:
        """Forget all that happened."""

    def close(self) -> None:
        """Let go of what user code may still hold."""


ClockKind = Literal["virtual", "real"]
_MIB = 1_048_576
_PRESERVE = "workflows_preserve_non_retryable_error_message"


class Platform:
    """The parts of one emulator.

    Without a `start` time begins at the machine's present. With `history` the trace keeps so many
    events, and can be followed, as a server needs it.

    Raises `WorkerLoadError` for code that cannot be imported; without `load_code` it is imported
    when it is first needed.
    """

    ingress: Ingress
    cron: Cron

    def __init__(
        self,
        deployment: Deployment,
        *,
        start: datetime | None,
        seed: int,
        faults: Fault | Iterable[str | Fault],
        profile: Profile,
        state: str | PathLike[str] | None,
        outbound: Literal["deny", "allow"],
        bindings: Mapping[str, Any],
        time_in_tests: bool,
        clock: ClockKind = "virtual",
        history: int | None = None,
        load_code: bool = True,
        apply_migrations: bool = True,
    ) -> None:
        # Before there is anything to close: it may be refused.
        folder = _database_folder(state)
        self.settings = settings = deployment.settings
        self._deployment = deployment
        self.workers: dict[str, Worker] = {}
        self._extra = bindings
        self._durability: Durability | None = None
        self.kernel = Kernel(
            clock=(own := _clock(clock, start)),
            seed=seed,
            faults=faults,
            profile=profile,
            masker=(masker := Masker(secrets_of(settings))),
            trace=None if history is None else LiveTrace(own.start, masker=masker, limit=history),
        )
        self.kernel.outbound = Outbound(self.kernel, outbound)
        self.queues = Queues(self.kernel, list(_queue_rules(settings, profile)))
        self.workflows = Workflows(self.kernel, list(_workflow_rules(settings, profile)))
        self.objects = Objects(self.kernel, settings.workers, folder)
        self.d1 = D1(self.kernel, folder, migrate=apply_migrations)
        self.kv = Kv(self.kernel)
        self.rate_limits = RateLimits(self.kernel)
        self.analytics = Analytics(self.kernel)
        self.emails = Emails(self.kernel)
        self.services = Services(self.kernel, settings.workers)
        self.tails = Tails(self.kernel)
        self.caches = self.kernel.caches = Caches(self.kernel)
        self.assets = Assets(self.kernel, deployment)
        self.services.before = self.assets.before
        self.r2 = R2(self.kernel, folder, self.queues)
        # By the names that their records have in the store.
        self.products: Mapping[str, BoundProduct] = {
            "queues": self.queues,
            "workflows": self.workflows,
            "objects": self.objects,
            "d1": self.d1,
            "kv": self.kv,
            "caches": self.caches,
            "assets": self.assets,
            "ratelimit": self.rate_limits,
            "analytics": self.analytics,
            "emails": self.emails,
            "r2": self.r2,
        }
        wall_clock.open(self.kernel.clock, in_tests=time_in_tests)
        try:
            self._assemble(state)
            if load_code:
                for worker in self.workers.values():
                    self._check_handlers(worker)
                self.cron.arm(self.workers.values())
        except BaseException:
            self.close()
            raise

    # -- assembly --------------------------------------------------------------------------------

    def _assemble(self, state: str | PathLike[str] | None) -> None:
        kernel = self.kernel
        self._durability = Durability(kernel, self.products, state)
        self.ingress = Ingress(kernel, before=self.assets.before)
        self.cron = Cron(kernel, self.workflows)
        for config in self.settings.workers:
            bundle, env = self._deployment.bundle(config), self._bindings_of(config)
            worker = self.workers[config.name] = Worker(kernel, config, bundle, env)
            worker.memories = self._deployment.memories
            site = self.assets.sites.get(config.name)
            worker.asset_problems = () if site is None else site.problems
            self.queues.add(worker)
            for workflow in config.workflows:
                if workflow.script == config.name:
                    self.workflows.add(workflow, worker)
            self.objects.add(worker)
            self.services.add(worker)
            self.tails.add(worker)
            exported = self.objects.exports(worker)
            worker.exporter = partial(self.services.exports, worker.name, exported)
            worker.beside = tuple(one.name for one in self.settings.workers)
        kernel.findings.provide(self._unfired_faults)
        kernel.findings.provide(self._unconsumed)
        kernel.findings.provide(self._unreached_mocks)
        kernel.pending.append(self._waiting)
        if kernel.profile == "miniflare":
            kernel.pump.cancel_hung = self.ingress.cancel_hung
        self._durability.recover()

    def _bindings_of(self, config: WorkerConfig) -> dict[str, Any]:
        # A copy: user code may change what it gets, and others may share the settings.
        env: dict[str, Any] = {**deepcopy(config.vars), **config.secrets}
        for product in self.products.values():
            env.update(product.bindings(config))
        env.update(self.services.bindings(config))
        env.update(version_metadata(config, self.kernel))
        return {**env, **{name: _as_given(value) for name, value in self._extra.items()}}

    def _check_handlers(self, worker: Worker) -> None:
        """Load the code, so that what is wrong with it is told now, and look at its handlers."""
        for flaw in (*handler_flaws(worker), *option_flaws(worker)):
            place = flaw.location.relative_to(worker.folder) if flaw.location else None
            self._find(flaw.code, flaw.message, worker.name, place)
        for code, message in self.tails.problems(worker):
            self._find(code, message, worker.name)
        for workflow in own_workflows(worker):
            workflow_class(worker.isolate, workflow)
        for space in self.objects.spaces_of(worker):
            space.class_in(worker.isolate)
        self.services.check(worker)

    def _find(self, code: str, message: str, worker: str, location: str | None = None) -> None:
        now = moment(self.kernel.now)
        self.kernel.findings.add(Finding(code, message, now, location, worker))

    # -- life ------------------------------------------------------------------------------------

    def worker(self, name: str | None) -> Worker:
        """The named Worker, or the first; raises `KeyError` listing the names."""
        if name is None:
            return next(iter(self.workers.values()))
        if name not in self.workers:
            raise KeyError(f"there is no Worker {name!r}; there are: {', '.join(self.workers)}")
        return self.workers[name]

    def evict(self) -> None:
        """Drop the memory of every Worker."""
        for worker in self.workers.values():
            worker.evict()
            self.workflows.interrupt(worker)
        self.objects.evict()

    def crash(self) -> None:
        """Cut the power of every isolate."""
        for worker in self.workers.values():
            worker.crash()
        self.objects.crash()

    def reload(self) -> None:
        """Load the code of every Worker again, or of none where one cannot be loaded."""
        loaded = [(worker, worker.load_again()) for worker in self.workers.values()]
        for worker, code in loaded:
            worker.take(*code)
            worker.asset_problems = self.assets.reload(worker.config)
            self.workflows.interrupt(worker)
            self.objects.reload(worker)

    def end_replaced(self, kind: type[Invocation] = Invocation) -> None:
        """Cut off what still runs of code that was replaced: all of it, or of one kind.

        The platform repeats what it repeats after a crash: a batch is delivered again.
        """
        for worker in self.workers.values():
            for invocation in worker.replaced:
                if isinstance(invocation, kind):
                    invocation.kill()

    def forget(self, keep: int) -> None:
        """Keep so many of the things of the past that are there to be looked at, of each kind."""
        kernel = self.kernel
        done = [task for task in kernel.background if task.state != "pending"]
        late = [task for task in kernel.background if task.state == "pending"]
        kernel.background[:] = [*done[max(len(done) - keep, 0) :], *late]
        past: list[list[Any]] = [kernel.logs, kernel.outbound.sent]
        for kept in (*past, *self.queues.deliveries.values()):
            del kept[: max(len(kept) - keep, 0)]
        kernel.forget(keep)

    def restart(self) -> None:
        """Crash, and rebuild the platform's own state from the store."""
        self.crash()
        self.kernel.record("restart", "platform")
        if self._durability is not None:
            self._durability.restart()

    @property
    def process(self) -> int:
        """How many processes have used the state so far, this one included."""
        return 1 if self._durability is None else self._durability.process

    def come_back(self, at: int, process: int, seed: int) -> None:
        """Be cut off now, and go on at an instant as the process of this number, with its seed."""
        self.crash()
        self.kernel.record("restart", "platform")
        self.kernel.clock.move_to(max(at, self.kernel.now))
        self.kernel.seed = seed
        if self._durability is not None:
            self._durability.come_back(process)

    def reset(self) -> None:
        """Forget all that happened."""
        for worker in self.workers.values():
            worker.close()
        self.kernel.reset()
        for product in self.products.values():
            product.reset()
        if self._durability is not None:
            self._durability.clear()
        self.cron.arm(self.workers.values())

    def close(self) -> None:
        """Stop everything; what is in flight is lost."""
        for worker in self.workers.values():
            worker.close()
        self.kernel.findings.close()
        try:
            if self._durability is not None:
                self._durability.close()
        finally:
            for product in self.products.values():
                product.close()
            self.services.close()
            self.kernel.outbound.close()
            self.kernel.close()
            wall_clock.close(self.kernel.clock)

    # -- reports ---------------------------------------------------------------------------------

    def _waiting(self) -> list[str]:
        calls = [line for worker in self.workers.values() for line in pending_calls(worker)]
        timers = [
            f"due in {describe(max(timer.due - self.kernel.now, 0))}: {describe_timer(timer)}"
            for timer in [one for one in self.kernel.loop.timers if not one.tidies][:20]
        ]
        return [*calls, *timers]

    def _unfired_faults(self) -> Iterator[Finding]:
        for unfired in self.kernel.faults.unfired():
            yield Finding("fault_not_fired", unfired.message, moment(self.kernel.now))

    def _unreached_mocks(self) -> Iterator[Finding]:
        for workflow, what in self.workflows.unreached_mocks():
            text = f"{what} of the Workflow {workflow} was mocked or held, and never reached"
            now = moment(self.kernel.now)
            yield Finding("mock_not_reached", text, now, None, None, f"workflow {workflow}")

    def _unconsumed(self) -> Iterator[Finding]:
        for queue in self.queues.unconsumed():
            count = len(self.queues.broker.pending(queue))
            text = f"{count} message{'s' if count > 1 else ''} in {queue}, which no Worker consumes"
            yield Finding(
                "no_consumer", text, moment(self.kernel.now), None, None, f"queue {queue}"
            )


def _clock(kind: ClockKind, start: datetime | None) -> Clock:
    if kind == "real":
        return RealClock(wall_clock.machine, None if start is None else instant(start))
    return Clock(wall_clock.machine() if start is None else instant(start))


def secrets_of(loaded: Settings) -> list[tuple[str, str]]:
    """Return name and value of the secrets of all Workers: what no text may show."""
    return [secret for worker in loaded.workers for secret in worker.secrets.items()]


def _database_folder(state: str | PathLike[str] | None) -> DatabaseFolder | None:
    """Where the databases beside a state file are."""
    if state is None:
        return None
    from emulator.sql.files import DatabaseFolder

    return DatabaseFolder(state)


def _as_given(value: Any) -> Any:
    """An object of the test's as a binding: user code gets this very object."""
    return value if isinstance(value, (str, HostObject)) else PyProxy(value)


def _queue_rules(loaded: Settings, profile: Profile) -> Iterator[QueueRules]:
    consumers = {
        consumer.queue: consumer for worker in loaded.workers for consumer in worker.consumers
    }
    # Miniflare honours a producer's delay, production ignores it (queues.md 1.11).
    delays = {
        producer.queue: producer.delivery_delay_us
        for worker in loaded.workers
        for producer in worker.producers
        if profile == "miniflare" and producer.delivery_delay_us is not None
    }
    for queue in loaded.queues:
        consumer = consumers.get(queue.name)
        yield QueueRules(
            queue.name,
            delivery_delay=delays.get(queue.name, queue.delivery_delay_us),
            retention=queue.message_retention_us,
            paused=queue.delivery_paused,
            consumer=None if consumer is None else _consumer_rules(consumer),
        )


def _consumer_rules(consumer: Consumer) -> ConsumerRules:
    return ConsumerRules(
        # The local runtime accepts 0, which it can do nothing with (3.1).
        max_batch_size=max(consumer.max_batch_size, 1),
        max_batch_timeout=consumer.max_batch_timeout_us,
        max_retries=consumer.max_retries,
        retry_delay=consumer.retry_delay_us,
        dead_letter_queue=consumer.dead_letter_queue,
        max_concurrency=consumer.max_concurrency,
    )


def _workflow_rules(loaded: Settings, profile: Profile) -> Iterator[WorkflowRules]:
    """The settings of each Workflow, by the plan and by its Worker's compatibility flags (§15)."""
    paid = loaded.plan == "paid"
    kept = (30 if paid else 3) * DAY
    for worker in loaded.workers:
        for workflow in worker.workflows:
            if workflow.script == worker.name:
                yield WorkflowRules(
                    workflow.name,
                    step_limit=workflow.step_limit or (10_000 if paid else 1_024),
                    concurrency=50_000 if paid else 100,
                    retention=Retention(kept, kept),
                    # Locally a date alone does not turn the flag on (E6).
                    preserve_non_retryable=_PRESERVE
                    in (worker.flags if profile == "production" else worker.listed_flags),
                    # Locally storage refuses, somewhere between 5 and 9 MB (O3).
                    max_output=_MIB if profile == "production" else 8 * _MIB,
                    max_payload=_MIB,
                )
