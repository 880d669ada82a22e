"""Handlers that something else than a request calls, as in `wrangler dev`.

1. `/cdn-cgi/handler/scheduled` (miniflare, `core/scheduled.ts`): `cron` and `time`, in
   milliseconds, are what the handler gets; the answer is its outcome, with `format=json` an object,
   and its status is 500 unless the outcome is `ok`. Why it is not is our addition: in lines after
   the outcome, and as the object's `error`.
2. `/cdn-cgi/handler/email` (miniflare, `core/email.ts`): `from` and `to` are the envelope's
   addresses, the body is the mail. A mail that is rejected answers 400, with the reason.

`worker` names another Worker than the first.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from email import policy
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import PlainTextResponse, Response

from emulator.errors import WorkerLoadError
from emulator.location import describe_error
from emulator.runtime.web.text import utf8
from emulator.server.bodies import Json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from emulator.server.desk import Desk

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST: Final = 25 * 1024 * 1024  # docs: Email Routing limits
_MOST_LOCALLY: Final = 1024 * 1024
_NO_MAIL: Final = (
    "Invalid email. Your request must include URL parameters specifying the `from` and `to` "
    "addresses, as well as an email in the body"
)
_TOO_LARGE: Final = (
    "Email message size is bigger than the production size limit of 25MiB. Local development has a "
    "lower limit of 1Mib."
)
_TOO_LARGE_LOCALLY: Final = (
    "Email message size is within the production size limit of 25MiB, but exceeds the lower 1Mib "
    "limit for testing locally."
)
_JS: Final = "pyodide.ffi.JsException: "  # before what JavaScript says
_NUMBER: Final = re.compile(r"\s*[+-]?\d+")


def scheduled(desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that runs a `scheduled` handler."""

    async def endpoint(request: Request) -> Response:
        query = request.query_params
        worker = query.get("worker")
        if (unknown := _unknown(desk, worker)) is not None:
            return unknown
        try:
            time = _time(query.get("time"))
        except (ValueError, OverflowError):
            return PlainTextResponse("time is not a number of milliseconds\n", 400)
        result = await desk.emulator.scheduled(query.get("cron"), time, worker)
        outcome, error = result
        status = 200 if outcome == "ok" else 500
        why = "" if error is None else desk.masker()(_why(desk, worker, error))
        if query.get("format") == "json":
            told = {"error": why} if why else {}
            return Json({"outcome": outcome, "noRetry": result.no_retry, **told}, status)
        return PlainTextResponse(utf8(f"{outcome}\n{why}\n") if why else outcome, status)

    return endpoint


def email(desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that lets a mail arrive at an `email` handler."""

    async def endpoint(request: Request) -> Response:
        query = request.query_params
        sender, to, worker = query.get("from"), query.get("to"), query.get("worker")
        if (unknown := _unknown(desk, worker)) is not None:
            return unknown
        mail = await request.body()
        problem = _mail_problem(mail, sender, to, is_local=desk.options.profile == "miniflare")
        if problem:
            return PlainTextResponse(problem, 400)
        receipt = await desk.emulator.email(mail, sender=sender, to=to, worker=worker)
        if receipt.outcome != "ok":
            error = receipt.error
            text = "the handler was cut off" if error is None else describe_error(error)
            return PlainTextResponse(utf8(desk.masker()(text)), 500)
        if receipt.rejected is not None:
            text = f"Worker rejected email with the following reason: {receipt.rejected}"
            return PlainTextResponse(utf8(text), 400)
        return PlainTextResponse("Worker successfully processed email")

    return endpoint


def _why(desk: Desk, worker: str | None, error: BaseException) -> str:
    """Why a run failed; where there is no handler, which Worker lacks it, and where."""
    text = describe_error(error).removeprefix(_JS)
    target = desk.platform.worker(worker or desk.routing.workers[0])
    try:
        script = target.script
    except WorkerLoadError:
        return text
    if script.handles("scheduled"):
        return text
    main, source = target.config.main, target.config.source
    place = str(main) if isinstance(main, Path) else getattr(main, "__name__", str(main))
    if isinstance(main, Path) and source is not None:
        place = os.path.relpath(main, source.parent)
    has = ", ".join(script.handlers) or "none"
    lacks = f"The Worker {target.name} ({place}) has no `scheduled` handler; its handlers: {has}"
    return f"{text}\n{lacks}"


def _mail_problem(mail: bytes, sender: str | None, to: str | None, *, is_local: bool) -> str:
    """What keeps a mail from arriving; empty if nothing does."""
    if not mail or not sender or not to:
        return _NO_MAIL
    if len(mail) > _MOST:
        return _TOO_LARGE
    if is_local and len(mail) > _MOST_LOCALLY:
        return _TOO_LARGE_LOCALLY
    if BytesHeaderParser(policy=policy.default).parsebytes(mail)["Message-ID"] is None:
        return "Email could not be parsed: invalid or no message id provided"
    return ""


def _unknown(desk: Desk, worker: str | None) -> Response | None:
    """The answer to who names a Worker that is not there."""
    if worker is None or worker in desk.routing.workers:
        return None
    known = ", ".join(desk.routing.workers)
    return PlainTextResponse(f"there is no Worker {worker!r}; there are: {known}\n", 404)


def _time(text: str | None) -> datetime | None:
    """A time as JavaScript's `parseInt` reads it."""
    if not text:
        return None
    number = _NUMBER.match(text)
    if number is None:
        raise ValueError(text)
    return _EPOCH + timedelta(milliseconds=int(number[0]))
