"""Workers that use `caches`, made of functions, and short ways to look at what they got."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

# Found by the importer that `emulator` has installed.
from workers import Response, WorkerEntrypoint

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Callable

PROFILES = ("production", "miniflare")
# A date of each SDK and Pyodide: frozen 0.28, external 314.
DATES = ("2026-04-20", "2026-09-08")
URL = "https://shop.example/list"


def worker(handle: Callable[..., Any], **config: Any) -> dict[str, Any]:
    """The config of a Worker whose `handle(entrypoint)` answers requests."""

    async def fetch(self: Any, request: Any) -> Any:
        self.request = request
        value = handle(self)
        value = await value if inspect.isawaitable(value) else value
        return value if isinstance(value, Response) else Response(str(value))

    return {"main": type("Default", (WorkerEntrypoint,), {"fetch": fetch}), **config}


def running(handle: Callable[..., Any], **arguments: Any) -> Emulator:
    """An emulator of such a Worker."""
    config = arguments.pop("config", {})
    return Emulator(worker(handle, **config), **arguments)


async def got(handle: Callable[..., Any], *, date: str | None = None, **arguments: Any) -> Any:
    """What `handle` returns in a Worker."""
    found: list[Any] = []

    async def keep(entrypoint: Any) -> str:
        value = handle(entrypoint)
        found.append(await value if inspect.isawaitable(value) else value)
        return "done"

    config = {} if date is None else {"compatibility_date": date}
    async with running(keep, config=config, **arguments) as emulator:
        response = await emulator.fetch("/")
        assert response.text == "done", response.text
        assert [str(one) for one in emulator.findings.unexpected()] == []
    return found[0]


async def problem(make: Callable[[], Any]) -> str:
    """The error of a call: what it raises, at once or when it is awaited."""
    try:
        value = make()
        if inspect.isawaitable(value):
            await value
    except Exception as error:
        return str(error) if hasattr(error, "message") else f"{type(error).__name__}: {error}"
    return ""


def response(body: Any = "body", status: int = 200, **headers: str) -> Any:
    """A response of JavaScript's; `Cache_Control` is a header's name."""
    import js
    from pyodide.ffi import to_js

    listed = [[name.replace("_", "-"), value] for name, value in headers.items()]
    options = {"status": status, "headers": js.Headers.new(to_js(listed))}
    return js.Response.new(body, to_js(options, dict_converter=js.Object.fromEntries))


def request(url: str = URL, method: str = "GET", **headers: str) -> Any:
    """A request of JavaScript's."""
    import js
    from pyodide.ffi import to_js

    listed = [[name.replace("_", "-"), value] for name, value in headers.items()]
    options = {"method": method, "headers": js.Headers.new(to_js(listed))}
    return js.Request.new(url, to_js(options, dict_converter=js.Object.fromEntries))
