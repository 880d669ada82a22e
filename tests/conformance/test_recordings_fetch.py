"""Fetch and waitUntil against recordings of the real local runtime.

Each recorded JavaScript Worker has a Python twin in `fixtures/workers`, driven here as it was
there, in both profiles. What is compared, and how, says `comparer.py`; what differs, and why,
`deviations.py`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from comparer import (
    ABSENT,
    BOTH,
    FIXTURES,
    Observation,
    expected,
    flat,
    mismatches,
    names,
    normalised,
    recording,
)
from deviations import DEVIATIONS
from driving import Run, record_into

from emulator import Emulator, Stuck

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import respx

pytestmark = [pytest.mark.asyncio, pytest.mark.respx(assert_all_called=False)]

WORKER = FIXTURES / "workers" / "recorded_fetch"
GLOBAL_HANDLERS = FIXTURES / "workers" / "recorded_global_handlers"


async def _import_waituntil(run: Run) -> Any:
    return (await run.answer_then_wait(0.9))["response"]


async def _client_disconnect(run: Run) -> Any:
    request = asyncio.ensure_future(run.raw(advance=False))
    await run.sleep(0.3)
    request.cancel()
    await run.sleep(1.5)
    return ABSENT


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
# The exact times of the events, where there are any.
IDEALS: dict[str, tuple[float, ...]] = {
    "wu_basic": (0, 0.6),
    "wu_client_disconnect": (0, 0.6, 0.8),
    "wu_dangling_with_other_waituntil": (0.3, 0.8),
    "wu_error": (0.5,),
    "wu_handler_throws_after_waituntil": (0.4,),
    "wu_import_waituntil": (0.3,),
    "wu_multiple": (0.1, 0.3, 0.5),
}


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("name", names("wu_*"))
async def test_the_twin_does_what_was_recorded(
    name: str, profile: Any, respx_mock: respx.MockRouter
) -> None:
    main = {"main": str(WORKER / "src" / "no_fetch.py")}
    config = main if name == "wu_no_fetch_handler" else WORKER / "wrangler.jsonc"
    async with Emulator(config, profile=profile) as emulator:
        run = Run(emulator, name, record_into(respx_mock, emulator))
        drive: Callable[[Run], Awaitable[Any]] = DRIVES.get(name) or Run.answer_then_wait
        seen = run.observation(await drive(run))
    ours = normalised(seen.as_recorded())
    theirs = expected(recording(name), profile, DEVIATIONS[name])
    assert mismatches(flat(ours), theirs) == []
    # Our times are exact.
    assert tuple(event["t"] for event in seen.events) == IDEALS.get(name, ())
    if isinstance(seen.result, dict) and "response_at" in seen.result:
        assert seen.result["response_at"] == 0


@pytest.mark.parametrize("profile", BOTH)
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
    ours = flat(normalised(Observation(result=result).as_recorded()))
    assert mismatches(ours, expected(theirs, profile, DEVIATIONS[theirs["name"]])) == []
