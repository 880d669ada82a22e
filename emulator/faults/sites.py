"""The kinds of fault site, their actions, and the class of each: one table.

A site is a place where the platform, or something the Worker calls, may lose, repeat, delay or
reorder. Its name is a kind and the names that the kind's row gives, separated by dots:
`step.<workflow>.<step>` is `step.onboarding.charge-card`. The table is the fault reference of the
documentation (docs/faults.md); what an action leaves behind is described there.

Rules:

1. The actions of a row stand in the order in which they strike: first those that only change an
   occurrence (`duplicate`, `shuffle`), then those that end it, the earliest in time first. Where
   several strike one occurrence they are handed out in this order, and only the first of those
   that end it does: a batch cannot both crash before its handler and lose its acks after it.
2. An action's class is its column of the table (`Action.fault_class`), with two exceptions.
3. An action of the dependency column that its caller can see counts as *platform* where the
   platform itself will repeat the caller: correct code must bear the repetition.
4. Inside a request that the test awaits, an action that its caller can see (a crash, an error)
   counts as *request*, whatever the site: the client sees it too. Actions that nobody sees at
   once, such as a stale read or an eviction after the call, keep their class.
5. *Loss* is loss everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from emulator.durations import HOUR, SECOND
from emulator.faults.names import decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

FaultClass = Literal["platform", "dependency", "request", "loss"]
CLASSES: Final[tuple[FaultClass, ...]] = ("platform", "dependency", "request", "loss")
# A run meets the same few sites again and again, and so does the next.
_REMEMBERED: Final = 4096


class Takes(Enum):
    """What an action takes in parentheses."""

    NOTHING = "nothing"
    DURATION = "a duration, such as 30 s"
    MAYBE_DURATION = "a duration, such as 1 h, or nothing"
    STATUS = "an HTTP status from 200 to 599"
    MAYBE_STATUS = "an HTTP status from 200 to 599, or nothing"
    SEED = "a whole number from 0"

    @property
    def optional(self) -> bool:
        """Whether the action may stand without parentheses."""
        return self in (Takes.NOTHING, Takes.MAYBE_DURATION, Takes.MAYBE_STATUS)


@dataclass(frozen=True, slots=True)
class Action:
    """Something that can happen at a site.

    `tried` are the arguments a sweep tries (microseconds, a status, a seed, or None for none);
    `operations` are the operations of the binding it can strike, empty for all. `needs` says what
    it takes besides an occurrence; `late` is an action whose effect shows only some time after.
    """

    name: str
    fault_class: FaultClass
    takes: Takes = Takes.NOTHING
    tried: tuple[int | None, ...] = (None,)
    ends: bool = True
    operations: tuple[str, ...] = ()
    needs: str = ""
    late: bool = False

    def accepts(self, argument: int | None) -> bool:
        """Whether the action may have this argument, given that it was read as one of its kind."""
        return self.takes.optional if argument is None else self.takes is not Takes.NOTHING


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table: how the site is named, what one occurrence is, what can happen."""

    name: str
    names: tuple[str, ...]
    occurrence: str
    actions: tuple[Action, ...]
    operations: tuple[str, ...] = ()
    form: str = field(init=False)

    def __post_init__(self) -> None:
        placeholders = (f"<{name}>" for name in self.names)
        object.__setattr__(self, "form", ".".join((self.name, *placeholders)))

    def actions_at(self, operation: str) -> tuple[Action, ...]:
        """Return the actions possible where the last name is `operation`."""
        return tuple(a for a in self.actions if not a.operations or operation in a.operations)


# What the caller of a site can see at once; rule 4.
_SEEN_BY_CALLER: Final = (
    *("crash_before", "crash_after", "crash_saved"),
    *("fail", "status", "timeout", "lose_reply", "lose_ack"),
)

_CRASH_BEFORE: Final = Action("crash_before", "platform")
_CRASH_AFTER: Final = Action("crash_after", "platform")
_FAIL: Final = Action("fail", "dependency")
_LOSE_REPLY: Final = Action("lose_reply", "dependency")
_CALL: Final = (_CRASH_BEFORE, _FAIL, _CRASH_AFTER, _LOSE_REPLY)

_DUPLICATE: Final = Action(
    "duplicate", "platform", Takes.MAYBE_DURATION, tried=(None, HOUR), ends=False
)
_EVICT: Final = Action("evict", "platform", ends=False)

_BODY_ENDS: Final = "an attempt whose body comes to its end"
_TWO_MESSAGES: Final = "a batch of two messages or more"
_ANOTHER_BATCH: Final = "another batch, which starts before that one ends, and a consumer that may"


def _delay(fault_class: FaultClass) -> Action:
    return Action("delay", fault_class, Takes.DURATION, tried=(30 * SECOND,), ends=False)


_TABLE: Final = (
    Kind(
        "request",
        ("METHOD", "path"),
        "an incoming request",
        (
            Action("crash_before", "request"),
            Action("crash_after", "request"),
            Action("lose_reply", "request"),
        ),
    ),
    Kind("send", ("queue",), "a `send` or `sendBatch` call by a Worker", _CALL),
    Kind(
        "message",
        ("queue",),
        "a message accepted by the queue; redeliveries do not count",
        (_DUPLICATE, _delay("platform"), Action("drop", "loss")),
    ),
    Kind(
        "batch",
        ("queue",),
        "a batch handed to the consumer",
        (
            Action("shuffle", "platform", ends=False, needs=_TWO_MESSAGES),
            Action("split", "platform", ends=False, needs=_TWO_MESSAGES),
            Action("overlap", "platform", ends=False, needs=_ANOTHER_BATCH, late=True),
            _CRASH_BEFORE,
            Action("fail", "platform"),
            Action("timeout", "platform"),
            Action("lose_ack", "platform"),
        ),
    ),
    Kind(
        "step",
        ("workflow", "step"),
        "an attempt of that step, over all instances and counts",
        (
            _CRASH_BEFORE,
            _FAIL,
            Action("timeout", "dependency"),
            Action("crash_after", "platform", needs=_BODY_ENDS, late=True),
            Action("crash_saved", "platform", needs=_BODY_ENDS, late=True),
            Action("evict", "platform", needs=_BODY_ENDS, late=True),
        ),
    ),
    Kind("sleep", ("workflow", "name"), "a sleep of a Workflow", (_EVICT,)),
    Kind(
        "wait",
        ("workflow", "name"),
        "an event wait of a Workflow",
        (_EVICT, Action("timeout", "dependency")),
    ),
    Kind("create", ("workflow",), "a `create` or `createBatch` call by a Worker", _CALL),
    Kind(
        "event",
        ("workflow", "type"),
        "an event sent to a Workflow instance, from anywhere",
        (_DUPLICATE, _delay("dependency"), Action("drop", "loss"), *_CALL),
    ),
    Kind(
        "fetch",
        ("METHOD", "host/path"),
        "an outbound request, its query left out",
        (
            _CRASH_BEFORE,
            _FAIL,
            Action("status", "dependency", Takes.STATUS, tried=(503,)),
            _CRASH_AFTER,
            Action("lose_reply", "dependency", Takes.MAYBE_STATUS),
            Action("timeout", "dependency"),
        ),
    ),
    Kind(
        "kv",
        ("binding", "operation"),
        "a call on that KV binding",
        (
            Action(
                *("stale", "platform"), ends=False, operations=("get", "getWithMetadata", "list")
            ),
            *_CALL,
        ),
        ("get", "getWithMetadata", "put", "delete", "list"),
    ),
    Kind(
        "d1",
        ("binding", "operation"),
        "a call on that D1 binding; a `batch` is one, `prepare` and `bind` are none",
        _CALL,
        ("run", "all", "first", "raw", "batch", "exec"),
    ),
    Kind(
        "cache",
        ("cache", "operation"),
        "a call on a cache of the Cache API",
        (
            Action("evict", "platform", ends=False, operations=("match",)),
            _CRASH_BEFORE,
            _CRASH_AFTER,
        ),
        ("match", "put", "delete"),
    ),
    Kind(
        "r2",
        ("binding", "operation"),
        "a call on that R2 binding, or on an upload of it",
        _CALL,
        (
            *("head", "get", "put", "delete", "list"),
            *("createMultipartUpload", "uploadPart", "complete", "abort"),
        ),
    ),
    Kind(
        "ratelimit",
        ("binding", "operation"),
        "a call on that rate limit binding",
        _CALL,
        ("limit",),
    ),
    Kind("email", ("binding", "operation"), "a mail sent by that binding", _CALL, ("send",)),
    Kind("service", ("binding", "method"), "a call on that service binding", _CALL),
    Kind("object", ("binding", "method"), "a call on a Durable Object", (_EVICT, *_CALL)),
    Kind(
        "websocket",
        ("holder", "event"),
        "a frame of a WebSocket that arrives at a Worker or a Durable Object",
        (
            Action("evict", "platform", ends=False, needs="a Durable Object that may hibernate"),
            Action("disconnect", "request"),
            _CRASH_BEFORE,
            _CRASH_AFTER,
        ),
        ("message", "close"),
    ),
    Kind(
        "storage",
        ("binding", "operation"),
        "a storage call inside a Durable Object",
        (_CRASH_BEFORE, _CRASH_AFTER),
    ),
    Kind("alarm", ("binding",), "an alarm run", (_DUPLICATE, _CRASH_BEFORE, _FAIL, _CRASH_AFTER)),
    Kind(
        "cron",
        ("worker",),
        "a cron run",
        (_DUPLICATE, Action("miss", "loss"), _CRASH_BEFORE, _FAIL, _CRASH_AFTER),
    ),
    Kind(
        "tail",
        ("worker",),
        "what happened in an event, handed to that tail Worker",
        (Action("drop", "loss"), _CRASH_BEFORE, _CRASH_AFTER),
    ),
    Kind("wait_until", ("worker",), "a task given to `waitUntil` in a fetch handler", (_EVICT,)),
    Kind(
        "schedule",
        (),
        "the order in which several ready invocations go on, for the whole run",
        (Action("schedule", "platform", Takes.SEED, tried=tuple(range(1, 9))),),
    ),
)

# Every kind of site by its name, in the order of the documentation's table.
KINDS: Final[Mapping[str, Kind]] = MappingProxyType({kind.name: kind for kind in _TABLE})

# What the argument of an action is, the same at every kind of site that gives it one.
ARGUMENTS: Final[Mapping[str, Takes]] = MappingProxyType(
    {
        action.name: action.takes
        for kind in _TABLE
        for action in kind.actions
        if action.takes is not Takes.NOTHING
    }
)


@lru_cache(maxsize=_REMEMBERED)
@lru_cache(maxsize=1024)
def site_name(kind: str, *names: str) -> str:
    """Return a site's name, with what a name may not hold verbatim percent-encoded.

    >>> site_name("fetch", "GET", "localhost:8080/a b")
    'fetch.GET.localhost%3A8080/a b'

    Raises `ValueError` when the kind does not exist or has another number of names.
    """
    row = KINDS.get(kind)
    if row is None or len(row.names) != len(names):
        known = row.form if row else ", ".join(KINDS)
        raise ValueError(f"no site {kind!r} with {len(names)} names; known: {known}")
    if not names:
        return kind
    inner = (encode(name, inner=True) for name in names[:-1])
    return ".".join((kind, *inner, encode(names[-1])))


def split_site(site: str) -> tuple[Kind, tuple[str, ...]]:
    """Return a site's kind and its names, decoded: the inverse of `site_name`."""
    kind, dot, rest = site.partition(".")
    row = KINDS.get(kind)
    names = rest.split(".", max(len(row.names) - 1, 0)) if row and dot else []
    if row is None or len(names) != len(row.names):
        raise ValueError(f"not the name of a site: {site!r}")
    return row, tuple(decode(name) for name in names)


@lru_cache(maxsize=_REMEMBERED)
def actions_at(site: str) -> tuple[Action, ...]:
    """Return what can happen at this site, in the order in which it strikes."""
    kind, names = split_site(site)
    return kind.actions_at(names[-1]) if names else kind.actions


def class_of(action: Action, *, in_request: bool = False, retried: bool = False) -> FaultClass:
    """Return the class of an action at a site that was met.

    `in_request`: inside a request that the test awaits. `retried`: inside a step, batch or alarm
    that the platform will repeat when it fails.
    """
    if action.fault_class in ("loss", "request"):
        return action.fault_class
    if in_request and action.name in _SEEN_BY_CALLER:
        return "request"
    if retried and action.name in _SEEN_BY_CALLER:
        return "platform"
    return action.fault_class
