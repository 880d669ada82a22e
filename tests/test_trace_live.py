"""A trace that is followed while it grows has seen every event, however it was written down."""

from __future__ import annotations

from workers import Response, WorkerEntrypoint

from emulator import Emulator
from emulator.trace.live import LiveTrace


class Worker(WorkerEntrypoint):
    async def fetch(self, request):  # type: ignore[no-untyped-def]
        return Response(await request.text())


def test_events_that_the_emulator_records_are_counted_and_followed() -> None:
    with Emulator({"main": Worker}, history=3) as emulator:
        trace = emulator.trace
        assert isinstance(trace, LiveTrace)
        for _ in range(4):
            emulator.run(emulator.fetch("/"))
        assert trace.total == 8
        assert [number for number, _ in trace.since(5)] == [6, 7, 8]
        assert [event.kind for _, event in trace.since(6)] == ["request", "response"]


def test_a_large_payload_is_left_out() -> None:
    with Emulator({"main": Worker}, history=10) as emulator:
        emulator.run(emulator.fetch("/", method="POST", content="x" * 70_000))
        (request, response) = emulator.trace
        assert b"left out" in request.data["body"].data
        assert b"left out" in response.data["body"].data
