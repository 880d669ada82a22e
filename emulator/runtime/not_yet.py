"""What production has and the emulator does not: errors that say so.

Code asks for it in two ways. `from js import Intl` gets an `ImportError`, whose text Python
would otherwise make itself; every other look gets an `AttributeError`, so that `hasattr` says no.
"""

from __future__ import annotations

import dis
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import FrameType

# What a Worker's global scope has besides what `js` gives: workerd's global-scope.h with the flags
# that newer dates imply, and V8's built-ins.
_JS_GLOBALS: Final = """
Atomics Body DisposableStack ExtendableEvent FetchEvent Float16Array Intl Iterator
MessageChannel MessagePort PromiseRejectionEvent Proxy ReadableByteStreamController
ReadableStreamBYOBReader ReadableStreamBYOBRequest ReadableStreamDefaultController ScheduledEvent
ServiceWorkerGlobalScope SharedArrayBuffer SuppressedError TailEvent TraceEvent
TransformStreamDefaultController WebAssembly WorkerGlobalScope WritableStreamDefaultController
WritableStreamDefaultWriter addEventListener dispatchEvent removeEventListener
"""
JS_GLOBALS: Final = frozenset(_JS_GLOBALS.split())

_WHERE = "docs/workers.md lists what it has"


def not_yet(name: str, *, imported: bool) -> ImportError | AttributeError:
    """Return the error for something (`js.Intl`) that production would have had."""
    text = f"workers-emulator does not provide `{name}` yet, although production does; {_WHERE}"
    # No `ModuleNotFoundError`: `from workers import asgi` would swallow it.
    return ImportError(text, name=name) if imported else AttributeError(text)


def is_import(frame: FrameType) -> bool:
    """Whether a frame is at `from module import name`; for a module's `__getattr__`."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"
