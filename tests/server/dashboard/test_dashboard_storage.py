"""The views of Durable Objects, KV and D1, in a real browser."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dashboard_browser import Dashboard

pytestmark = pytest.mark.asyncio(loop_scope="module")

NO_HOUR = timedelta(hours=1)


async def room(dashboard: Dashboard, name: str = "lobby") -> None:
    """An object with a value, a table and an alarm, and its page."""
    await dashboard.emulator.durable_objects["ROOMS"].get(name).enter("ada")
    await dashboard.open("objects/ROOMS")
    await dashboard.page.get_by_role("link", name=name).click()
    await dashboard.sees("Storage")


async def test_objects_are_listed_with_alarms(dashboard: Dashboard) -> None:
    await dashboard.emulator.durable_objects["ROOMS"].get("lobby").enter("ada")
    await dashboard.open("objects")
    await dashboard.sees("ROOMS", "Room", "SQLite")
    await dashboard.page.get_by_role("link", name="ROOMS").click()
    await dashboard.sees("lobby", "in memory", "in 24 h")
    await dashboard.page.fill("[name=name]", "kitchen")
    await dashboard.page.press("[name=name]", "Enter")
    await dashboard.sees("No object is in memory")


async def test_object_shows_what_it_keeps(dashboard: Dashboard) -> None:
    await room(dashboard)
    await dashboard.sees("ada", '{"entered": true}', "said")
    await dashboard.page.fill("[name=sql]", "SELECT text, 1 AS one FROM said")
    await dashboard.push("Run")
    await dashboard.sees("1 row", '"ada"', "one")
    dashboard.refusals = True
    await dashboard.page.fill("[name=sql]", "DELETE FROM said")
    await dashboard.push("Run")
    await dashboard.page.wait_for_selector(".said.bad")
    rooms = dashboard.emulator.durable_objects["ROOMS"]
    assert rooms.storage("lobby").sql("SELECT * FROM said") == [{"text": "ada"}]


async def test_alarm_is_run_at_once(dashboard: Dashboard) -> None:
    await room(dashboard)
    before = dashboard.emulator.now
    await dashboard.push("Run alarm")
    await dashboard.sees("The alarm has run.", "alarmed")
    rooms = dashboard.emulator.durable_objects["ROOMS"]
    assert rooms.alarm("lobby") is None
    assert dashboard.emulator.now - before < NO_HOUR


@pytest.mark.parametrize(("verb", "sure"), [("Evict", ""), ("Crash", "Crash")])
async def test_object_loses_its_memory(dashboard: Dashboard, verb: str, sure: str) -> None:
    await room(dashboard)
    await dashboard.sees("in memory")
    await dashboard.push(verb, sure=sure)
    await dashboard.misses("in memory")
    (one,) = dashboard.emulator.durable_objects["ROOMS"].objects
    assert not one.in_memory
    await dashboard.sees('{"entered": true}')


async def test_keys_are_listed_in_order_and_by_prefix(dashboard: Dashboard) -> None:
    for number in range(250):
        await dashboard.emulator.env.PAGES.put(f"page:{number:03}", f"<h1>{number}</h1>")
    await dashboard.emulator.env.PAGES.put("user:ada", "{}", metadata={"role": "admin"})
    await dashboard.open("kv")
    await dashboard.sees("shop: PAGES", "251")
    await dashboard.page.get_by_role("link", name="pages").click()
    await dashboard.sees("page:000", "page:099", "<h1>99</h1>")
    await dashboard.page.get_by_role("link", name="Next").click()
    await dashboard.sees("page:100", "page:199")
    await dashboard.page.fill("[name=prefix]", "user:")
    await dashboard.page.press("[name=prefix]", "Enter")
    await dashboard.sees("user:ada", '{"role":"admin"}')
    await dashboard.misses("page:")


async def test_key_is_written_and_deleted(dashboard: Dashboard) -> None:
    pages = dashboard.emulator.env.PAGES
    await dashboard.open("kv/pages")
    await dashboard.unfold("Write a key")
    await dashboard.page.fill("[name=key]", "about")
    await dashboard.page.fill("[name=value]", "<h1>us</h1>")
    await dashboard.page.fill("[name=metadata]", '{"a": 1}')
    await dashboard.page.fill("[name=ttl]", "3600")
    await dashboard.push("Write")
    await dashboard.sees("about is written.", "<h1>us</h1>", " in ")
    assert await pages.get("about") == "<h1>us</h1>"
    await dashboard.push("Delete about", sure="Delete")
    await dashboard.sees("about is deleted.", "No keys.")
    assert await pages.get("about") is None


async def test_refusal_of_the_platform_is_shown(dashboard: Dashboard) -> None:
    dashboard.refusals = True
    await dashboard.open("kv/pages")
    await dashboard.unfold("Write a key")
    await dashboard.page.fill("[name=key]", "..")
    await dashboard.push("Write")
    await dashboard.page.wait_for_selector(".said.bad")
    assert "KV" in await dashboard.text()


async def test_large_value_is_shown_where_it_is_asked_for(dashboard: Dashboard) -> None:
    await dashboard.emulator.env.PAGES.put("large", "ü" * 5_000 + "end")
    await dashboard.open("kv/pages")
    await dashboard.sees("large")
    await dashboard.page.locator("td.body summary").click()
    await dashboard.sees("üend")


async def test_objects_of_a_bucket_are_listed_read_and_deleted(dashboard: Dashboard) -> None:
    files = dashboard.emulator.r2["FILES"]
    for number in range(120):
        files.put(f"img/{number:03}", b"\xff\xd8")
    files.put("about.txt", "all about us", custom_metadata={"by": "ada"})
    await dashboard.open("r2")
    await dashboard.sees("files", "121")
    await dashboard.page.get_by_role("link", name="files").click()
    await dashboard.sees("about.txt", '"by": "ada"', "100 of 121 objects")
    await dashboard.page.get_by_role("link", name="Next").click()
    await dashboard.sees("img/119", "21 of 121 objects")
    await dashboard.page.fill("[name=prefix]", "about")
    await dashboard.page.press("[name=prefix]", "Enter")
    await dashboard.misses("img/")
    await dashboard.page.locator("td.body summary").click()
    await dashboard.sees("all about us")
    await dashboard.push("Delete about.txt", sure="Delete")
    await dashboard.sees("about.txt is deleted.", "No objects.")
    assert files.get("about.txt") is None


async def test_tables_and_rows_are_shown(dashboard: Dashboard) -> None:
    database = dashboard.emulator.d1["DB"]
    database.execute("CREATE TABLE users (name TEXT, age INTEGER)")
    for number in range(230):
        database.execute("INSERT INTO users VALUES (?, ?)", f"user {number}", number)
    await dashboard.open("d1")
    await dashboard.page.get_by_role("link", name="main", exact=True).click()
    await dashboard.sees("users", "230")
    await dashboard.page.get_by_role("link", name="users", exact=True).click()
    await dashboard.sees("name", '"user 99"')
    await dashboard.page.get_by_role("link", name="Last").click()
    await dashboard.sees('"user 229"')


async def test_sql_is_run(dashboard: Dashboard) -> None:
    await dashboard.open("d1/main")
    await dashboard.page.fill("[name=sql]", "CREATE TABLE t (a); INSERT INTO t VALUES (1), (NULL)")
    await dashboard.push("Run")
    await dashboard.sees("0 rows")
    await dashboard.page.fill("[name=sql]", "SELECT a, 'x' AS b FROM t")
    await dashboard.push("Run")
    await dashboard.sees("2 rows", "null", '"x"')
    dashboard.refusals = True
    await dashboard.page.fill("[name=sql]", "SELECT absent FROM t")
    await dashboard.push("Run")
    await dashboard.sees("no such column: absent")
