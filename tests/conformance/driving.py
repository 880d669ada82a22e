"""How the recordings' Workers were driven, for their twins."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
from comparer import START, Observation, broker_lines

from emulator import NotSettled, ReplyLost

if TYPE_CHECKING:
    import respx

    from emulator import Emulator


@dataclass
class Run:
    """One twin at work; the methods have the names of the recordings' `drive`."""

    emulator: Emulator
    name: str
    events: list[dict[str, Any]]

    def elapsed(self) -> float:
        """Virtual seconds since the start."""
        return round(self.emulator.now.timestamp() - START, 6)

    async def call(self, path: str, body: Any = None) -> Any:
        """Post JSON to the Worker, or get a path; returns its answer."""
        options = {} if body is None else {"method": "POST", "json": body}
        answer = await self.emulator.fetch(path, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def send(self, *bodies: Any) -> Any:
        """One message per body, in one request."""
        return await self.call("/send", [{"body": body} for body in bodies])

    async def three(self, wait: float) -> None:
        """The bodies a, b and c in one `sendBatch`, and then some time."""
        await self.call("/batch", {"msgs": [{"body": body} for body in "abc"]})
        await self.sleep(wait)

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.emulator.advance(seconds)

    async def raw(self, path: str = "", **options: Any) -> dict[str, Any]:
        """A request, and what the recordings keep of its answer."""
        try:
            answer = await self.emulator.fetch(f"/{self.name}{path}", **options)
        except ReplyLost:
            return {"neterr": "ECONNRESET"}
        headers = {"content-type": answer.headers["content-type"]}
        return {"status": answer.status_code, "headers": headers, "body": answer.text}

    async def answer_then_wait(self, wait: float = 1.2) -> dict[str, Any]:
        """A request, and then some time."""
        response = await self.raw(advance=False)
        at = self.elapsed()
        await self.sleep(wait)
        return {"response_at": at, "response": response}

    async def op(self, op: str, **asked: Any) -> Any:
        """One operation on Workflows in the Worker; returns its result, or its error."""
        return await self.call("/op", {"op": op, **asked})

    async def done(self, id: str, limit: float = 20) -> dict[str, Any]:
        """Wait until an instance has ended, or no longer; returns when, and its status."""

        def ended() -> bool:
            (workflow,) = self.emulator.workflows.values()
            (instance,) = (one for one in workflow.instances if one.id == id)
            return instance.status in ("complete", "errored", "terminated")

        end = self.elapsed() + limit
        try:
            await self.emulator.run_until(ended, limit)
        except NotSettled:
            # If nothing is pending time stands still; the recordings' went on.
            await self.sleep(end - self.elapsed())
        return {"t": self.elapsed(), "status": await self.op("status", id=id)}

    def observation(self, result: Any) -> Observation:
        """All that was seen, once the drive has returned this."""
        return Observation(self.events, result, broker_lines(self.emulator.logs))


def record_into(router: respx.MockRouter, emulator: Emulator) -> list[dict[str, Any]]:
    """Let `http://rec.test/` note what it is told, JSON or a bare kind, and when."""
    events: list[dict[str, Any]] = []

    def note(request: httpx.Request) -> httpx.Response:
        text = request.content.decode()
        told = json.loads(text) if text.startswith("{") else {"kind": text}
        events.append({"t": round(emulator.now.timestamp() - START, 6), **told})
        return httpx.Response(204)

    router.post("http://rec.test/").mock(side_effect=note)
    return events
