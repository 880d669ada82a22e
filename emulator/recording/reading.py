"""Reading a recording, and saying what is wrong with it, with the line.

A last line that was torn, because the server was killed while it wrote it, is left out and noted.
A gap is noted, too: a number that was passed over, a start after a server that wrote no end.
Whatever else cannot be read is an error: a replay of half a recording would say nothing.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from emulator.clock import instant
from emulator.errors import RecordingError
from emulator.recording.coding import body_from_json
from emulator.recording.entries import (
    Action,
    Answer,
    Head,
    Left,
    Message,
    Outgoing,
    Recording,
    Reload,
    Request,
    Restart,
    Socket,
)
from emulator.recording.file import MARK
from emulator.sweeping.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from emulator.recording.entries import Entry, Headers

VERSION: Final = 1
_KEYS: Final = ("configs", "workers", "seed", "process", "at")
_T = TypeVar("_T")


class _Wrong(Exception):
    """What is wrong with a line."""


def read(path: Path) -> Recording:
    """Read a recording; raises `RecordingError`, with the line, for what is none."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}") from None
    if not data:
        raise RecordingError(f"{path} is empty: the Workers that it was to record never ran")
    lines = data.split(b"\n")
    torn = lines.pop()
    reader = _Reader(path, _head(path, lines[0] if lines else torn))
    for number, line in enumerate(lines[1:], 2):
        reader.take(number, line)
    if torn and lines:
        reader.notes.append(
            f"line {len(lines) + 1} is torn, as the server was killed while it wrote it; it is "
            "left out"
        )
    return reader.recording()


def _head(path: Path, line: bytes) -> Mapping[str, Any]:
    try:
        head = json.loads(line)
    except ValueError:
        head = None
    if not isinstance(head, dict) or not isinstance(head.get(MARK), int):
        raise RecordingError(
            f"{path} is no recording: `workers-emulator dev --record FILE` makes one"
        )
    if head[MARK] > VERSION:
        raise RecordingError(
            f"{path} has format {head[MARK]}, written by {head.get('by', 'a newer release')}, and "
            f"this release reads up to {VERSION}: use that release"
        )
    return head


class _Reader:
    """Puts together what belongs together, line by line."""

    def __init__(self, path: Path, head: Mapping[str, Any]) -> None:
        self._path = path
        self._line = 1
        self.notes: list[str] = []
        self._head = self._checked(lambda: _read_head(head))
        self._state: list[Mapping[str, Any]] = []
        self._entries: list[Entry] = []
        self._outgoing: list[Outgoing] = []
        self._numbered: dict[int, Request | Socket | Action | Outgoing] = {}
        self._latest = 0
        self._reactions: list[int] = []
        self._last = self._head.origin
        self._process = self._head.process
        self._ended: int | None = None
        self._idle = False
        # Whether the line before told the end of a server.
        self._has_end = False

    def take(self, number: int, line: bytes) -> None:
        """Read a line."""
        self._line = number
        try:
            value = json.loads(line)
        except ValueError:
            self._refuse("is no JSON: the file was damaged, or edited")
        if not isinstance(value, dict):
            self._refuse("is no JSON object")
        if value.get("kind") == "state":
            self._state.append(value)
            return
        self._checked(lambda: self._take(value))

    def recording(self) -> Recording:
        """Return what was read."""
        for one in self._numbered.values():
            if isinstance(one, Request) and one.missing == _COMING:
                one.missing = "not in the recording, which ends before it came"
        if self._ended is None:
            self.notes.append(
                "the recording ends before its server was stopped: that was killed, could write "
                "no more (a full disk), or runs still; what came later is not in it"
            )
        return Recording(
            head=self._head,
            state=tuple(self._state),
            entries=tuple(self._entries),
            outgoing=tuple(self._outgoing),
            notes=tuple(self.notes),
            last=self._last,
            ended=self._ended,
            idle=self._idle,
            last_number=max(self._numbered, default=0),
            last_process=self._process,
            reactions=tuple(self._reactions),
        )

    def _take(self, value: dict[str, Any]) -> None:
        at = _time(value)
        if at < self._last and value.get("kind") == "restart":
            # Where the clock stood is durable with the next thing that is: a kill may lose it.
            self.notes.append(
                f"line {self._line}: the server was started again at an earlier time than it had; "
                "here time goes on"
            )
        elif at < self._last:
            raise _Wrong("is out of order: it came in before the line above it")
        self._last = at
        self._has_end, self._ended = self._ended is not None, None
        kind = value.get("kind")
        read = getattr(self, f"_read_{kind}", None) if isinstance(kind, str) else None
        if read is None:
            raise _Wrong(f"has a kind that this release does not know: {kind!r}")
        read(value, at)
        if kind in _REACTIONS:
            self._reactions.append(self._line)

    # -- what comes in -----------------------------------------------------------------------------

    def _read_request(self, value: dict[str, Any], at: int) -> None:
        body, missing = _body(value)
        request = Request(
            *(self._line, value["n"], at, _text(value, "worker"), _text(value, "method")),
            *(_text(value, "url"), _headers(value)),
            body=body,
            missing=_COMING if value.get("streamed") else missing,
        )
        self._add(request)

    def _read_body(self, value: dict[str, Any], at: int) -> None:
        request = self._of(value, Request)
        request.body, request.missing = _body(value)
        request.open = bool(value.get("open"))

    def _read_socket(self, value: dict[str, Any], at: int) -> None:
        texts = _text(value, "worker"), _text(value, "url")
        self._add(Socket(self._line, value["n"], at, *texts, _headers(value)))

    def _read_action(self, value: dict[str, Any], at: int) -> None:
        method, path, query = (_text(value, name) for name in ("method", "path", "query"))
        headers, (body, missing) = _headers(value), _body(value)
        entry = Action(self._line, value["n"], at, method, path, query, headers, body, missing)
        self._add(entry)

    def _read_outbound(self, value: dict[str, Any], at: int) -> None:
        texts = _text(value, "method"), _text(value, "url")
        one = Outgoing(value["n"], *texts, value.get("digest", ""))
        self._number(one)
        self._outgoing.append(one)

    def _add(self, entry: Request | Socket | Action) -> None:
        self._number(entry)
        self._entries.append(entry)

    def _number(self, one: Request | Socket | Action | Outgoing) -> None:
        if not isinstance(one.number, int) or one.number in self._numbered:
            raise _Wrong(f"has the number {one.number!r}, which is none, or that of another line")
        # They are numbered in the order in which they are written.
        expected = self._latest + 1
        if one.number > expected:
            missing = (
                f"entry {expected} is"
                if one.number == expected + 1
                else f"entries {expected} to {one.number - 1} are"
            )
            self.notes.append(
                f"line {self._line}: {missing} not in the recording, which has lost lines there: "
                "what came of them is missing from here on"
            )
        self._latest = max(self._latest, one.number)
        self._numbered[one.number] = one

    # -- what follows it ---------------------------------------------------------------------------

    def _read_response(self, value: dict[str, Any], at: int) -> None:
        one = self._of(value, Request | Socket | Action)
        body: bytes | None = None
        if not value.get("cut") and "sha256" not in value:
            body = _body(value)[0]
        one.answer = Answer(
            *(self._line, at, int(value["status"]), value.get("type", ""), body),
            sha256=value.get("sha256", ""),
            size=value.get("size", 0) if body is None else len(body),
            cut=bool(value.get("cut")),
        )

    def _read_left(self, value: dict[str, Any], at: int) -> None:
        self._of(value, Request).left = Left(self._line, at)

    def _read_message(self, value: dict[str, Any], at: int) -> None:
        self._of(value, Socket).sent.append(Message(self._line, at, _message(value)))

    def _read_close(self, value: dict[str, Any], at: int) -> None:
        end = int(value["code"]), str(value["reason"])
        self._of(value, Socket).sent.append(Message(self._line, at, end))

    def _read_sent(self, value: dict[str, Any], at: int) -> None:
        self._of(value, Socket).received.append(Message(self._line, at, _message(value)))

    def _read_closed(self, value: dict[str, Any], at: int) -> None:
        end = int(value["code"]), str(value["reason"])
        self._of(value, Socket).received.append(Message(self._line, at, end))

    def _read_answer(self, value: dict[str, Any], at: int) -> None:
        one = self._of(value, Outgoing)
        one.took = int(value["took"])
        if "error" in value:
            one.error = (value["error"]["name"], value["error"]["text"])
            return
        one.status, one.headers = int(value["status"]), _headers(value)
        one.body, one.missing = _body(value)

    # -- the server itself -------------------------------------------------------------------------

    def _read_reload(self, value: dict[str, Any], at: int) -> None:
        self._entries.append(Reload(self._line, at))

    def _read_restart(self, value: dict[str, Any], at: int) -> None:
        process = int(value["process"])
        if value["cause"] == "start" and not self._has_end:
            self.notes.append(
                f"line {self._line}: the server before this start did not write its end: it was "
                "killed, or could write no more (a full disk); what came in after line "
                f"{self._line - 1} is not in the recording"
            )
        if process > self._process + 1:
            missing = count(process - self._process - 1, "start")
            self.notes.append(
                f"line {self._line}: not in the recording, before it: {missing} of the server, and "
                "what came in then"
            )
        self._process = process
        restart = Restart(self._line, at, self._process, int(value["seed"]), value["cause"])
        self._entries.append(restart)

    def _read_end(self, value: dict[str, Any], at: int) -> None:
        self._ended, self._idle = at, bool(value.get("idle"))

    # -- details -----------------------------------------------------------------------------------

    def _of(self, value: dict[str, Any], kind: Any) -> Any:
        one = self._numbered.get(value.get("of", 0))
        if one is None or not isinstance(one, kind):
            raise _Wrong(f"is about number {value.get('of')!r}, of which no line above tells")
        return one

    def _checked(self, read: Callable[[], _T]) -> _T:
        try:
            return read()
        except _Wrong as wrong:
            self._refuse(str(wrong))
        except KeyError as error:
            self._refuse(f"lacks {error.args[0]!r}")
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            self._refuse(f"cannot be read: {error}")

    def _refuse(self, text: str) -> NoReturn:
        raise RecordingError(f"{self._path}: line {self._line} {text}")


_COMING: Final = "coming"
# The kinds of lines that tell what a Worker did, or what came of it.
_REACTIONS: Final = ("response", "sent", "closed", "outbound", "answer")


def _read_head(head: Mapping[str, Any]) -> Head:
    for name in _KEYS:
        if name not in head:
            raise KeyError(name)
    workers, configs = head["workers"], head["configs"]
    if not isinstance(workers, dict) or not isinstance(configs, list):
        raise _Wrong("cannot be read: configs is a list, and workers an object")
    texts = tuple(str(config) for config in configs)
    return Head(_time(head), texts, workers, int(head["seed"]), int(head["process"]), head)


def _time(value: Mapping[str, Any]) -> int:
    text = value["at"]
    if not isinstance(text, str):
        raise _Wrong(f"has the time {text!r}")
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise _Wrong(f"has the time {text!r}, without its zone")
    return instant(at)


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value[name]
    if not isinstance(text, str):
        raise _Wrong(f"has {name} {text!r}, which is no text")
    return text


def _headers(value: Mapping[str, Any]) -> Headers:
    return tuple((str(name), str(text)) for name, text in value["headers"])


def _body(value: Mapping[str, Any]) -> tuple[bytes, str]:
    """A body, and why it is not there."""
    if "sha256" in value:
        return b"", f"not in the recording, as its {value.get('size', 0):,} bytes are too many"
    return (body_from_json(value["body"]) if "body" in value else b""), ""


def _message(value: Mapping[str, Any]) -> str | bytes:
    return _text(value, "text") if "text" in value else body_from_json(value["bytes"])
