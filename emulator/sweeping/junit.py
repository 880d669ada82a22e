"""A sweep's report as JUnit XML: a test case for each cause of failures, and one for the sweep."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape, quoteattr

from emulator.sweeping.text import also, command, head, summary

if TYPE_CHECKING:
    from emulator.sweeping.outcome import Failure
    from emulator.sweeping.report import SweepReport

# What XML 1.0 cannot hold, not even as a reference.
_IMPOSSIBLE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def suite(report: SweepReport) -> str:
    """Return the whole document."""
    cases = [_case(report, cause, failures) for cause, failures in report.groups.items()]
    failed = len(cases) + (not report.passed)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<testsuites><testsuite name="fault sweep" tests="{len(cases) + 1}" '
        f'failures="{failed}" errors="0" skipped="0">\n'
        f"{''.join(cases)}{_whole(report)}</testsuite></testsuites>\n"
    )


def _whole(report: SweepReport) -> str:
    output = f"<system-out>{_text(summary(report))}</system-out>"
    message = _attribute(head(report))
    failure = "" if report.passed else f"<failure message={message}></failure>"
    return f'<testcase classname="sweep" name="sweep">{failure}{output}</testcase>\n'


def _case(report: SweepReport, cause: str, failures: list[Failure]) -> str:
    first, *others = failures
    lines = [first.place, command(report, first), first.text]
    if first.flaky:
        lines.append("not reproducible: it did not fail in the same way when it was run again")
    lines += ["also fails under:", *also(others, first)] if others else []
    if first.trace is not None:
        lines.append(first.trace.render())
    body = _text("\n".join(line for line in lines if line))
    message = _attribute(first.text.partition("\n")[0])
    kind = _attribute(cause.partition(" ")[0])
    return (
        f'<testcase classname="sweep" name={_attribute(cause)}>'
        f"<failure message={message} type={kind}>{body}</failure></testcase>\n"
    )


def _text(text: str) -> str:
    return escape(_possible(text))


def _attribute(text: str) -> str:
    return quoteattr(_possible(text))


def _possible(text: str) -> str:
    return _IMPOSSIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
