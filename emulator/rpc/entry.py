"""The receiving side: which method a name is, and how it is called.

Python's entrypoints stand behind a proxy of JavaScript's that has every name (workerd,
`python-entrypoint-helper.ts`), so that a missing method is an error of that proxy's. The names of
handlers are refused before (workerd, `worker-rpc.c++`); `fetch` of a stub is a request.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from emulator.entrypoints import relaxed_call
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


def method_of(instance: Any, name: str) -> Any:
    """Return the method that is called by this name; raises the runtime's `TypeError`."""
    if name in RESERVED:
        text = f"'{name}' is a reserved method and cannot be called over RPC."
        raise JsException("TypeError", text)
    method = None if name.startswith("_") else getattr(instance, name, None)
    if not callable(method):
        raise JsException("TypeError", f"Method {name} does not exist")
    return method


async def call_method(method: Any, arguments: list[Any]) -> Any:
    """Call a method with canonical values, and return its canonical result."""
    result = method(*map(argument_of, arguments))
    if inspect.isawaitable(result):
        result = await result
    return result_of(result)


async def call_fetch(instance: Any, request: WebRequest, name: str = "fetch") -> WebResponse:
    """Call the handler of requests, which takes as many arguments as it likes.

    `name` is what the date calls it. Raises `JsException` where there is none, and for an answer
    that is no response.
    """
    handler = getattr(instance, name, None)
    if not callable(handler):
        raise JsException("TypeError", f"Method {name} does not exist")
    answer = relaxed_call(handler, Request(request_from_web(request)), None, None)
    if inspect.isawaitable(answer):
        answer = await answer
    try:
        return response_to_web(answer)
    except JsException as error:
        error.add_note(f"The handler returned {type(answer).__name__}.")
        raise
