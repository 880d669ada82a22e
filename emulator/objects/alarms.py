"""What becomes of an alarm: the rules of its runs (workerd, `server/alarm-scheduler.c++`).

    set ── due ──> running ── ended well ──────────────> gone
                      ├── failed, up to six times ─────> due again, 2 s later, then 4, 8, 16, 32, 64
                      ├── failed once more ────────────> gone
                      └── the object lost its power ───> due again, 2 s later; this does not count

A handler that sets the alarm anew, or deletes it, decides what comes after it: then a failure
changes nothing. An alarm of which nobody knows whether it ended well runs again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emulator.objects.stored import Alarm

if TYPE_CHECKING:
    from emulator.objects.stored import Stored

MOST_RETRIES: Final = 6
_FIRST_DELAY: Final = 2_000_000


def is_decided(stored: Stored) -> bool:
    """Whether the handler that runs has set the alarm anew, or deleted it."""
    return stored.alarm is not stored.running


def retried(alarm: Alarm, now: int) -> Alarm | None:
    """The alarm after a failed run; None where it was the last."""
    if alarm.retries >= MOST_RETRIES:
        return None
    return Alarm(alarm.time, now + (_FIRST_DELAY << alarm.retries), alarm.retries + 1)


def put_off(alarm: Alarm, now: int) -> Alarm:
    """The alarm after a run that was cut off."""
    return Alarm(alarm.time, now + _FIRST_DELAY, alarm.retries)
