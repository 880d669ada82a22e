"""The dashboard as a page: hostile data, its policy, keyboard, accessibility, schemes, failures."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING, Any

import pytest
from dashboard_browser import PREFIX, shown

if TYPE_CHECKING:
    from pathlib import Path

    from dashboard_browser import Dashboard

pytestmark = pytest.mark.asyncio(loop_scope="module")

VIEWS = (
    *("queues", "queues/jobs", "queues/failed", "workflows", "workflows/onboarding"),
    *("workflows/onboarding/ada", "objects", "objects/ROOMS", "kv", "kv/pages", "d1", "d1/main"),
    *("r2", "r2/files"),
    *("d1/main/users", "requests", "requests/background", "requests/logs", "findings", "clock"),
    *("faults", "trace"),
)
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onmouseover=alert(1) autofocus onfocus=alert(1) x='",
    "</style><style>*{display:none!important}",
    "javascript:alert(1)",
    "\u202egnp.exe\u2066\u200f",
    "__proto__",
    "a\x00b\x1b[31m",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "<b>" * 30_000,
)
# Attributes that could fetch or run something.
DANGEROUS = re.compile(r"^(?:on.*|srcdoc|action|formaction|data|xlink.*)$")
UNFOLD = "document.querySelectorAll('main details').forEach(each => { each.open = true; })"
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")


async def fill(dashboard: Dashboard, text: str = "x") -> None:
    """Put something into every view."""
    emulator = dashboard.emulator
    short = text[:400]
    await emulator.queues["failed"].send({short: text})
    await emulator.queues["jobs"].send("bad")
    await emulator.workflows["onboarding"].create("ada", {short: text})
    await emulator.durable_objects["ROOMS"].get("lobby").enter(short)
    with contextlib.suppress(Exception):  # not every text may be a key
        await emulator.env.PAGES.put(short, text, metadata={"m": short})
    with contextlib.suppress(Exception):
        emulator.r2["FILES"].put(short, text.encode("utf-8", "replace"))
    emulator.d1["DB"].execute("CREATE TABLE users (name TEXT)")
    emulator.d1["DB"].execute("INSERT INTO users VALUES (?)", text[:1000].replace("\x00", ""))
    await emulator.fetch("/later", params={"q": short})
    await emulator.fetch("/fail", params={"q": short})
    emulator.faults.add("send.jobs#7:fail")
    await emulator.advance("1 minute")


async def each_view(dashboard: Dashboard) -> Any:
    for place in VIEWS:
        await dashboard.go(place)
        await dashboard.page.wait_for_function(
            """place => {
                const shown = document.querySelector("main > div:last-child");
                return shown.dataset.key === `view ${place}`
                    && shown.querySelector("table, .empty, iframe");
            }""",
            arg=place,
        )
        yield place


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_data_is_shown_and_does_nothing(dashboard: Dashboard, text: str) -> None:
    """Whatever is stored, logged or asked for is text on the page."""
    await fill(dashboard, text)
    page = await dashboard.open("queues")
    async for place in each_view(dashboard):
        if place == "trace":
            continue
        await page.evaluate(UNFOLD)
        names = await page.eval_on_selector_all(
            "*", "all => [...new Set(all.flatMap(e => e.getAttributeNames()))]"
        )
        assert [name for name in names if DANGEROUS.match(name)] == []
        assert await page.locator("script").count() == 1
        assert await page.locator("style").count() == 1
        assert await page.locator("main img, main script, main b").count() == 0
        if place == "queues/failed" and text.isprintable() and '"' not in text:
            await dashboard.sees(text[:60])
        assert "\u202e" not in await dashboard.text()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert dashboard.noticed == []


async def test_hostile_names_of_views_and_rows_are_text(dashboard: Dashboard) -> None:
    dashboard.refusals = True
    await dashboard.open("queues/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    await dashboard.sees("there is no queue '<img src=x onerror=alert(1)>'")
    for place in ("__proto__", "constructor", "%E0%A4%A", "queues/%00", "workflows/a/b/c"):
        await dashboard.go(place)
        await dashboard.page.wait_for_selector("main h1")


async def test_policy_stops_what_gets_past_the_escaping(dashboard: Dashboard) -> None:
    """Were there markup after all, it would neither run nor load."""
    page = await dashboard.open("queues")
    stopped = await page.evaluate(
        """async () => {
            const stopped = [];
            addEventListener("securitypolicyviolation", e => stopped.push(e.effectiveDirective));
            try { document.body.innerHTML += "<b>"; } catch { stopped.push("innerHTML"); }
            const script = document.createElement("script");
            try { script.text = "alert(1)"; } catch { stopped.push("script.text"); }
            const image = document.createElement("img");
            image.src = "/picture";
            const style = document.createElement("style");
            style.append("* { display: none }");
            document.body.append(image, style);
            while (!stopped.includes("img-src") || !stopped.includes("style-src-elem")) {
                await new Promise(go => setTimeout(go));
            }
            image.remove();
            return stopped;
        }"""
    )
    assert {"innerHTML", "script.text", "img-src", "style-src-elem"} <= set(stopped)
    assert await page.locator("main").is_visible()
    assert all(text.startswith("console: ") for text in dashboard.noticed)
    dashboard.noticed.clear()


async def test_worker_cannot_put_the_dashboard_into_a_frame(dashboard: Dashboard) -> None:
    response = await dashboard.page.goto(f"{dashboard.address}{PREFIX}")
    policy = response.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_view_follows_the_rules_of_accessibility(
    browser: Any, tmp_path: Path, scheme: str
) -> None:
    from axe_playwright_python.async_playwright import Axe

    async with shown(browser, tmp_path, look={"color_scheme": scheme}) as dashboard:
        await fill(dashboard)
        page = await dashboard.open("queues")
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]
        async for place in each_view(dashboard):
            await page.evaluate(UNFOLD)
            # The chart in its frame has tests of its own (tests/test_trace_browser.py).
            found = await Axe().run(
                page, context={"exclude": [["iframe"]]}, options={"runOnly": list(RULES)}
            )
            assert found.violations_count == 0, f"{place}:\n{found.generate_report()}"


async def test_everything_can_be_reached_by_keyboard(dashboard: Dashboard) -> None:
    await dashboard.emulator.queues["failed"].send("x")
    page = await dashboard.open("queues")
    focused = "document.activeElement.textContent"
    await page.keyboard.press("Tab")
    assert await page.evaluate(focused) == "Skip to the content"
    await page.keyboard.press("Enter")
    assert await page.evaluate("document.activeElement.localName") == "main"
    await page.locator("nav a", has_text="Queues").focus()
    reached = []
    for _ in range(60):
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate(focused))
        if reached[-1] == "failed":
            break
    await page.keyboard.press("Enter")
    await dashboard.sees("Send messages")
    await page.wait_for_function("document.activeElement.localName === 'h1'")
    await page.get_by_role("button", name="Purge").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await page.wait_for_function("!document.querySelector('dialog')")
    assert len(dashboard.emulator.queues["failed"].backlog) == 1
    await page.get_by_role("button", name="Purge").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await dashboard.sees("failed is empty.")


async def test_focus_and_what_is_typed_stay_while_the_page_changes(dashboard: Dashboard) -> None:
    queue = dashboard.emulator.queues["failed"]
    page = await dashboard.open("queues/failed")
    await dashboard.unfold("Send messages")
    await page.fill("[name=body]", '{"half": ')
    await page.focus("[name=body]")
    await queue.send_batch(["a", "b"])
    await dashboard.sees('"b"')
    assert await page.input_value("[name=body]") == '{"half": '
    assert await page.evaluate("document.activeElement.name") == "body"


async def test_focus_stays_where_a_list_comes_to_be_above_it(dashboard: Dashboard) -> None:
    page = await dashboard.open("faults")
    await dashboard.sees("No fault is planned.")
    await page.fill("[name=plan]", "send.")
    dashboard.emulator.faults.add("send.jobs#1:fail")
    await dashboard.emulator.fetch("/")
    await dashboard.sees("send.jobs#1:fail", "request.GET./")
    assert await page.evaluate("document.activeElement.name") == "plan"
    assert await page.input_value("[name=plan]") == "send."


async def test_stopped_page_stands_still_until_it_goes_on(dashboard: Dashboard) -> None:
    await dashboard.open("queues/failed")
    await dashboard.push("Show what happens as it happens")
    await dashboard.sees("No messages.")
    async with dashboard.page.expect_event("console", predicate=lambda m: m.text == "change"):
        await dashboard.page.evaluate(
            """() => new EventSource("/cdn-cgi/emulator/dashboard/changes")
                .addEventListener("change", () => console.log("change"))"""
        )
        await dashboard.emulator.queues["failed"].send("quiet")
    dashboard.noticed.clear()
    assert "quiet" not in await dashboard.text()
    await dashboard.push("Show what happens as it happens")
    await dashboard.sees('"quiet"')
    dashboard.noticed.clear()


async def test_code_that_does_not_load_is_shown(browser: Any, tmp_path: Path) -> None:
    worker = "from workers import WorkerEntrypoint\n\nraise ValueError('no luck')\n"
    async with shown(browser, tmp_path, worker=worker) as dashboard:
        dashboard.refusals = True
        await dashboard.open("queues")
        await dashboard.sees("The code does not load", "no luck", "Nothing runs.")


async def test_narrow_window_has_all_parts(browser: Any, tmp_path: Path) -> None:
    look = {"viewport": {"width": 420, "height": 800}}
    async with shown(browser, tmp_path, look=look) as dashboard:
        await fill(dashboard)
        page = await dashboard.open("queues/failed")
        async for place in each_view(dashboard):
            assert await page.evaluate("document.documentElement.scrollWidth") <= 420, place


async def test_page_without_script_says_so(browser: Any, tmp_path: Path) -> None:
    async with shown(browser, tmp_path, look={"java_script_enabled": False}) as dashboard:
        await dashboard.page.goto(f"{dashboard.address}{PREFIX}")
        assert "needs JavaScript" in await dashboard.page.inner_text("body")


async def test_many_changes_are_told_as_few(dashboard: Dashboard) -> None:
    asked: list[str] = []
    dashboard.page.on(
        "request", lambda request: asked.append(request.url) if "/queue?" in request.url else None
    )
    await dashboard.open("queues/failed")
    await dashboard.sees("No messages.")
    for number in range(300):
        await dashboard.emulator.queues["failed"].send(number)
        await asyncio.sleep(0)
    await dashboard.sees("Waiting and delayed (300)")
    assert 2 <= len(asked) <= 20
