"""What a report says, as text, JSON, HTML and JUnit XML, hostile texts included."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from worlds import World, drive, plan, site

from emulator.secrets import Masker
from emulator.sweeping import junit
from emulator.sweeping.outcome import Failure, Outcome
from emulator.sweeping.report import SweepReport
from emulator.sweeping.search import Search
from emulator.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "</pre><script>alert(1)</script>\x00\x1b[31m\u202e ]]> & \" ' \ud800 \ufffe"
CRASH = "send.a#1:crash_before"


def swept(world: World, **options: object) -> SweepReport:
    search = Search(**options)  # type: ignore[arg-type]
    drive(search, world)
    return search.report()


def failure(text: str = CRASH, *, error: str = "no", **fields: object) -> Failure:
    raised = AssertionError(error)
    values = {"cause": "AssertionError at test_x.py:3", "text": f"AssertionError: {error}"}
    return Failure(
        **{"plan": plan(text), "shown": text, "error": raised, "trace": None} | values | fields
    )  # type: ignore[arg-type]


def trace(events: int = 2, **data: object) -> Trace:
    made = Trace(0)
    for number in range(events):
        made.record(number * 1_000_000, "send", "queue a", number=number, **data)
    return made


# Text.


def test_passing_report_is_its_bound():
    world = World(["send.a", "request.GET./"], reveals={CRASH: ["send.b", "send.c"]})
    assert swept(world).render() == (
        "4 runs: passed\n\n"
        "tried: 2 single faults at 1 site; 2 sites appear only under a fault (depth=2 tries them)\n"
        "not tried: 2 dependency, 3 request faults\n"
    )


def test_failing_report_has_a_plan_to_paste_the_error_and_the_other_plans():
    bugs = [f"batch.a#1:{action}" for action in ("split", "crash_before", "fail", "timeout")]
    report = swept(World(["batch.a"], bugs=bugs))
    assert report.render() == (
        "18 runs: 4 failures of 1 cause\n\n"
        "AssertionError at test_it.py:7\n"
        '  --emulator-faults "batch.a#1:split"\n'
        "  AssertionError: broken by batch.a#1:split\n"
        "  also fails under:\n"
        "    batch.a#1:crash_before  AssertionError: broken by batch.a#1:crash_before\n"
        "    batch.a#1:fail  AssertionError: broken by batch.a#1:fail\n"
        "    batch.a#1:timeout  AssertionError: broken by batch.a#1:timeout\n\n"
        "tried: 7 single faults at 1 site\n"
    )


def test_at_most_five_other_plans_are_listed():
    failures = [failure(f"send.a#{number}:crash_before") for number in range(1, 9)]
    text = SweepReport(runs=10, failures=failures, candidates=8).render()
    assert "    send.a#6:crash_before\n    and 2 more\n" in text
    assert "send.a#7" not in text


@pytest.mark.parametrize(
    ("text", "pasted"),
    [
        ("batch.a#1:lose_ack", '"batch.a#1:lose_ack"'),
        ("fetch.GET.a/$HOME#1:fail", "'fetch.GET.a/$HOME#1:fail'"),
        ("fetch.GET.a/it's`#1:fail", "'fetch.GET.a/it'\"'\"'s`#1:fail'"),
    ],
)
def test_plan_can_be_pasted_into_a_shell(text, pasted):
    report = SweepReport(failures=[failure(text)])
    assert f"  --emulator-faults {pasted}\n" in report.render()


def test_line_of_the_user_stands_below_the_cause():
    place = "test_x.py:3: assert mail.call_count == 1"
    text = SweepReport(failures=[failure(place=place)]).render()
    assert "AssertionError at test_x.py:3\n    assert mail.call_count == 1\n" in text
    text = SweepReport(failures=[failure(place=place, cause="nondeterministic")]).render()
    assert f"nondeterministic\n    {place}\n" in text


def test_timeline_of_the_first_plan_is_shown_cut_in_its_middle():
    failures = [failure(trace=trace(100)), failure("send.a#2:fail", trace=trace(3))]
    text = SweepReport(failures=failures).render()
    assert "number=0\n" in text
    assert "number=28\n" in text
    assert "number=29\n" not in text
    assert "\n  ... 41 lines ...\n" in text
    assert "number=69\n" not in text
    assert "number=70\n" in text
    assert "number=99\n" in text
    assert text.count("virtual time since") == 1


def test_short_timeline_is_whole():
    text = SweepReport(failures=[failure(trace=trace(59))]).render()
    assert "lines ..." not in text
    assert text.count("number=") == 59


def test_flaky_failure_says_so():
    assert "not reproducible" in SweepReport(failures=[failure(flaky=True)]).render()
    others = SweepReport(failures=[failure(), failure("send.b#1:fail", flaky=True)]).render()
    assert "    send.b#1:fail  (not reproducible)\n" in others
    assert "not reproducible" not in SweepReport(failures=[failure()]).render()


def test_failure_without_a_fault_has_no_plan_to_paste():
    text = SweepReport(failures=[failure(plan=(), shown="")]).render()
    assert "  fails without any fault\n" in text
    assert "--emulator-faults" not in text


def test_empty_report_says_why():
    assert swept(World([])).summary().startswith("nothing to sweep: the scenario met no site")
    report = swept(World(["batch.a"]), only=["send.*"])
    assert report.render().startswith("2 runs: nothing to sweep\n\n")
    assert report.summary() == (
        "nothing to sweep: of the faults at 1 site none is left by classes=('platform',), "
        "only=['send.*']; left out by only and skip: 7 faults; met nothing: only='send.*'"
    )


def test_what_was_cut_off_or_not_reached_is_said():
    world = World(["send.a", "send.b"], broken=[CRASH])
    names = ("send.a#1:crash_after", CRASH)
    assert f"not reached: 1 ({CRASH})" in swept(world).summary()
    report = swept(world, depth=2, limit=5, seed=3)
    assert "cut off by the limit: 1 pair (the others were chosen by seed 3)" in report.summary()
    assert names[1] in report.unreached


def test_plans_that_failed_before_and_are_not_met_any_more_are_said():
    gone = [plan(f"send.old#1:fail; send.older#{number}:fail") for number in range(1, 8)]
    report = swept(World(["send.a"]), first=[*gone, plan("send.a#1:crash_before")])
    assert "; failed before and not met any more: 7 (send.old#1:fail; send.older#1:fail, " in (
        report.summary()
    )
    assert "and 2 more)" in report.summary()
    assert len(json.loads(report.to_json())["gone"]) == 7


def test_shard_says_which_it_is():
    report = swept(World(["send.a"]), shard=(1, 3))
    assert report.summary().startswith("tried: 1 single fault at 1 site, shard 2 of 3")
    report = swept(World(["send.a"]), shard=(2, 3))
    assert report.summary().startswith("tried: nothing; there is no share for shard 3")


def test_names_that_were_never_true_are_said():
    search = Search()
    while (each := search.next()) is not None:
        outcome = World(["send.a"]).run(each)
        search.tell(each, Outcome(sites=outcome.sites, sometimes={"retried": False}))
    assert search.report().summary().splitlines()[0].endswith("; never true: retried")


def test_text_has_no_control_characters():
    text = SweepReport(failures=[failure(error=HOSTILE, cause=HOSTILE, place=HOSTILE)]).render()
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\ud800]", text)
    assert "\\x1b[31m" in text


def test_secrets_are_masked_in_sites_and_plans(tmp_path):
    masker = Masker({"TOKEN": "s3cr3t-value"})

    class Secret(World):
        def run(self, faults):
            outcome = super().run(faults)
            error = None if outcome.error is None else AssertionError("no")
            return replace(outcome, error=error, trace=Trace(0, masker=masker))

    name = "fetch.GET.a/s3cr3t-value"
    bug, other = f"{name}#1:crash_before", f"{name}#1:crash_after"
    report = swept(Secret([name], bugs=[bug], reveals={other: [name]}))
    report.to_html(tmp_path / "report.html")
    report.to_junit(tmp_path / "report.xml")
    for text in (
        report.render(),
        report.to_json(),
        (tmp_path / "report.html").read_text(),
        (tmp_path / "report.xml").read_text(),
    ):
        assert "fetch.GET.a/[secret TOKEN]" in text
        assert "s3cr3t" not in text
    assert report.unreached == ["fetch.GET.a/[secret TOKEN]#2"]


# JSON.


def test_json_has_a_schema():
    world = World(
        ["send.a", "request.GET./"],
        bugs=[CRASH],
        reveals={"send.a#1:crash_after": ["send.b"]},
        broken=["send.a#1:nothing"],
    )
    value = json.loads(swept(world, seed=4).to_json())
    assert value == {
        "schema": 1,
        "passed": False,
        "empty": False,
        "complete": True,
        "runs": 7,
        "depth": 1,
        "seed": 4,
        "shard": {"index": 0, "count": 1},
        "sites": [
            {"name": each.name, "occurrence": 1, "actions": dict(each.actions)}
            for each in (site("send.a", 1), site("request.GET./", 1))
        ],
        "tried": [{"faults": 1, "plans": 2}],
        "cut": [],
        "not_tried": {"dependency": 2, "request": 3},
        "left_out": 0,
        "unreached": {"plans": [], "sites": ["send.b#1"]},
        "unmatched": [],
        "gone": [],
        "in_process_only": "",
        "kept_memory": [],
        "never": [],
        "replayed": 1,
        "groups": [
            {
                "cause": "AssertionError at test_it.py:7",
                "failures": [
                    {
                        "plan": CRASH,
                        "faults": 1,
                        "error": {
                            "type": "AssertionError",
                            "text": f"AssertionError: broken by {CRASH}",
                        },
                        "line": "",
                        "replayed": True,
                        "flaky": False,
                    }
                ],
            }
        ],
    }


def test_json_has_the_trace_of_the_first_failure_of_each_cause():
    failures = [failure(trace=trace(2)), failure("send.b#1:fail", trace=trace(2))]
    (group,) = json.loads(SweepReport(failures=failures).to_json())["groups"]
    assert [event["data"] for event in group["failures"][0]["trace"]] == [
        {"number": 0},
        {"number": 1},
    ]
    assert "trace" not in group["failures"][1]


def test_json_has_real_time_only_when_asked():
    report = SweepReport(seconds=1.5)
    assert "seconds" not in json.loads(report.to_json())
    assert json.loads(report.to_json(timings=True))["seconds"] == 1.5


def test_json_is_ascii_whatever_the_texts():
    text = SweepReport(failures=[failure(error=HOSTILE, trace=trace(x=HOSTILE))]).to_json()
    assert text.isascii()
    (group,) = json.loads(text)["groups"]
    assert group["failures"][0]["error"]["text"] == f"AssertionError: {HOSTILE}"


# HTML.


class Reader(HTMLParser):
    """Collects the tags and the texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read_page(report: SweepReport, folder: Path) -> tuple[Reader, str]:
    path = folder / "report.html"
    report.to_html(path)
    text = path.read_bytes().decode("utf-8")
    reader = Reader()
    reader.feed(text)
    return reader, text


def test_page_has_all_a_reader_needs(tmp_path):
    failures = [failure(trace=trace(100)), failure("send.b#1:fail")]
    report = SweepReport(runs=9, failures=failures, sites=[site("send.a", 1)], candidates=2)
    reader, text = read_page(report, tmp_path)
    shown = "".join(reader.texts)
    for wanted in (
        *("9 runs: 2 failures of 1 cause", f'--emulator-faults "{CRASH}"', "AssertionError: no"),
        *("also fails under 1 more", "send.b#1:fail", "number=50", "send.a#1"),
    ):
        assert wanted in shown
    policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+'; base-uri 'none'; .*",
        policy[1],
    )
    # The data and the script; the second failure of the cause has no chart.
    assert reader.tags.count("script") == 2
    assert ("type", "application/json") in reader.attributes
    assert not any(
        name in ("src", "href") or name.startswith("on") for name, _ in reader.attributes
    )


@pytest.mark.parametrize("report", [swept(World(["send.a"])), SweepReport(failures=[failure()])])
def test_page_without_a_timeline_has_no_script(report, tmp_path):
    reader, text = read_page(report, tmp_path)
    assert "script" not in reader.tags
    assert "script-src" not in text


def test_another_text_of_the_same_line_is_told_with_its_plan(tmp_path):
    report = SweepReport(
        failures=[
            failure(error="2 == 1"),
            failure("send.b#1:fail", error="2 == 1\nand more"),
            failure("send.c#1:fail", error="0 == 1\nand more", flaky=True),
            failure("send.d#1:fail", error="0 == 1"),
        ]
    )
    lines = report.render().splitlines()
    assert "    send.b#1:fail" in lines
    assert "    send.c#1:fail  AssertionError: 0 == 1  (not reproducible)" in lines
    assert "    send.d#1:fail" in lines
    assert "send.c#1:fail  AssertionError: 0 == 1" in junit.suite(report)
    reader, _ = read_page(report, tmp_path)
    assert " AssertionError: 0 == 1" in reader.texts


def test_page_of_a_passing_sweep(tmp_path):
    reader, _ = read_page(swept(World(["send.a"])), tmp_path)
    assert "Fault sweep: 4 runs: passed" in reader.texts
    assert "tried: 2 single faults at 1 site\nnot tried: 2 dependency faults" in reader.texts


def test_hostile_texts_are_inert_in_the_page(tmp_path):
    harmless = SweepReport(failures=[failure(trace=trace(1, x="y"), place="z")], unreached=["w"])
    hostile = failure(
        error=HOSTILE, cause=HOSTILE, place=HOSTILE, shown=HOSTILE, trace=trace(1, x=HOSTILE)
    )
    reader, text = read_page(SweepReport(failures=[hostile], unreached=[HOSTILE]), tmp_path)
    expected, _ = read_page(harmless, tmp_path)
    assert reader.tags == expected.tags
    assert reader.attributes == expected.attributes
    assert "<script>alert(1)</script>" in "".join(reader.texts)
    assert text.count("<script>") == 1
    assert not re.search("[\x00\x1b\u202e]", text)


# JUnit.


def read_junit(report: SweepReport, folder: Path) -> ElementTree.Element:
    path = folder / "report.xml"
    report.to_junit(path)
    (suite,) = ElementTree.fromstring(path.read_bytes())
    return suite


def test_junit_has_a_case_for_each_cause_and_one_for_the_sweep(tmp_path):
    failures = [
        failure(trace=trace()),
        failure("send.b#1:fail"),
        failure("send.c#1:fail", cause="ValueError at x.py:1"),
    ]
    suite = read_junit(SweepReport(runs=9, failures=failures, candidates=5), tmp_path)
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "3",
        "errors": "0",
    }
    names = [case.get("name") for case in suite]
    assert names == ["AssertionError at test_x.py:3", "ValueError at x.py:1", "sweep"]
    broken = suite[0].find("failure")
    assert broken is not None
    assert broken.get("message") == "AssertionError: no"
    assert broken.get("type") == "AssertionError"
    for wanted in (f'--emulator-faults "{CRASH}"', "also fails under:\nsend.b#1:fail", "number=1"):
        assert wanted in str(broken.text)
    whole = suite[2].find("failure")
    assert whole is not None
    assert whole.get("message") == "9 runs: 3 failures of 2 causes"


def test_junit_of_a_passing_and_of_an_empty_sweep(tmp_path):
    suite = read_junit(swept(World(["send.a"])), tmp_path)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    assert suite[0].find("failure") is None
    assert suite[0].findtext("system-out", "").startswith("tried: 2 single faults")
    suite = read_junit(swept(World([])), tmp_path)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert suite[0].find("failure") is not None


def test_hostile_texts_leave_junit_well_formed(tmp_path):
    hostile = failure(
        error=HOSTILE, cause=HOSTILE, place=HOSTILE, shown=HOSTILE, trace=trace(1, x=HOSTILE)
    )
    suite = read_junit(SweepReport(failures=[hostile], never=[HOSTILE], candidates=1), tmp_path)
    assert [case.tag for case in suite] == ["testcase", "testcase"]
    broken = suite[0].find("failure")
    assert broken is not None
    assert "</pre><script>alert(1)</script>\\u0000" in str(broken.text)
    assert len(broken) == 0


# The values.


def test_outcome_may_be_told_without_a_text():
    search = Search()
    for _ in range(2):
        search.tell((), Outcome(error=ValueError("bad"), cause="ValueError"))
    (only,) = search.report().failures
    assert only.text == "ValueError: bad"
    assert str(only) == "no fault: ValueError: bad"


def test_very_many_failures_do_not_all_keep_their_error_and_trace():
    names = [f"send.q{number}" for number in range(210)]
    bugs = [f"{name}#1:crash_before" for name in names]

    class Traced(World):
        def run(self, faults):
            outcome = super().run(faults)
            return replace(outcome, trace=Trace(0))

    world = Traced(names, bugs=bugs, causes={bugs[205]: "ValueError at x.py:1"})
    failures = swept(world, only=["send.*#*:crash_before"]).failures
    assert [each.trace is not None for each in failures] == [
        n < 200 or n == 205 for n in range(210)
    ]
    assert [each.error is not None for each in failures] == [
        n < 200 or n == 205 for n in range(210)
    ]
    assert all(each.text.startswith("AssertionError: broken by") for each in failures)
    assert not any(each.flaky for each in failures)


def test_a_sweep_that_was_stopped_before_it_knew_of_sites_is_not_called_empty():
    report = Search().report()
    assert not report.empty
    assert report.render() == "0 runs: no failure so far\n\nthe sweep was not finished\n"


def test_what_a_plan_is_pasted_after_is_in_each_form(tmp_path: Path):
    report = replace(swept(World(["send.a"], bugs=[CRASH])), paste="run it --faults")
    report.to_html(tmp_path / "s.html")
    report.to_junit(tmp_path / "s.xml")
    assert f'run it --faults "{CRASH}"' in report.render()
    assert "run it --faults " in (tmp_path / "s.html").read_text("utf-8")
    assert "run it --faults " in (tmp_path / "s.xml").read_text("utf-8")
    assert "--emulator-faults" not in report.render()


def test_a_clean_run_that_fails_leaves_no_empty_lines_at_the_end():
    failed = failure(plan=(), shown="", replayed=True)
    report = SweepReport(runs=2, failures=[failed], replayed=1)
    assert "  AssertionError: no\n\nno fault was tried" in report.render()
    assert report.render().endswith(" each time\n")
