"""Queues against recordings of the real local runtime.

Each recorded JavaScript Worker has a Python twin in `fixtures/workers/recorded_queues`, driven here
as it was there, in both profiles. What is compared, and how, says `comparer.py`; what differs, and
why, `deviations.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from comparer import (
    BOTH,
    START,
    Observation,
    expected,
    flat,
    mismatches,
    names,
    normalised,
    recording,
    sent_times,
)
from deviations import DEVIATIONS
from driving import Run, record_into
from queue_twins import (
    TWINS,
    TWINS_OF_PYTHON,
    Twin,
    about_queues,
    config_outcomes,
    config_recording,
    configs,
)

from emulator import Emulator

if TYPE_CHECKING:
    import respx

pytestmark = [pytest.mark.asyncio, pytest.mark.respx(assert_all_called=False)]

# Both are compared in tests of their own.
APART = {"queue_config_errors", "queue_direct_dispatch_results"}


async def observe(
    recorded: dict[str, Any], twin: Twin, profile: Any, router: respx.MockRouter
) -> tuple[Observation, list[str]]:
    """Drive a twin; returns what was seen, and the calls that it was warned of."""
    async with Emulator(configs(recorded, twin), profile=profile) as emulator:
        run = Run(emulator, recorded["name"], record_into(router, emulator))
        seen = run.observation(await twin.drive(run))
        warnings = [log.text for log in emulator.logs if log.text.startswith("Received a call")]
        return seen, warnings


def assert_as_recorded(
    recorded: dict[str, Any], twin: Twin, profile: Any, seen: Observation, warnings: list[str]
) -> None:
    raw = seen.as_recorded()
    # The warnings name messages; last, so that they do not decide how these are called.
    ours = normalised(raw | {"runtime_logs": seen.logs + warnings})
    told = ours["runtime_logs"][len(seen.logs) :]
    del ours["runtime_logs"][len(seen.logs) :]
    deviations = DEVIATIONS[recorded["name"]]
    assert mismatches(flat(ours), expected(recorded, profile, deviations)) == []
    # Our times are exact.
    assert tuple(event["t"] for event in ours["events"]) == twin.ideal(profile)
    for body, at in sent_times(ours).items():
        assert at == twin.sent.get(body, 0), body
    assert dates_of(raw.get("result")) == twin.dates
    assert told == list(map(warning, twin.ignored))


def warning(ignored: str) -> str:
    """The runtime's text about a call in vain, such as `ack() on message ID1 after retry()`."""
    call, _, earlier = ignored.partition(" after ")
    verb, _, message = call.partition(" on message ")
    again = f"{verb} on a message" if message else verb
    return (
        f"Received a call to {ignored} was already called. "
        f"Calling {again} after calling {earlier} has no effect."
    )


def dates_of(result: Any) -> tuple[float, ...]:
    """The Dates in a result, in seconds since the start, each once."""
    texts = [value for key, value in flat(result).items() if key.endswith(".v")]
    moments = [datetime.fromisoformat(text).timestamp() - START for text in texts]
    return tuple(dict.fromkeys(moments))


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("name", [name for name in names("queue_*") if name not in APART])
async def test_the_twin_does_what_was_recorded(
    name: str, profile: Any, respx_mock: respx.MockRouter
) -> None:
    recorded, twin = recording(name), TWINS[name]
    seen, warnings = await observe(recorded, twin, profile, respx_mock)
    assert_as_recorded(recorded, twin, profile, seen, warnings)


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("name", list(TWINS_OF_PYTHON))
async def test_what_was_recorded_of_python_is_so_here(
    name: str, profile: Any, respx_mock: respx.MockRouter
) -> None:
    recorded, twin = about_queues(recording(name)), TWINS_OF_PYTHON[name]
    seen, warnings = await observe(recorded, twin, profile, respx_mock)
    assert_as_recorded(recorded, twin, profile, seen, warnings)


@pytest.mark.parametrize("profile", BOTH)
async def test_a_batch_dispatched_directly_comes_to_what_was_recorded(
    profile: Any, respx_mock: respx.MockRouter
) -> None:
    """Queues 2.9: every combination of calls, and its result."""
    recorded = recording("queue_direct_dispatch_results")
    twin = TWINS["queue_direct_dispatch_results"]
    seen, warnings = await observe(recorded, twin, profile, respx_mock)
    assert len(seen.result) == 27
    assert_as_recorded(recorded, twin, profile, seen, warnings)


@pytest.mark.parametrize("profile", BOTH)
async def test_settings_are_refused_as_was_recorded(profile: Any) -> None:
    """Queues 3.1, 4.6, 4.8; our text says more, and quotes the platform's."""
    recorded = recording("queue_config_errors")
    ours = Observation(result=config_outcomes(recorded, profile))
    deviations = DEVIATIONS["queue_config_errors"]
    theirs = expected(config_recording(recorded), profile, deviations)
    assert mismatches(flat(normalised(ours.as_recorded())), theirs) == []


async def test_every_recording_has_a_twin_and_every_twin_a_recording() -> None:
    assert {*TWINS, "queue_config_errors"} == set(names("queue_*"))
    assert set(TWINS_OF_PYTHON) == {"py_ffi_probe_workerd2024"}
