"""The views of requests, findings, faults and the trace, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dashboard_browser import Dashboard

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_requests_are_shown_with_their_errors(dashboard: Dashboard) -> None:
    await dashboard.open("requests")
    await dashboard.sees("Nothing has run yet.")
    await dashboard.emulator.fetch("/welcome")
    await dashboard.emulator.fetch("/fail", method="POST")
    await dashboard.sees(
        "GET http://localhost/welcome", "POST http://localhost/fail", "ValueError: no such shop"
    )
    badges = await dashboard.page.locator(".badge").all_inner_texts()
    assert badges == ["500", "200"]
    await dashboard.page.get_by_role("link", name="Show only what failed").click()
    await dashboard.misses("/welcome")
    await dashboard.sees("/fail")


async def test_background_work_is_shown_with_its_errors(dashboard: Dashboard) -> None:
    await dashboard.emulator.fetch("/later")
    await dashboard.open("requests")
    await dashboard.page.get_by_role("link", name="Background work").click()
    await dashboard.sees("fetch GET /later", "failed", "RuntimeError: the mail server is away")
    await dashboard.page.get_by_role("link", name="Logs").click()
    await dashboard.sees("error", "the mail server is away")


async def test_findings_are_shown_with_line_and_meaning(dashboard: Dashboard) -> None:
    await dashboard.open("findings")
    await dashboard.sees("Nothing was found.")
    await dashboard.emulator.fetch("/later")
    await dashboard.sees("background_error", "src/entry.py:", "request GET /later")


async def test_fault_is_armed_at_a_site_that_was_met(dashboard: Dashboard) -> None:
    queue = dashboard.emulator.queues["jobs"]
    await queue.send("one")
    await dashboard.emulator.advance(5)
    await dashboard.open("faults")
    await dashboard.sees("batch.jobs", "No fault is planned.")
    site = dashboard.page.locator("tr", has_text="batch.jobs")
    await site.locator("select").select_option("lose_ack")
    await site.get_by_role("button", name="Arm").click()
    await dashboard.sees("Armed: batch.jobs#2:lose_ack", "armed")
    await queue.send("two")
    await dashboard.emulator.advance(5)
    await dashboard.sees("fired")
    assert [str(fault) for fault in dashboard.emulator.faults.fired] == ["batch.jobs#2:lose_ack"]
    assert queue.acked == 1
    await dashboard.push("Disarm all")
    await dashboard.sees("No fault is planned any more.")
    assert dashboard.emulator.faults.plan == ()


async def test_fault_takes_an_argument_and_an_occurrence(dashboard: Dashboard) -> None:
    await dashboard.emulator.queues["jobs"].send("one")
    await dashboard.open("faults?site=message.jobs")
    site = dashboard.page.locator("tr", has_text="message.jobs")
    await site.locator("select").select_option("delay")
    await site.locator("[name=argument]").fill("30 s")
    await site.locator("[name=occurrence]").fill("4")
    await site.get_by_role("button", name="Arm").click()
    await dashboard.sees("Armed: message.jobs#4:delay(30 s)")


async def test_plan_is_armed_as_text_and_refused_when_it_is_wrong(dashboard: Dashboard) -> None:
    await dashboard.open("faults")
    await dashboard.page.fill("[name=plan]", "send.jobs#1:fail; cron.shop#1:miss")
    await dashboard.page.press("[name=plan]", "Enter")
    await dashboard.sees("Armed: send.jobs#1:fail; cron.shop#1:miss")
    dashboard.refusals = True
    await dashboard.page.fill("[name=plan]", "send.jobs#1:explode")
    await dashboard.page.press("[name=plan]", "Enter")
    await dashboard.page.wait_for_selector(".said.bad")
    assert "explode" in await dashboard.text()
    assert len(dashboard.emulator.faults.plan) == 2


@pytest.mark.parametrize(
    ("verb", "sure", "kind"),
    [("Evict", "", "evict"), ("Crash", "Crash", "crash"), ("Restart", "Restart", "restart")],
)
async def test_all_workers_are_struck(
    dashboard: Dashboard, verb: str, sure: str, kind: str
) -> None:
    await dashboard.emulator.fetch("/")
    await dashboard.open("faults")
    await dashboard.push(verb, sure=sure)
    await dashboard.page.wait_for_selector(".said")
    assert kind in [event.kind for event in dashboard.emulator.trace]


async def test_trace_is_a_timeline_that_goes_on_when_asked(dashboard: Dashboard) -> None:
    await dashboard.emulator.fetch("/one")
    await dashboard.open("trace")
    frame = dashboard.page.frame_locator("iframe")
    await frame.locator(".lane", has_text="GET /one").wait_for()
    assert await frame.locator(".mark").count() == 2
    await dashboard.emulator.fetch("/two")
    await dashboard.page.get_by_role("link", name="Show 2 new events").click()
    await frame.locator(".lane", has_text="GET /two").wait_for()
    await frame.locator(".lanes").focus()
    await dashboard.page.keyboard.press("Home")
    await frame.locator(".details", has_text="http://localhost/one").wait_for()


async def test_counts_stand_in_the_menu(dashboard: Dashboard) -> None:
    await dashboard.open("queues")
    await dashboard.emulator.fetch("/later")
    await dashboard.emulator.queues["failed"].send("x")
    menu = dashboard.page.get_by_role("navigation", name="Views")
    for name in ("Queues 1", "Requests 1", "Findings 1"):
        await menu.get_by_role("link", name=name).wait_for()
