"""The clean run of one `sweep()` in another process, which is made ready beside the runs here."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from emulator.sweeping.account import Account
from emulator.sweeping.check import Checked, compare, hash_seeds, is_worth_it, judged
from emulator.sweeping.process import Unable, wait_in_loop
from emulator.sweeping.standing import standing
from emulator.sweeping.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from emulator.sweeping.check import Loading
    from emulator.sweeping.outcome import Outcome
    from emulator.sweeping.report import SweepReport


class Elsewhere:
    """What a sweep asks of another process, if that is `wanted`. Nothing here fails the sweep."""

    def __init__(
        self,
        scenario: Any,
        config: Any,
        seed: int,
        arguments: Mapping[str, Any],
        *,
        wanted: bool,
    ) -> None:
        self._transfer: Transfer | None = None
        self._process: Loading | None = None
        self._why_not = ""
        if wanted:
            with self._noting():
                # Now, because a run may change what it is given.
                self._transfer = Transfer(scenario, config, seed, arguments)

    def load(self, clean: Outcome) -> None:
        """Let a process make ready, if the first run here is one to compare with."""
        if self._transfer is not None and clean.error is None:
            with self._noting():
                self._process = standing.load(self._transfer, hash_seeds()[0])

    async def judge(self, report: SweepReport, clean: Outcome | None) -> SweepReport:
        """Let the other process make its run, and return the report with what comes of it."""
        if clean is None or not is_worth_it(report):
            return report
        checked = Checked()
        if self._transfer is not None and self._process is not None:
            here, again = Account.of(clean), self._transfer.start
            with self._noting():
                checked = await wait_in_loop(compare(self._process, here, clean.trace, again))
            standing.apart += checked.apart
            if checked.why_not or self._why_not:
                self._process[0].close()
        return judged(report, checked._replace(why_not=checked.why_not or self._why_not))

    def close(self) -> None:
        """Let the process wait for the next sweep, if it still can."""
        if self._process is not None:
            standing.keep(self._process[0])

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Take note of why the check cannot be made."""
        try:
            yield
        except Unable as why:
            self._why_not = str(why)
        except Exception as error:
            self._why_not = f"the check itself failed: {error!r}"
