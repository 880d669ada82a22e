"""The view of queues: what waits, is delayed or in flight, with bodies; and what can be done.

A message is named by its queue and its number there, which no other has. A queue that takes dead
letters names those whose letters it takes: a message of it can be sent back to one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.queues.plain import plain_body
from emulator.server.dashboard.endpoints import Wrong, acts, reads
from emulator.server.dashboard.shown import BRIEF, shortened, time_text, value_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.routing import BaseRoute

    from emulator.queues.broker import Broker
    from emulator.queues.model import Delivery, Pending
    from emulator.secrets import Masker
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk

# Larger bodies are decoded where somebody asks for the whole of one.
_DECODED: Final = 16_384
_PLACES: Final = ("waiting", "flight")
_MOST_AT_ONCE: Final = 10_000


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of queues."""
    return [
        reads(desk, "/queues", _queues),
        reads(desk, "/queue", _queue),
        reads(desk, "/queue/message", _message),
        acts(desk, "/queue/send", _send),
        acts(desk, "/queue/purge", _purge),
        acts(desk, "/queue/pause", _pause),
        acts(desk, "/queue/resume", _resume),
        acts(desk, "/queue/hasten", _hasten),
        acts(desk, "/queue/delete", _delete),
        acts(desk, "/queue/send-back", _send_back),
    ]


def _queues(desk: Desk, asked: Asked) -> Answer:
    return {"queues": [_about(desk, name) for name in desk.platform.queues.broker.queues]}


def _about(desk: Desk, name: str) -> Answer:
    queues = desk.platform.queues
    broker = queues.broker
    counts, rules = broker.counts(name), broker.rules(name)
    ended = counts.acked + counts.dead_lettered + counts.dropped + counts.expired + counts.purged
    waiting = broker.backlog(name, desk.platform.kernel.now)
    flying = sum(len(batch.messages) for batch in broker.in_flight(name))
    leased = len(broker.leases(name))
    consumer = queues.consumers.get(name)
    return {
        "name": name,
        "paused": broker.paused(name),
        "consumer": consumer.name if consumer else "a puller" if rules.pull else None,
        "settings": queues.settings(name),
        "waiting": waiting.count,
        "bytes": waiting.bytes,
        "oldest": time_text(waiting.oldest),
        "delayed": counts.entered - ended - waiting.count - flying - leased,
        "flight": flying + leased,
        "dead_letters_of": list(_sources(broker, name)),
        "counts": counts._asdict(),
    }


def _sources(broker: Broker, name: str) -> Iterator[str]:
    """Yield the queues whose dead letters go there."""
    for queue in broker.queues:
        rules = broker.rules(queue)
        consumer = rules.consumer or rules.pull
        if consumer is not None and consumer.dead_letter_queue == name:
            yield queue


def _queue(desk: Desk, asked: Asked) -> Answer:
    name, place = asked.text("queue"), asked.text("place", "waiting")
    if place not in _PLACES:
        raise Wrong(f"place is {place!r}; it may be {' or '.join(_PLACES)}")
    first, rows = asked.part()
    about = _about(desk, name)  # raises `KeyError`
    if place == "waiting":
        total = about["waiting"] + about["delayed"]
        pending = desk.platform.queues.broker.page(name, first, rows)
        shown = [_pending_row(desk, message) for message in pending]
    else:
        flying = _flying(desk, name)
        total = len(flying)
        shown = [_row(desk, *message) for message in flying[first : first + rows]]
    return {**about, "place": place, "total": total, "messages": shown}


def _pending_row(desk: Desk, message: Pending) -> Answer:
    state = "delayed" if message.due > desk.platform.kernel.now else "waiting"
    return _row(desk, message, message.due, state)


def _flying(desk: Desk, name: str) -> list[tuple[Pending | Delivery, int | None, str]]:
    broker = desk.platform.queues.broker
    flying: list[tuple[Pending | Delivery, int | None, str]] = [
        (message, None, f"batch {batch.number}")
        for batch in broker.in_flight(name)
        for message in batch.messages
    ]
    return flying + [(lease.message, lease.until, "leased") for lease in broker.leases(name)]


def _row(desk: Desk, message: Pending | Delivery, due: int | None, state: str) -> Answer:
    return {
        "seq": message.seq,
        "id": message.id,
        "state": state,
        "attempts": message.attempts,
        "sent": time_text(message.timestamp),
        "due": time_text(due),
        "size": len(message.body),
        "type": message.content_type,
        "body": _preview(message, desk.platform.kernel.trace.masker),
    }


def _preview(message: Pending | Delivery, masker: Masker) -> str:
    if len(message.body) > _DECODED and message.content_type == "v8":
        return f"({len(message.body):,} bytes)"
    if len(message.body) > _DECODED and message.content_type in ("json", "text"):
        return shortened(masker(message.body.decode("utf-8", "replace")), BRIEF)
    return value_text(_decoded(message), masker, most=BRIEF)


def _decoded(message: Pending | Delivery) -> Any:
    return plain_body(message.body, message.content_type)


def _message(desk: Desk, asked: Asked) -> Answer:
    name, seq = asked.text("queue"), asked.number("seq")
    message: Pending | Delivery | None = desk.platform.queues.broker.pending_at(name, seq)
    if message is None:
        flying = (one for one, _, _ in _flying(desk, name) if one.seq == seq)
        message = next(flying, None)
    if message is None:
        raise KeyError(f"message {seq} is no longer in {name}")
    return {"body": value_text(_decoded(message), desk.platform.kernel.trace.masker)}


async def _send(desk: Desk, asked: Asked) -> Answer:
    queue = desk.emulator.queues[asked.text("queue")]
    kind = asked.text("type", "json")
    body = asked.text("body", "") if kind == "text" else asked.parsed("body")
    count = asked.number("count", 1, most=_MOST_AT_ONCE)
    delay = asked.number("delay", 0)
    item = {"body": body, "contentType": kind, **({"delaySeconds": delay} if delay else {})}
    ids: list[str] = []
    while len(ids) < count:
        ids += await queue.send_batch([item] * min(count - len(ids), 100))
    return {"ids": ids[:100], "count": len(ids)}


async def _purge(desk: Desk, asked: Asked) -> Answer:
    queue = desk.emulator.queues[asked.text("queue")]
    await desk.act("purge", queue.purge)
    return {}


async def _pause(desk: Desk, asked: Asked) -> Answer:
    queue = desk.emulator.queues[asked.text("queue")]
    await desk.act("pause", queue.pause)
    return {}


async def _resume(desk: Desk, asked: Asked) -> Answer:
    queue = desk.emulator.queues[asked.text("queue")]
    await desk.act("resume", queue.resume)
    return {}


async def _hasten(desk: Desk, asked: Asked) -> Answer:
    """Let a delayed message be delivered now."""
    name, seq = asked.text("queue"), asked.number("seq")
    queues = desk.platform.queues
    return _counted(await desk.act("hasten", lambda: queues.hasten(name, [seq])), seq)


async def _delete(desk: Desk, asked: Asked) -> Answer:
    name, seq = asked.text("queue"), asked.number("seq")
    queues = desk.platform.queues
    return _counted(await desk.act("delete", lambda: queues.discard(name, [seq])), seq)


async def _send_back(desk: Desk, asked: Asked) -> Answer:
    """Send one dead letter, or all, back to the queue they came from."""
    name, to = asked.text("queue"), asked.text("to")
    queues = desk.platform.queues
    if to not in _sources(queues.broker, name):
        raise Wrong(f"{name} does not take the dead letters of {to}")
    seq = asked.number("seq", 0)
    seqs = [seq] if seq else [one.seq for one in queues.broker.pending(name)]
    moved = await desk.act("send back", lambda: queues.send_back(name, seqs, to, by="dashboard"))
    return _counted(moved, seq)


def _counted(done: Sequence[int], seq: int) -> Answer:
    if seq and not done:
        raise KeyError(f"message {seq} does not wait there any more")
    return {"count": len(done)}
