"""The assets of one emulator: before a Worker, and behind its binding.

A request goes first to the router, which decides between the assets and the Worker (workers-sdk,
packages/workers-shared, router-worker). What the assets answer is no event of the Worker's: none of
its faults strikes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from emulator.assets.answers import Answer, Asked, Site
from emulator.assets.files import Files
from emulator.assets.matching import routes
from emulator.bindings import calls
from emulator.faults.sites import site_name
from emulator.rpc.stub import Fetcher
from emulator.runtime.host import WebResponse
from emulator.runtime.web.url_parser import parse
from emulator.values import JsException

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from emulator.deployment import Deployment
    from emulator.invocation import Invocation
    from emulator.kernel import Kernel
    from emulator.runtime.host import WebRequest
    from emulator.values import HostObject
    from emulator.worker_config import WorkerConfig

_MOST_HOPS: Final = 20
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class Assets:
    """The assets of each Worker that has some."""

    def __init__(self, kernel: Kernel, deployment: Deployment) -> None:
        self._kernel = kernel
        self._targets: list[AssetsTarget] = []
        self.sites: dict[str, Site] = {
            worker.name: Site(worker.assets, deployment.folder(worker.assets.directory, Files))
            for worker in deployment.settings.workers
            if worker.assets is not None
        }

    def reload(self, config: WorkerConfig) -> tuple[str, ...]:
        """Read the folder of a Worker's assets again; returns what is wrong with them."""
        if config.assets is None:
            return ()
        site = self.sites[config.name] = Site(config.assets, Files(config.assets.directory))
        return site.problems

    # -- before the Worker -----------------------------------------------------------------------

    def before(self, worker: str, request: WebRequest) -> tuple[WebResponse, str] | None:
        """Return the assets' answer and the file it has; None where the Worker is to answer."""
        site = self.sites.get(worker)
        if site is None:
            return None
        asked = Asked(request.method, parse(request.url), request.headers)
        if _is_workers(site, asked):
            return None
        return _response(site.answer(asked), request)

    # -- behind a binding ------------------------------------------------------------------------

    def bindings(self, config: WorkerConfig) -> dict[str, HostObject]:
        """The binding of a Worker to its assets."""
        if config.assets is None or config.assets.binding is None:
            return {}
        target = AssetsTarget(self, config.name, config.assets.binding)
        self._targets.append(target)
        return {config.assets.binding: Fetcher(target)}

    def fetch(self, worker: str, binding: str, request: WebRequest, by: str) -> WebResponse:
        """Answer a Worker's own request, and follow what leads on where it asks for that."""
        site, hop = self.sites[worker], request
        for _ in range(_MOST_HOPS):
            asked = Asked(hop.method, parse(hop.url), hop.headers)
            response, file = _response(site.answer(asked), hop)
            facts = {"asset": file} if file else {}
            self._kernel.record(
                "assets", f"assets {binding}", url=hop.url, status=response.status, by=by, **facts
            )
            if response.status not in _REDIRECTS or request.redirect != "follow":
                return replace(response, url=hop.url, redirected=hop is not request)
            location = next(value for name, value in response.headers if name == "location")
            hop = replace(hop, url=parse(location, asked.url).href())
        raise JsException("TypeError", "Too many redirects.")

    # -- life ------------------------------------------------------------------------------------

    def take_records(self) -> list[Any]:
        """Nothing changes."""
        return []

    def snapshot(self) -> list[Any]:
        """Nothing changes."""
        return []

    def rebuild(self, snapshot: Any, records: Iterable[Any]) -> None:
        """Nothing changes."""

    @property
    def stored(self) -> int:
        """How much is in the store."""
        return 0

    def reset(self) -> None:
        """Nothing changes."""

    def close(self) -> None:
        """Let go of what user code may still hold."""
        while self._targets:
            self._targets.pop().disconnect()


class AssetsTarget:
    """The other end of a binding to assets."""

    def __init__(self, service: Assets, worker: str, binding: str) -> None:
        self._service: Assets | None = service
        self._worker = worker
        self._binding = binding

    def disconnect(self) -> None:
        """Let go of the emulator, which is closed."""
        self._service = None

    def describe(self) -> str:
        """Say what is called."""
        return f"the assets {self._binding}"

    def call(self, caller: Invocation, method: str, arguments: list[Any]) -> asyncio.Future[Any]:
        """Refuse: there is nothing but `fetch`."""
        text = f'The RPC receiver does not implement the method "{method}".'
        return calls.refuse(JsException("TypeError", text))

    def fetch(self, caller: Invocation, request: WebRequest) -> asyncio.Future[Any]:
        """Ask for an asset."""
        service = self._service
        if service is None:
            raise RuntimeError(f"the emulator that {self._binding} belongs to is closed")

        def perform(_: tuple[str, ...]) -> WebResponse:
            return service.fetch(self._worker, self._binding, request, caller.subject)

        site = site_name("service", self._binding, "fetch")
        return calls.call(caller, perform, site=site, lost=_lost)


def _lost() -> Exception:
    return JsException("Error", "Network connection lost.")


def _is_workers(site: Site, asked: Asked) -> bool:
    """Whether the router hands a request to the Worker."""
    config, path = site.config, asked.url.pathname
    if config.has_rules and routes(config.last, path):
        return False
    if config.runs_first or (config.has_rules and routes(config.first, path)):
        return True
    return config.has_worker and not site.has(asked)


def _response(answer: Answer, request: WebRequest) -> tuple[WebResponse, str]:
    headers = answer.headers
    # A HEAD is answered without a body, whose length is not told either.
    if request.method != "HEAD" and answer.status != 304:
        headers = (*headers, ("content-length", str(len(answer.body))))
    response = WebResponse(answer.status, answer.status_text, headers, answer.body, request.url)
    return response, answer.file or ""
