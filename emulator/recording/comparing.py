"""What was answered then, and what is answered now."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from emulator.recording.entries import Request, Socket, raised
from emulator.recording.recorder import masked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.recording.entries import Action, Answer
    from emulator.recording.feeding import Client
    from emulator.secrets import Masker

Verdict: TypeAlias = Literal["same", "differs", "new"]
"""`new`: there was no answer in the recording to compare with."""

_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry."""

    number: int
    subject: str
    verdict: Verdict
    text: str

    def __str__(self) -> str:
        return f"{self.verdict}: entry {self.number} {self.subject} {self.text}"


def compare(
    entry: Request | Socket | Action, client: Client | None, masker: Masker
) -> Iterator[Outcome]:
    """Yield what is to be told of an entry, in a masked text."""
    subject = masker(str(entry))

    def outcome(verdict: Verdict, text: str) -> Outcome:
        return Outcome(entry.number, subject, verdict, text)

    then = entry.answer
    if client is None:
        missing = "" if isinstance(entry, Socket) else entry.missing
        yield outcome("differs", f"cannot be repeated: its body is {missing}")
        return
    now = client.status
    was = "had no answer" if then is None else f"was {then.status}"
    has = "has no answer" if now is None else f"now {now}"
    if then is None:
        left = isinstance(entry, Request) and entry.left is not None
        yield outcome("same" if left else "new", "its client left" if left else f"{was}, {has}")
    elif then.status != now:
        yield outcome("differs", f"{was}, {has}")
    else:
        told = _differing_body(entry, then, client, masker)
        yield outcome("differs", told) if told else outcome("same", str(now))
    if isinstance(entry, Socket):
        yield from (outcome("differs", text) for text in _messages(entry, client, masker))


def _differing_body(
    entry: Request | Socket | Action, then: Answer, client: Client, masker: Masker
) -> str:
    """What is wrong with the body, where one is to be compared."""
    if not isinstance(entry, Request) or then.cut:
        return ""
    if not client.ended:
        return f"was {then.status} and is, but its body breaks off"
    now = masked(client.body, masker)
    if then.body is None:
        if hashlib.sha256(now).hexdigest() == then.sha256:
            return ""
        return f"was {then.status} and is, with another body of {len(now):,} bytes"
    was, has = raised(then.body), raised(now)
    if now == then.body or (was is not None and was == has):
        return ""
    return f"was {then.status} and is, with another body: {_parted(then.body, now)}"


def _messages(entry: Socket, client: Client, masker: Masker) -> Iterator[str]:
    """Yield where what the Worker sent differs: the first place tells enough."""
    then: list[Any] = [message.data for message in entry.received]
    now = [_masked_message(message, masker) for message in client.received]
    for number, (was, has) in enumerate(zip(then, now, strict=False), 1):
        if was != has:
            yield f"message {number} was {_short(was)}, now {_short(has)}"
            return
    if len(then) > len(now):
        yield f"message {len(now) + 1} was {_short(then[len(now)])}, now there is none"
    elif len(now) > len(then):
        yield f"message {len(then) + 1} was not there, now {_short(now[len(then)])}"


def _masked_message(message: Any, masker: Masker) -> Any:
    if isinstance(message, str):
        return masker(message)
    return masker.octets(message) if isinstance(message, bytes) else message


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _parted(then: bytes, now: bytes) -> str:
    """Two texts from shortly before the place where they part."""
    was, has = then.decode("utf-8", "replace"), now.decode("utf-8", "replace")
    same = next(
        (place for place, pair in enumerate(zip(was, has, strict=False)) if pair[0] != pair[1]),
        min(len(was), len(has)),
    )
    start = max(same - _SHOWN // 3, 0)
    return f"was {_short(was[start:])}, now {_short(has[start:])}"
