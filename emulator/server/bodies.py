"""JSON of control pages: one reader, whatever was sent, and one writer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from emulator.errors import EmulatorError

if TYPE_CHECKING:
    from starlette.requests import Request


class Json(JSONResponse):
    """An answer in JSON; half a surrogate pair is escaped, as `JSON.stringify` does it."""

    def render(self, content: Any) -> bytes:
        """Return the body."""
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class NoJson(EmulatorError):
    """A body, or a text, is no JSON that can be read."""


def read_json(text: str | bytes, what: str = "the body") -> Any:
    """Return what a text of JSON says; raises `NoJson`, `what` being the text's name in it."""
    try:
        return json.loads(text)
    except RecursionError:
        raise NoJson(f"{what} is no JSON that can be read: it is nested too deep") from None
    except ValueError as error:  # no Unicode, too
        raise NoJson(f"{what} is no JSON: {error}") from None


async def json_of(request: Request) -> Any:
    """Return what a request's body says; raises `NoJson`."""
    return read_json(await request.body())
