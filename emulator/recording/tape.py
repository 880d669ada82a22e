"""What the outside answered: recorded, and played back.

A replay calls nobody. Each outbound request that really left is in the recording with its answer:
status, headers, body, and the time it took. Played back is the first answer, not given yet, to a
request of the same method and URL, one with the same body before others. A request that was not
recorded is refused: with an `OutboundDenied` that names it, and a finding, as anywhere else.

After the recording's end there may be work left, which the server was stopped before; what that
asks the outside is refused too, and told, but held against nobody.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, Final

import httpx

from emulator.bindings.decoded import OF_ENCODING
from emulator.bindings.network import NoWayOut

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from emulator.recording.entries import Outgoing
    from emulator.recording.masking import Filler
    from emulator.recording.recorder import Recorder
    from emulator.secrets import Masker

_MICROSECONDS: Final = 1_000_000
ERRORS: Final = (
    *(httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.ReadTimeout),
    *(httpx.WriteError, httpx.RemoteProtocolError, httpx.LocalProtocolError),
    *(httpx.UnsupportedProtocol, httpx.DecodingError),
)
"""Failures of a network that a recording knows by name; of any other kind it is the first."""

_ENCODINGS: Final = (b"content-encoding",)


class Tape:
    """Records the exchanges of one emulator with the outside."""

    ended = False

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    async def exchange(
        self, request: httpx.Request, real: Callable[[], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        """Let a request leave, and record it with its answer."""
        recorder = self._recorder
        kernel = recorder.kernel
        number = recorder.begin(
            "outbound",
            method=request.method,
            url=recorder.masker(str(request.url)),
            **digest(request, recorder.masker),
        )
        begun = kernel.now
        try:
            response = await real()
        except NoWayOut:
            raise  # denied here, and at a replay
        except httpx.HTTPError as error:
            told = {"name": type(error).__name__, "text": recorder.masker(str(error))}
            recorder.follow("answer", number, took=kernel.now - begun, error=told)
            raise
        took = kernel.now - begun
        recorder.masker.meet(response.headers.multi_items())

        def tell(body: bytes, *, cut: bool) -> None:
            facts: dict[str, Any] = {"cut": True} if cut else {}
            recorder.follow(
                "answer",
                number,
                took=took,
                status=response.status_code,
                headers=recorder.headers(response.headers.multi_items()),
                **recorder.body(body),
                **facts,
            )

        _listen(response, tell)
        return response

    def missing(self, method: str, url: str) -> str | None:
        """Nothing is missing while it is recorded."""
        return None


def _listen(response: httpx.Response, tell: Callable[..., None]) -> None:
    """Let `tell` know the decoded body when it has been read, or is wanted no more."""
    if response.is_closed and hasattr(response, "_content"):
        tell(response.content, cut=False)
        return
    response.stream = _Heard(response, tell)


class _Heard(httpx.AsyncByteStream):
    """The body of an answer on its way in, remembered."""

    def __init__(self, response: httpx.Response, tell: Callable[..., None]) -> None:
        self._usual: Any = response.stream
        self._response = response
        self._tell = tell
        self._chunks: list[bytes] = []
        self._whole = self._told = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._usual:
            self._chunks.append(chunk)
            yield chunk
        self._whole = True
        self._say()

    async def aclose(self) -> None:
        await self._usual.aclose()
        self._say()

    def _say(self) -> None:
        if self._told:
            return
        self._told = True
        raw = b"".join(self._chunks)
        try:
            kept = [pair for pair in self._response.headers.raw if pair[0].lower() in _ENCODINGS]
            body = httpx.Response(200, headers=kept, content=raw).content
        except httpx.DecodingError:
            body = raw
        self._tell(body, cut=not self._whole)


class Player:
    """Plays back what the outside answered, in the emulator of a replay."""

    def __init__(
        self, outgoing: Iterable[Outgoing], masker: Masker, fill: Filler, *, repeats: bool = False
    ) -> None:
        # Whether what is asked once more gets its answer once more, and what had it so far.
        self._repeats = repeats
        self._given: dict[tuple[str, str, str], Outgoing] = {}
        self.repeated: list[str] = []
        self._left: dict[tuple[str, str], list[Outgoing]] = {}
        for one in outgoing:
            self._left.setdefault((one.method, one.url), []).append(one)
        self._masker = masker
        self._fill = fill
        # Whether the recording is over, and what was asked after that.
        self.ended = False
        self.late: list[str] = []

    @property
    def unused(self) -> list[tuple[int, str]]:
        """What the outside was asked then, and is not now, with its number."""
        left = [one for many in self._left.values() for one in many]
        ordered = sorted(left, key=lambda one: one.number)
        return [(one.number, f"{one.method} {one.url}") for one in ordered]

    async def exchange(
        self, request: httpx.Request, real: Callable[[], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        """Answer as the outside did, when it did; raises httpx's errors, and `NoWayOut`."""
        key = (request.method, self._masker(str(request.url)))
        found = self._found(key, digest(request, self._masker).get("digest", ""))
        if found is None:
            if self.ended:
                self.late.append(" ".join(key))
            raise NoWayOut
        if found.status is None and found.error is None:
            # It had not come when the recording, or the server, ended.
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
        if found.took:
            await asyncio.sleep(found.took / _MICROSECONDS)
        return self._answer(found, request)

    def _found(self, key: tuple[str, str], body: str) -> Outgoing | None:
        """Return what answers a request now; one to the same body goes before others."""
        left = self._left.get(key, [])
        found = next((one for one in left if one.digest == body), None)
        if found is None and self._repeats and (*key, body) in self._given:
            self.repeated.append(" ".join(key))
            return self._given[(*key, body)]
        if found is None and left:
            found = left[0]
        if found is not None:
            left.remove(found)
            self._given[(*key, body)] = found
        return found

    def _answer(self, found: Outgoing, request: httpx.Request) -> httpx.Response:
        if found.error is not None:
            name, text = found.error
            kind = next((kind for kind in ERRORS if kind.__name__ == name), httpx.ConnectError)
            raise kind(text, request=request)
        assert found.status is not None, "one without an answer was waited for"
        if found.missing:
            text = f"the answer to {found.method} {found.url} is {found.missing}"
            raise httpx.ReadError(text, request=request)
        headers = [pair for pair in found.headers if pair[0].lower() not in OF_ENCODING]
        kind_of_body = dict(found.headers).get("content-type", "")
        content = self._fill.body(found.body, kind_of_body)
        filled = self._fill.headers(headers)
        return httpx.Response(found.status, headers=filled, content=content, request=request)

    def missing(self, method: str, url: str) -> str | None:
        """Return what to tell of a request that nothing answers."""
        return (
            f"{method} {url} is not in the recording, or was asked more often than there, and a "
            "replay sends nothing: record again, or write a test with a mock of it (--as-test)"
        )


def digest(request: httpx.Request, masker: Masker) -> dict[str, str]:
    """Return the digest of a request's body, by which requests to one URL are told apart."""
    try:
        content = request.content
    except httpx.StreamError:
        return {}
    if not content:
        return {}
    return {"digest": hashlib.sha256(masker.octets(content)).hexdigest()[:16]}
