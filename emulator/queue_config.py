"""Queues in a config: producers, consumers, and the settings production keeps on the queue itself.

Defaults and ranges: queues.md 3.1 (consumers), 1.9 and 3.9 (queue settings). wrangler checks types
and no ranges; those are checked by Cloudflare's API, and by miniflare in its own words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from emulator.config_place import place_of_name
from emulator.queue_names import CODE, is_queue_name, refusal
from emulator.section import Range, Section, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.section import Report

Profile = Literal["production", "miniflare"]
Plan = Literal["paid", "free"]

_SECOND: Final = 1_000_000


class _Setting(NamedTuple):
    """A number a config may set: what it is otherwise, and what is allowed."""

    default: int
    allowed: Range


_DELAY: Final = _Setting(0, Range(0, 86_400, "seconds"))
_TIMEOUT: Final = Range(0, 60, "seconds", whole=False)
_RETRIES: Final = Range(0, 100)
_ANY_NUMBER: Final = Range(0, 2**53)
_CONCURRENCY: Final[Mapping[Profile, _Setting]] = {
    "production": _Setting(250, Range(1, 250)),
    "miniflare": _Setting(1, _ANY_NUMBER),  # It reads the number and does nothing with it.
}
# Of pull consumers, which a wrangler config cannot make.
_VISIBILITY: Final = _Setting(30_000, _ANY_NUMBER)
_RETENTION: Final[Mapping[Plan, _Setting]] = {
    "paid": _Setting(345_600, Range(60, 1_209_600, "seconds")),
    "free": _Setting(86_400, Range(86_400, 86_400, "seconds")),
}

_BATCH_SIZE: Final[Mapping[Profile, _Setting]] = {
    "production": _Setting(10, Range(1, 100)),
    "miniflare": _Setting(5, Range(0, 100)),
}
_BATCH_TIMEOUT: Final[Mapping[Profile, _Setting]] = {
    "production": _Setting(5, _TIMEOUT),
    "miniflare": _Setting(1, _TIMEOUT),
}
_MAX_RETRIES: Final[Mapping[Profile, _Setting]] = {
    "production": _Setting(3, _RETRIES),
    "miniflare": _Setting(2, _RETRIES),
}

_PRODUCER_KEYS: Final = ("binding", "queue", "delivery_delay", "remote")
_CONSUMER_KEYS: Final = (
    "queue",
    "type",
    "max_batch_size",
    "max_batch_timeout",
    "max_retries",
    "dead_letter_queue",
    "max_concurrency",
    "visibility_timeout_ms",
    "retry_delay",
)
_SETTINGS_KEYS: Final = ("delivery_delay", "message_retention_period", "delivery_paused")
_BAD_CONSUMER: Final = "Cloudflare, code 100127: The specified consumer settings are invalid."
_BAD_SETTINGS: Final = "Cloudflare, code 100128: The specified queue settings are invalid."


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """A binding that sends to a queue. Production ignores `delivery_delay_us` (queues.md 8.5)."""

    binding: str
    queue: str
    delivery_delay_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """The one Worker a queue delivers to, and how; without `max_concurrency` it is automatic."""

    queue: str
    worker: str
    max_batch_size: int
    max_batch_timeout_us: int
    max_retries: int
    retry_delay_us: int
    dead_letter_queue: str | None = None
    max_concurrency: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueConfig:
    """A queue, with the settings that production keeps on it and not in wrangler's config."""

    name: str
    delivery_delay_us: int
    message_retention_us: int
    delivery_paused: bool


@dataclass(slots=True)
class QueueReader:
    """Reads the queues of all Workers of one config, and checks what holds between them."""

    profile: Profile
    plan: Plan
    report: Report
    _known: dict[str, None] = field(default_factory=dict)
    _consumed_by: dict[str, str] = field(default_factory=dict)
    _warned_of: list[str] = field(default_factory=list)

    def producers(self, queues: Section, worker: str) -> tuple[Producer, ...]:
        """Read the `producers` of a Worker's `queues`."""
        return tuple(self._producer(item, worker) for item in queues.sections("producers"))

    def consumers(self, queues: Section, worker: str) -> tuple[Consumer, ...]:
        """Read the `consumers` of a Worker's `queues`."""
        return tuple(self._consumer(item, worker) for item in queues.sections("consumers"))

    def queues(self, settings: Mapping[str, object] | None) -> tuple[QueueConfig, ...]:
        """Return the queues of all Workers read, in order of appearance, with these settings."""
        given = Section(settings or {}, "queue_settings", "", self.report, is_file=False)
        for name in given.values:
            if name not in self._known:
                known = ", ".join(self._known) or "none"
                given.wrong(name, f"is not a queue of this config; its queues are: {known}")
        return tuple(self._queue(name, given.section(name)) for name in self._known)

    def _producer(self, item: Section, worker: str) -> Producer:
        item.warn_unknown(_PRODUCER_KEYS)
        says = f'wrangler: "{item.path}" bindings should have a string "binding" field but got'
        binding = required(item, "binding", "the name of the queue on `env`", says)
        queue = self._name(item, "queue") or self._unnamed(worker, binding)
        self._known[queue] = None
        item.boolean("remote", default=False)
        delay = self._number(item, "delivery_delay", _DELAY, refused=None)
        given = "delivery_delay" in item
        return Producer(
            binding=binding, queue=queue, delivery_delay_us=_us(delay) if given else None
        )

    def _name(self, item: Section, key: str) -> str | None:
        """Read the name of a queue; warn of one, once, that no queue of the service can have.

        Only in a file, which may be deployed.
        """
        name = item.text(key)
        if name is None or not item.is_file or self.profile == "miniflare":
            return name
        if not is_queue_name(name) and name not in self._warned_of:
            self._warned_of.append(name)
            self.report.warnings.append(
                f"{place_of_name(item.where, name)}: {item.at(key)} is {shown(name)}, a name that "
                f"no queue can be made with (Cloudflare, code {CODE}: {refusal(name)})"
            )
        return name

    def _unnamed(self, worker: str, binding: str) -> str:
        """Name the queue of a producer that names none (queues.md 8.1)."""
        if self.profile == "miniflare":
            return binding
        return f"{worker}-{binding.lower().replace('_', '-')}"

    def _consumer(self, item: Section, worker: str) -> Consumer:
        item.warn_unknown(_CONSUMER_KEYS)
        says = f'wrangler: "{item.path}" should have a string "queue" field but got'
        queue = required(item, "queue", "the queue that this Worker consumes", says)
        self._name(item, "queue")
        _check_type(item)
        self._number(item, "visibility_timeout_ms", _VISIBILITY)
        consumer = Consumer(
            queue=queue,
            worker=worker,
            max_batch_size=int(self._number(item, "max_batch_size", _BATCH_SIZE[self.profile])),
            max_batch_timeout_us=_us(
                self._number(item, "max_batch_timeout", _BATCH_TIMEOUT[self.profile])
            ),
            max_retries=int(self._number(item, "max_retries", _MAX_RETRIES[self.profile])),
            retry_delay_us=_us(self._number(item, "retry_delay", _DELAY)),
            dead_letter_queue=self._name(item, "dead_letter_queue"),
            max_concurrency=self._concurrency(item),
        )
        if queue:
            self._remember(item, consumer)
        return consumer

    def _concurrency(self, item: Section) -> int | None:
        """Read `max_concurrency`, where null means automatic in a file too."""
        if item.values.get("max_concurrency") is None:
            return None
        return int(self._number(item, "max_concurrency", _CONCURRENCY[self.profile]))

    def _number(
        self, item: Section, key: str, setting: _Setting, *, refused: str | None = _BAD_CONSUMER
    ) -> float:
        """Read a number; `refused` is what production says of one that is out of range."""
        if key in item and not setting.allowed.allow(item.values[key]):
            says = self._refusal(item, key, setting.allowed, refused)
            item.not_allowed(key, setting.allowed, says=says)
            return setting.default
        return item.number(key, setting.default, setting.allowed)

    def _refusal(self, item: Section, key: str, allowed: Range, refused: str | None) -> str | None:
        """Return the platform's text for what is no number, or none in range."""
        value = item.values[key]
        if not isinstance(value, int | float) or isinstance(value, bool):
            return (
                f'wrangler: "{item.path}" should, optionally, have a number "{key}" field but got '
                f"{shown(item.values)}."
            )
        if self.profile == "production":
            return refused
        if value > allowed.high:
            return f"miniflare: Too big: expected number to be <={allowed.high}"
        if value < allowed.low:
            return f"miniflare: Too small: expected number to be >={allowed.low}"
        return None

    def _remember(self, item: Section, consumer: Consumer) -> None:
        """Note the queues of a consumer; one queue has one, and is not its own DLQ."""
        queue = consumer.queue
        self._known[queue] = None
        if queue in self._consumed_by:
            pair = f'"{self._consumed_by[queue]}" and "{consumer.worker}"'
            says = f'miniflare: Multiple consumers defined for queue "{queue}": {pair}'
            item.wrong("queue", f"is {shown(queue)}, which has a consumer already", says=says)
        self._consumed_by[queue] = consumer.worker
        if consumer.dead_letter_queue is None:
            return
        self._known[consumer.dead_letter_queue] = None
        if consumer.dead_letter_queue == queue:
            says = f'miniflare: Dead letter queue for queue "{queue}" cannot be itself'
            problem = f"is {shown(queue)}, the consumed queue; name another, or none"
            item.wrong("dead_letter_queue", problem, says=says)

    def _queue(self, name: str, settings: Section) -> QueueConfig:
        for key in settings.values:
            if key not in _SETTINGS_KEYS:
                known = ", ".join(_SETTINGS_KEYS)
                settings.wrong(key, f"is not a setting of a queue; the settings are: {known}")
        delay = settings.number("delivery_delay", *_DELAY, says=_BAD_SETTINGS)
        retention = _RETENTION[self.plan]
        kept = settings.number("message_retention_period", *retention, says=_BAD_SETTINGS)
        return QueueConfig(
            name=name,
            delivery_delay_us=_us(delay),
            message_retention_us=_us(kept),
            delivery_paused=settings.boolean("delivery_paused", default=False),
        )


def ignored_options(queues: Section, profile: Profile) -> list[tuple[str, str]]:
    """Return what a Worker's producers set in vain: finding code and text."""
    found = []
    for item in queues.sections("producers"):
        if profile == "production" and "delivery_delay" in item:
            text = (
                f'The "delivery_delay" field in "{item.path}" is deprecated and has no effect. '
                'Queue-level settings should be configured using "wrangler queues update" '
                "instead. This setting will be removed in a future version."
            )
            found.append(("ignored_option", f"{text} Here they are queue_settings."))
        if item.values.get("remote") is True:
            text = f'The "remote" field in "{item.path}" has no effect: every queue is emulated.'
            found.append(("ignored_option", text))
    return found


def required(item: Section, key: str, meaning: str, says: str) -> str:
    """Return a text that must be there; reported with the platform's text where it is not."""
    if key in item:
        return item.text(key, says=f"{says} {shown(item.values)}.") or ""
    item.wrong(key, f"is missing: {meaning}", says=f"{says} {shown(item.values)}.")
    return ""


def _check_type(item: Section) -> None:
    kind = item.text("type")
    if kind is None or kind == "worker":
        return
    says = f'wrangler: "{item.path}.type" has an invalid value "{kind}". '
    says += 'Only "worker" consumers can be configured in your Wrangler configuration.'
    item.not_allowed("type", '"worker", or left out; pull over the REST API instead', says=says)


def _us(seconds: float) -> int:
    return round(seconds * _SECOND)
