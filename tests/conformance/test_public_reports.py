"""What people reported of queues and of tools that imitate them, as they would meet it here.

`O-01` to `O-14` and `S-01` to `S-16` are the numbers of the collected reports; numbers such as 2.10
are rules of the reference on Cloudflare Queues. Each test is the report's own story: a Worker, what
was sent, what has to come of it.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyodide.ffi import JsException
from worker_files import worker, write
from workers import Response, WorkerEntrypoint

from emulator import ConfigError, Emulator, StateError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.asyncio

START = datetime(2026, 1, 1, tzinfo=UTC)
PROFILES = ("production", "miniflare")
PRODUCER = {"binding": "JOBS", "queue": "jobs"}


def config(main: Any, *, producers: Any = (PRODUCER,), **consumer: Any) -> dict[str, Any]:
    """A Worker that sends into the queue `jobs` and consumes it, with these settings."""
    consumers = [{"queue": "jobs", **consumer}]
    return {"main": main, "queues": {"producers": list(producers), "consumers": consumers}}


def seconds(at: datetime) -> float:
    return (at - START).total_seconds()


def deliveries(emulator: Emulator, queue: str = "jobs") -> list[tuple[float, Any, int, str]]:
    """Start, body, attempt and outcome of each delivery."""
    return [
        (seconds(record.at), record.body, record.attempt, record.outcome)
        for record in emulator.queues[queue].deliveries
    ]


def batches(emulator: Emulator, queue: str = "jobs") -> list[list[Any]]:
    """The bodies of each batch."""
    found: dict[int, list[Any]] = {}
    for record in emulator.queues[queue].deliveries:
        found.setdefault(record.batch, []).append(record.body)
    return [found[number] for number in sorted(found)]


def bodies(emulator: Emulator, queue: str = "jobs") -> list[Any]:
    return [message.body for message in emulator.queues[queue].backlog]


def warnings(emulator: Emulator) -> list[str]:
    return [log.text for log in emulator.logs if log.level == "warn"]


class Failing(WorkerEntrypoint):
    """A consumer that raises, and whose dead letters nobody touches."""

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
        raise ValueError("the consumer's own")


class Accepting(WorkerEntrypoint):
    """A consumer that returns, which acknowledges everything."""

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None: ...


# -- acknowledgement, retries, dead letters --------------------------------------------------------


class Thirteen(WorkerEntrypoint):
    """Fails on the body 13, the first time."""

    async def fetch(self, request: Any) -> Any:
        for number in range(1, 1 + int(request.url.rpartition("/")[2])):
            await self.env.JOBS.send(number)
        return Response("sent")

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
        for message in batch.messages:
            if message.body == 13 and message.attempts == 1:
                raise ValueError("13")


async def test_o01_one_failure_retries_its_own_batch_only() -> None:
    """O-01"""
    async with Emulator(config(Thirteen, max_batch_size=10)) as emulator:
        await emulator.fetch("/25")
        await emulator.settle()
        assert sorted(map(len, batches(emulator))) == [5, 10, 10, 10]
        first = [body for _, body, attempt, _ in deliveries(emulator) if attempt == 1]
        again = [body for _, body, attempt, _ in deliveries(emulator) if attempt == 2]
        assert first == list(range(1, 26))
        assert again == list(range(11, 21))
        assert {attempt for _, _, attempt, _ in deliveries(emulator)} == {1, 2}
        assert emulator.queues["jobs"].acked == 25


async def test_o01_a_hundred_and_fifty_sends_are_not_one_batch() -> None:
    """O-01: no invocation gets more than `max_batch_size`."""
    async with Emulator(config(Thirteen, max_batch_size=10)) as emulator:
        await emulator.fetch("/150")
        await emulator.settle()
        assert list(map(len, batches(emulator))) == [10] * 16
        assert len([1 for *_, outcome in deliveries(emulator) if outcome == "retry"]) == 10
        assert emulator.queues["jobs"].acked == 150


class Folklore(WorkerEntrypoint):
    """Contradicts itself on two of three messages."""

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
        for message in batch.messages:
            if message.attempts > 1 or message.body == "no call":
                continue
            if message.body == "ack, retry":
                message.ack()
                message.retry()
            else:
                message.retry()
                message.ack()


async def test_o02_the_first_call_wins_and_no_call_is_an_ack() -> None:
    """O-02; 2.9"""
    async with Emulator(config(Folklore)) as emulator:
        ids = await emulator.queues["jobs"].send_batch(["no call", "ack, retry", "retry, ack"])
        await emulator.settle()
        assert deliveries(emulator) == [
            (5, "no call", 1, "ack"),
            (5, "ack, retry", 1, "ack"),
            (5, "retry, ack", 1, "retry"),
            (10, "retry, ack", 2, "ack"),
        ]
        texts = [
            f"Received a call to retry() on message {ids[1]} after ack() was already called. "
            "Calling retry() on a message after calling ack() has no effect.",
            f"Received a call to ack() on message {ids[2]} after retry() was already called. "
            "Calling ack() on a message after calling retry() has no effect.",
        ]
        assert warnings(emulator) == texts
        assert [f.message for f in emulator.findings if f.code == "ignored_ack"] == texts


HALF_DAY = timedelta(hours=12)
SLOW = {
    "max_retries": 3,
    "retry_delay": 43_200,
    "dead_letter_queue": "graveyard",
    "max_batch_timeout": 0,
}


async def test_o03_retries_survive_half_days_of_waiting() -> None:
    """O-03: idle, evicted, and with the process restarted in between."""
    async with Emulator(config(Failing, **SLOW)) as emulator:
        await emulator.queues["jobs"].send("x")
        for pause in (emulator.evict, emulator.restart, emulator.crash):
            count = len(deliveries(emulator)) or 1
            await emulator.advance(HALF_DAY - timedelta(seconds=1))
            await pause()
            assert len(deliveries(emulator)) == count
            assert emulator.queues["graveyard"].backlog == []
            await emulator.advance("1 second")
            assert len(deliveries(emulator)) == count + 1
        hours = [(at / 3600, attempt) for at, _, attempt, _ in deliveries(emulator)]
        assert hours == [(0, 1), (12, 2), (24, 3), (36, 4)]
        assert bodies(emulator, "graveyard") == ["x"]
        await emulator.advance("3 days")
        assert len(deliveries(emulator)) == 4


async def test_o03_retries_survive_the_process(tmp_path: Path) -> None:
    """O-03: what waits for its retry is in the file."""
    attempts = []
    for _ in range(4):
        async with Emulator(config(Failing, **SLOW), state=tmp_path / "state.db") as emulator:
            await emulator.advance(0 if attempts else HALF_DAY - timedelta(seconds=1))
            if not attempts:
                assert deliveries(emulator) == []
                await emulator.queues["jobs"].send("x")
            else:
                assert bodies(emulator) == ["x"]
                await emulator.advance(HALF_DAY)
            attempts += [(attempt, outcome) for _, _, attempt, outcome in deliveries(emulator)]
    assert attempts == [(1, "retry"), (2, "retry"), (3, "retry"), (4, "dead_letter")]
    async with Emulator(config(Failing, **SLOW), state=tmp_path / "state.db") as emulator:
        assert (bodies(emulator), bodies(emulator, "graveyard")) == ([], ["x"])
        assert emulator.now == START + 4 * HALF_DAY - timedelta(seconds=1)


@pytest.mark.parametrize(
    ("retries", "count"), [(None, 4), (0, 1), (1, 2), (3, 4), (10, 11)], ids=str
)
async def test_o04_deliveries_are_one_more_than_retries(retries: int | None, count: int) -> None:
    """O-04; 4.2"""
    settings = {} if retries is None else {"max_retries": retries}
    async with Emulator(config(Failing, **settings)) as emulator:
        await emulator.queues["jobs"].send("x")
        await emulator.settle()
        assert [attempt for _, _, attempt, _ in deliveries(emulator)] == list(range(1, count + 1))
        assert emulator.queues["jobs"].dropped == 1


@pytest.mark.parametrize(
    ("profile", "size", "wait", "count"), [("production", 10, 5, 4), ("miniflare", 5, 1, 3)]
)
async def test_o04_the_defaults_are_those_of_the_profile(
    profile: str, size: int, wait: float, count: int
) -> None:
    """O-04; 3.1: a consumer without settings behaves differently locally."""
    async with Emulator(config(Failing), profile=profile) as emulator:
        await emulator.queues["jobs"].send("x")
        await emulator.advance(wait - 0.001)
        assert deliveries(emulator) == []
        await emulator.advance(0.001)
        assert len(deliveries(emulator)) == 1
        await emulator.settle()
        assert len(deliveries(emulator)) == count
        await emulator.queues["jobs"].send_batch(list(range(size + 1)))
        await emulator.advance(0)
        assert batches(emulator)[count] == list(range(size))


async def test_o05_a_dead_letter_is_there_at_once() -> None:
    """O-05; 4.2: no further poll, no further tick."""
    settings = {"max_retries": 1, "dead_letter_queue": "graveyard"}
    async with Emulator(config(Failing, **settings)) as emulator:
        graveyard = emulator.queues["graveyard"]
        await emulator.queues["jobs"].send("x")
        await emulator.advance(9.999)
        assert (len(emulator.queues["jobs"].backlog), len(graveyard.backlog)) == (1, 0)
        await emulator.advance(0.001)
        assert (len(emulator.queues["jobs"].backlog), len(graveyard.backlog)) == (0, 1)
        assert emulator.queues["jobs"].dead_lettered == 1
        assert emulator.queues["jobs"].dropped == 0


async def test_o05_a_drop_can_be_seen() -> None:
    """O-05; 4.4: a counter, a record and a finding that name the message, not only a log line."""
    async with Emulator(config(Failing, max_retries=1)) as emulator:
        id = await emulator.queues["jobs"].send("x")
        await emulator.settle()
        assert emulator.queues["jobs"].dropped == 1
        assert emulator.queues["jobs"].deliveries[-1].id == id
        assert emulator.queues["jobs"].deliveries[-1].outcome == "dropped"
        (finding,) = [f for f in emulator.findings if f.code == "message_dropped"]
        assert id in finding.message
        assert "the consumer's own" in finding.message
        assert [e.data["id"] for e in emulator.trace if e.kind == "dropped"] == [id]


async def test_o06_one_worker_consumes_a_queue_and_its_dead_letters() -> None:
    """O-06; 2.8, 4.5"""
    seen: list[tuple[str, Any, int]] = []
    sent: dict[str, list[str]] = {}

    class Default(WorkerEntrypoint):
        async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
            for message in batch.messages:
                seen.append((batch.queue, message.body, message.attempts))
                sent.setdefault(batch.queue, []).append(message.id)
                if batch.queue == "main-dlq" and message.attempts == 1:
                    message.retry()
            if batch.queue == "main":
                raise ValueError("refused")

    consumers = [
        {"queue": "main", "dead_letter_queue": "main-dlq", "max_batch_size": 7, "max_retries": 2},
        {"queue": "main-dlq", "max_batch_size": 3, "max_retries": 1},
    ]
    async with Emulator({"main": Default, "queues": {"consumers": consumers}}) as emulator:
        ids = await emulator.queues["main"].send_batch(list(range(20)))
        await emulator.settle()
        for queue, size in (("main", 7), ("main-dlq", 3)):
            assert max(map(len, batches(emulator, queue))) == size
            assert sorted(set(sent[queue])) == sorted(ids)
        # A retry budget of its own: the first of its deliveries is number 1 again.
        attempts = {
            (queue, body): [n for q, b, n in seen if (q, b) == (queue, body)]
            for queue, body, _ in seen
        }
        assert attempts == {
            **{("main", number): [1, 2, 3] for number in range(20)},
            **{("main-dlq", number): [1, 2] for number in range(20)},
        }
        assert emulator.queues["main"].dead_lettered == 20
        assert emulator.queues["main-dlq"].acked == 20
        assert emulator.queues["main-dlq"].dropped == 0


# -- delays, topology, payloads --------------------------------------------------------------------


class Delays(WorkerEntrypoint):
    """Sends with every kind of delay; the binding has another name than the queue."""

    async def fetch(self, request: Any) -> Any:
        await self.env.LATER.send("A")
        await self.env.LATER.send("B", delaySeconds=5)
        await self.env.LATER.send("C", delaySeconds=60)
        return Response("sent")

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None: ...


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("wait", [0, 5])
async def test_o07_delays_are_kept_to_the_second(profile: str, wait: int) -> None:
    """O-07; 1.10, 1.11, 3.6: the default is production's on the queue, the simulator's here."""
    producer: dict[str, Any] = {"binding": "LATER", "queue": "jobs"}
    settings = None
    if profile == "miniflare":
        producer["delivery_delay"] = 30
    else:
        settings = {"jobs": {"delivery_delay": 30}}
    given = config(Delays, producers=[producer], max_batch_timeout=wait)
    async with Emulator(given, profile=profile, queue_settings=settings) as emulator:
        await emulator.fetch("/")
        expected: list[tuple[float, Any, int, str]] = []
        for due, body in ((5, "B"), (30, "A"), (60, "C")):
            await emulator.advance(due + wait - 0.001 - seconds(emulator.now))
            assert deliveries(emulator) == expected
            await emulator.advance(0.001)
            expected.append((due + wait, body, 1, "ack"))
            assert deliveries(emulator) == expected


API = """
    from workers import Response, WorkerEntrypoint

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            await self.env.JOBS.send({"url": request.url})
            return Response("queued", status=202)
"""
JOBS = """
    from workers import WorkerEntrypoint

    class Default(WorkerEntrypoint):
        async def queue(self, batch, env, ctx):
            for message in batch.messages:
                print(f"{batch.queue}: {message.body['url']}")
"""
API_CONFIG = """
    {"name": "api", "main": "entry.py", "compatibility_date": "2026-09-01",
     "compatibility_flags": ["python_workers"],
     "queues": {"producers": [{"binding": "JOBS", "queue": "jobs"}]},
     "env": {"dev": {"queues": {"producers": [{"binding": "JOBS", "queue": "jobs-dev"}]}}}}
"""
JOBS_CONFIG = """
    name = "jobs"
    main = "entry.py"
    compatibility_date = "2026-09-01"
    compatibility_flags = ["python_workers"]
    [[queues.consumers]]
    queue = "jobs"
    [[env.dev.queues.consumers]]
    queue = "jobs-dev"
"""


@pytest.fixture
def two_workers(tmp_path: Path) -> list[Path]:
    """The config files of a producer and of a consumer."""
    write(tmp_path / "api", {"entry.py": API, "wrangler.jsonc": API_CONFIG})
    write(tmp_path / "jobs", {"entry.py": JOBS, "wrangler.toml": JOBS_CONFIG})
    return [tmp_path / "api" / "wrangler.jsonc", tmp_path / "jobs" / "wrangler.toml"]


async def test_o08_two_workers_of_two_config_files_share_a_queue(two_workers: list[Path]) -> None:
    """O-08"""
    async with Emulator(two_workers) as emulator:
        assert (await emulator.fetch("/a")).status_code == 202
        await emulator.settle()
        assert [(log.worker, log.text) for log in emulator.logs] == [
            ("jobs", "jobs: http://localhost/a")
        ]
        assert emulator.queues["jobs"].acked == 1
        assert emulator.findings == []


async def test_o08_messages_that_nobody_consumes_are_kept_and_flagged(
    two_workers: list[Path],
) -> None:
    """O-08"""
    async with Emulator(two_workers[0]) as emulator:
        for path in ("/a", "/b"):
            assert (await emulator.fetch(path)).status_code == 202
        await emulator.settle()
        urls = [body["url"] for body in bodies(emulator)]
        assert urls == ["http://localhost/a", "http://localhost/b"]
        (finding,) = emulator.findings
        assert finding.code == "no_consumer"
        assert finding.message == "2 messages in jobs, which no Worker consumes"


async def test_o08_the_consumer_may_come_later(two_workers: list[Path], tmp_path: Path) -> None:
    """O-08: what the one process left in the shared state, the next one consumes."""
    state = tmp_path / "state.db"
    async with Emulator(two_workers[0], state=state) as emulator:
        await emulator.fetch("/a")
    async with Emulator(two_workers, state=state) as emulator:
        await emulator.settle()
        assert [log.text for log in emulator.logs] == ["jobs: http://localhost/a"]
        assert emulator.findings == []


class Payloads(WorkerEntrypoint):
    """Sends what JSON has no form for, bytes as bytes, and a dict that changes afterwards."""

    async def fetch(self, request: Any) -> Any:
        await self.env.JOBS.send({"at": datetime(2026, 1, 2, tzinfo=UTC), "raw": b"\x00"})
        await self.env.JOBS.send(b"\x00\xff", contentType="bytes")
        body = {"items": [1]}
        sending = self.env.JOBS.send(body)
        body["items"].append(2)
        await sending
        body["items"].append(3)
        return Response("sent")


async def test_o10_what_json_changes_is_told_with_its_path() -> None:
    """O-10; 1.4, 2.6: production sends it, so it is a finding and no error."""
    received: list[Any] = []

    class Default(Payloads):
        async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
            received.extend(message.body for message in batch.messages)

    async with Emulator(config(Default)) as emulator:
        assert (await emulator.fetch("/")).status_code == 200
        await emulator.settle()
        changed, raw, snapshot = received
        assert changed == {"at": "2026-01-02T00:00:00.000Z", "raw": {"0": 0}}
        assert bytes(raw) == b"\x00\xff"
        assert snapshot == {"items": [1]}
        (finding,) = emulator.findings
        assert finding.code == "lossy_body"
        assert "$.at (datetime) arrives as a string, $.raw (bytes) arrives as" in finding.message
        assert "test_public_reports.py:" in str(finding.location)


async def test_o10_what_cannot_be_serialised_raises_at_the_send() -> None:
    """O-10; 1.6: with the path of the bad value, and nothing is stored."""
    errors: list[tuple[str, list[str]]] = []

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            for bad, content_type in ((2**60, "json"), (print, "v8")):
                body = {"rows": [0, {"id": bad}]}
                try:
                    await self.env.JOBS.send(body, contentType=content_type)
                except JsException as error:
                    errors.append((str(error), error.__notes__))
            return Response("refused")

    async with Emulator(config(Default)) as emulator:
        await emulator.fetch("/")
        notes = ["emulator: the value at $.rows[1].id is the cause"]
        assert errors == [
            ("TypeError: Do not know how to serialize a BigInt", notes),
            ("DataCloneError: function(){} could not be cloned.", notes),
        ]
        assert bodies(emulator) == []


# -- faults on delivery ----------------------------------------------------------------------------


async def test_o11_a_directed_failure_after_the_handler_and_before_its_acks() -> None:
    """O-11: the second delivery of the invoice is lost, and only that is made again."""
    ledger: list[tuple[str, int]] = []

    class Default(WorkerEntrypoint):
        async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
            for message in batch.messages:
                if message.body["kind"] == "invoice" and message.attempts == 1:
                    raise ValueError("its first delivery fails by itself")
                ledger.append((message.body["kind"], message.attempts))
                message.ack()

    kinds = [{"kind": "mail"}, {"kind": "invoice"}, {"kind": "reminder"}]
    given = config(Default, max_batch_size=1, max_batch_timeout=0, retry_delay=60)
    async with Emulator(given, faults="batch.jobs#4:lose_ack") as emulator:
        await emulator.queues["jobs"].send_batch(kinds)
        await emulator.settle()
        assert [(at, b["kind"], n, how) for at, b, n, how in deliveries(emulator)] == [
            (0, "mail", 1, "ack"),
            (0, "invoice", 1, "retry"),
            (0, "reminder", 1, "ack"),
            (60, "invoice", 2, "lost"),
            (120, "invoice", 3, "ack"),
        ]
        # The handler had finished: what it did was done twice.
        assert ledger == [("mail", 1), ("reminder", 1), ("invoice", 2), ("invoice", 3)]
        assert [str(fault) for fault in emulator.faults.fired] == ["batch.jobs#4:lose_ack"]


async def test_o11_every_delivery_may_fail() -> None:
    """O-11: with a pattern for the occurrence, and the outcome is the documented one."""
    settings = {"max_retries": 2, "dead_letter_queue": "graveyard", "max_batch_timeout": 0}
    async with Emulator(config(Accepting, **settings), faults="batch.jobs#*:fail") as emulator:
        await emulator.queues["jobs"].send("x")
        await emulator.settle()
        assert [(attempt, outcome) for _, _, attempt, outcome in deliveries(emulator)] == [
            (1, "retry"),
            (2, "retry"),
            (3, "dead_letter"),
        ]
        assert bodies(emulator, "graveyard") == ["x"]


class Charge(WorkerEntrypoint):
    """Charges for each delivery, or for each message."""

    ledger: list[tuple[str, Any]]
    by_id = False

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
        for message in batch.messages:
            if not (self.by_id and message.id in dict(self.ledger)):
                self.ledger.append((message.id, message.body))
            message.ack()


@pytest.mark.parametrize("action", ["duplicate", "duplicate(1 h)"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["naive", "by id"])
async def test_o12_duplicates_on_request(action: str, idempotent: bool) -> None:
    """O-12: the same message in another batch, after it was acked."""
    main = type("Default", (Charge,), {"ledger": [], "by_id": idempotent})
    given = config(main, max_batch_timeout=0)
    async with Emulator(given, faults=f"message.jobs#*:{action}") as emulator:
        ids = await emulator.queues["jobs"].send_batch([{"charge": 5}, {"charge": 7}])
        await emulator.settle()
        records = emulator.queues["jobs"].deliveries
        first, again = records[:2], records[2:]
        for half in (first, again):
            assert [(r.id, r.body, r.attempt, r.outcome) for r in half] == [
                (ids[0], {"charge": 5}, 1, "ack"),
                (ids[1], {"charge": 7}, 1, "ack"),
            ]
        assert {r.batch for r in first}.isdisjoint(r.batch for r in again)
        later = 3600 if "1 h" in action else 0
        assert {(r.at - f.settled).total_seconds() for f in first for r in again} == {later}
        assert len(main.ledger) == (2 if idempotent else 4)
        assert bodies(emulator) == []


async def test_o12_without_the_fault_nothing_is_delivered_twice() -> None:
    """O-12: so that the test above shows the fault, and not the emulator."""
    main = type("Default", (Charge,), {"ledger": []})
    async with Emulator(config(main)) as emulator:
        await emulator.queues["jobs"].send_batch([{"charge": 5}, {"charge": 7}])
        await emulator.settle()
        assert [body["charge"] for _, body in main.ledger] == [5, 7]


class LastWins(WorkerEntrypoint):
    """Keeps the last state it was told, whatever the order of events was."""

    orders: dict[str, str]

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
        for message in batch.messages:
            self.orders[message.body["order"]] = message.body["event"]


async def ordered(faults: str, seed: int) -> tuple[dict[str, str], list[str], str]:
    """The state, the order of arrival and the trace of a run."""
    main = type("Default", (LastWins,), {"orders": {}})
    async with Emulator(config(main), faults=faults, seed=seed) as emulator:
        for event in ("created", "cancelled"):
            await emulator.queues["jobs"].send({"order": "o-1", "event": event})
            await emulator.advance(0.033)
        await emulator.settle()
        events = [body["event"] for _, body, _, _ in deliveries(emulator)]
        assert [str(fault) for fault in emulator.faults.fired] == [faults] * bool(faults)
        return main.orders, events, emulator.trace.to_jsonl()


@pytest.mark.parametrize("seed", [0, 7])
async def test_o13_the_reverse_order_can_be_had_and_had_again(seed: int) -> None:
    """O-13; 3.4: two events 33 ms apart arrive swapped."""
    assert (await ordered("", seed))[:2] == ({"o-1": "cancelled"}, ["created", "cancelled"])
    swapped = await ordered("batch.jobs#1:shuffle", seed)
    assert swapped[:2] == ({"o-1": "created"}, ["cancelled", "created"])
    assert await ordered("batch.jobs#1:shuffle", seed) == swapped


async def test_o13_a_delay_swaps_them_across_batches() -> None:
    """O-13: order is not kept from one batch to the next either."""
    main = type("Default", (LastWins,), {"orders": {}})
    given = config(main, max_batch_size=1)
    async with Emulator(given, faults="message.jobs#1:delay(30 s)") as emulator:
        for event in ("created", "cancelled"):
            await emulator.queues["jobs"].send({"order": "o-1", "event": event})
        await emulator.settle()
        assert [(at, body["event"]) for at, body, _, _ in deliveries(emulator)] == [
            (0, "cancelled"),
            (30, "created"),
        ]
        assert main.orders == {"o-1": "created"}


class Outbox(WorkerEntrypoint):
    """Saves a row, then sends; what was not sent stays in the outbox for the next drain."""

    rows: list[str]
    outbox: list[str]

    async def fetch(self, request: Any) -> Any:
        path = request.url.rpartition("/")[2]
        if path == "drain":
            return Response.json({"sent": await self.drain()})
        self.rows.append(path)
        self.outbox.append(path)
        try:
            await self.drain()
        except JsException as error:
            return Response.json({"error": str(error)}, status=202)
        return Response.json({"queued": path}, status=201)

    async def drain(self) -> list[str]:
        sent = list(self.outbox)
        if sent:
            await self.env.JOBS.sendBatch([{"body": row} for row in sent])
        self.outbox.clear()
        return sent

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None: ...


async def test_o14_a_send_that_fails_leaves_the_outbox_for_the_next_drain() -> None:
    """O-14; 1.13"""
    main = type("Default", (Outbox,), {"rows": [], "outbox": []})
    given = {
        **config(main),
        "compatibility_date": "2026-03-11",
        "compatibility_flags": ["python_workers"],
    }
    async with Emulator(given, faults="send.jobs#1:fail") as emulator:
        response = await emulator.fetch("/row-1")
        assert response.status_code == 202
        assert response.json() == {
            "error": "Error: Queue sendBatch failed: Internal Server Error",
        }
        assert (main.rows, main.outbox, bodies(emulator)) == (["row-1"], ["row-1"], [])

        assert (await emulator.fetch("/drain")).json() == {"sent": ["row-1"]}
        assert (await emulator.fetch("/drain")).json() == {"sent": []}
        await emulator.settle()
        assert [body for _, body, _, _ in deliveries(emulator)] == ["row-1"]
        assert main.outbox == []


async def test_o14_a_failing_batch_stores_none_of_its_messages() -> None:
    """O-14; 1.15"""

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            await self.env.JOBS.sendBatch([{"body": number} for number in range(3)])
            return Response("sent")

        async def queue(self, batch: Any, env: Any, ctx: Any) -> None: ...

    async with Emulator(config(Default), faults="send.jobs#1:fail") as emulator:
        response = await emulator.fetch("/")
        assert (response.status_code, response.text) == (
            500,
            "Error: Unknown Internal Error (15000)",
        )
        await emulator.settle()
        assert deliveries(emulator) == []
        # The fault is the cause: no finding of an exception that nobody caught.
        assert emulator.findings == []
        assert (await emulator.fetch("/")).status_code == 200
        await emulator.settle()
        assert [body for _, body, _, _ in deliveries(emulator)] == [0, 1, 2]


async def test_o14_an_answer_that_is_lost_makes_the_second_send_a_duplicate() -> None:
    """O-14: the caller sees the same error, and the message is there."""
    main = type("Default", (Outbox,), {"rows": [], "outbox": []})
    async with Emulator(config(main), faults="send.jobs#1:lose_reply") as emulator:
        assert (await emulator.fetch("/row-1")).status_code == 202
        assert bodies(emulator) == ["row-1"]
        await emulator.fetch("/drain")
        await emulator.settle()
        assert [body for _, body, _, _ in deliveries(emulator)] == ["row-1", "row-1"]


# -- spares ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
async def test_s01_attempts_start_again_in_the_dead_letter_queue(profile: str) -> None:
    """S-01; 4.1, 4.5"""
    seen: list[tuple[str, str, datetime, int]] = []

    class Default(WorkerEntrypoint):
        async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
            seen.extend((batch.queue, m.id, m.timestamp, m.attempts) for m in batch.messages)
            batch.retryAll(delaySeconds=60)

    consumers = [
        {"queue": "jobs", "max_retries": 2, "dead_letter_queue": "graveyard"},
        {"queue": "graveyard", "max_retries": 1},
    ]
    given = {"main": Default, "queues": {"consumers": consumers}}
    async with Emulator(given, profile=profile) as emulator:
        await emulator.advance(100)
        id = await emulator.queues["jobs"].send("x")
        await emulator.settle()
        sent = datetime(2026, 1, 1, 0, 1, 40)
        assert seen == [
            ("jobs", id, sent, 1),
            ("jobs", id, sent, 2),
            ("jobs", id, sent, 3),
            ("graveyard", id, sent, 1),
            ("graveyard", id, sent, 2),
        ]


async def test_s02_environments_name_their_own_queues(two_workers: list[Path]) -> None:
    """S-02: two configs and one environment."""
    async with Emulator(two_workers, environment="dev") as emulator:
        await emulator.fetch("/a")
        await emulator.settle()
        assert [log.text for log in emulator.logs] == ["jobs-dev: http://localhost/a"]
        assert sorted(emulator.queues) == ["jobs-dev"]
        assert emulator.findings == []


async def test_s03_a_queue_that_was_idle_for_two_days_works() -> None:
    """S-03"""
    async with Emulator(config(Thirteen)) as emulator:
        for _ in range(2):
            await emulator.fetch("/1")
            await emulator.settle()
            await emulator.advance("48 hours")
        await emulator.restart()
        await emulator.fetch("/1")
        await emulator.settle()
        two_days = 48 * 3600
        assert [at for at, *_ in deliveries(emulator)] == [5, two_days + 10, 2 * two_days + 15]
        assert emulator.queues["jobs"].acked == 3


@pytest.mark.parametrize("damage", [b"", b"not a database", None], ids=["cut", "foreign", "torn"])
async def test_s03_a_damaged_state_is_detected(damage: bytes | None, tmp_path: Path) -> None:
    """S-03"""
    state = tmp_path / "state.db"
    async with Emulator(config(Accepting), state=state) as emulator:
        await emulator.queues["jobs"].send("x" * 100_000)
    data = state.read_bytes()
    torn = data[:4096] + b"\x5a" * (len(data) - 4096)
    if damage == b"":
        state.write_bytes(data[: len(data) // 2])
    else:
        state.write_bytes(torn if damage is None else damage)
    with pytest.raises(StateError, match=r"state\.db"):
        Emulator(config(Accepting), state=state)


@pytest.mark.parametrize("name", ["queue", "my-jobs", "my.jobs", "My_Jobs", "jobs2", "JOBS"])
async def test_s04_any_name_of_a_queue_reaches_its_handler(name: str) -> None:
    """S-04; 8.6: not only "queue", and the binding is called something else."""
    seen = []

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            await self.env.SOMETHING_ELSE.send("x")
            return Response("sent")

        async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
            seen.append((batch.queue, batch.messages[0].body))

    queues = {
        "producers": [{"binding": "SOMETHING_ELSE", "queue": name}],
        "consumers": [{"queue": name}],
    }
    async with Emulator({"main": Default, "queues": queues}) as emulator:
        await emulator.fetch("/")
        await emulator.settle()
        assert seen == [(name, "x")]


class Sizes(WorkerEntrypoint):
    """Sends what the request asks for, and answers with the error or with "sent"."""

    async def fetch(self, request: Any) -> Any:
        given = await request.json()
        try:
            if "sizes" in given:
                items = [{"body": "x" * size, "contentType": "text"} for size in given["sizes"]]
                await self.env.JOBS.sendBatch(items)
            else:
                await self.env.JOBS.send("x" * given["size"], contentType="text")
        except JsException as error:
            return Response(str(error))
        return Response("sent")

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None: ...


@pytest.mark.parametrize(
    ("given", "stored", "text"),
    [
        ({"size": 128_000}, 1, "sent"),
        ({"size": 128_001}, 0, "message length of 128001 bytes exceeds limit of 128000 (10204)"),
        ({"sizes": [1] * 100}, 100, "sent"),
        ({"sizes": [1] * 101}, 0, "batch message count of 101 exceeds limit of 100 (10206)"),
        ({"sizes": [128_000, 128_000]}, 2, "sent"),
        (
            {"sizes": [128_000, 127_999, 2]},
            0,
            "batch size of 256001 bytes exceeds limit of 256000 bytes (10205)",
        ),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_s05_the_limits_of_a_send(given: dict[str, Any], stored: int, text: str) -> None:
    """S-05; 1.12"""
    async with Emulator(config(Sizes)) as emulator:
        emulator.queues["jobs"].pause()
        response = await emulator.fetch("/", method="POST", json=given)
        assert response.text == (text if text == "sent" else f"Error: {text}")
        assert len(emulator.queues["jobs"].backlog) == stored


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ([96_000] * 3, "sent"),
        ([96_001, 96_000, 96_000], "Error: Unknown Internal Error (15000)"),
    ],
)
async def test_s05_the_local_simulator_takes_more_in_a_batch(sizes: list[int], text: str) -> None:
    """S-05; 1.12: 288,000 bytes, so that too much fails in production only."""
    async with Emulator(config(Sizes), profile="miniflare") as emulator:
        response = await emulator.fetch("/", method="POST", json={"sizes": sizes})
        assert response.text == text


async def test_s05_the_longest_delay_is_a_day() -> None:
    """S-05; 1.9: and not the twelve hours of older pages."""
    async with Emulator(config(Accepting, max_batch_timeout=0)) as emulator:
        jobs = emulator.queues["jobs"]
        for refused in (86_401, -1):
            with pytest.raises(JsException, match="is not between 0 and 86400 s"):
                await jobs.send("x", delaySeconds=refused)
        await jobs.send("x", delaySeconds=86_400)
        await emulator.advance(86_399.999)
        assert deliveries(emulator) == []
        await emulator.advance(0.001)
        assert deliveries(emulator) == [(86_400, "x", 1, "ack")]


@pytest.mark.parametrize(
    ("setting", "most"),
    [("max_batch_timeout", 60), ("retry_delay", 86_400), ("max_batch_size", 100)],
)
async def test_s05_the_limits_of_a_consumer(setting: str, most: int) -> None:
    """S-05; 3.1"""
    Emulator(config(Accepting, **{setting: most})).close()
    with pytest.raises(ConfigError, match=f"{setting} is {most + 1}"):
        Emulator(config(Accepting, **{setting: most + 1}))


class Flood(WorkerEntrypoint):
    """Sends twenty thousand messages one by one."""

    async def fetch(self, request: Any) -> Any:
        for number in range(20_000):
            await self.env.JOBS.send(number, delaySeconds=60)
        return Response("sent")

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None: ...


async def test_s13_twenty_thousand_messages_are_one_timer_and_little_work() -> None:
    """S-13"""
    began = time.process_time()
    async with Emulator(config(Flood, max_batch_size=100)) as emulator:
        await emulator.fetch("/")
        assert len(emulator.queues["jobs"].backlog) == 20_000
        active = [timer for timer in emulator.clock.timers if "jobs" in timer.owner]
        assert [timer.owner for timer in active] == [
            "queue jobs: the next batch",
            "queue jobs: expiry",
        ]
        await emulator.settle()
        assert emulator.queues["jobs"].acked == 20_000
        assert list(map(len, batches(emulator))) == [100] * 200
    # Of the processor's time: it is about two seconds, and the machine may be busy.
    assert time.process_time() - began < 20


def eager(order: list[str]) -> type[WorkerEntrypoint]:
    """A Worker whose consumer fails once, and whose producer would see it were it called inline."""

    class Default(WorkerEntrypoint):
        async def fetch(self, request: Any) -> Any:
            order.append("before")
            await self.env.JOBS.send("x")
            order.append("sent")
            return Response("queued", status=202)

        async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
            order.append(f"attempt {batch.messages[0].attempts}")
            if batch.messages[0].attempts == 1:
                raise ValueError("the consumer's own")

    return Default


@pytest.mark.parametrize("drain", ["settle", "advance"])
async def test_s16_sending_never_runs_the_consumer(drain: str) -> None:
    """S-16: it runs when the test drains the queue, with the retries that it has in production."""
    order: list[str] = []
    drains: dict[str, Callable[[Emulator], Any]] = {
        "settle": lambda emulator: emulator.settle(),
        "advance": lambda emulator: emulator.advance(8),
    }
    given = config(eager(order), max_batch_timeout=1, retry_delay=6)
    async with Emulator(given) as emulator:
        response = await emulator.fetch("/")
        assert (response.status_code, order) == (202, ["before", "sent"])
        assert bodies(emulator) == ["x"]
        await drains[drain](emulator)
        assert order == ["before", "sent", "attempt 1", "attempt 2"]
        assert deliveries(emulator) == [(1, "x", 1, "retry"), (8, "x", 2, "ack")]
        assert [f.code for f in emulator.findings] == []


async def test_s16_a_test_s_own_send_runs_nothing_either() -> None:
    """S-16: not even where the batch is full and no time has to pass."""
    order: list[str] = []
    async with Emulator(config(eager(order), max_batch_size=2)) as emulator:
        await emulator.queues["jobs"].send("x")
        assert order == []
        await emulator.settle()
        assert order == ["attempt 1", "attempt 2"]


async def test_s16_the_same_from_files(tmp_path: Path) -> None:
    """S-16: with code that is loaded as it is deployed, and its globals."""
    entry = """
        from workers import Response, WorkerEntrypoint

        consumed = []

        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                await self.env.JOBS.send("x")
                return Response.json(consumed)

            async def queue(self, batch, env, ctx):
                consumed.extend(message.body for message in batch.messages)
    """
    given = worker(tmp_path, entry, queues=config(None)["queues"])
    async with Emulator(given) as emulator:
        assert (await emulator.fetch("/")).json() == []
        await emulator.settle()
        assert (await emulator.fetch("/")).json() == ["x"]
