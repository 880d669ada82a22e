"""A sweep's report as a web page, with a chart of the first failing run of each cause.

The page is a page of `trace.page`: it needs nothing from outside, and its content security policy
allows the chart's script only, so that a payload can only ever be shown. Without a failure it has
no script at all.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from emulator.sweeping.text import command, head, other_texts, summary
from emulator.trace.page import document
from emulator.trace.timeline import printable

if TYPE_CHECKING:
    from emulator.sweeping.outcome import Failure
    from emulator.sweeping.report import SweepReport

_STYLE: Final = """\
body { margin: 1.5rem }
.cause > h2 { font-size: 1.1rem; margin: 1.5rem 0 .3rem; color: var(--fault) }
.passed { color: var(--done) }
.failed { color: var(--fault) }
code, pre { font: 13px/1.4 ui-monospace, monospace }
.cause > pre { background: var(--panel); padding: .5rem; white-space: pre-wrap }
.cause > pre { overflow-wrap: anywhere }
.plan { background: var(--fault-ground); padding: .2rem .4rem; overflow-wrap: anywhere }
.note { color: var(--faint); white-space: pre-line }
"""


def page(report: SweepReport) -> str:
    """Return the whole page."""
    groups = "".join(_group(report, cause, failures) for cause, failures in report.groups.items())
    mark = "passed" if report.passed else "failed"
    body = (
        f'<h1 class="{mark}">Fault sweep: {_text(head(report))}</h1>\n{groups}'
        f'<p class="note">{_lines(summary(report))}</p>\n{_sites(report)}'
    )
    return document(
        f"Fault sweep: {mark}",
        body,
        style=_STYLE,
        charts=any(map(_has_chart, report.groups.values())),
    )


def _group(report: SweepReport, cause: str, failures: list[Failure]) -> str:
    first, *others = failures
    flaky = "<p>Not reproducible: it did not fail in the same way again.</p>\n"
    place = f"<p><code>{_text(first.place)}</code></p>\n" if first.place else ""
    parts = [
        f'<section class="cause">\n<h2>{_text(cause)}</h2>\n{place}',
        f'<p><code class="plan">{_text(command(report, first))}</code></p>\n',
        flaky if first.flaky else "",
        f"<pre>{_lines(first.text)}</pre>\n",
    ]
    if others:
        plans = "".join(
            f"<li><code>{_text(f.shown)}</code> {_text(said)}</li>\n"
            for f, said in zip(others, other_texts(others, first), strict=True)
        )
        parts.append(_folded(f"also fails under {len(others):,} more", f"<ul>\n{plans}</ul>\n"))
    if first.trace is not None and _has_chart(failures):
        chart = first.trace.to_section()
        parts.append(_folded("timeline of the first plan", chart, is_open=True))
    return "".join((*parts, "</section>\n"))


def _has_chart(failures: list[Failure]) -> bool:
    return bool(failures[0].trace)


def _sites(report: SweepReport) -> str:
    names = "".join(
        f"<li>{_text(report.masker(f'{s.name}#{s.occurrence}'))}</li>\n" for s in report.sites
    )
    others = "".join(f"<li>{_text(name)}</li>\n" for name in report.unreached)
    return _folded(f"{len(report.sites):,} sites", f"<ul>\n{names}</ul>\n") + (
        _folded("not reached", f"<ul>\n{others}</ul>\n") if others else ""
    )


def _folded(title: str, body: str, *, is_open: bool = False) -> str:
    mark = " open" if is_open else ""
    return f"<details{mark}>\n<summary>{_text(title)}</summary>\n{body}</details>\n"


def _text(text: str) -> str:
    return escape(printable(text))


def _lines(text: str) -> str:
    return "\n".join(map(_text, text.splitlines()))
