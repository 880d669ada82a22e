"""The projects in `examples/` work as their readers will run them: in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

SIGNUP = Path(__file__).parent.parent / "examples" / "signup"

_FAULTS = (
    "batch.emails#1:lose_ack",
    "batch.emails#1:crash_before",
    "fetch.POST.mail.example/send#1:crash_after",
    "fetch.POST.mail.example/send#1:lose_reply",
    "message.emails#1:duplicate",
    "message.emails#1:duplicate(1 h)",
)
_WORKER_TESTS = {
    "test_signup_sends_one_welcome_mail",
    "test_ten_signups_are_one_batch_and_do_not_wait",
    "test_other_paths_and_methods_are_refused",
    "test_mail_is_tried_again_with_back_off_and_then_reported",
    "test_mail_goes_out_once_when_the_service_comes_back",
    "test_without_keys_a_lost_ack_means_a_second_mail",
    "test_failing_audit_does_not_fail_the_request",
    *(f"test_with_keys_one_mail_goes_out_whatever_happens[{fault}]" for fault in _FAULTS),
}


def run_python(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in `cwd`, without anything that the outer pytest put into the environment."""
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def outcomes(report: Path) -> dict[str, str]:
    """Return the outcome of each test in a JUnit report, by name."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        bad = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        found[case.attrib["name"]] = bad[0] if bad else "passed"
    return found


@pytest.fixture(scope="module")
def signup_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    report = tmp_path_factory.mktemp("signup") / "report.xml"
    options = ("-p", "no:cacheprovider", f"--junit-xml={report}")
    finished = run_python("-m", "pytest", *options, cwd=SIGNUP)
    assert report.exists(), finished.stdout + finished.stderr
    return outcomes(report)


def test_every_test_of_the_signup_example_passes(signup_outcomes: dict[str, str]) -> None:
    assert {name: outcome for name, outcome in signup_outcomes.items() if outcome != "passed"} == {}


def test_signup_example_has_the_tests_that_the_documentation_speaks_of(
    signup_outcomes: dict[str, str],
) -> None:
    names = set(signup_outcomes)
    invalid = {name for name in names if name.startswith("test_invalid_input_is_refused")}
    assert len(invalid) == 7
    assert names - invalid == _WORKER_TESTS


def test_demo_shows_the_bug_and_the_version_without_it() -> None:
    finished = run_python(SIGNUP / "demo.py", cwd=SIGNUP.parent.parent)

    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    without_key, with_key = finished.stdout.split("With one, under the plan")
    assert "2 mails were sent to ada@example.com: this version has a bug." in without_key
    assert "One mail was sent: this version is safe." in with_key
    for version in (without_key, with_key):
        assert "!  batch.emails" in version
        assert "x  queue emails" in version
        assert version.count("request_out  method=POST url=https://mail.example/send") == 2


def test_demo_prints_the_same_in_two_processes() -> None:
    first, second = (run_python(SIGNUP / "demo.py", cwd=SIGNUP).stdout for _ in range(2))
    assert first == second
