"""A sweep's report as a web page.

The page needs nothing from outside and runs no script; its content security policy forbids both,
so that a payload can only ever be shown.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from emulator.sweeping.text import command, head, summary
from emulator.trace.timeline import printable

if TYPE_CHECKING:
    from emulator.sweeping.outcome import Failure
    from emulator.sweeping.report import SweepReport

_STYLE: Final = """\
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5rem; color: #222; background: #fff }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .3rem; color: #900 }
.passed { color: #060 }
.failed { color: #900 }
code, pre { font: 13px/1.4 ui-monospace, monospace }
pre { background: #f3f6fa; padding: .5rem; overflow-x: auto }
.plan { background: #fdd; padding: .2rem .4rem; overflow-wrap: anywhere }
.note { color: #666 }
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: SweepReport) -> str:
    """Return the whole page."""
    groups = "".join(_group(report, cause, failures) for cause, failures in report.groups.items())
    mark = "passed" if report.passed else "failed"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>Fault sweep: {mark}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1 class="{mark}">Fault sweep: {_text(head(report))}</h1>\n{groups}'
        f'<p class="note">{_text(summary(report))}</p>\n{_sites(report)}</body>\n</html>\n'
    )


def _group(report: SweepReport, cause: str, failures: list[Failure]) -> str:
    first, *others = failures
    flaky = "<p>Not reproducible: it did not fail in the same way again.</p>\n"
    place = f"<p><code>{_text(first.place)}</code></p>\n" if first.place else ""
    parts = [
        f"<section>\n<h2>{_text(cause)}</h2>\n{place}",
        f'<p><code class="plan">{_text(command(report, first))}</code></p>\n',
        flaky if first.flaky else "",
        f"<pre>{_lines(first.text)}</pre>\n",
    ]
    if others:
        plans = "".join(f"<li><code>{_text(f.shown)}</code></li>\n" for f in others)
        parts.append(_folded(f"also fails under {len(others):,} more", f"<ul>\n{plans}</ul>\n"))
    if first.trace is not None and len(first.trace):
        timeline = f"<pre>{_lines(first.trace.render())}</pre>\n"
        parts.append(_folded("timeline of the first plan", timeline, is_open=True))
    return "".join((*parts, "</section>\n"))


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
