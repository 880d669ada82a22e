"""Event notifications of R2 buckets: `/accounts/{account}/event_notifications/r2/{bucket}`.

What `wrangler r2 bucket notification` and the official client speak. Buckets are those of the
configs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.r2.events import ACTIONS, RuleError, Wanted
from emulator.server.rest.answers import ApiError, time
from emulator.server.rest.fields import Fields, body, invalid
from emulator.server.rest.queue_shapes import find_queue, queue_id

if TYPE_CHECKING:
    from emulator.r2.events import Rule
    from emulator.r2.store import Bucket
    from emulator.server.rest.calls import Call, Operations

_NO_BUCKET: Final = ApiError(404, 10006, "The specified bucket does not exist.")
# Neither text nor code is known of these.
_REFUSED: Final = 10001
_NO_RULE: Final = ApiError(404, _REFUSED, "There is no such event notification rule.")


def _find(call: Call) -> Bucket:
    jurisdiction = call.headers.get("cf-r2-jurisdiction", "default")
    name = call.path["bucket"]
    id = name if jurisdiction == "default" else f"{jurisdiction}/{name}"
    if id not in call.platform.r2.buckets:
        raise _NO_BUCKET
    return call.platform.r2.buckets[id]


def get_rules(call: Call) -> Any:
    """Return the rules of a bucket, by queue."""
    bucket = _find(call)
    names = dict.fromkeys(rule.queue for rule in bucket.rules.values())
    return {
        "bucketName": call.path["bucket"],
        "queues": [_shown(bucket, name) for name in names],
    }


def get_rules_of_queue(call: Call) -> Any:
    """Return the rules of a bucket for one queue."""
    return _shown(_find(call), find_queue(call))


def _shown(bucket: Bucket, queue: str) -> dict[str, Any]:
    rules = [_rule(rule) for rule in bucket.rules_of(queue)]
    return {"queueId": queue_id(queue), "queueName": queue, "rules": rules}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "ruleId": rule.id,
        "createdAt": time(rule.created * 1_000),
        "actions": list(rule.actions),
        "prefix": rule.prefix,
        "suffix": rule.suffix,
        "description": rule.description,
    }


def add_rules(call: Call) -> Any:
    """Add rules to those that are there, all or none."""
    bucket, queue, service = _find(call), find_queue(call), call.platform.r2
    wanted = [_wanted(queue, given) for given in body(call).items("rules", required=True)]
    added: list[Rule] = []
    try:
        for one in wanted:
            added.append(service.add_rule(bucket, one))  # noqa: PERF401 - undone where one fails
    except RuleError as error:
        for rule in added:
            service.remove_rule(bucket, rule.id)
        raise ApiError(400, _REFUSED, str(error)) from None
    return {}


def _wanted(queue: str, given: Fields) -> Wanted:
    actions = given.values.get("actions")
    if not isinstance(actions, list) or not actions or not {*actions} <= {*ACTIONS}:
        known = " | ".join(f"'{action}'" for action in ACTIONS)
        raise invalid(f'Expected array of {known} at "{given.path("actions")}"')
    texts = (given.text(name) or "" for name in ("prefix", "suffix", "description"))
    return Wanted(queue, tuple(dict.fromkeys(actions)), *texts)


def delete_rules(call: Call) -> Any:
    """Delete rules for a queue: those whose ids are given, or all."""
    bucket, queue = _find(call), find_queue(call)
    known = [rule.id for rule in bucket.rules_of(queue)]
    given = body(call, empty=True).values.get("ruleIds")
    if given is not None and not isinstance(given, list):
        raise invalid('Expected array at "ruleIds"')
    chosen = known if given is None else given
    if any(id not in known for id in chosen):
        raise _NO_RULE
    for id in dict.fromkeys(chosen):
        call.platform.r2.remove_rule(bucket, id)
    return {}


_ALL = "/event_notifications/r2/{bucket}/configuration"
_ONE = f"{_ALL}/queues/{{queue}}"
OPERATIONS: Operations = (
    ("GET", _ALL, get_rules),
    ("GET", _ONE, get_rules_of_queue),
    ("PUT", _ONE, add_rules),
    ("DELETE", _ONE, delete_rules),
)
