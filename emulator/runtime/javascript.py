"""`import_from_javascript` and `patch_env`: the runtime's JavaScript modules, and another env.

`cloudflare:workers` and `cloudflare:sockets` are there everywhere; any other module is imported
with `run_sync`, and a Worker in Python has only `cloudflare:email`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from emulator.runtime.context import wait_until_current
from emulator.runtime.email_message import EmailMessage
from emulator.runtime.js import host_class
from emulator.runtime.not_yet import not_yet
from emulator.runtime.profile import generation
from emulator.runtime.proxies import wrap
from emulator.runtime.pyproxy import unwrap
from emulator.runtime.rpc import PATCHES, importable_env
from emulator.runtime.run_sync import can_run_sync
from emulator.values import UNDEFINED, Function, HostObject, JsException

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_EMAIL = "cloudflare:email"
_KEYS = {"cloudflare:workers": ["env", "waitUntil"], _EMAIL: ["EmailMessage"]}
_ONLY = "Only 'cloudflare:workers' and 'cloudflare:sockets' are available"
# What production's modules have besides.
_NOT_YET = {
    "cloudflare:workers": (
        *("DurableObject", "RpcPromise", "RpcProperty", "RpcStub", "RpcTarget", "ServiceStub"),
        *("WorkerEntrypoint", "WorkflowEntrypoint", "cache", "exports", "tracing"),
        *("withEnv", "withEnvAndExports", "withExports"),
    ),
    "cloudflare:sockets": ("connect", "internalNewHttpClient"),
}


class _Module(HostObject):
    """A module of the runtime's, as JavaScript's `import()` gives it."""

    js_class = "Module"

    def __init__(self, name: str) -> None:
        self._name = name

    def js_lookup(self, name: str) -> Any:
        if self._name == _EMAIL and name == "EmailMessage":
            return host_class(EmailMessage)
        if self._name == "cloudflare:workers":
            if name == "env":
                return unwrap(importable_env())
            if name == "waitUntil":
                return Function(_wait_until, "waitUntil", raw=True)
        if name in _NOT_YET.get(self._name, ()):
            raise not_yet(f"{self._name}.{name}", imported=False)
        raise AttributeError(name)

    def js_keys(self) -> list[str]:
        return _KEYS.get(self._name, [])


def _wait_until(*arguments: Any) -> object:
    wait_until_current(*map(wrap, arguments))
    return UNDEFINED


def import_from_javascript(module_name: str) -> Any:
    """Import a JavaScript module; raises `ImportError` for one there is not."""
    if module_name in _NOT_YET:
        return wrap(_Module(module_name))
    failed = f"Failed to import '{module_name}': "
    if generation() == 26:
        raise ImportError(f"{failed}{_ONLY} until the next python runtime version.")
    if not can_run_sync():
        raise ImportError(f"{failed}{_ONLY} in the global scope.")
    if module_name == _EMAIL:
        return wrap(_Module(module_name))
    cause = JsException("Error", f'No such module "{module_name}".')
    error = ImportError(f"{failed}{cause}")
    error.add_note(f"workers-emulator has no other JavaScript modules. {_ONLY}.")
    raise error from cause


@contextmanager
def patch_env(d: Any = None, **kwds: Any) -> Iterator[None]:
    """Let `workers.env` and `self.env` have other values inside the `with` block."""
    given: Iterable[tuple[str, Any]] = d.items() if hasattr(d, "items") else d or ()
    patched = {name: unwrap(value) for name, value in {**dict(given), **kwds}.items()}
    token = PATCHES.set({**PATCHES.get(), **patched})
    try:
        yield
    finally:
        PATCHES.reset(token)


patch_env.__module__ = import_from_javascript.__module__ = "workers.utils"
