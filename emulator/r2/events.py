"""Event notifications: which change of a bucket makes a message for which queue.

A rule names a queue, actions, and how a key begins and ends. The names of event types and actions,
and what is in a message, are those of Cloudflare's documentation and of `wrangler r2 bucket
notification`. That no two rules for one queue may match one change is documented; rules for
different queues were made side by side (cloudflare-docs#17949).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from emulator.r2.store import Stored

# In wrangler's order. Nothing here copies objects or lets them expire: `CopyObject` comes of the S3
# API, `LifecycleDeletion` of lifecycle rules.
EVENT_TYPES: Final = {
    "object-create": ("PutObject", "CompleteMultipartUpload", "CopyObject"),
    "object-delete": ("DeleteObject", "LifecycleDeletion"),
}
ACTIONS: Final = tuple(action for actions in EVENT_TYPES.values() for action in actions)
MOST_RULES: Final = 100
# Any account id will do; this one is the documentation's.
ACCOUNT: Final = "3f4b7e3dcab231cbfdaa90a6a28bd548"


class Wanted(NamedTuple):
    """What a rule is to be: whoever makes it says so."""

    queue: str
    actions: tuple[str, ...]
    prefix: str = ""
    suffix: str = ""
    description: str = ""


class Rule(NamedTuple):
    """An event notification rule; `created` is in milliseconds since the epoch."""

    id: str
    queue: str
    actions: tuple[str, ...]
    prefix: str
    suffix: str
    description: str
    created: int

    def matches(self, action: str, key: str) -> bool:
        """Whether a change makes a message."""
        return action in self.actions and key.startswith(self.prefix) and key.endswith(self.suffix)

    def overlaps(self, other: Rule) -> bool:
        """Whether some change would match both."""
        return (
            any(action in other.actions for action in self.actions)
            and (self.prefix.startswith(other.prefix) or other.prefix.startswith(self.prefix))
            and (self.suffix.endswith(other.suffix) or other.suffix.endswith(self.suffix))
        )

    def __str__(self) -> str:
        where = "".join(
            f", {name} {value!r}"
            for name, value in (("prefix", self.prefix), ("suffix", self.suffix))
            if value
        )
        return f"{', '.join(self.actions)} to the queue {self.queue!r}{where}"


class RuleError(ValueError):
    """A rule that R2 does not take; its text says why."""


def actions_of(event_types: str | Iterable[str]) -> tuple[str, ...]:
    """Return the actions that event types stand for; an action stands for itself."""
    names = [event_types] if isinstance(event_types, str) else list(event_types)
    found: dict[str, None] = {}
    for name in names:
        if name not in EVENT_TYPES and name not in ACTIONS:
            known = ", ".join((*EVENT_TYPES, *ACTIONS))
            raise RuleError(f"there is no event type or action {name!r}; there are: {known}")
        found.update(dict.fromkeys(EVENT_TYPES.get(name, (name,))))
    if not found:
        raise RuleError(f"a rule needs an event type: {', '.join(EVENT_TYPES)}")
    return tuple(found)


def check(new: Rule, rules: Iterable[Rule]) -> None:
    """Refuse a rule beside these, of the same bucket."""
    count = 0
    for rule in rules:
        count += 1
        if rule.queue == new.queue and rule.overlaps(new):
            raise RuleError(
                f"the rule for {new} overlaps with one that is there, for {rule}: one change would "
                "send two messages, which R2 refuses"
            )
    if count >= MOST_RULES:
        raise RuleError(f"a bucket has {MOST_RULES} event notification rules at most")


def body(bucket: str, action: str, found: Stored, time: str) -> dict[str, Any]:
    """Return what a message says of a change; of an object that is deleted only its key."""
    shown: dict[str, Any] = {"key": found.key}
    if action in EVENT_TYPES["object-create"]:
        shown |= {"size": found.size, "eTag": found.etag}
    return {
        "account": ACCOUNT,
        "action": action,
        "bucket": bucket,
        "object": shown,
        "eventTime": time,
    }
