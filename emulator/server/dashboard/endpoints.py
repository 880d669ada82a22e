"""Endpoints of the dashboard: what a view asks, and what it gets, as JSON.

    def routes(desk):
        return [reads(desk, "/queues", _queues), acts(desk, "/queue/purge", _purge)]

    async def _purge(desk, asked):
        await desk.act("purge", desk.emulator.queues[asked.text("queue")].purge)
        return {}

`reads` takes its question from the query, `acts` from a JSON object in the body, which no form of
another site's page can send. An answer is ASCII, so that any text can be in it. What is wrong with
a question comes back as `{"error": text}`.
"""

from __future__ import annotations

import json
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response
from starlette.routing import Route

from emulator.errors import EmulatorClosed, EmulatorError, StateError
from emulator.server.bodies import json_of, read_json
from emulator.server.problem import NotRunning
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TypeAlias

    from starlette.requests import Request

    from emulator.server.desk import Desk

    Answer: TypeAlias = dict[str, Any]

FOLDER: Final = "/dashboard"
MOST_ROWS: Final = 500
_ROWS: Final = 100
_UNAVAILABLE: Final = (NotRunning, EmulatorClosed, StateError)
_MISSING: Final = object()


class Wrong(Exception):
    """A question that cannot be answered; the text says why."""


class Asked:
    """What a view asks: named values, from a query (texts) or a JSON object."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def given(self, name: str) -> bool:
        """Return whether there is a value of this name."""
        return self._values.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; raises `Wrong` where it is not given and has no default."""
        value = self._values.get(name, _MISSING)
        if value is _MISSING or value is None:
            if default is None:
                raise Wrong(f"{name} is missing")
            return default
        if not isinstance(value, str):
            raise Wrong(f"{name} is {value!r}; give a text")
        return value

    def number(self, name: str, default: int | None = None, *, most: int = 2**53 - 1) -> int:
        """Return a whole number from 0 to `most`; raises `Wrong` for anything else."""
        value = self._values.get(name, default)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 17:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise Wrong(f"{name} is {value!r}; give a whole number from 0 to {most}")
        return value

    def flag(self, name: str) -> bool:
        """Return whether something is asked for."""
        return self._values.get(name) in (True, "true", "1")

    def part(self) -> tuple[int, int]:
        """Return which rows of a list are asked for: the first one, and how many."""
        return self.number("from", 0), min(self.number("rows", _ROWS) or 1, MOST_ROWS)

    def parsed(self, name: str) -> Any:
        """Return the value of a text of JSON, None for an empty one; raises `NoJson`."""
        text = self.text(name, "")
        return read_json(text, name) if text.strip() else None


def reads(desk: Desk, path: str, answer: Callable[[Desk, Asked], Any]) -> Route:
    """Return the route of a question that changes nothing."""

    async def endpoint(request: Request) -> Response:
        return await _answered(desk, Asked(request.query_params), answer)

    return Route(FOLDER + path, endpoint)


def acts(desk: Desk, path: str, act: Callable[[Desk, Asked], Awaitable[Any]]) -> Route:
    """Return the route of something to be done."""

    async def endpoint(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return as_json({"error": "send JSON, as application/json"}, 415)
        given = await json_of(request)
        if not isinstance(given, dict):
            return as_json({"error": "send a JSON object"}, 400)
        return await _answered(desk, Asked(given), act)

    return Route(FOLDER + path, endpoint, methods=["POST"])


def as_json(value: Any, status: int = 200) -> Response:
    """Return an answer; in ASCII, for texts that UTF-8 cannot carry."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(text, status, headers, "application/json")


async def _answered(desk: Desk, asked: Asked, answer: Callable[[Desk, Asked], Any]) -> Response:
    try:
        result = answer(desk, asked)
        return as_json(await result if isawaitable(result) else result)
    except _UNAVAILABLE as error:
        return as_json({"error": str(error)}, 503)
    except JsException as error:
        return as_json({"error": f"{error.name}: {error.message}"}, 400)
    except KeyError as error:
        return as_json({"error": str(error.args[0]) if error.args else "not found"}, 404)
    except (EmulatorError, Wrong, ValueError, TypeError, LookupError) as error:
        return as_json({"error": str(error)}, 400)
