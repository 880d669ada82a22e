"""The services of one emulator: which Workers there are, and who binds to them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from emulator.services.bindings import Exports, LoopbackServiceStub, ServiceStub
from emulator.services.entrypoint import DEFAULT, entrypoint_class, named
from emulator.services.target import ServiceTarget, site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from emulator.entrypoints import Script
    from emulator.isolate import Worker
    from emulator.kernel import Kernel
    from emulator.runtime.host import WebRequest, WebResponse
    from emulator.values import HostObject
    from emulator.worker_config import Service, WorkerConfig

    Before = Callable[[str, WebRequest], tuple[WebResponse, str] | None]


def _nothing(worker: str, request: WebRequest) -> None:
    """Leave every request to the Worker."""


class Services:
    """Workers by name, as others reach them; it keeps nothing that lasts."""

    def __init__(self, kernel: Kernel, workers: Iterable[WorkerConfig]) -> None:
        self.kernel = kernel
        self._names = [worker.name for worker in workers]
        self._workers: dict[str, Worker] = {}
        self._sites: dict[tuple[str, str], str] = {}
        self._targets: WeakSet[ServiceTarget] = WeakSet()
        # What answers before a Worker's default entrypoint: its assets.
        self.before: Before = _nothing

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The services of a Worker, as far as their Workers are here."""
        return {one.binding: self._stub(one) for one in self._known(config)}

    def _known(self, config: WorkerConfig) -> list[Service]:
        return [one for one in config.services if one.service in self._names]

    def _stub(self, one: Service) -> HostObject:
        entrypoint = None if one.entrypoint == DEFAULT else one.entrypoint
        target = ServiceTarget(self, one.binding, one.service, entrypoint, one.props, routed=True)
        return ServiceStub(target)

    def hold(self, target: ServiceTarget) -> None:
        """Note a target, which user code may keep for ever."""
        self._targets.add(target)

    def add(self, worker: Worker) -> None:
        """A Worker that others may call."""
        self._workers[worker.name] = worker

    def worker(self, name: str) -> Worker:
        """A Worker that a binding names."""
        return self._workers[name]

    def site(self, binding: str, method: str) -> str:
        """The fault site of calls of a method."""
        site = self._sites.get((binding, method))
        if site is None:
            site = self._sites[binding, method] = site_of(binding, method)
        return site

    def exports(self, worker: str, objects: Mapping[str, HostObject], script: Script) -> Exports:
        """`ctx.exports` of a Worker, given its namespaces of objects by class."""
        names = [DEFAULT, *named(script)]
        return Exports({**{name: self._loopback(worker, name) for name in names}, **objects})

    def _loopback(self, worker: str, name: str) -> HostObject:
        entrypoint = None if name == DEFAULT else name
        return LoopbackServiceStub(ServiceTarget(self, name, worker, entrypoint, {}))

    def check(self, worker: Worker) -> None:
        """Raise `WorkerLoadError` for a binding whose entrypoint its Worker does not export."""
        for one in self._known(worker.config):
            if one.entrypoint not in (None, DEFAULT):
                target = self._workers[one.service]
                entrypoint_class(target.isolate, one.entrypoint, one.binding)

    def close(self) -> None:
        """Let go of what user code may still hold."""
        for target in self._targets:  # in no order that could be seen
            target.disconnect()
        self._workers.clear()
