"""The clean run of a swept test in another process: a pytest like this one, which runs what it is
told (pytest_sweep_server.py has its side).

One such process serves all tests of a session, because to start one takes longer than a sweep. It
is started with the first sweep and has this session's options, without those that report, choose
tests or divide them; to other plugins it is a process of pytest-xdist with a number of its own,
which is how fixtures that must not share a database with others learn of it.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pytest

from emulator.pytest_sweep_pose import is_plain, worker_input
from emulator.pytest_sweep_shards import shard_of, whole_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from emulator.sweeping.account import Account
    from emulator.sweeping.check import Checked, Loading
    from emulator.sweeping.outcome import Outcome
    from emulator.sweeping.process import OtherProcess
    from emulator.sweeping.report import SweepReport

ELSEWHERE = pytest.StashKey["Elsewhere"]()
SERVER: Final = "workers-emulator-server"
_SERVE: Final = "emulator.pytest_sweep_server:serve"
# What the other process must not do again, or must not do at all.
_NEUTRAL: Final[dict[str, Any]] = {
    # interaction, and what only shows
    "usepdb": False,
    "trace": False,
    "collectonly": False,
    "cacheshow": None,
    "setuponly": False,
    "setupplan": False,
    "setupshow": False,
    "durations": None,
    # which tests run
    "lf": False,
    "failedfirst": False,
    "newfirst": False,
    "stepwise": False,
    "maxfail": 0,
    "stepwise_skip": False,
    "keyword": "",
    "markexpr": "",
    "deselect": None,
    # files that are this session's
    "cacheclear": False,
    "xmlpath": None,
    "log_file": os.devnull,
    "pastebin": None,
    "htmlpath": None,
    "json_report": False,
    "report_log": None,
    "allure_report_dir": None,
    "cov_source": [],
    # pytest-xdist
    "numprocesses": None,
    "maxprocesses": None,
    "dist": "no",
    "distload": False,
    "tx": [],
    "looponfail": False,
    "loadgroup": False,
}
# After so many processes that ended by themselves no other is started.
_MOST_ENDED: Final = 3
# Seconds for the fixtures of the session there to be taken down.
_TO_END: Final = 10.0


def is_server(config: pytest.Config) -> bool:
    """Whether this is the other process."""
    return config.pluginmanager.has_plugin(SERVER)


def without_temporary(account: Account, config: pytest.Config) -> Account:
    """Return an account without the name of the session's temporary folder, which is its own."""
    from dataclasses import replace

    folder = getattr(getattr(config, "_tmp_path_factory", None), "_basetemp", None)
    if folder is None:
        return account
    name = str(folder)
    return replace(account, lines=tuple(line.replace(name, "...") for line in account.lines))


class Elsewhere:
    """The other process of a session."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._process: OtherProcess | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._loading = 0
        self._item: pytest.Item | None = None
        self._ended = self._apart = 0
        self._why_not = self._last = ""
        self._is_off = config.getini("emulator_determinism") != "process"

    def load(self, item: pytest.Item, clean: Outcome) -> None:
        """Let the other process make ready to run a test, if its first run passed here."""
        from emulator.sweeping.check import hash_seeds
        from emulator.sweeping.process import cannot_start

        self._item = item
        if self._is_off or shard_of(item)[0] or clean.error is not None:
            self._item = None
            return
        self._why_not = self._given_up() or cannot_start()
        if self._why_not:
            return
        with self._noting():
            if self._process is None or not self._process.is_alive:
                self._close(0)
                self._process = self._start(hash_seeds()[0])
            self._loading = self._process.tell("load", **_address(item))

    def judge(self, report: SweepReport, clean: Outcome) -> SweepReport:
        """Let the other process run the test; return the report with what comes of it."""
        from emulator.sweeping.check import Checked, is_worth_it, judged

        if self._item is None or not is_worth_it(report):
            return report
        if self._why_not or self._process is None:
            return judged(report, Checked(why_not=self._why_not))
        return judged(report, self._compare((self._process, self._loading), clean))

    def _compare(self, process: Loading, clean: Outcome) -> Checked:
        from emulator.sweeping.account import Account
        from emulator.sweeping.check import Checked, compare
        from emulator.sweeping.process import Unable, wait

        account = without_temporary(Account.of(clean), self._config)
        with self._noting():
            checked = wait(compare(process, account, clean.trace, self._again))
            if checked.why_not and not checked.apart:
                raise Unable(checked.why_not)
            self._apart += checked.apart
            return checked
        return Checked(why_not=self._why_not)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Take note of why the check cannot be made, and whether the process itself is why."""
        from emulator.sweeping.process import Unable

        try:
            yield
            return
        except Unable as why:
            self._why_not = self._last = str(why)
        except Exception as error:  # a check that breaks must not fail a test
            self._why_not = self._last = f"the check itself failed: {error!r}"
        if self._process is not None and not self._process.is_alive:
            self._ended += _MOST_ENDED if self._process.hangs else 1

    def _given_up(self) -> str:
        from emulator.sweeping.check import GIVEN_UP, MOST_APART

        if self._ended >= _MOST_ENDED:
            return f"given up after an earlier test, for which {self._last}"
        return GIVEN_UP if self._apart >= MOST_APART else ""

    def _again(self, hash_seed: int) -> Loading:
        """Let a fresh process load the test."""
        assert self._item is not None
        process = self._start(hash_seed)
        try:
            return process, process.tell("load", **_address(self._item))
        except BaseException:
            process.close()
            raise

    def _start(self, hash_seed: int) -> OtherProcess:
        from emulator.sweeping.process import OtherProcess

        config = self._config
        if self._folder is None:
            # Of one name for all of them, since what they do may depend on it.
            self._folder = TemporaryDirectory(
                prefix="workers-emulator-", ignore_cleanup_errors=True
            )
        job = {
            "basetemp": os.path.join(self._folder.name, "basetemp"),
            "options": base64.b64encode(pickle.dumps(_options(config))).decode(),
            # Of several that name one, the last counts.
            "plugins": list({n.removeprefix("no:"): n for n in config.option.plugins}.values()),
            "args": list(map(str, config.args)),
            "argv": sys.argv,
            "worker": base64.b64encode(pickle.dumps(worker_input(config))).decode(),
        }
        return OtherProcess(_SERVE, hash_seed, job=job, folder=config.invocation_params.dir)

    def close(self) -> None:
        """End the process; its session ends as any other."""
        self._close(_TO_END)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _close(self, patience: float) -> None:
        if self._process is not None:
            self._process.close(patience)
            self._process = None


def _address(item: pytest.Item) -> dict[str, Any]:
    """The file of a test, its id, and which shard of how many it is to be."""
    nodeid = whole_id(item)
    if getattr(item.config.option, "loadgroup", False):
        nodeid = nodeid.rpartition("@")[0] or nodeid
    return {"nodeid": nodeid, "file": str(item.path), "shard": shard_of(item)}


def _options(config: pytest.Config) -> dict[str, Any]:
    """The options of this session, as far as they are plain values, with the ones it must have."""
    options = {name: value for name, value in vars(config.option).items() if is_plain(value)}
    options |= {name: value for name, value in _NEUTRAL.items() if name in options}
    options |= {"file_or_dir": [], "plugins": [], "rootdir": str(config.rootpath)}
    if config.inipath is not None:
        options["inifilename"] = str(config.inipath)
    return options
