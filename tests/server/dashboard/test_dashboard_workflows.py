"""The view of Workflows, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dashboard_browser import Dashboard

pytestmark = pytest.mark.asyncio(loop_scope="module")

ADA = "workflows/onboarding/ada"


async def started(dashboard: Dashboard, *, place: str = ADA) -> Any:
    """An instance, as far as it comes without time passing."""
    instance = await dashboard.emulator.workflows["onboarding"].create("ada", {"user": "ada"})
    await dashboard.open(place)
    return instance


async def test_instances_are_listed_and_found(dashboard: Dashboard) -> None:
    flow = dashboard.emulator.workflows["onboarding"]
    await flow.create_batch([{"id": f"user-{number}"} for number in range(1, 4)])
    await (await flow.get("user-2")).terminate()
    await dashboard.open("workflows")
    await dashboard.sees("onboarding", "terminated 1")
    await dashboard.page.get_by_role("link", name="onboarding").click()
    await dashboard.sees("user-1", "user-2", "user-3")
    await dashboard.page.select_option("[name=status]", "terminated")
    await dashboard.misses("user-1")
    await dashboard.sees("user-2")


async def test_instance_is_created_by_hand(dashboard: Dashboard) -> None:
    await dashboard.open("workflows/onboarding")
    await dashboard.unfold("Create an instance")
    await dashboard.page.fill("form [name=id]", "ada")
    await dashboard.page.fill("[name=params]", '{"user": "ada"}')
    await dashboard.push("Create")
    await dashboard.sees("ada is created.", "charge")
    (instance,) = dashboard.emulator.workflows["onboarding"].instances
    assert instance.id == "ada"


async def test_steps_are_shown_with_attempts_sleeps_and_waits(dashboard: Dashboard) -> None:
    await started(dashboard)
    await dashboard.sees("charge", "ValueError: card declined", "tries again in 1 min")
    await dashboard.emulator.advance("1 minute")
    await dashboard.sees('"paid": true', "trial", "sleeping", "wakes in 3 d")
    assert await dashboard.page.locator(".attempts li").count() == 2
    await dashboard.emulator.advance("3 days")
    await dashboard.sees("approval", "waitForEvent", "times out in 1 d")
    assert await dashboard.page.locator(".track .bar.ahead").count() == 1


async def test_event_is_sent_by_hand_and_the_output_shown(dashboard: Dashboard) -> None:
    instance = await started(dashboard)
    await dashboard.emulator.advance("4 days")
    await dashboard.unfold("Send an event")
    await dashboard.page.fill("[name=type]", "approved")
    await dashboard.page.fill("[name=payload]", '{"by": "bob"}')
    await dashboard.push("Send event")
    await dashboard.sees('"welcome"', '"by": "bob"', "The event approved is sent.")
    assert instance.status == "complete"


async def test_instance_is_paused_and_resumed(dashboard: Dashboard) -> None:
    instance = await started(dashboard)
    await dashboard.emulator.advance("1 minute")
    await dashboard.push("Pause")
    await dashboard.sees("It is being paused.", "paused")
    assert instance.status == "paused"
    await dashboard.push("Resume")
    await dashboard.sees("It goes on.")
    assert instance.status in ("running", "waiting", "queued")


@pytest.mark.parametrize("verb", ["Terminate", "Terminate and roll back"])
async def test_terminate_asks_first(dashboard: Dashboard, verb: str) -> None:
    instance = await started(dashboard)
    await dashboard.push(verb, sure="Cancel")
    assert instance.status != "terminated"
    await dashboard.push(verb, sure="Terminate")
    await dashboard.sees("It is terminated.", "terminated")
    assert instance.status == "terminated"


async def test_instance_is_restarted_from_a_step(dashboard: Dashboard) -> None:
    instance = await started(dashboard)
    await dashboard.emulator.advance("4 days")
    assert [step.name for step in instance.steps] == ["charge", "trial", "approval"]
    await dashboard.push("Restart from trial", sure="Restart")
    await dashboard.sees("It runs again from trial.")
    assert [step.name for step in instance.steps] == ["charge", "trial"]
    assert instance.steps[0].attempts == 2
    await dashboard.push("Restart", sure="Restart")
    await dashboard.sees("It starts again.")
    assert [step.name for step in instance.steps] == ["charge"]
    assert instance.steps[0].attempts == 1


async def test_instance_is_deleted(dashboard: Dashboard) -> None:
    await started(dashboard)
    dashboard.refusals = True  # it may be asked for once more before the page has gone on
    await dashboard.push("Delete", sure="Delete")
    await dashboard.sees("ada is deleted.", "No instances.")
    assert dashboard.emulator.workflows["onboarding"].instances == []


async def test_error_of_an_instance_is_shown(dashboard: Dashboard) -> None:
    instance = await started(dashboard)
    await dashboard.emulator.advance("5 days")
    assert instance.error is not None
    await dashboard.sees(f"{instance.error.name}: {instance.error.message}")
    await dashboard.unfold("History")
    await dashboard.sees("WORKFLOW_FAILURE")


async def test_what_does_not_exist_is_said(dashboard: Dashboard) -> None:
    dashboard.refusals = True
    await dashboard.open("workflows/onboarding/nobody")
    await dashboard.sees("there is no instance 'nobody' of onboarding")
    await dashboard.go("workflows/no-such-flow")
    await dashboard.sees("onboarding")
