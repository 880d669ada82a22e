"""A trace as a web page: one table, a column per subject, and a row per event.

The page needs nothing from outside and runs no script; its content security policy forbids both,
so that a payload can only ever be shown.
"""

from __future__ import annotations

from html import escape
from typing import Final

from emulator.trace.timeline import Row, details, printable, write_offset
from emulator.trace.written import write_time

_STYLE: Final = """\
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5rem; color: #222; background: #fff }
.lanes { overflow-x: auto }
table { border-collapse: collapse }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem; border-top: 1px solid #eee }
th { position: sticky; top: 0; background: #fff; border-bottom: 2px solid #888 }
.time { white-space: nowrap; font-variant-numeric: tabular-nums; color: #666 }
.event { background: #f3f6fa; max-width: 40rem; overflow-wrap: anywhere }
.fault .event { background: #fdd; color: #900 }
.lost .event { background: #eee; color: #666; text-decoration: line-through }
pre { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere }
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_CLASSES: Final = {"!": ' class="fault"', "x": ' class="lost"', " ": ""}


def page(start: int, rows: list[Row]) -> str:
    """Return the whole page."""
    lanes = {subject: None for row in rows for subject in (row.subject,)}
    columns = {subject: column for column, subject in enumerate(lanes)}
    heads = "".join(f"<th>{_text(subject)}</th>" for subject in columns)
    body = "".join(_row(row, columns[row.subject], len(columns)) for row in rows)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>Trace</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Trace</h1>\n<p>Virtual time since {write_time(start)}; {len(rows):,} events</p>\n"
        f'<div class="lanes">\n<table>\n<thead><tr><th>time</th>{heads}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table>\n</div>\n</body>\n</html>\n"
    )


def _row(row: Row, column: int, columns: int) -> str:
    shown = details(row.data)
    blocks = "".join(
        f"<pre>{_text(name)}:\n{escape(chr(10).join(lines))}</pre>" for name, lines in shown.blocks
    )
    event = f"<b>{_text(row.kind)}</b> {escape(shown.inline)}{blocks}"
    return (
        f'<tr{_CLASSES[row.mark]}><td class="time">{write_offset(row.offset)}</td>'
        f'{_gap(column)}<td class="event">{event}</td>{_gap(columns - column - 1)}</tr>\n'
    )


def _gap(columns: int) -> str:
    """Return an empty cell as wide as the lanes it passes."""
    return f'<td colspan="{columns}"></td>' if columns else ""


def _text(text: str) -> str:
    return escape(printable(text))
