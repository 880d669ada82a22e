"""The Python twins of the recordings of Queues: how each is set up, driven, and exactly timed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from comparer import ABSENT, FIXTURES

from emulator import ConfigError, Emulator

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from comparer import Profile
    from driving import Run

    Drive = Callable[[Run], Awaitable[Any]]

SOURCE: Final = FIXTURES / "workers" / "recorded_queues" / "src"
# A Python Worker gets `env` and the batch without the SDK's conversions in global handlers only.
_RAW: Final = ("raw.py", "probe.py")
_RAW_FLAG: Final = "disable_python_no_global_handlers"
# Before 2025-08-14 a class is called for requests only with this flag.
_CLASS_FLAG: Final = "python_no_global_handlers"

_CONSUMER: Final = {
    "maxBatchSize": "max_batch_size",
    "maxBatchTimeout": "max_batch_timeout",
    "maxRetries": "max_retries",
    "retryDelay": "retry_delay",
    "deadLetterQueue": "dead_letter_queue",
}


@dataclass(frozen=True)
class Twin:
    """How a recording is repeated.

    `at` are the ideal times of its events, `sent` those at which messages were sent, by body (0 if
    it is not there); in production the times of `at_production`, if that differs. `dates` are the
    ideals of the run's Dates. `ignored` are the calls that the consumer makes in vain, as in
    queues 2.9: the recordings do not have the runtime's warnings.
    """

    drive: Drive
    at: tuple[float, ...] = ()
    sent: Mapping[str, float] = field(default_factory=dict)
    at_production: tuple[float, ...] | None = None
    dates: tuple[float, ...] = ()
    ignored: tuple[str, ...] = ()
    main: str = "entry.py"

    def ideal(self, profile: Profile) -> tuple[float, ...]:
        """The exact times of the events."""
        if profile == "production" and self.at_production is not None:
            return self.at_production
        return self.at


def three(seconds: float) -> Drive:
    """Send a, b and c in one batch, and wait."""

    async def drive(run: Run) -> Any:
        await run.three(seconds)
        return ABSENT

    return drive


def one(path: str, wait: float) -> Drive:
    """Make one request, wait, and return its answer."""

    async def drive(run: Run) -> Any:
        found = await run.call(path)
        await run.sleep(wait)
        return found

    return drive


def asked(path: str, body: Any, wait: float, *, kept: bool = False) -> Drive:
    """Post one request and wait; its answer is kept if the recording has it."""

    async def drive(run: Run) -> Any:
        found = await run.call(path, body)
        await run.sleep(wait)
        return found if kept else ABSENT

    return drive


def sends(*bodies: Any, wait: float) -> Drive:
    """Send these bodies one by one, and wait."""
    return asked("/send", [{"body": body} for body in bodies], wait)


def batch(*bodies: Any, wait: float) -> Drive:
    """Send these bodies in one batch, and wait."""
    return asked("/batch", {"msgs": [{"body": body} for body in bodies]}, wait)


async def by_timeout(run: Run) -> Any:
    await run.send(1, 2)
    await run.sleep(0.5)
    await run.send(3)
    await run.sleep(1)
    await run.send(4)
    await run.sleep(1.6)
    return ABSENT


async def timeout_zero(run: Run) -> Any:
    await run.send(1, 2, 3)
    await run.sleep(0.5)
    await run.call("/batch", {"msgs": [{"body": body} for body in (4, 5, 6)]})
    await run.sleep(0.5)
    return ABSENT


async def two_queues(run: Run) -> Any:
    await run.call("/send?q=Q", [{"body": "q1"}, {"body": "q2"}])
    await run.call("/send?q=R", [{"body": "r1"}, {"body": "r2"}, {"body": "r3"}])
    await run.sleep(1.8)
    return ABSENT


async def no_consumer(run: Run) -> Any:
    found = await run.send(1)
    odd = [{"body": "x" * 130_000}, {"body": "x", "opts": {"delaySeconds": -1}}]
    both = await run.call("/send", odd)
    await run.sleep(0.3)
    return {"r": found, "b": both}


async def two_workers(run: Run) -> Any:
    await run.call("/")
    await run.sleep(0.5)
    return ABSENT


async def return_value(run: Run) -> Any:
    return await run.call("/m")


async def dispatch(run: Run) -> Any:
    found = {}
    for name, queue in run.emulator.queues.items():
        result = await queue.dispatch(
            [
                {"id": "A", "timestamp": datetime(1970, 1, 1, tzinfo=UTC), "body": "a"},
                {
                    "id": "B",
                    "timestamp": datetime(1970, 1, 1, tzinfo=UTC),
                    "body": "b",
                    "attempts": 4,
                },
            ]
        )
        found[name] = {
            "outcome": result.outcome,
            "ackAll": result.ack_all,
            "retryBatch": dict(result.retry_batch),
            "explicitAcks": result.explicit_acks,
            "retryMessages": [dict(retried) for retried in result.retry_messages],
        }
    return found


_DELAYS = [
    {"body": "plain"},
    {"body": "zero", "opts": {"delaySeconds": 0}},
    {"body": "two", "opts": {"delaySeconds": 2}},
]
_BATCH_DELAYS = {
    "msgs": [
        {"body": "d0", "delaySeconds": 0},
        {"body": "d1", "delaySeconds": 1},
        {"body": "none"},
    ],
    "opts": {"delaySeconds": 2},
}
_EIGHT = batch(*"abcdefgh", wait=2.5)
# What comes 60 ms after the other: the cases whose message arrives.
_TYPES = tuple(round(0.06 * case, 6) for case in range(22) if case not in (4, 15, 19))

TWINS: Final[Mapping[str, Twin]] = {
    # Acks, retries and errors.
    "queue_ack_after_return_waituntil": Twin(three(2.5), (0, 0.3, 0.8, 1.1, 1.6, 1.9)),
    "queue_ack_some_then_throw": Twin(three(4.5), (0, 0, 0), at_production=(0, 1, 2)),
    "queue_ackall_then_msg_retry": Twin(
        three(2.5), (0,), ignored=("retry() on message ID1 after ackAll()",)
    ),
    "queue_ackall_then_retryall": Twin(three(2.5), (0,), ignored=("retryAll() after ackAll()",)),
    "queue_ackall_then_throw": Twin(three(4.5), (0, 0, 0), at_production=(0,)),
    "queue_handler_returns_value": Twin(three(2), (0,)),
    "queue_implicit_ack": Twin(three(2.5), (0,)),
    "queue_max_retries_zero": Twin(three(1), (0,)),
    "queue_msg_retry_then_ackall": Twin(three(4.5), (0, 1, 2)),
    "queue_retry_one_of_three": Twin(three(2.5), (0, 1)),
    "queue_retry_some_then_throw": Twin(three(4.5), (0, 0, 0), at_production=(0, 1, 2)),
    "queue_retry_then_ack": Twin(
        three(4.5),
        (0, 0, 0),
        ignored=tuple(f"ack() on message ID{n} after retry()" for n in (1, 2, 3)) * 3,
    ),
    "queue_retryall_then_ackall": Twin(
        three(4.5), (0, 0, 0), ignored=("ackAll() after retryAll()",) * 3
    ),
    "queue_throw_no_ack": Twin(three(4.5), (0, 0, 0)),
    "queue_throw_then_succeed": Twin(three(2.5), (0, 0)),
    "queue_waituntil_rejects_in_queue": Twin(three(4.5), (0, 0.1, 0.2)),
    "queue_body_mutation_between_attempts": Twin(sends({"x": "orig"}, wait=0.8), (0, 0)),
    "queue_direct_dispatch_results": Twin(
        dispatch,
        main="direct.py",
        ignored=(
            "retry() on message A after ack()",
            "ack() on message A after retry()",
            "retry() on message A after ackAll()",
            "ack() on message A after retryAll()",
            "retryAll() after ackAll()",
            "ackAll() after retryAll()",
        ),
    ),
    # Batches, order and delays.
    "queue_batch_by_timeout": Twin(by_timeout, (1, 2.5), {"3": 0.5, "4": 1.5}),
    "queue_batch_defaults": Twin(batch(*range(12), wait=1.8), (0, 0, 1), at_production=(0,)),
    "queue_batch_timeout_zero": Twin(timeout_zero, (0, 0.5), {"4": 0.5, "5": 0.5, "6": 0.5}),
    "queue_slow_consumer_serial": Twin(
        batch(1, 2, 3, 4, 5, 6, wait=3), (0, 0.7, 0.7, 1.4, 1.4, 2.1)
    ),
    "queue_order_partial_retry": Twin(_EIGHT, (0, 0, 1)),
    "queue_order_partial_retry_timeout0": Twin(batch(*"abcdefgh", wait=1), (0, 0, 0)),
    "queue_double_retry_delays": Twin(three(4.5), (0, 3)),
    "queue_retry_delay_all_and_message": Twin(three(3.2), (0, 1, 2)),
    "queue_retry_delay_consumer_setting": Twin(three(2), (0, 1)),
    "queue_retry_delay_errors": Twin(sends("x", wait=0.6), (0,)),
    "queue_retry_delay_setting_overridden": Twin(three(3), (0, 0, 1, 2)),
    "queue_retry_negative_delay": Twin(sends("x", wait=1.2), (0, 0)),
    "queue_send_delay": Twin(
        asked("/send", [{"body": "late", "opts": {"delaySeconds": 2}}, {"body": "now"}], 2.8),
        (0, 2),
    ),
    "queue_send_delay_plus_batch_timeout": Twin(
        asked("/send", [{"body": "late", "opts": {"delaySeconds": 1}}], 2.8), (2,)
    ),
    "queue_sendbatch_delays": Twin(asked("/batch", _BATCH_DELAYS, 2.8, kept=True), (0, 1, 2)),
    "queue_producer_delivery_delay": Twin(
        asked("/send", _DELAYS, 2.8), (0, 1, 2), at_production=(0, 2)
    ),
    # Several queues.
    "queue_dlq_basic": Twin(three(1.5), (0, 0, 0)),
    "queue_dlq_chain": Twin(three(2), (0, 0, 0, 0, 0)),
    "queue_dlq_content_types": Twin(one("/ct", 1), (0, 0), main="raw.py"),
    "queue_dlq_mixed": Twin(three(1.5), (0, 0, 0)),
    "queue_dlq_no_consumer": Twin(three(1.5), (0, 0)),
    "queue_multiple_queues": Twin(two_queues, (0, 0.5, 1)),
    "queue_no_consumer": Twin(no_consumer),
    "queue_send_inside_consumer": Twin(sends(1, wait=1.5), (0, 0, 0, 0)),
    "queue_two_workers": Twin(two_workers, (0,), main="two_workers.py"),
    # Values, and what calls give.
    "queue_batch_object_shape": Twin(one("/", 0.5), (0,), main="raw.py"),
    "queue_content_type_errors_cd2025": Twin(one("/", 0.4), (0.36, 1.26, 1.26), main="raw.py"),
    "queue_content_type_old_compat": Twin(one("/", 0.4), (0, 0.06), main="raw.py"),
    "queue_content_types": Twin(one("/", 0.4), _TYPES, main="raw.py"),
    "queue_delay_errors": Twin(one("/", 0.4)),
    "queue_delay_errors_cd2025": Twin(one("/", 0.4)),
    "queue_send_not_awaited": Twin(one("/na", 1.2), (0.5,)),
    "queue_send_return_value": Twin(return_value, dates=(0,), main="raw.py"),
    "queue_size_errors_cd2025": Twin(one("/", 0.4)),
}


# Each after 30 ms, but for those that fail; the last is delayed by 1 s.
_PROBED = (0, 0.03, 0.06, 0.09, 0.12, 0.21, 0.24, 0.27, 0.3, 0.33, 0.36, 0.39, 0.42, 0.48, 0.48)


async def probe(run: Run) -> Any:
    found = await run.call("/sends")
    await run.sleep(1.5)
    return {"/sends": found}


TWINS_OF_PYTHON: Final[Mapping[str, Twin]] = {
    "py_ffi_probe_workerd2024": Twin(probe, (*_PROBED, 1.45), main="probe.py"),
}


def about_queues(recording: Mapping[str, Any]) -> dict[str, Any]:
    """py_ffi_probe_workerd2024, as far as it is about Queues.

    Its options were not kept: a date of its runtime, and a consumer that takes messages one by one.
    """
    observed = recording["observed"]
    consumed = [event for event in observed["events"] if event["kind"] == "consumed"]
    lines = ["[INFO] QUEUE q 1/1 (Nms)"] * len(consumed)
    result = {"/sends": observed["result"]["/sends"]}
    options = {
        "compatibilityDate": "2024-10-22",
        "compatibilityFlags": [],
        "queueProducers": {"Q": "q"},
        "queueConsumers": {"q": {"maxBatchSize": 1, "maxBatchTimeout": 0}},
    }
    kept = {"events": consumed, "result": result, "runtime_logs": lines}
    return {**recording, "options": options, "observed": kept}


# -- configuration ---------------------------------------------------------------------------------

# The platform's own words in ours.
_QUOTED: Final = re.compile(r"\((?:miniflare|Cloudflare, code \d+): (?P<text>.*)\)$")
_KEY: Final = re.compile(r"queues\.\w+\[0\]\.(?P<key>\w+)")
_REFUSED: Final = {"dlq_self": "dead_letter_queue", "two_consumers": "queue"}


def config_recording(recording: Mapping[str, Any]) -> dict[str, Any]:
    """queue_config_errors, its errors as key and text: without their JavaScript classes."""
    observed = recording["observed"]
    result = {case: _error(case, outcome) for case, outcome in observed.items()}
    return {**recording, "observed": {"events": [], "result": result}}


def _error(case: str, outcome: Mapping[str, Any]) -> Mapping[str, Any]:
    if "err" not in outcome:
        return outcome
    text = outcome["err"]["message"]
    if case in _REFUSED:
        return {"err": {"key": _REFUSED[case], "message": text}}
    (issue,) = json.loads(text)
    key = issue["path"][-1]
    wrangler = "delivery_delay" if key == "deliveryDelay" else _CONSUMER[key]
    return {"err": {"key": wrangler, "message": issue["message"]}}


def config_outcomes(recording: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    """What becomes of the same settings here."""
    options = recording["options"]
    return {case: _outcome(case, options[case], profile) for case in options}


def _outcome(case: str, options: Mapping[str, Any] | None, profile: Profile) -> dict[str, Any]:
    given = options or {"queueConsumers": {"q": {}}}
    config = {"main": str(SOURCE / "entry.py"), "queues": _queues(given)}
    both = [{**config, "name": name} for name in "ab"]
    try:
        Emulator(both if case == "two_consumers" else config, profile=profile).close()
    except ConfigError as error:
        key, text = _KEY.findall(str(error)), _QUOTED.search(str(error))
        return {"err": {"key": key[0], "message": text["text"] if text else None}}
    return {"ok": True}


# -- set-up ----------------------------------------------------------------------------------------


def configs(recording: Mapping[str, Any], twin: Twin) -> list[dict[str, Any]]:
    """The recording's options as wrangler writes them: a config per Worker."""
    options, name = recording["options"], recording["name"]
    flags = ["python_workers", *options["compatibilityFlags"]]
    old = options["compatibilityDate"] < "2025-08-14"
    if twin.main in _RAW and not old:
        flags.append(_RAW_FLAG)
    elif twin.main not in _RAW and old:
        flags.append(_CLASS_FLAG)
    config = {
        "name": "worker",
        "main": str(SOURCE / twin.main),
        "compatibility_date": options["compatibilityDate"],
        "compatibility_flags": flags,
        "vars": {"RECORDING": name},
        "queues": _queues(options),
    }
    if name == "queue_two_workers":
        return _two(config)
    if name == "queue_direct_dispatch_results":
        results = recording["observed"]["result"]
        config["queues"] = {"consumers": [{"queue": queue} for queue in results]}
    return [config]


def _queues(options: Mapping[str, Any]) -> dict[str, Any]:
    producers = options.get("queueProducers", {})
    consumers = options.get("queueConsumers", {})
    return {
        "producers": [_producer(binding, given) for binding, given in producers.items()],
        "consumers": [
            {"queue": queue, **{_CONSUMER[key]: value for key, value in given.items()}}
            for queue, given in consumers.items()
        ],
    }


def _producer(binding: str, given: str | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(given, str):
        return {"binding": binding, "queue": given}
    return {
        "binding": binding,
        "queue": given["queueName"],
        "delivery_delay": given["deliveryDelay"],
    }


def _two(config: dict[str, Any]) -> list[dict[str, Any]]:
    """queue_two_workers: its options are not in the recording, but for the Workers' names.

    The consumer tells its batch at once, hence a batch size of 1 or a time-out of 0.
    """
    producer = {**config, "name": "prod", "queues": _queues({"queueProducers": {"Q": "q"}})}
    consumers = {"q": {"maxBatchTimeout": 0}}
    consumer = {
        **config,
        "name": "cons",
        "main": str(SOURCE / "entry.py"),
        "queues": _queues({"queueConsumers": consumers}),
    }
    return [producer, consumer]
