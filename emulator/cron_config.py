"""Cron expressions in a config: `triggers.crons` of a Worker, `schedules` of a Workflow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from emulator.cron_dialect import BadCron, parse
from emulator.section import shown

if TYPE_CHECKING:
    from emulator.section import Section

_SAYS: Final = "Cloudflare: invalid cron string [code: 10100]"
_ANY_DAY: Final = datetime(2026, 1, 1, tzinfo=UTC)


def check_cron(section: Section, key: str, cron: str) -> None:
    """Report an expression that no Worker can be deployed with, and one that never fires."""
    try:
        times = parse(cron)
    except BadCron as error:
        section.wrong(key, f"has {shown(cron)}, but {error}", says=_SAYS)
        return
    if times.after(_ANY_DAY) is None:
        section.warn(key, f"has {shown(cron)}, which never fires: no month has such a day")
