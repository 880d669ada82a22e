"""A call that leaves a Worker through a binding, and the faults on its way.

Whatever the product, a call takes effect when its turn comes, one turn of the loop after it was
made: what its arguments are is fixed when it is made, what it finds is fixed then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.runtime.host import current
from emulator.tasks import Answer
from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from emulator.invocation import Invocation

_ENDING = ("crash_before", "fail", "crash_after", "lose_reply")


class Struck(NamedTuple):
    """What struck a call: the action that ends it, if one did, and those that only change it."""

    ending: str
    others: tuple[str, ...]


UNHARMED = Struck("", ())


def caller_of() -> Invocation:
    """The invocation whose code makes the call; raises production's error in the global scope."""
    invocation: Any = current()
    invocation.forbid_in_global_scope()
    return invocation  # type: ignore[no-any-return]


def takes_effect(invocation: Invocation) -> bool:
    """Whether production would still make a call whose turn has come (queues 1.17).

    One that nothing waits for may be dropped when the handler returns; the local runtime was seen
    to make it (recording queue_send_not_awaited). A power cut stops the calls whose turn has not
    come; where the platform only waits in vain they have left already.
    """
    if not (invocation.main_done or invocation.dead):
        return True  # as nearly always
    if invocation.dead and invocation.gone:
        return False
    return invocation.waited_for or invocation.kernel.profile == "miniflare"


def meet(
    invocation: Invocation,
    site: str,
    *,
    repeats: bool,
    available: Collection[str] | None = None,
) -> Struck:
    """Meet a call's fault site, by the name that `site_name` made; a test's calls have none.

    `repeats` says whether the platform would repeat the code that made the call, as it was then.
    """
    if invocation.is_test or not site:
        return UNHARMED
    faults = invocation.kernel.faults.meet(
        site,
        in_request=invocation.in_request and not invocation.main_done,
        retried=repeats,
        available=available,
    )
    if not faults:
        return UNHARMED
    invocation.struck = True
    names = [fault.action for fault in faults]
    ending = next((name for name in names if name in _ENDING), "")
    return Struck(ending, tuple(name for name in names if name not in _ENDING))


def call(
    invocation: Invocation,
    perform: Callable[[tuple[str, ...]], Any],
    *,
    site: str,
    lost: Callable[[], Exception],
    available: Callable[[], Collection[str]] | None = None,
) -> asyncio.Future[Any]:
    """Make a call on a binding; the future is its answer.

    `perform` does the work, and is told which actions changed the call without ending it
    (`stale`); it returns the answer, a future of it or a `Later`, and raises `JsException`. `lost`
    makes the error that the caller sees of `fail` and of `lose_reply`. `available` is asked, when
    the call's turn has come, which actions are possible, where not all of the site's are. The
    future never resolves where the platform would not make the call any more, and where the caller
    loses its power.
    """
    loop = invocation.kernel.loop
    made = _Made()  # which has no constructor: Python calls one by way of C
    made.invocation = invocation
    made.perform = perform
    made.site = site
    made.lost = lost
    made.available = available
    made.repeats = invocation.repeats()
    made.answer = answer = Answer(loop=loop)
    made.ending = ""
    loop.kernel_soon(made.act)
    return answer


class Later:
    """An answer that is not there yet; a future of the emulator's own work that costs no turn."""

    __slots__ = ("_then",)

    def __init__(self) -> None:
        self._then: Callable[[Any, BaseException | None], None] | None = None

    def then(self, take: Callable[[Any, BaseException | None], None]) -> None:
        """Call back with the answer, or its error."""
        self._then = take

    def settle(self, value: Any, error: BaseException | None = None) -> None:
        """Give the answer, once; nobody may ask for it."""
        then, self._then = self._then, None  # whoever asks holds this: a cycle for each call
        if then is not None:
            then(value, error)


class _Made:
    """A call that was made, until it is answered; `call` makes it."""

    __slots__ = (
        *("answer", "available", "ending", "invocation", "lost", "perform"),
        *("repeats", "site"),
    )

    invocation: Invocation
    perform: Callable[[tuple[str, ...]], Any]
    site: str
    lost: Callable[[], Exception]
    available: Callable[[], Collection[str]] | None
    repeats: bool
    answer: asyncio.Future[Any]
    ending: str

    def act(self) -> None:
        invocation = self.invocation
        if not takes_effect(invocation):
            return
        possible = None if self.available is None else self.available()
        ending, others = meet(invocation, self.site, repeats=self.repeats, available=possible)
        if ending:
            self.ending = ending
            if ending == "crash_before":
                invocation.cut_power()
                return
            if ending == "fail":
                reject(self.answer, self.lost())
                return
        try:
            result = self.perform(others)
        except JsException as error:
            self._finish(None, error)
            return
        if isinstance(result, Later):
            result.then(self._finish)
        elif isinstance(result, asyncio.Future):
            result.add_done_callback(self._take)
        elif self.ending:
            self._finish(result, None)
        elif not self.answer.done():
            self.answer.set_result(result)

    def _take(self, done: asyncio.Future[Any]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        self._finish(None if error is not None else done.result(), error)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        if self.ending == "crash_after":
            if not self.invocation.dead:
                self.invocation.cut_power()
        elif self.ending == "lose_reply":
            reject(self.answer, self.lost())
        elif error is not None:
            reject(self.answer, error)
        else:
            resolve(self.answer, result)


def refuse(error: Exception) -> asyncio.Future[Any]:
    """The answer of a call whose arguments are wrong: what an `async` function of JavaScript
    makes of an error."""
    refused: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    reject(refused, error)
    return refused


def resolve(answer: asyncio.Future[Any], value: object) -> None:
    """Give the answer, unless nobody asks any more."""
    if not answer.done():
        answer.set_result(value)


def reject(answer: asyncio.Future[Any], error: BaseException) -> None:
    """Let the call fail, unless nobody asks any more."""
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # not awaiting it is a finding of its own
