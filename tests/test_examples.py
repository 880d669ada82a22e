"""The projects in `examples/` work as their readers will run them: in a process of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pyjson5
import pytest

from emulator import Emulator, Fault

EXAMPLES = Path(__file__).parent.parent / "examples"
SIGNUP = EXAMPLES / "signup"
WEBHOOKS = EXAMPLES / "webhooks"
LEDGER = EXAMPLES / "ledger"
PROJECTS = sorted(folder for folder in EXAMPLES.iterdir() if (folder / "pyproject.toml").exists())
WITH_NAIVE_VERSION = [folder for folder in PROJECTS if (folder / "src" / "naive.py").exists()]

_CODE = re.compile(r"`([^`\n]+)`|^    (\S.*)$", re.MULTILINE)
_FAULT = re.compile(r"[a-z_]+\.\S+#(?:\d+|\*):[a-z_]+")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")

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


def run_tests(project: Path, report: Path) -> dict[str, str]:
    """Run a project's tests as its reader would; return their outcomes by name."""
    options = ("-p", "no:cacheprovider", f"--junit-xml={report}")
    finished = run_python("-m", "pytest", *options, cwd=project)
    assert report.exists(), finished.stdout + finished.stderr
    return outcomes(report)


def not_passed(found: dict[str, str]) -> dict[str, str]:
    return {name: outcome for name, outcome in found.items() if outcome != "passed"}


def test_there_are_seven_projects() -> None:
    names = [folder.name for folder in PROJECTS]
    assert names == [
        *("analytics", "approval", "fastapi_jobs", "ledger", "onboarding", "signup", "webhooks"),
    ]
    assert [name for name in names if name not in ("ledger", "signup")] == [
        folder.name for folder in WITH_NAIVE_VERSION
    ]


@pytest.fixture(scope="module")
def signup_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return run_tests(SIGNUP, tmp_path_factory.mktemp("signup") / "report.xml")


def test_every_test_of_the_signup_example_passes(signup_outcomes: dict[str, str]) -> None:
    assert not_passed(signup_outcomes) == {}


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


# The projects that show a naive version beside the safe one.


@pytest.mark.parametrize("project", WITH_NAIVE_VERSION, ids=lambda folder: folder.name)
def test_every_test_of_the_example_passes(project: Path, tmp_path: Path) -> None:
    found = run_tests(project, tmp_path / "report.xml")

    assert not_passed(found) == {}
    assert [name for name in found if "whatever_happens" in name]
    assert [name for name in found if "naive" in name]


@pytest.mark.parametrize("project", WITH_NAIVE_VERSION, ids=lambda folder: folder.name)
def test_naive_version_differs_in_its_code_alone(project: Path) -> None:
    safe, naive = (
        pyjson5.decode((project / name).read_text("utf-8"))
        for name in ("wrangler.jsonc", "wrangler.naive.jsonc")
    )

    assert safe.pop("main") == "src/entry.py"
    assert naive.pop("main") == "src/naive.py"
    assert naive == safe


@pytest.mark.parametrize("project", [LEDGER, *WITH_NAIVE_VERSION], ids=lambda folder: folder.name)
def test_page_of_the_example_names_what_is_there(project: Path) -> None:
    page = (project / "README.md").read_text("utf-8")
    tests = "".join(path.read_text("utf-8") for path in project.glob("tests/*.py"))
    plans = [a or b for a, b in _CODE.findall(page) if _FAULT.match(a or b)]

    assert plans
    for plan in plans:
        assert f'"{plan}"' in tests
        assert all(str(Fault.parse(text.strip())) for text in plan.split(";"))
    for link in _LINK.findall(page):
        assert (project / link).exists(), link


def test_every_test_of_the_ledger_passes(tmp_path: Path) -> None:
    """Two books pass their sweep, and the sweep of the third fails as its page says."""
    found = run_tests(LEDGER, tmp_path / "report.xml")

    assert not_passed(found) == {}
    swept = "test_payment_is_added_once_whatever_happens"
    assert {f"{swept}[object]", f"{swept}[d1]"} <= set(found)


def test_report_of_a_failing_test_shows_no_secret(tmp_path: Path) -> None:
    """What the page of `webhooks` says of a Worker that prints its secret."""
    project = tmp_path / "webhooks"
    shutil.copytree(WEBHOOKS, project)
    with Emulator(project / "wrangler.jsonc") as emulator:
        secret, token = emulator.env.SIGNING_SECRET, emulator.env.API_TOKEN
    worker = project / "src" / "webhook.py"
    line = "    timestamp = str(int(time.time()))\n"
    assert worker.read_text("utf-8").count(line) == 1
    leaking = worker.read_text("utf-8").replace(line, line + "    print(f'signed by {secret}')\n")
    worker.write_text(leaking, "utf-8")
    with (project / "tests" / "test_webhooks.py").open("a", encoding="utf-8") as tests:
        tests.write(
            "\nasync def test_that_fails(emulator, subscribers):\n"
            "    await order(emulator)\n"
            "    assert subscribers[0].handled == []\n"
        )

    options = ("-p", "no:cacheprovider", "-k", "test_that_fails")
    finished = run_python("-m", "pytest", *options, cwd=project)

    assert "1 failed" in finished.stdout
    assert finished.stdout.count("signed by [secret SIGNING_SECRET]") >= 3
    assert secret not in finished.stdout + finished.stderr
    assert token not in finished.stdout + finished.stderr
