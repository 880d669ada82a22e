"""The receiving side: which method a name is, and how it is called.

Python's entrypoints stand behind a proxy of JavaScript's that has every name (workerd,
`python-entrypoint-helper.ts`), so that a missing method is an error of that proxy's. The names of
handlers are refused before (workerd, `worker-rpc.c++`); `fetch` of a stub is a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.entrypoints import awaited, relaxed_call
from emulator.runtime.rpc_values import argument_of, result_of
from emulator.runtime.sdk.request import Request
from emulator.runtime.web.boundary import request_from_web, response_to_web
from emulator.values import JsException

if TYPE_CHECKING:
    from emulator.runtime.host import WebRequest, WebResponse

RESERVED: Final = frozenset(
    {
        *("fetch", "connect", "alarm"),
        *("webSocketMessage", "webSocketClose", "webSocketError"),
        *("dup", "constructor"),
    }
)


def check_name(name: str) -> None:
    """Raise the runtime's `TypeError` for a name that no method is called by."""
    if name in RESERVED:
        text = f"'{name}' is a reserved method and cannot be called over RPC."
        raise JsException("TypeError", text)


def method_of(instance: Any, name: str) -> Any:
    """Return the method that is called by this name; raises the runtime's `TypeError`."""
    check_name(name)
    method = None if name.startswith("_") else getattr(instance, name, None)
    if not callable(method):
        raise JsException("TypeError", f"Method {name} does not exist")
    return method


async def call_method(method: Any, arguments: list[Any]) -> Any:
    """Call a method with canonical values, and return its canonical result."""
    return result_of(await awaited(method(*map(argument_of, arguments))))


def handler_of(instance: Any, name: str) -> Any:
    """Return a handler of events (`fetch`, `alarm`); raises the runtime's `TypeError`."""
    handler = getattr(instance, name, None)
    if not callable(handler):
        raise JsException("TypeError", f"Method {name} does not exist")
    return handler


async def call_handler(handler: Any, *arguments: Any) -> Any:
    """Call a handler with as many of the arguments as it takes, and wait for its result."""
    return await awaited(relaxed_call(handler, *arguments))


def request_for(request: WebRequest) -> Request:
    """Return a request as a handler gets it."""
    return Request(request_from_web(request))


def response_of(answer: Any) -> WebResponse:
    """Return what a handler of requests answered; raises `JsException` for what is no response."""
    try:
        return response_to_web(answer)
    except JsException as error:
        error.add_note(f"The handler returned {type(answer).__name__}.")
        raise
