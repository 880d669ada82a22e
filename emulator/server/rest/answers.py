"""Cloudflare's envelope: `{"success", "errors", "messages", "result", "result_info"}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.clock import moment
from emulator.server.bodies import Json
from emulator.trace.written import write_datetime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ApiError(Exception):
    """What the API refuses: the HTTP status, and Cloudflare's code and text."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def not_found(error: ApiError, what: str, named: str, ids: Mapping[str, str]) -> ApiError:
    """Return the error of a path that names nothing; `ids` are those of the things by name.

    Where the path has a name in the place of an id, which the API does not take, it says the id.
    """
    if named not in ids:
        return error
    hint = f"this path takes a {what}'s id, and the {what} named '{named}' has the id {ids[named]}"
    return ApiError(error.status, error.code, f"{error.message.removesuffix('.')}: {hint}")


class Page(NamedTuple):
    """A part of a list, with what `result_info` says of it."""

    items: Sequence[Any]
    info: dict[str, Any]


def success(result: Any) -> Json:
    """Answer with a result, which may be a `Page`."""
    shown: dict[str, Any] = {"success": True, "errors": [], "messages": []}
    if isinstance(result, Page):
        return Json({**shown, "result": list(result.items), "result_info": result.info})
    return Json({**shown, "result": result})


def failure(error: ApiError) -> Json:
    """Answer with an error."""
    return Json(
        {
            "success": False,
            "errors": [{"code": error.code, "message": error.message}],
            "messages": [],
            "result": None,
        },
        error.status,
    )


def time(instant: int | None) -> str | None:
    """An instant as the API writes it; None stays None."""
    return None if instant is None else write_datetime(moment(instant))
