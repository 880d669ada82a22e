"""What a client gets where no Worker answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.errors import EmulatorClosed, StateError, WorkerCrashed, WorkerLoadError
from emulator.ingress import ReplyLost
from emulator.server.pages import problem_page, text_page
from emulator.server.problem import NotRunning, Problem
from emulator.server.routing import UnknownWorker

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.server.pages import Page

NO_ANSWER: Final = (NotRunning, UnknownWorker, EmulatorClosed, StateError)
"""What keeps a request from reaching a Worker, or its answer from leaving."""


def failure(error: BaseException | None, masker: Callable[[str], str]) -> Page:
    """Return the page for an error: the problem of the code, or a line that says what happened."""
    if isinstance(error, NotRunning):
        return problem_page(error.problem or Problem("The server is not ready", str(error)))
    if isinstance(error, WorkerLoadError):
        return problem_page(Problem.of(error, masker))
    status = 404 if isinstance(error, UnknownWorker) else 503
    if isinstance(error, WorkerCrashed | ReplyLost):
        status = 502
    return text_page(status, masker(str(error)))
