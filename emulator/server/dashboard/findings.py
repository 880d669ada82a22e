"""The view of findings: what is wrong, or probably not meant.

A planned fault that has not fired is none here: it may still. The view of faults shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.findings import CODES
from emulator.server.dashboard.endpoints import reads
from emulator.server.dashboard.shown import moment_text, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.findings import Finding
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoint of findings."""
    return [reads(desk, "/findings", _findings)]


def found_so_far(desk: Desk) -> list[Finding]:
    """Return the findings, the latest first."""
    return [one for one in desk.emulator.findings if one.code != "fault_not_fired"][::-1]


def _findings(desk: Desk, asked: Asked) -> Answer:
    first, rows = asked.part()
    found = found_so_far(desk)
    return {
        "total": len(found),
        "findings": [
            {
                "at": moment_text(one.at),
                "code": one.code,
                "meaning": CODES[one.code].meaning,
                "fails": CODES[one.code].fails,
                "message": shortened(one.message, 20_000),
                "location": one.location,
                "worker": one.worker,
                "subject": one.subject,
            }
            for one in found[first : first + rows]
        ],
    }
