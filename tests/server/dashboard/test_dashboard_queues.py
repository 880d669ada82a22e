"""The view of queues, in a real browser."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dashboard_browser import Dashboard

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_all_queues_are_listed_with_what_is_in_them(dashboard: Dashboard) -> None:
    await dashboard.emulator.queues["failed"].send("left over")
    await dashboard.open("queues")
    await dashboard.sees("jobs", "failed", "dead letters")
    cells = await dashboard.page.locator("tbody tr").first.all_inner_texts()
    assert cells[0].split("\t")[:4] == ["jobs", "shop", "0", "0"]
    await dashboard.page.get_by_role("link", name="failed").first.click()
    await dashboard.sees("left over")


async def test_page_shows_a_message_as_it_comes_and_goes(dashboard: Dashboard) -> None:
    await dashboard.open("queues/jobs")
    await dashboard.sees("No messages.")
    await dashboard.emulator.queues["jobs"].send({"to": "ada"})
    await dashboard.sees('{"to": "ada"}')
    await dashboard.emulator.advance(5)
    await dashboard.sees("No messages.")
    assert dashboard.emulator.queues["jobs"].acked == 1


async def test_messages_are_sent_by_hand(dashboard: Dashboard) -> None:
    queue = dashboard.emulator.queues["jobs"]
    await dashboard.open("queues/jobs")
    await dashboard.unfold("Send messages")
    await dashboard.page.fill("[name=body]", '{"a": [1]}')
    await dashboard.page.fill("[name=delay]", "60")
    await dashboard.page.fill("[name=count]", "3")
    await dashboard.push("Send")
    await dashboard.sees("3 messages sent.", "delayed")
    assert [message.body for message in queue.backlog] == [{"a": [1]}] * 3
    assert {message.due - dashboard.emulator.now for message in queue.backlog} == {
        timedelta(seconds=60)
    }


async def test_what_is_no_json_is_said_and_nothing_is_sent(dashboard: Dashboard) -> None:
    dashboard.refusals = True
    await dashboard.open("queues/jobs")
    await dashboard.unfold("Send messages")
    await dashboard.page.fill("[name=body]", "{oops")
    await dashboard.push("Send")
    await dashboard.sees("body is no JSON")
    assert await dashboard.page.input_value("[name=body]") == "{oops"
    assert dashboard.emulator.queues["jobs"].backlog == []


async def test_queue_is_paused_and_resumed(dashboard: Dashboard) -> None:
    queue = dashboard.emulator.queues["jobs"]
    await dashboard.open("queues/jobs")
    await dashboard.push("Pause")
    await dashboard.sees("paused", "Deliveries are paused.")
    await queue.send("waits")
    await dashboard.emulator.advance(60)
    assert len(queue.backlog) == 1
    await dashboard.push("Resume")
    await dashboard.sees("Deliveries go on.")
    await dashboard.emulator.advance(5)
    assert queue.acked == 1


async def test_purge_asks_first(dashboard: Dashboard) -> None:
    queue = dashboard.emulator.queues["jobs"]
    queue.pause()
    await queue.send_batch(["a", "b"])
    await dashboard.open("queues/jobs")
    await dashboard.sees('"b"')
    await dashboard.push("Purge", sure="Cancel")
    assert len(queue.backlog) == 2
    await dashboard.push("Purge", sure="Purge")
    await dashboard.sees("jobs is empty.", "No messages.")
    assert queue.backlog == []


async def test_delayed_message_is_delivered_now(dashboard: Dashboard) -> None:
    queue = dashboard.emulator.queues["jobs"]
    await queue.send("later", delaySeconds=3600)
    await dashboard.open("queues/jobs")
    await dashboard.sees("delayed", "in 1 h")
    await (
        dashboard.page.get_by_role("button", name="now", exact=False)
        .filter(has_text="Deliver now")
        .click()
    )
    await dashboard.sees("The message is available now.")
    await dashboard.emulator.advance(4.9)
    assert queue.acked == 0
    await dashboard.emulator.advance(0.1)
    assert queue.acked == 1


async def test_dead_letter_is_retried_where_it_came_from(dashboard: Dashboard) -> None:
    jobs, failed = (dashboard.emulator.queues[name] for name in ("jobs", "failed"))
    await jobs.send("bad")
    await jobs.send("bad")
    await dashboard.emulator.advance("2 hours")
    assert len(failed.backlog) == 2
    await dashboard.open("queues/failed")
    await dashboard.sees('"bad"')
    await dashboard.page.get_by_role("button").filter(has_text="Retry").first.click()
    await dashboard.sees("Sent back to jobs.")
    assert [len(failed.backlog), len(jobs.backlog)] == [1, 1]
    assert jobs.backlog[0].attempts == 0
    await dashboard.push("Send all back to jobs")
    await dashboard.sees("1 message sent back to jobs.")
    assert [len(failed.backlog), len(jobs.backlog)] == [0, 2]


async def test_one_message_is_deleted(dashboard: Dashboard) -> None:
    queue = dashboard.emulator.queues["failed"]
    await queue.send_batch(["keep", "drop"])
    await dashboard.open("queues/failed")
    await dashboard.sees('"drop"')
    await dashboard.page.locator("tr", has_text='"drop"').get_by_text("Delete").click()
    await dashboard.sees("The message is deleted.")
    assert [message.body for message in queue.backlog] == ["keep"]


async def test_whole_body_is_shown_where_it_is_asked_for(dashboard: Dashboard) -> None:
    await dashboard.emulator.queues["failed"].send({"text": "x" * 1_000 + "end"})
    await dashboard.open("queues/failed")
    summary = dashboard.page.locator("td.body summary")
    assert "end" not in await summary.inner_text()
    await summary.click()
    await dashboard.sees("xend")


async def test_queue_is_created_changed_and_deleted(dashboard: Dashboard) -> None:
    await dashboard.open("queues")
    await dashboard.unfold("Create a queue")
    await dashboard.page.fill("[name=queue]", "letters")
    await dashboard.page.fill("[name=delivery_delay]", "30")
    await dashboard.push("Create")
    await dashboard.sees("letters is created.", "No messages.")
    queue = dashboard.emulator.queues["letters"]
    assert queue.settings["delivery_delay"] == 30
    await dashboard.unfold("Settings")
    await dashboard.page.fill("[name=message_retention_period]", "120")
    await dashboard.push("Change")
    await dashboard.sees("The settings are changed.")
    assert queue.settings["message_retention_period"] == 120
    assert queue.settings["delivery_delay"] == 30
    dashboard.refusals = True  # it may be asked for once more before the page has gone on
    await dashboard.push("Delete queue", sure="Delete")
    await dashboard.sees("letters is deleted.")
    assert "letters" not in dashboard.emulator.queues


async def test_queue_that_is_in_use_is_not_deleted(dashboard: Dashboard) -> None:
    dashboard.refusals = True
    await dashboard.open("queues/jobs")
    await dashboard.push("Delete queue", sure="Delete")
    await dashboard.sees("Cannot delete queue 'jobs' that is still referenced by a binding")
    assert "jobs" in dashboard.emulator.queues


async def test_messages_in_flight_are_shown(dashboard: Dashboard) -> None:
    jobs = dashboard.emulator.queues["jobs"]
    dashboard.emulator.faults.add("batch.jobs#1:timeout")
    await jobs.send("slow")
    await dashboard.open("queues/jobs?place=flight")
    await dashboard.sees("No messages.", "In flight (0)")


async def fill(queue: Any, key: str) -> None:
    """Send ten thousand messages, as many at once as the platform takes."""
    for first in range(0, 10_000, 100):
        await queue.send_batch([{key: number} for number in range(first, first + 100)])


async def test_ten_thousand_messages_do_not_stall_the_page(dashboard: Dashboard) -> None:
    queue = dashboard.emulator.queues["failed"]
    await fill(queue, "number")
    page = await dashboard.open("queues/failed")
    await dashboard.sees("of 10,000")
    assert await page.locator("*").count() < 4_000
    await page.get_by_role("link", name="Last").click()
    await dashboard.sees('{"number": 9999}')
    # While all of it changes, the page answers at once and has no long task.
    await page.evaluate(
        """() => {
            window.longest = 0;
            new PerformanceObserver(list => list.getEntries().forEach(each => {
                longest = Math.max(longest, each.duration);
            })).observe({ entryTypes: ["longtask"] });
        }"""
    )
    queue.purge()
    await fill(queue, "again")
    await dashboard.sees('{"again": 9999}')
    assert await page.evaluate("longest") < 500
