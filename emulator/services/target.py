"""Where the calls of a service's stub go: an entrypoint of a Worker, through the faults on the way.

Each call is an event of its own in the Worker that is called: an instance of the entrypoint, in the
Worker's isolate as it is when the call arrives. What it does goes on whatever becomes of its
caller.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from emulator.bindings import calls
from emulator.errors import WorkerLoadError
from emulator.faults.sites import site_name
from emulator.rpc.errors import carried, disconnected
from emulator.services.event import ServiceEvent
from emulator.services.handlers import QueueCall, ScheduledCall
from emulator.values import JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Mapping

    from emulator.invocation import Invocation
    from emulator.isolate import Isolate, Worker
    from emulator.queues.model import Batch
    from emulator.runtime.host import WebRequest, WebResponse
    from emulator.services.arguments import Trigger
    from emulator.services.handlers import Call
    from emulator.services.service import Services

    Work = Callable[[ServiceEvent], Coroutine[Any, Any, Any]]
    Make = Callable[[Isolate, str | None], Call]
# Documentation, "Service bindings", limits: a request passes through so many Workers.
MOST_WORKERS: Final = 32
_TOO_DEEP: Final = (
    "Subrequest depth limit exceeded. This request recursed through Workers too many times. This "
    "can happen e.g. if you have a Worker or Durable Object that calls other Workers or objects "
    "recursively."
)


class ServiceTarget:
    """The other end of a binding: an entrypoint of a Worker, with the binding's props."""

    def __init__(
        self,
        services: Services,
        binding: str,
        service: str,
        entrypoint: str | None,
        props: Mapping[str, Any],
        *,
        routed: bool = False,
    ) -> None:
        self._services: Services | None = services
        self._place = binding, service, entrypoint
        self._props = props
        self._routed = routed and entrypoint is None
        services.hold(self)

    def with_props(self, props: Mapping[str, Any]) -> ServiceTarget:
        """The same entrypoint with other props."""
        return ServiceTarget(self._known, *self._place, props, routed=self._routed)

    def disconnect(self) -> None:
        """Let go of the emulator, which is closed."""
        self._services = None

    @property
    def _known(self) -> Services:
        if self._services is None:
            raise RuntimeError(f"the emulator that {self._place[0]} belongs to is closed")
        return self._services

    def describe(self) -> str:
        """Say what is called."""
        return f"the service {self._place[0]}"

    def call(self, caller: Invocation, method: str, arguments: list[Any]) -> asyncio.Future[Any]:
        """Call a method of the entrypoint."""
        work = partial(ServiceEvent.run_method, method=method, arguments=arguments)
        return self._send(caller, method, {}, self._method(caller, method, work))

    def fetch(self, caller: Invocation, request: WebRequest) -> asyncio.Future[Any]:
        """Send a request to the entrypoint."""
        work = partial(ServiceEvent.run_fetch, request=request)
        make = self._method(caller, "fetch", work)
        return self._send(caller, "fetch", {"url": request.url}, make, request)

    def scheduled(self, caller: Invocation, trigger: Trigger) -> asyncio.Future[Any]:
        """Call the entrypoint's `scheduled` handler."""
        make = partial(ScheduledCall, trigger=trigger)
        return self._send(caller, "scheduled", {"cron": trigger.cron}, make)

    def queue(self, caller: Invocation, batch: Batch) -> asyncio.Future[Any]:
        """Call the entrypoint's `queue` handler."""
        facts = {"queue": batch.queue, "messages": len(batch.messages)}
        return self._send(caller, "queue", facts, partial(QueueCall, batch=batch))

    def _method(self, caller: Invocation, method: str, work: Work) -> Make:
        return lambda isolate, entrypoint: _MethodCall(
            ServiceEvent(isolate, entrypoint, method), caller, work
        )

    def _send(
        self,
        caller: Invocation,
        method: str,
        facts: dict[str, Any],
        make: Make,
        request: WebRequest | None = None,
    ) -> asyncio.Future[Any]:
        services, (binding, service, entrypoint) = self._known, self._place
        in_request = caller.is_test or (caller.in_request and not caller.main_done)
        repeats = caller.repeats()

        def perform(_: object) -> Any:
            if request is not None and self._routed:
                served = services.before(service, request)
                if served is not None:
                    return self._asset(caller, request, *served)
            if caller.depth >= MOST_WORKERS and services.kernel.profile == "production":
                raise JsException("Error", _TOO_DEEP)
            call = _made(make, services.worker(service), entrypoint)
            run = call.run
            run.props = self._props
            run.in_request, run.retried = in_request, repeats
            run.depth = caller.depth + 1
            services.kernel.record(
                "service_call", run.subject, method=method, by=caller.subject, **facts
            )
            answer = calls.Later()
            call.begin(answer)
            return answer

        site = "" if caller.is_test else services.site(binding, method)
        return calls.call(caller, perform, site=site, lost=disconnected)

    def _asset(
        self, caller: Invocation, request: WebRequest, response: WebResponse, file: str
    ) -> WebResponse:
        """The answer of the Worker's assets, which is no event of the Worker's."""
        facts = {"asset": file} if file else {}
        self._known.kernel.record(
            "assets",
            f"assets {self._place[0]}",
            url=request.url,
            status=response.status,
            by=caller.subject,
            **facts,
        )
        return response


class _MethodCall:
    """A call of a method, or a request."""

    def __init__(self, event: ServiceEvent, caller: Invocation, work: Work) -> None:
        self.run = event
        self._work = work
        event.caller = caller

    def begin(self, answer: calls.Later) -> None:
        event = self.run
        event.answer = lambda value, error: _settle(answer, event, event.caller, value, error)
        event.begin(self._work(event))


def _made(make: Make, worker: Worker, entrypoint: str | None) -> Call:
    try:
        return make(worker.isolate, entrypoint)
    except WorkerLoadError as error:
        raise JsException("Error", str(error)) from error


def _settle(
    answer: calls.Later,
    event: ServiceEvent,
    caller: Invocation,
    value: Any,
    error: JsException | None,
) -> None:
    if error is not None and not event.lost:
        error = carried(error, event.sender_flags, caller.flags)
    answer.settle(value, error)


def site_of(binding: str, method: str) -> str:
    """The fault site of a call."""
    return site_name("service", binding, method)
