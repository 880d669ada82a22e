"""The other process of pytest_sweep_elsewhere.py: a session that runs the tests it is told."""

from __future__ import annotations

import base64
import os
import pickle
import sys
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.config import Config

from emulator.pytest_sweep_elsewhere import SERVER, without_temporary
from emulator.pytest_sweep_pose import blamed
from emulator.pytest_sweep_shards import as_shard
from emulator.sweeping.account import Account
from emulator.sweeping.process import Unable

if TYPE_CHECKING:
    from emulator.sweeping.channel import Channel

_SKIPPED = Account(passed=False, cause="skipped", text="the test was skipped")
# Those that keep, in files of the project, what ran.
_KEEPERS = ("lfplugin", "nfplugin", "stepwiseplugin")


def serve(job: dict[str, Any], channel: Channel) -> None:
    """Be a session of pytest until nobody needs it any more."""
    server = Server(channel)
    try:
        config = _configured(job, server)
        config.hook.pytest_cmdline_main(config=config)
        config._ensure_unconfigure()
    except Exception as error:
        server.broken = server.broken or blamed(error, server.config)
    if server.broken:
        channel.serve(server.refuse, server.run)


def _configured(job: dict[str, Any], server: Server) -> Any:
    options = pickle.loads(base64.b64decode(job["options"]))
    options["basetemp"] = job["basetemp"]
    # What was imported to get here cannot be rewritten, and need not be.
    rewritten = "ignore::pytest.PytestAssertRewriteWarning"
    options["pythonwarnings"] = [*(options.get("pythonwarnings") or ()), rewritten]
    # As in any process of pytest-xdist: nobody reads what plugins have to say at the end.
    plugins = [argument for name in (*job["plugins"], "no:terminal") for argument in ("-p", name)]
    worker = pickle.loads(base64.b64decode(job["worker"]))
    os.environ["PYTEST_XDIST_WORKER"] = worker["workerid"]
    os.environ["PYTEST_XDIST_WORKER_COUNT"] = "1"
    sys.argv[:] = job["argv"]
    config: Any = Config.fromdictargs(options, [*plugins, *job["args"]])
    config.workerinput, config.workeroutput = worker, {}
    config.pluginmanager.register(server, SERVER)
    return config


class Server:
    """The hooks with which a session does what it is told."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._session: Any = None
        self._item: Any = None
        # By file, what was collected: fixtures of a module then stay from test to test.
        self._collected: dict[str, dict[str, pytest.Item]] = {}
        self._failed: dict[str, str] = {}
        self.config: Any = None
        # Why there is no session in which a test could run.
        self.broken = ""

    @pytest.hookimpl
    def pytest_plugin_registered(self, plugin: object, manager: Any) -> None:
        if plugin is self:
            self.config = manager.get_plugin("pytestconfig")

    @pytest.hookimpl
    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.broken = self.broken or blamed(excinfo.value, self.config)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        for name in _KEEPERS:
            if config.pluginmanager.has_plugin(name):
                config.pluginmanager.unregister(name=name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        self._session = session
        return True  # nothing yet

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        self._channel.serve(self._load, self.run)
        return True

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = report.longreprtext.strip()

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self) -> bool:
        """Let pytest-timeout be: who waits for the answer has a limit of its own."""
        return True

    def _load(self, command: dict[str, Any]) -> None:
        file, nodeid = command["file"], command["nodeid"]
        if file not in self._collected:
            items: list[pytest.Item] = self._session.perform_collect([file])
            self._collected[file] = {item.nodeid: item for item in items}
        item = self._collected[file].get(nodeid)
        if item is None:
            failed = self._failed.get(nodeid.partition("::")[0], "there is none of this name")
            why = failed.splitlines()[-1].removeprefix("E").strip()
            raise Unable(f"the other process could not collect the test: {why}")
        # Under the name it has there: what is seeded by it, or called after it, is the same.
        self._item = as_shard(item, *command["shard"])

    def refuse(self, _: dict[str, Any]) -> None:
        raise Unable(self.broken)

    def run(self) -> Account:
        from emulator.pytest_sweep import strict_codes
        from emulator.pytest_sweep_run import Repeater

        item = self._item
        # What an earlier test needed and this one does not; its own is left for the next one.
        self._session._setupstate.teardown_exact(item)
        outcome = Repeater(item, strict_codes(item)).run(())
        if outcome is None:
            return _SKIPPED
        return without_temporary(Account.of(outcome), item.config)
