"""The determinism check in another process: is the clean run the same there?

1. A process with another PYTHONHASHSEED makes the clean run, once. If it is that of this process,
   all is well.
2. If it is not, that may be because a fresh process lacks something that is here: a mock, a patch,
   what an earlier test left behind. So fresh processes are compared with each other: two with the
   same PYTHONHASHSEED, then others with further ones. Only where two of *these* differ is the
   scenario not deterministic, and what they have in common says why.
3. If all of them agree, they say nothing of the scenario, and the report says so.
4. Nothing that goes wrong with a process fails a sweep; the report says that the check was made in
   one process only, and why.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from emulator.sweeping import determinism
from emulator.sweeping.process import Unable, run_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from emulator.sweeping.account import Account
    from emulator.sweeping.outcome import Failure
    from emulator.sweeping.process import OtherProcess, Waiting
    from emulator.sweeping.report import SweepReport
    from emulator.trace import Trace

# A set of two texts has the same order under half of all seeds.
_SEEDS: Final = 5
# After so many that are `apart` nothing more is asked.
MOST_APART: Final = 2
GIVEN_UP: Final = "given up after earlier sweeps that did something else in a process of their own"
# So many seconds has a process to take down what its run has set up.
_TO_END: Final = 5.0

Loading = tuple["OtherProcess", int]
"""A process, and the number of the command to load that it was given."""


class Checked(NamedTuple):
    """What the check came to: a failure, or why it says nothing, or neither.

    `apart` says that it took many processes to find that they all do the same: something else than
    this one, or than the one that was asked first. Whoever asks had better not do so often.
    """

    failure: Failure | None = None
    why_not: str = ""
    apart: bool = False


def hash_seeds() -> list[int]:
    """Return values of PYTHONHASHSEED that are not that of this process, always the same ones."""
    mine = os.environ.get("PYTHONHASHSEED", "")
    return [seed for seed in range(1, _SEEDS + 1) if str(seed) != mine]


def judged(report: SweepReport, checked: Checked) -> SweepReport:
    """Return the report of a sweep with what the check has found."""
    if checked.failure is None:
        return replace(report, in_process_only=checked.why_not)
    failures = [checked.failure, *report.failures]
    return replace(report, failures=failures, replayed=report.replayed + 1)


def is_worth_it(report: SweepReport) -> bool:
    """Whether a sweep is at its end, and the clean run is one to compare with."""
    fails_clean = bool(report.failures) and not report.failures[0].plan
    return report.complete and not report.empty and not fails_clean


def compare(
    process: Loading, here: Account, trace: Trace | None, again: Callable[[int], Loading]
) -> Waiting[Checked]:
    """Compare the clean run made here with that of another process.

    `trace` is that of the run made here, for a failure; `again` lets a fresh process load.
    """
    try:
        there = yield from run_in(*process)
        if there.is_same(here):
            return Checked()
        process[0].close(_TO_END)
        return (yield from _explain(here, trace, again))
    except Unable as why:
        return Checked(why_not=str(why))


def _explain(
    here: Account, trace: Trace | None, again: Callable[[int], Loading]
) -> Waiting[Checked]:
    first_seed, *others = hash_seeds()
    # Few at first: most of what depends on the seed shows with the second.
    first: Account | None = None
    for seeds in ((first_seed, first_seed, *others[:2]), others[2:]):
        accounts = yield from _runs(seeds, again)
        if first is None:
            first = accounts.pop(0)
            seeds = seeds[1:]
        for seed, account in zip(seeds, accounts, strict=True):
            if not account.is_same(first):
                circumstances = determinism.two_hash_seeds(first_seed, seed)
                if seed == first_seed:
                    circumstances = determinism.two_processes()
                return Checked(determinism.failure(first, account, circumstances, trace=trace))
    assert first is not None
    if first.is_same(here):
        return Checked(apart=True)  # the one process had more behind it than this run
    return Checked(why_not=_apart(here, first), apart=True)


def _runs(seeds: Sequence[int], again: Callable[[int], Loading]) -> Waiting[list[Account]]:
    """Start processes side by side; let them make their runs one after another."""
    processes: list[Loading] = []
    try:
        for seed in seeds:
            processes.append(again(seed))  # noqa: PERF401 - those that were started must end
        accounts = []
        for process, loading in processes:
            accounts.append((yield from run_in(process, loading)))
            process.close(_TO_END)
        return accounts
    finally:
        for process, _ in processes:
            process.close()


def _apart(here: Account, there: Account) -> str:
    shown = determinism.described(here, there, ("here", "there"))
    return (
        "processes of their own agree with each other and not with this one, which has something "
        "that they lack (a mock or a patch around the sweep, what an earlier test left behind): "
        f"{shown}"
    )
