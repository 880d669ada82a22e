"""What passes between a client and the server, written down on its way.

A watch stands between an ASGI application and its server: its `receive` and `send` do what those
they wrap do, and record it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.recording.coding import body_to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from emulator.recording.recorder import Recorder
    from emulator.runtime.host import WebRequest
    from emulator.server.pages import Page

    Scope = dict[str, Any]
    Receive = Callable[[], Awaitable[Any]]
    Send = Callable[[Any], Awaitable[None]]

# Where the rest of a body is not kept: more than any recording holds.
_MOST_KEPT: Final = 33_554_432
_GONE: Final = 1006
_NO_CODE: Final = 1005
_OPENED: Final = 101


class _Answer:
    """An answer on its way out; `ended` once it is complete."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.type = ""
        self.ended = False
        self._chunks: list[bytes] = []
        self._size = 0

    def take(self, message: Any) -> None:
        """Take note of what is sent."""
        if message["type"].endswith("response.start"):
            self.status = message["status"]
            headers = dict(message.get("headers", ()))
            self.type = headers.get(b"content-type", b"").decode("utf-8", "replace")
        elif message["type"].endswith("response.body"):
            chunk = message.get("body", b"")
            self._size += len(chunk)
            if self._size <= _MOST_KEPT:
                self._chunks.append(chunk)
            self.ended = not message.get("more_body", False)

    def facts(self, recorder: Recorder) -> dict[str, Any]:
        """What an entry tells of it."""
        whole = self.ended and self._size <= _MOST_KEPT
        told = recorder.answer(b"".join(self._chunks), whole=whole)
        return {"status": self.status, **({"type": self.type} if self.type else {}), **told}


class RequestWatch:
    """An HTTP request to a Worker."""

    def __init__(
        self,
        recorder: Recorder,
        worker: str,
        request: WebRequest,
        first: Any,
        receive: Receive,
        send: Send,
    ) -> None:
        self._recorder = recorder
        self._usual_receive = receive
        self._usual_send = send
        self._number = 0
        self._answer = _Answer()
        self._told = False
        # What has come of a body that is streamed; None once all of it is told.
        self._chunks: list[bytes] | None = None
        if not isinstance(request.body, bytes):
            self._chunks = [first.get("body", b"")]
        recorder.soon(lambda: self._begin(worker, request))

    def _begin(self, worker: str, request: WebRequest) -> None:
        recorder = self._recorder
        # Before anything of it is written: what it brings is masked wherever it stands.
        recorder.masker.meet(request.headers)
        streamed = not isinstance(request.body, bytes)
        body = {"streamed": True} if streamed else recorder.body(request.body)  # type: ignore[arg-type]
        self._number = recorder.begin(
            "request",
            worker=worker,
            method=request.method,
            url=recorder.masker(request.url),
            headers=recorder.headers(request.headers),
            **body,
        )

    async def receive(self) -> Any:
        """Pass on what the client sends."""
        message = await self._usual_receive()
        if message["type"] == "http.disconnect":
            if not self._told:
                self._told = True
                self._recorder.soon(lambda: self._recorder.follow("left", self._number))
        elif self._chunks is not None:
            self._chunks.append(message.get("body", b""))
            if not message.get("more_body", False):
                self._tell_body()
        return message

    def _tell_body(self, **rest: bool) -> None:
        """Tell a body that was streamed: what came of it until it was whole, or unwanted."""
        if self._chunks is not None:
            body, self._chunks = b"".join(self._chunks), None
            facts = {**self._recorder.body(body), **rest}
            self._recorder.soon(lambda: self._recorder.follow("body", self._number, **facts))

    async def send(self, message: Any) -> None:
        """Pass on what the Worker answers."""
        self._answer.take(message)
        if self._answer.ended:
            self._tell()
        await self._usual_send(message)

    def page(self, page: Page) -> None:
        """The server answers in the place of the Worker."""
        headers = [(b"content-type", page.content_type.encode())]
        self._answer.take(
            {"type": "http.response.start", "status": page.status, "headers": headers}
        )
        self._answer.take({"type": "http.response.body", "body": page.body})
        self._tell()

    def over(self) -> None:
        """Nothing more comes: where the answer broke off, tell what there was."""
        self._tell_body(open=True)
        if self._answer.status is not None:
            self._tell()

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            self._recorder.follow("response", self._number, **self._answer.facts(self._recorder))


class ActionWatch:
    """A request for a control page; its body is read before anybody is asked."""

    def __init__(self, recorder: Recorder, scope: Scope, receive: Receive, send: Send) -> None:
        self._recorder = recorder
        self._scope = scope
        self._usual_receive = receive
        self._usual_send = send
        self._messages: list[Any] = []
        self._answer = _Answer()
        self._asked = False
        self._number = 0

    async def read(self) -> None:
        """Read the body; one that is too large is refused, and not recorded."""
        size, more = 0, True
        while more:
            message = await self._usual_receive()
            self._messages.append(message)
            size += len(message.get("body", b""))
            if message["type"] != "http.request" or size > _MOST_KEPT:
                return
            more = message.get("more_body", False)
        body = b"".join(message.get("body", b"") for message in self._messages)
        self._asked = True
        self._recorder.soon(lambda: self._begin(body))

    def _begin(self, body: bytes) -> None:
        scope, recorder = self._scope, self._recorder
        query = recorder.query(scope.get("query_string", b"").decode("latin-1"))
        raw = scope.get("raw_path")
        path = raw.partition(b"?")[0].decode("latin-1") if raw else scope["path"]
        pairs = [
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in scope["headers"]
        ]
        self._number = recorder.begin(
            "action",
            method=scope["method"],
            path=recorder.masker(path),
            query=query,
            headers=recorder.headers(pairs),
            **recorder.body(body),
        )

    async def receive(self) -> Any:
        """Pass on what was read, and what comes after."""
        return self._messages.pop(0) if self._messages else await self._usual_receive()

    async def send(self, message: Any) -> None:
        """Pass on the answer."""
        self._answer.take(message)
        if self._answer.ended and self._asked:
            facts = self._answer.facts(self._recorder)
            # Later, where what is refused was refused before the simulation had its turn.
            tell = self._recorder.soon if not self._number else _now
            tell(lambda: self._recorder.follow("response", self._number, **facts))
        await self._usual_send(message)


class SocketWatch:
    """A WebSocket connection to a Worker."""

    def __init__(self, recorder: Recorder, receive: Receive, send: Send) -> None:
        self._recorder = recorder
        self._usual_receive = receive
        self._usual_send = send
        self._number = 0
        self._begun = self._ended = False
        self._refusal = _Answer()

    def begin(self, worker: str, request: WebRequest) -> None:
        """It is about to be dispatched."""
        self._begun = True
        self._recorder.soon(lambda: self._begin(worker, request))

    def _begin(self, worker: str, request: WebRequest) -> None:
        recorder = self._recorder
        recorder.masker.meet(request.headers)
        self._number = recorder.begin(
            "socket",
            worker=worker,
            url=recorder.masker(request.url),
            headers=recorder.headers(request.headers),
        )

    async def receive(self) -> Any:
        """Pass on what the client sends."""
        message = await self._usual_receive()
        if message["type"] == "websocket.receive":
            text = message.get("text")
            self._tell("message", **self._data(message["bytes"] if text is None else text))
        elif message["type"] == "websocket.disconnect" and not self._ended:
            self._ended = True
            code = message.get("code", _NO_CODE)
            self._tell("close", code=code, reason=message.get("reason") or "")
        return message

    async def send(self, message: Any) -> None:
        """Pass on what the Worker sends."""
        match message["type"]:
            case "websocket.accept":
                self._recorder.follow("response", self._number, status=_OPENED)
            case "websocket.send":
                text = message.get("text")
                self._recorder.follow(
                    "sent", self._number, **self._data(message["bytes"] if text is None else text)
                )
            case "websocket.close":
                self._ended = True
                told = {"code": message["code"], "reason": message.get("reason", "")}
                self._recorder.follow("closed", self._number, **told)
            case _:
                self._refusal.take(message)
                if self._refusal.ended and self._number:
                    facts = self._refusal.facts(self._recorder)
                    self._recorder.follow("response", self._number, **facts)
        await self._usual_send(message)

    def _data(self, message: str | bytes) -> dict[str, Any]:
        """A message as an entry has it: text, or bytes, which may be UTF-8 too."""
        if isinstance(message, str):
            return {"text": self._recorder.masker(message)}
        return {"bytes": body_to_json(self._recorder.masker.octets(message))}

    def _tell(self, kind: str, **facts: Any) -> None:
        if self._begun:
            self._recorder.soon(lambda: self._recorder.follow(kind, self._number, **facts))


def _now(write: Callable[[], None]) -> None:
    write()
