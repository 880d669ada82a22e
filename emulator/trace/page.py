"""A trace as a web page: a chart to move about in, and the timeline as text.

The page needs nothing from outside. What a payload holds is data and stays data:

1. It stands in a JSON block in ASCII, with `<`, `>` and `&` escaped, so nothing can end the block.
2. The script (timeline.js, text.js) shows it as text only; the policy demands that, too.
3. The content security policy names the one script and the one style by their hashes; nothing else
   runs or loads.

The text is there without the script, for readers that run none and for paper.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emulator.trace.chart import chart
from emulator.trace.timeline import Row, lines
from emulator.trace.written import write_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FOLDER: Final = Path(__file__).parent
_ESCAPED: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_TAGS: Final[Mapping[str, str]] = {"!": "b", "x": "i"}


def page(start: int, rows: Sequence[Row]) -> str:
    """Return the whole page."""
    return document(
        "Trace", f'<main class="page">\n<h1>Trace</h1>\n{section(start, rows)}</main>\n'
    )


def document(title: str, body: str, *, style: str = "", charts: bool = True) -> str:
    """Return a page of its own around `body`, with the chart's style and `style`.

    It has the script, and a policy that allows it, only where there are `charts`.
    """
    sheet = f"\n{_asset('timeline.css')}{style}"
    script = _script() if charts else ""
    run = f"<script>{script}</script>\n" if charts else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, sheet)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{sheet}</style>\n</head>\n<body>\n{body}{run}"
        "</body>\n</html>\n"
    )


def section(start: int, rows: Sequence[Row]) -> str:
    """Return the part of a page that shows a trace: the data of its chart, and its text."""
    data = json.dumps(chart(start, rows), separators=(",", ":"), allow_nan=False)
    text = "\n".join(_line(mark, line) for mark, line in lines(start, rows))
    return (
        f'<section class="trace" aria-label="Trace">\n<p>{_about(start, rows)}</p>\n'
        f'<script type="application/json">{data.translate(_ESCAPED)}</script>\n'
        f'<pre class="text" tabindex="0">{text}\n</pre>\n</section>\n'
    )


def _about(start: int, rows: Sequence[Row]) -> str:
    faults, lost = (sum(row.mark == mark for row in rows) for mark in "!x")
    return (
        f"Virtual time since {write_time(start)}: {_count(len(rows), 'event')}, "
        f"{_count(faults, 'fault')}, {_count(lost, 'loss', 'losses')}"
    )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _line(mark: str, line: str) -> str:
    tag = _TAGS.get(mark)
    return f"<{tag}>{escape(line)}</{tag}>" if tag else escape(line)


@cache
def _script() -> str:
    """Return the script; its names are its own."""
    return f"\n'use strict';\n{{\n{_asset('text.js')}{_asset('timeline.js')}}}\n"


@cache
def _asset(name: str) -> str:
    """Return a file that stands beside this module."""
    return (_FOLDER / name).read_text("utf-8")


@cache
def _policy(script: str, style: str) -> str:
    allowed = f"script-src {_hash(script)}; " if script else ""
    return (
        f"default-src 'none'; {allowed}style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
