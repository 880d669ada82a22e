"""Fetch and waitUntil against recordings of the real local runtime.

Each recorded JavaScript Worker has a Python twin in `fixtures/workers`, driven here as it was
there. What was observed is compared value by value, in both profiles; where the emulator differs
on purpose, `DIFFERENCES` says what it does instead, and why.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest

from emulator import Emulator, ReplyLost, Stuck

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import respx

pytestmark = pytest.mark.asyncio

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
WORKER = FIXTURES / "workers" / "recorded_fetch"
GLOBAL_HANDLERS = FIXTURES / "workers" / "recorded_global_handlers"
# Recorded times are real ones.
NOISE = 0.3
BOTH = ("production", "miniflare")


class Difference(NamedTuple):
    """Where the emulator is not as recorded: `ours` instead, in these profiles, for a reason."""

    recording: str
    where: str
    ours: object
    reason: str
    profiles: tuple[str, ...] = BOTH


_TRACEBACK = (
    "an exception of Python reaches the runtime as a PythonError with its traceback (recorded for "
    "Python in the 2024 runtime); the recording is of a JavaScript Worker"
)
_STUCK = (
    "the runtime ends a request that can never be answered after a while of real time; a test is "
    "better served by an error that names the line the handler waits on"
)
_ORIGIN = (
    "what answers after passThroughOnException is the zone's origin; where a test mocks none, the "
    "handler's error is answered and the unmocked request is a finding"
)
_BOOM = "Error: PythonError: Traceback\nValueError: {}"

DIFFERENCES = (
    Difference("wu_handler_throws", "result.raw.body", _BOOM.format("handler boom"), _TRACEBACK),
    Difference(
        "wu_handler_throws", "result.dispatchFetch.text", _BOOM.format("handler boom"), _TRACEBACK
    ),
    Difference(
        "wu_handler_throws", "result.html_head.body", _BOOM.format("handler boom"), _TRACEBACK
    ),
    Difference(
        "wu_handler_throws_after_waituntil",
        "result.response.body",
        _BOOM.format("handler boom"),
        _TRACEBACK,
    ),
    Difference("wu_handler_returns_nonresponse", "result./never", "Stuck", _STUCK, ("production",)),
    Difference(
        "wu_pass_through_on_exception",
        "result.raw",
        {"status": 500, "body": _BOOM.format("boom"), "type": "text/plain;charset=UTF-8"},
        _ORIGIN,
        ("production",),
    ),
)


# -- what is compared ------------------------------------------------------------------------------


def normalised(value: Any) -> Any:
    """A recorded value without what depends on the machine, the tool or the language."""
    if isinstance(value, list):
        return [normalised(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "headers" in value and "body" in value:
        return _answer(value["status"], value["headers"]["content-type"], value["body"])
    if "ct" in value:
        return _answer(value["status"], value["ct"], value["body"])
    if "text" in value and "status" in value:
        return {**value, "text": _first_line(value["text"])}
    return {key: normalised(item) for key, item in value.items()}


def _answer(status: int, kind: str, body: str) -> dict[str, Any]:
    content = json.loads(body) if kind == "application/json" else _first_line(body)
    return {"status": status, "type": kind, "body": content}


def _first_line(text: str) -> str:
    """An error text without its stack, of JavaScript or of Python."""
    lines = text.split("\n")
    if lines[0].endswith("Traceback (most recent call last):"):
        return f"{lines[0].removesuffix(' (most recent call last):')}\n{lines[-1]}"
    return lines[0]


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """A nested value as one level: `result.response.status` → 200."""
    if isinstance(value, dict) and value:
        items: Any = value.items()
    elif isinstance(value, list) and value:
        items = enumerate(value)
    else:
        return {path: value}
    found = {}
    for key, item in items:
        found.update(flat(item, f"{path}.{key}" if path else str(key)))
    return found


def expected(recording: dict[str, Any], profile: str) -> dict[str, Any]:
    """What the emulator has to show: the recorded values, but for the differences."""
    values = flat(normalised(recording["observed"]))
    values.pop("runtime_logs", None)
    for difference in DIFFERENCES:
        if difference.recording == recording["name"] and profile in difference.profiles:
            where = difference.where
            known = [key for key in values if key == where or key.startswith(f"{where}.")]
            assert known, f"{where} is not in the recording"
            for key in known:
                del values[key]
            values.update(flat(difference.ours, where))
    return values


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Compare value by value; times may differ by the recording's noise."""
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        if key.rpartition(".")[2] in ("t", "response_at"):
            assert ours[key] == pytest.approx(value, abs=NOISE), key
        else:
            assert ours[key] == value, key


# -- how a recording was driven --------------------------------------------------------------------


@dataclass
class Run:
    """One twin at work."""

    emulator: Emulator
    name: str
    events: list[dict[str, Any]]

    def elapsed(self) -> float:
        """Virtual seconds since the start."""
        return (self.emulator.now.timestamp()) - 1_767_225_600

    async def raw(self, path: str = "", **options: Any) -> dict[str, Any]:
        """A request, and what the recordings keep of its answer."""
        try:
            answer = await self.emulator.fetch(f"/{self.name}{path}", **options)
        except ReplyLost:
            return {"neterr": "ECONNRESET"}
        return _answer(answer.status_code, answer.headers["content-type"], answer.text)

    async def answer_then_wait(self, wait: float = 1.2) -> dict[str, Any]:
        """The drive of most: a request, and then some time."""
        response = await self.raw(advance=False)
        at = self.elapsed()
        await self.emulator.advance(wait)
        return {"response_at": at, "response": response}


async def _import_waituntil(run: Run) -> Any:
    return (await run.answer_then_wait(0.9))["response"]


async def _client_disconnect(run: Run) -> None:
    request = asyncio.ensure_future(run.raw(advance=False))
    await run.emulator.advance(0.3)
    request.cancel()
    await run.emulator.advance(1.5)


async def _dispose(run: Run) -> Any:
    await run.raw()
    await run.emulator.aclose()
    return {"events_after": len(run.events)}


async def _nonresponse(run: Run) -> Any:
    seen: dict[str, Any] = {}
    for path in ("/undef", "/str", "/obj", "/never"):
        try:
            seen[path] = await run.raw(path)
        except Stuck:
            seen[path] = "Stuck"
    return seen


async def _throws(run: Run) -> Any:
    raw = await run.raw()
    again = await run.raw()
    html = await run.raw(headers={"accept": "text/html"})
    return {
        "raw": raw,
        "dispatchFetch": {"status": again["status"], "text": again["body"]},
        "html_head": html,
    }


async def _cross_request(run: Run) -> Any:
    return {"a": await run.raw("/a"), "b": await run.raw("/b")}


async def _raw(run: Run) -> Any:
    return {"raw": await run.raw()}


async def _bare(run: Run) -> Any:
    return await run.raw()


DRIVES: dict[str, Callable[[Run], Awaitable[Any]]] = {
    "wu_import_waituntil": _import_waituntil,
    "wu_client_disconnect": _client_disconnect,
    "wu_dispose_while_pending": _dispose,
    "wu_handler_returns_nonresponse": _nonresponse,
    "wu_handler_throws": _throws,
    "wu_io_cross_request": _cross_request,
    "wu_pass_through_on_exception": _raw,
    "wu_no_fetch_handler": _bare,
}


def record_into(router: respx.MockRouter, emulator: Emulator) -> list[dict[str, Any]]:
    """Let `http://rec.test/` note what it is told, and when."""
    events: list[dict[str, Any]] = []

    def note(request: httpx.Request) -> httpx.Response:
        at = emulator.now.timestamp() - 1_767_225_600
        events.append({"t": at, "kind": request.content.decode()})
        return httpx.Response(204)

    router.post("http://rec.test/").mock(side_effect=note)
    return events


def recording(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / "recordings" / f"{name}.json").read_text())
    return found


RECORDED = sorted(path.stem for path in (FIXTURES / "recordings").glob("wu_*.json"))


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.respx(assert_all_called=False)
async def test_the_twin_does_what_was_recorded(
    name: str, profile: Any, respx_mock: respx.MockRouter
) -> None:
    main = {"main": str(WORKER / "src" / "no_fetch.py")}
    config = main if name == "wu_no_fetch_handler" else WORKER / "wrangler.jsonc"
    async with Emulator(config, profile=profile) as emulator:
        run = Run(emulator, name, record_into(respx_mock, emulator))
        drive: Callable[[Run], Awaitable[Any]] = DRIVES.get(name) or Run.answer_then_wait
        result = await drive(run)
    ours = {"events": run.events, **({} if result is None else {"result": result})}
    assert_same(flat(ours), expected(recording(name), profile))


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.respx(assert_all_called=False)
async def test_the_twin_with_a_global_handler_does_what_was_recorded(
    profile: Any, respx_mock: respx.MockRouter
) -> None:
    theirs = recording("py_waituntil_workerd2024")
    result = {}
    async with Emulator(GLOBAL_HANDLERS / "wrangler.jsonc", profile=profile) as emulator:
        events = record_into(respx_mock, emulator)
        for path in theirs["observed"]["result"]:
            answer = await emulator.fetch(path)
            await emulator.advance(1)
            ran = path in [event["kind"] for event in events]
            result[path] = {"status": answer.status_code, "text": answer.text, "ran": ran}
    ours = flat({"result": result, "events": []})
    assert_same(ours, expected(theirs, profile))


async def test_every_difference_has_its_recording_and_its_reason() -> None:
    for difference in DIFFERENCES:
        assert (FIXTURES / "recordings" / f"{difference.recording}.json").exists()
        assert len(difference.reason) > 40
        assert set(difference.profiles) <= set(BOTH)
