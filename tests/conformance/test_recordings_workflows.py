"""Workflows against recordings of the real local runtime.

Each recorded JavaScript Worker has a Python twin in `fixtures/workers/recorded_workflows`, driven
here as it was there, in both profiles. What is compared, and how, says `comparer.py`; what differs,
and why, `deviations.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from comparer import BOTH, START, expected, flat, mismatches, names, normalised, recording
from deviations import DEVIATIONS
from driving import Run, record_into
from workflow_twins import TWINS, config

from emulator import Emulator

if TYPE_CHECKING:
    import respx
    from comparer import Observation

pytestmark = [pytest.mark.asyncio, pytest.mark.respx(assert_all_called=False)]


async def observe(recorded: dict[str, Any], profile: Any, router: respx.MockRouter) -> Observation:
    twin = TWINS[recorded["name"]]
    async with Emulator(config(recorded, twin), profile=profile) as emulator:
        run = Run(emulator, recorded["name"], record_into(router, emulator))
        return run.observation(await twin.drive(run))


def times_of(result: Any) -> tuple[float, ...]:
    """The times in a result, in order."""
    fields = {key: value for key, value in flat(result).items() if isinstance(value, (int, float))}
    return tuple(
        value for key, value in fields.items() if key.rpartition(".")[2] in ("t", "resumed")
    )


def dates_of(seen: dict[str, Any]) -> tuple[float, ...]:
    """The Dates of the run, in seconds since its start, each once."""
    texts = [value for key, value in flat(seen).items() if key.endswith(".v")]
    moments = [datetime.fromisoformat(text) for text in texts if str(text).startswith("2026")]
    return tuple(dict.fromkeys(round(moment.timestamp() - START, 6) for moment in moments))


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("name", names("wf_*"))
async def test_the_twin_does_what_was_recorded(
    name: str, profile: Any, respx_mock: respx.MockRouter
) -> None:
    recorded, twin = recording(name), TWINS[name]
    seen = (await observe(recorded, profile, respx_mock)).as_recorded()
    theirs = expected(recorded, profile, DEVIATIONS[name])
    assert mismatches(flat(normalised(seen)), theirs) == []
    # Our times are exact.
    at, ends = twin.ideal(profile)
    assert tuple(event["t"] for event in seen["events"]) == at
    assert times_of(seen["result"]) == ends
    assert dates_of(seen) == twin.dates


async def test_every_recording_has_a_twin_and_every_twin_a_recording() -> None:
    assert set(TWINS) == set(names("wf_*"))
