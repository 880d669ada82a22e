"""The page of a trace in a real browser: what it shows, and that no payload does anything.

Playwright's synchronous interface runs an event loop in this thread as long as the browser lives,
so that the emulators of these tests run before it starts.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import respx
from chromium import Tab, launched, obstacles
from workers import WorkerEntrypoint, WorkflowEntrypoint, fetch

from emulator import Emulator, sweep
from emulator.trace import Payload, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECOND, DAY = 1_000_000, 86_400_000_000
FAULT = "step.flow.charge#1:crash_after"
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "section", "p", "script"),
    *("div", "input", "output", "span", "button", "aside", "h2", "h3", "ol", "li", "b", "i", "br"),
    *("dl", "dt", "dd", "pre"),
}
# Attributes that could fetch or run something.
DANGEROUS = re.compile(r"^(?:on.*|src.*|href|action|formaction|data|srcdoc|style-src|xlink.*)$")


class Main(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        await self.env.FLOW.create({"id": "ada"})
        return await fetch("https://api.example/ask")

    async def queue(self, batch: Any, env: Any, ctx: Any) -> None:
        for _ in batch.messages:
            await fetch("https://mail.example/send", method="POST", body="<b>letter</b>")


class Flow(WorkflowEntrypoint):
    async def run(self, event: Any, step: Any) -> None:
        @step.do("charge")
        async def charge() -> Any:
            await self.env.MAILS.send({"to": "<script>alert(1)</script>"})

        await charge()
        await step.sleep("trial", "3 days")
        await charge()


CONFIG = {
    "main": Main,
    "queues": {
        "producers": [{"binding": "MAILS", "queue": "mails"}],
        "consumers": [{"queue": "mails"}],
    },
    "workflows": [{"name": "flow", "binding": "FLOW", "class_name": Flow}],
}


async def scenario(emulator: Emulator) -> None:
    with respx.mock as router:
        router.route().respond(200)
        await emulator.fetch("/")
        await emulator.settle()
    assert len([event for event in emulator.trace if event.kind == "send"]) == 2
    (instance,) = emulator.workflows["flow"].instances
    assert instance.steps[0].attempts == 1  # another cause


async def write_pages(folder: Path) -> None:
    """A run under two faults, and the report of a sweep that fails."""
    faults = f"{FAULT}; message.mails#3:drop"
    async with Emulator(CONFIG, faults=faults) as emulator:
        with pytest.raises(AssertionError):
            await scenario(emulator)
        emulator.trace.to_html(folder / "run.html")
        (folder / "run.txt").write_text(emulator.trace.render(), "utf-8")
    report = await sweep(scenario, CONFIG, only=["step.flow.charge"])
    assert report.groups
    report.to_html(folder / "sweep.html")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of pages that emulators wrote."""
    folder = tmp_path_factory.mktemp("pages")
    asyncio.run(write_pages(folder))
    return folder


@pytest.fixture(scope="module")
def browser(pages: Path) -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    """Makes tabs; they have done nothing unseen when the test ends."""
    tabs: list[Tab] = []

    def new(**options: Any) -> Tab:
        tabs.append(Tab(browser, **options))
        return tabs[-1]

    yield new
    for each in tabs:
        each.close()


@pytest.fixture
def run(tab: Callable[..., Tab], pages: Path) -> Any:
    """The page of the run under two faults."""
    return tab().open(pages / "run.html")


@pytest.fixture
def show(tab: Callable[..., Tab], tmp_path: Path) -> Callable[[Trace], Any]:
    """Shows the page of a trace."""

    def show(trace: Trace, **options: Any) -> Any:
        trace.to_html(tmp_path / "trace.html")
        return tab(**options).open(tmp_path / "trace.html")

    return show


def press(page: Any, *keys: str) -> None:
    page.focus(".lanes")
    for key in keys:
        page.keyboard.press(key)


def push(page: Any, text: str) -> None:
    page.click(f"button:text-is('{text}')")


def details(page: Any) -> str:
    return str(page.inner_text(".details"))


def marks(page: Any) -> list[str]:
    """What the marks in view are called, lane by lane."""
    return list(page.eval_on_selector_all(".mark", "all => all.map(e => e.ariaLabel)"))


def lanes(page: Any) -> list[str]:
    return list(page.eval_on_selector_all(".lane", "all => all.map(e => e.ariaLabel)"))


def place(page: Any, name: str) -> float:
    """The horizontal place of the one mark whose name ends so."""
    found = page.eval_on_selector_all(
        ".mark",
        "(all, name) => all.filter(e => e.ariaLabel.endsWith(name))"
        ".map(e => e.getBoundingClientRect().left)",
        name,
    )
    (only,) = found
    return float(only)


def background(page: Any, selector: str, pseudo: str = "") -> str:
    return str(
        page.eval_on_selector(
            selector, "(e, pseudo) => getComputedStyle(e, pseudo).backgroundColor", pseudo
        )
    )


# Hostile payloads.

HOSTILE = {
    "script": "</script><script>alert(1)</script>",
    "comment": "<!--<script>",
    "cdata": "]]><svg/onload=alert(1)>",
    "image": "<img src=x onerror=alert(1)>",
    "frame": "</pre></section></main><iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    "attribute": "\" onmouseover=alert(1) autofocus onfocus=alert(1) x='",
    "style": "</style><style>*{display:none!important}",
    "link": "javascript:alert(1)",
    "template": "${alert(1)} {{constructor.constructor('alert(1)')()}}",
    "prototype": "__proto__",
    "separators": "a\u2028alert(1)\u2029b",
    "nul": "a\x00b\x1b[31m\x7f\x9b",
    "surrogate": "\ud800a\udfff",
    "direction": "\u202egnp.exe\u2066\u200f",
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f3f4\u200d\u2620\ufe0f",
    "entities": "&lt;script&gt;&#60;b&#62;&amp;",
    "large": "<b>" * 333_333 + "\n",
}
ESCAPED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def as_shown(text: str) -> str:
    """A payload as the page shows it: what would not be seen is escaped."""

    def escape(found: re.Match[str]) -> str:
        code = ord(found[0])
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

    return ESCAPED.sub(escape, text)


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE)
def test_hostile_payload_is_shown_and_does_nothing(payload: str, show: Callable[..., Any]) -> None:
    short = payload[:200]
    body = Payload("http", payload.encode("utf-8", "surrogatepass"))
    trace = Trace(0)
    trace.record(0, "send", f"queue {short}", id=short, by=short, body=payload)
    trace.record(0, short, short, key=short, more={short: [payload]})
    trace.record(0, "fault", short, fault=short)
    trace.record(SECOND, "lost", "queue a", id=short, attempt=1, body=body)
    page = show(trace)

    for number in range(4):
        press(page, "ArrowRight")
        page.hover(".mark.chosen")
        assert page.locator(".mark.chosen").count() == 1, number
        if number == 0:
            # By its text and not as it is rendered, which would fold white space.
            shown = page.eval_on_selector_all(".details dd", "all => all.map(e => e.textContent)")
            assert shown[1:] == [as_shown(short), as_shown(short), as_shown(payload)]
    page.fill("input", short.split()[0])
    push(page, "Text")

    assert page.title() == "Trace"
    tags = page.eval_on_selector_all("*", "all => [...new Set(all.map(e => e.localName))]")
    assert set(tags) <= ALLOWED
    names = page.eval_on_selector_all(
        "*", "all => [...new Set(all.flatMap(e => e.getAttributeNames()))]"
    )
    assert [name for name in names if DANGEROUS.match(name)] == []
    assert page.locator("script").count() == 2
    assert page.locator("style").count() == 1
    assert page.eval_on_selector("main", "e => getComputedStyle(e).display") != "none"


def test_policy_stops_what_gets_past_the_escaping(browser: Any, pages: Path) -> None:
    """Were there markup after all, it would neither run nor load."""
    tab = Tab(browser)
    page = tab.open(pages / "run.html")
    page.evaluate(
        """() => {
            window.stopped = [];
            addEventListener("securitypolicyviolation", e => stopped.push(e.effectiveDirective));
            try { document.body.innerHTML += "<b>"; } catch { stopped.push("innerHTML"); }
            const script = document.createElement("script");
            try { script.text = "alert(1)"; } catch { stopped.push("script.text"); }
            script.append("alert(1)");
            const image = document.createElement("img");
            image.src = "https://out.example/";
            const style = document.createElement("style");
            style.append("* { display: none }");
            document.body.append(script, image, style);
        }"""
    )
    page.wait_for_function("stopped.includes('img-src') && stopped.includes('style-src-elem')")
    stopped = page.evaluate("stopped")
    assert {"innerHTML", "script.text"} <= set(stopped)
    assert [each for each in tab.noticed if each.startswith("dialog")] == []
    assert page.locator("main").is_visible()


def test_page_loads_nothing(tab: Callable[..., Tab], pages: Path) -> None:
    one = tab()
    one.open(pages / "run.html")
    assert one.requests == [(pages / "run.html").as_uri()]


# Without the script, and on paper.


def test_reader_without_script_has_the_timeline_as_text(
    tab: Callable[..., Tab], pages: Path
) -> None:
    page = tab(java_script_enabled=False).open(pages / "run.html")
    shown = page.locator("pre.text")
    assert shown.is_visible()
    assert shown.text_content() == (pages / "run.txt").read_text("utf-8")
    assert page.locator("pre.text b").count() == 2
    assert page.locator(".bar").count() == 0


def test_paper_has_the_timeline_as_text(run: Any) -> None:
    assert not run.locator("pre.text").is_visible()
    run.emulate_media(media="print")
    assert run.locator("pre.text").is_visible()
    assert not run.locator(".grid").is_visible()
    assert not run.locator(".bar").is_visible()


def test_text_can_be_had_beside_the_chart(run: Any) -> None:
    push(run, "Text")
    assert run.locator("pre.text").is_visible()
    assert not run.locator(".grid").is_visible()
    assert run.locator("button:text-is('Text')").get_attribute("aria-pressed") == "true"
    push(run, "Text")
    assert run.locator(".grid").is_visible()
    assert len(marks(run)) > 10


# What a person sees.


def test_there_is_a_lane_for_each_queue_instance_and_invocation(run: Any) -> None:
    assert lanes(run) == [
        *("step.flow.charge", "message.mails"),
        "request GET /",
        *("queue mails", "queue mails #1"),
        "workflow flow ada",
        "worker worker",
    ]
    assert run.locator(".heading").all_inner_texts() == [
        *("Faults", "Requests", "Queues", "Workflows", "Workers")
    ]


def test_faults_are_red_and_cross_all_lanes(run: Any) -> None:
    red = "rgb(207, 34, 46)"
    assert background(run, ".mark.fault", "::before") == red
    assert run.locator(".mark.fault").count() == 2
    lines = run.locator(".line")
    assert lines.count() == 2
    assert background(run, ".line") == red
    line, last = lines.first.bounding_box(), run.locator(".lane").last.bounding_box()
    assert line["y"] + line["height"] >= last["y"]
    assert f"fault, {FAULT}" in "".join(marks(run))
    others = run.locator(".mark:not(.fault)")
    assert others.count() > 10
    colours = others.evaluate_all(
        "all => all.map(e => getComputedStyle(e, '::before').backgroundColor)"
    )
    assert red not in colours


def test_what_was_lost_is_marked_and_listed(run: Any) -> None:
    listed = run.locator("aside > .list button").all_inner_texts()
    kinds = [re.sub(r"\s+", " ", text) for text in listed]
    assert len(kinds) == 4
    assert kinds[0] == f"+0:00:00.000 ! {FAULT} step.flow.charge"
    assert kinds[1] == "+0:00:00.000 ✕ crash worker worker"
    assert kinds[2] == "+3d 00:00:00.000 ! message.mails#3:drop message.mails"
    assert re.fullmatch(r"\+3d 00:00:00.000 ✕ dropped \w{6} #0 queue mails", kinds[3])
    assert run.locator(".mark.lost").count() == 2
    run.locator("aside > .list button").nth(3).click()
    assert details(run).startswith("✕ dropped")
    assert run.locator(".mark.chosen.lost").count() == 1


def test_bar_lasts_from_begin_to_end(run: Any) -> None:
    bars = run.locator("[aria-label='workflow flow ada'] .span")
    first_run = run.locator("[aria-label='workflow flow ada'] .span.s1").bounding_box()
    crash = place(run, "lost, crash")
    assert first_run["x"] + first_run["width"] == pytest.approx(crash + 8, abs=2)
    assert bars.count() >= 5
    assert any("sleep trial-1 · 3 d" in name for name in marks(run))


def test_events_of_one_instant_stand_apart(show: Callable[..., Any]) -> None:
    trace = Trace(0)
    for number in range(30):
        trace.record(7, "send", "queue q", id=f"m{number}", by="test")
    trace.record(7 + 3 * DAY, "send", "queue q", id="last", by="test")
    page = show(trace)
    assert len(marks(page)) == 31
    lefts = [place(page, f"send m{number}") for number in range(30)]
    assert lefts == sorted(set(lefts))
    # Three days take no more room than a few events.
    assert place(page, "send last") - lefts[-1] < lefts[-1] - lefts[-8]
    assert page.locator(".ruler .gap").all_inner_texts() == ["3 d"]

    push(page, "Time")
    (together, alone) = marks(page)
    assert together.endswith("send m0 +29")
    assert alone.endswith("send last")
    page.locator(".mark").first.click()
    assert page.locator(".details .list button").count() == 30
    page.locator(".details .list button").nth(17).click()
    assert details(page).startswith("send m17")


def test_time_axis_is_to_scale(show: Callable[..., Any]) -> None:
    trace = Trace(0)
    for second in (0, 10, 40):
        trace.record(second * SECOND, "n", f"s{second}", n=second)
    page = show(trace)
    push(page, "Time")
    first, second, third = (
        page.locator(f"[aria-label='s{second}'] .mark").bounding_box()["x"]
        for second in (0, 10, 40)
    )
    assert (third - first) / (second - first) == pytest.approx(4, abs=0.02)
    ticks = page.locator(".ruler .tick").all_inner_texts()
    assert ticks[:3] == ["+0:00:00.000", "+0:00:10.000", "+0:00:20.000"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_follows_the_scheme_of_the_reader(
    scheme: Any, tab: Callable[..., Tab], pages: Path
) -> None:
    page = tab(color_scheme=scheme).open(pages / "run.html")
    ground = {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]
    assert background(page, "body") == ground
    press(page, "n", "ArrowRight")
    assert obstacles(page, "wcag2a", "wcag2aa", "wcag22aa", "best-practice") == ""


# Moving about.


def distance(page: Any) -> float:
    """How far apart two events are that are always in view near the beginning."""
    return place(page, "send b") - place(page, "send a")


@pytest.fixture
def far(show: Callable[..., Any]) -> Any:
    """Many events, of which the first two are a and b."""
    trace = Trace(0)
    for number, id in enumerate(["a", "b", *(f"m{n}" for n in range(60))]):
        trace.record(number * SECOND, "send", f"queue {id[0]}", id=id, by="test")
    return show(trace)


@pytest.mark.parametrize("axis", ["Order", "Time"])
@pytest.mark.parametrize("means", ["buttons", "keys", "wheel"])
def test_zoom(means: str, axis: str, far: Any) -> None:
    push(far, axis)
    before = distance(far)
    press(far, "Home")
    if means == "buttons":
        far.click("[aria-label='Zoom in (+)']")
    elif means == "keys":
        far.keyboard.press("+")
    else:
        box = far.locator(".mark").first.bounding_box()
        far.mouse.move(box["x"] + 5, box["y"] + 5)
        far.mouse.wheel(0, -200)
        far.wait_for_function(
            "before => document.querySelectorAll('.mark')[1].offsetParent && "
            "document.querySelectorAll('.mark')[1].getBoundingClientRect().left - "
            "document.querySelectorAll('.mark')[0].getBoundingClientRect().left > before * 1.2",
            arg=before,
        )
    assert distance(far) > 1.2 * before
    assert "send m59" not in "".join(marks(far))
    if means == "buttons":
        far.click("[aria-label='Zoom out (-)']")
    elif means == "keys":
        far.keyboard.press("-")
    else:
        far.mouse.wheel(0, 200)
        far.wait_for_function("document.querySelectorAll('.mark').length > 40")
    assert distance(far) == pytest.approx(before, abs=0.5)
    press(far, "+", "+", "+", "0")
    assert distance(far) == pytest.approx(before, abs=0.5)


def test_wheel_zooms_at_the_pointer(far: Any) -> None:
    mark = far.locator(".mark").nth(30)
    name, box = mark.get_attribute("aria-label"), mark.bounding_box()
    far.mouse.move(box["x"] + 5, box["y"] + 5)
    far.mouse.wheel(0, -300)
    far.wait_for_function("document.querySelectorAll('.mark').length < 50")
    assert place(far, name) == pytest.approx(box["x"], abs=2)


def test_dragging_and_keys_pan(far: Any) -> None:
    press(far, "Home", "+", "+", "+")
    before = place(far, "send b")
    press(far, "Shift+ArrowRight")
    assert "send b" not in "".join(name[-6:] for name in marks(far))
    press(far, "Shift+ArrowLeft")
    assert place(far, "send b") == pytest.approx(before, abs=1)
    box = far.locator(".lanes").bounding_box()
    far.mouse.move(box["x"] + 700, box["y"] + 300)
    far.mouse.down()
    far.mouse.move(box["x"] + 640, box["y"] + 300, steps=4)
    far.mouse.up()
    far.wait_for_function(
        "before => [...document.querySelectorAll('.mark')].some(e => e.ariaLabel.endsWith('send b')"
        " && Math.abs(e.getBoundingClientRect().left - before + 60) < 2)",
        arg=before,
    )
    assert "send a" in details(far)  # a drag is no click


def test_everything_can_be_done_with_the_keyboard(run: Any) -> None:
    chosen = "document.activeElement.getAttribute('aria-activedescendant')"
    press(run, "n")
    assert details(run).startswith(f"! {FAULT}")
    active = run.locator(f"#{run.evaluate(chosen)}")
    assert active.get_attribute("aria-selected") == "true"
    assert active.get_attribute("aria-label") == (f"+0:00:00.000 step.flow.charge: fault, {FAULT}")
    press(run, "n")
    assert details(run).startswith("✕ crash")
    press(run, "p")
    assert details(run).startswith(f"! {FAULT}")
    press(run, "Home")
    assert details(run).startswith("request")
    press(run, "ArrowDown")
    assert "queue mails" in details(run)
    press(run, "ArrowUp")
    assert "request GET /" in details(run)
    press(run, "End")
    assert details(run).startswith("workflow_ended complete")
    press(run, "ArrowLeft", "Escape")
    assert details(run).startswith("Point at an event")
    assert run.evaluate(chosen) is None
    press(run, "/")
    assert run.evaluate("document.activeElement.type") == "search"
    run.keyboard.press("Escape")
    assert run.evaluate("document.activeElement.role") == "listbox"


def test_pointing_at_an_event_shows_its_payload(run: Any) -> None:
    run.locator(".mark:has-text('send')").first.hover()
    assert '"to": "<script>alert(1)</script>"' in details(run)
    assert run.locator(".mark.chosen").count() == 0
    run.mouse.move(5, 5)
    assert details(run).startswith("Point at an event")
    run.locator(".mark:has-text('send')").first.click()
    run.mouse.move(5, 5)
    assert '"to": "<script>alert(1)</script>"' in details(run)


def test_events_of_the_same_message_are_shown_together(run: Any) -> None:
    run.locator(".mark:has-text('send')").first.click()
    together = run.locator(".details .list button b").all_inner_texts()
    assert [text.split()[0] for text in together] == ["send", "batch", "ack"]
    assert run.locator(".mark.kin").count() == 3


def test_filter_keeps_the_events_with_all_words(run: Any) -> None:
    count = len(marks(run))
    run.fill("input", "MAILS ack")
    assert lanes(run) == ["queue mails"]
    assert all(": ack " in name for name in marks(run))
    assert (
        run.inner_text(".found") == f"{len(marks(run))} of {len(json.loads(data(run))['events'])}"
    )
    assert run.locator(".line").count() == 0
    run.fill("input", "nothing at all")
    assert (lanes(run), marks(run)) == ([], [])
    run.fill("input", "")
    assert len(marks(run)) == count


def data(page: Any) -> str:
    return str(page.locator("section.trace script").text_content())


def test_batches_are_folded_into_their_queue(run: Any) -> None:
    press(run, "n")
    run.click(".name.folds")
    assert "queue mails, folded" in lanes(run)
    assert not any("#" in name for name in lanes(run))
    assert any("queue mails #1: batch" in name for name in marks(run))
    run.locator("[aria-label='queue mails, folded'] .mark").first.click()
    press(run, "f")
    assert "queue mails #1" in lanes(run)


# Large and odd traces.


def test_large_trace_draws_no_more_than_can_be_seen(show: Callable[..., Any]) -> None:
    trace = Trace(0)
    for number in range(10_000):
        subject = f"queue q{number % 30}" + (f" #{number}" if number % 7 else "")
        kind = "fault" if number == 7_000 else "log"
        trace.record(number * 1_000, kind, subject, level="log", text=f"n{number}", fault="a#1:b")
    page = show(trace)
    assert page.locator("*").count() < 3_000
    assert 0 < page.locator(".mark").count() <= 500
    assert lanes(page)[0] == "queue q0, folded"
    assert {name.endswith(", folded") for name in lanes(page)} == {True}
    press(page, "n")
    assert "a#1:b" in details(page)
    press(page, *"++++++++++++")
    assert page.locator(".mark.chosen").count() == 1
    assert page.locator("*").count() < 3_000
    page.fill("input", "n4321")
    assert [name.rpartition(" ")[2] for name in marks(page)] == ["n4321"]


@pytest.mark.parametrize("events", [0, 1])
@pytest.mark.parametrize("axis", ["Order", "Time"])
def test_hardly_any_events(events: int, axis: str, show: Callable[..., Any]) -> None:
    trace = Trace(0)
    for _ in range(events):
        trace.record(0, "request", "request GET /", worker="w", url="u")
    page = show(trace)
    push(page, axis)
    press(page, "+", "-", "n", "p", "ArrowRight", "ArrowDown", "End", "0", "f")
    assert len(marks(page)) == events
    assert ("request GET /" in details(page)) == bool(events)


def test_events_before_the_start_and_centuries_apart(show: Callable[..., Any]) -> None:
    trace = Trace(0)
    for at in (-SECOND - 1, 0, 1, 200 * 365 * DAY):
        trace.record(at, "n", "s")
    page = show(trace)
    assert [name.partition(" s:")[0] for name in marks(page)] == [
        *("-0:00:01.000001", "+0:00:00.000", "+0:00:00.000001", "+73000d 00:00:00.000")
    ]
    press(page, "Home")
    assert "1969-12-31T23:59:58.999999Z" in details(page)
    push(page, "Time")
    assert len(marks(page)) == 2
    press(page, *("+" * 80))
    assert len(marks(page)) >= 1


def test_narrow_window_has_all_parts(tab: Callable[..., Tab], pages: Path) -> None:
    one = tab()
    one.page.set_viewport_size({"width": 500, "height": 800})
    page = one.open(pages / "run.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    assert page.locator(".details").is_visible()
    assert len(marks(page)) > 3


# The report of a sweep.


def test_report_of_a_sweep_has_a_chart_for_each_cause(tab: Callable[..., Tab], pages: Path) -> None:
    page = tab().open(pages / "sweep.html")
    plans = page.locator(".plan").all_inner_texts()
    assert plans == [
        f'--emulator-faults "step.flow.charge#1:{action}"' for action in ("fail", "timeout")
    ]
    charts = page.locator(".cause section.trace.live")
    assert charts.count() == 2
    ids = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    assert len(ids) == len(set(ids)) > 20
    for number, action in enumerate(("fail", "timeout")):
        chart = charts.nth(number)
        (fault,) = chart.locator(".mark.fault").all_inner_texts()
        assert fault == f"step.flow.charge#1:{action}"
        chart.locator(".lanes").focus()
        page.keyboard.press("n")
        assert chart.locator(".details").inner_text().startswith(f"! {fault}")
    assert obstacles(page, "wcag2a", "wcag2aa") == ""


def test_report_of_a_sweep_scrolls_where_a_chart_is_not_in_use(
    tab: Callable[..., Tab], pages: Path
) -> None:
    page = tab().open(pages / "sweep.html")
    places = "[...document.querySelectorAll('.mark')].map(e => e.style.left)"
    before = page.evaluate(places)
    page.locator(".lanes").first.hover()
    page.mouse.wheel(0, 200)
    page.wait_for_function("scrollY > 0")
    assert page.evaluate(places) == before
    page.locator(".lanes").first.focus()
    page.locator(".mark").first.hover()
    page.mouse.wheel(0, -200)
    page.wait_for_function(f"JSON.stringify({places}) != {json.dumps(json.dumps(before))}")


def test_report_of_a_sweep_without_script(tab: Callable[..., Tab], pages: Path) -> None:
    page = tab(java_script_enabled=False).open(pages / "sweep.html")
    texts = page.locator("pre.text")
    assert [text.is_visible() for text in texts.all()] == [True, True]
    assert "step.flow.charge#1:fail" in texts.first.inner_text()
