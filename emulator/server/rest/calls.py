"""A request as an operation gets it, and operations as endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from starlette.responses import Response
from starlette.routing import Match

from emulator.errors import EmulatorError
from emulator.server.rest.answers import ApiError, failure, success
from emulator.values import JsException, from_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.datastructures import Headers, QueryParams
    from starlette.requests import Request
    from starlette.routing import Route

    from emulator.kernel import Kernel
    from emulator.platform import Platform
    from emulator.server.desk import Desk
    from emulator.server.options import Options

# The API's own texts for these are not known.
_NO_JSON: Final = ApiError(400, 10026, "Could not parse the request body as JSON.")
_UNAVAILABLE: Final = 10013


@dataclass(frozen=True, slots=True)
class Call:
    """One request: what is in its path, query and body, and the platform it is about."""

    platform: Platform
    options: Options
    path: Mapping[str, str]
    query: QueryParams
    headers: Headers
    body: bytes

    @property
    def kernel(self) -> Kernel:
        """The simulation's."""
        return self.platform.kernel

    @property
    def now(self) -> int:
        """This instant."""
        return self.platform.kernel.now

    def json(self) -> Any:
        """The body; raises `ApiError` for what is no JSON."""
        try:
            return from_json(self.body.decode())
        except (JsException, UnicodeDecodeError):
            raise _NO_JSON from None


# `Any`: a result is whatever JSON can show, a `Page`, a response, or an awaitable of one of these.
Operation: TypeAlias = "Callable[[Call], Any]"
Operations: TypeAlias = "Sequence[tuple[str, str, Operation]]"


def endpoint(desk: Desk, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that performs an operation inside the simulation."""
    name = f"the REST API: {operation.__name__.replace('_', ' ').strip()}"

    async def perform(request: Request) -> Response:
        body = await request.body()
        try:
            call = Call(
                desk.platform,
                desk.options,
                request.path_params,
                request.query_params,
                request.headers,
                body,
            )
            result = await desk.act(name, lambda: operation(call))
        except ApiError as error:
            return failure(error)
        except EmulatorError as error:  # no code to run, no room on the disk
            return failure(ApiError(503, _UNAVAILABLE, str(error)))
        return result if isinstance(result, Response) else success(result)

    return perform


def no_route(known: Sequence[Route]) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of all paths, or methods, that the API does not have."""

    async def refuse(request: Request) -> Response:
        if any(route.matches(request.scope)[0] is Match.PARTIAL for route in known):
            text = "Method not allowed for this authentication scheme"
            return failure(ApiError(405, 10405, text))
        text = (
            f"Could not route to /client/v4/{request.path_params['path']}, perhaps your object "
            "identifier is invalid?"
        )
        return failure(ApiError(404, 7003, text))

    return refuse
