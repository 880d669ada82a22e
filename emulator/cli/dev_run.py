"""`workers-emulator dev` from its options to its end."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final, Literal
from warnings import catch_warnings

import click

from emulator.cli.arguments import masker_of
from emulator.cli.dev_console import Console
from emulator.cli.dev_process import settle_in
from emulator.cli.dev_table import facts, remains, table, warnings
from emulator.cli.refusal import Refusal
from emulator.cli.streams import Gate
from emulator.clock import RealClock
from emulator.config import lacks_environment, load
from emulator.durations import describe
from emulator.errors import ConfigError, RecordingError, StateError
from emulator.server.application import Application
from emulator.server.desk import Desk
from emulator.server.guard import Guard
from emulator.server.options import Options
from emulator.server.reloading import Reloader
from emulator.server.serving import CannotListen, Server, listen
from emulator.server.state_folder import NAME, StateFolder

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from pathlib import Path

    from emulator.kernel import Profile
    from emulator.platform import ClockKind

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def run(
    configs: Sequence[Path],
    environment: str | None,
    profile: Profile,
    state: Path | None,
    *,
    host: str,
    port: int,
    clock: ClockKind,
    outbound: Literal["allow", "deny"],
    seed: int | None,
    no_reload: bool,
    drain: float,
    record: Path | None,
    as_json: bool,
) -> None:
    """Serve until Ctrl-C; raises `Refusal` for what keeps the server from starting."""
    _check_environment(configs, environment, profile)
    folder = StateFolder(configs[0].parent / NAME if state is None else state.absolute())
    options = Options(
        configs=tuple(configs),
        environment=environment,
        profile=profile,
        outbound=outbound,
        clock=clock,
        state=folder.file,
        seed=seed,
    )
    try:
        listening = listen(host, port)
    except CannotListen as error:
        raise Refusal(str(error)) from None
    try:
        folder.acquire()
        with Gate(aside=as_json) as gate:
            gate.masker = masker_of(configs, environment)
            console = Console(
                lambda lines: click.echo("\n".join(lines), file=gate.output), as_json=as_json
            )
            session = _Session(options, folder, listening, console, reload=not no_reload)
            if record is not None:
                session.record(record)
            gate.open(gate.masker)
            asyncio.run(session.serve(drain))
    except StateError as error:
        raise Refusal(str(error)) from None
    except RecordingError as error:
        raise Refusal(f"--record: {error}") from None
    finally:
        listening.close()
        folder.release()


def _check_environment(configs: Sequence[Path], environment: str | None, profile: Profile) -> None:
    """Refuse an environment that no config has: no correction of a file is meant."""
    if environment is None or not lacks_environment(configs, environment):
        return
    try:
        with catch_warnings(action="ignore"):
            load(list(configs), profile=profile, environment=environment)
    except ConfigError as error:
        raise Refusal(str(error)) from None


class _Session:
    """One server of the command line."""

    def __init__(
        self,
        options: Options,
        folder: StateFolder,
        listening: socket.socket,
        console: Console,
        *,
        reload: bool,
    ) -> None:
        self._folder = folder
        self._listening = listening
        self._console = console
        self._reload = reload
        self._introduced = False
        self._recording: Path | None = None
        self._warned: list[str] = []
        self._unconsumed: dict[str, None] = {}
        self._desk = desk = Desk(options)
        desk.on_news = self._tell
        console.on_send = self._sent
        desk.set_aside = lambda: str(folder.set_aside("state"))
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self._token = None if host in _LOOPBACK else secrets.token_urlsafe(24)
        self._url = f"http://{shown}:{port}"

    def record(self, path: Path) -> None:
        """Record what comes in; raises `RecordingError` for a file that cannot be one."""
        from emulator.recording.recorder import Recorder

        self._desk.recorder = Recorder(
            path, self._desk.options, lambda text: self._tell(text, True)
        )
        self._recording = path

    async def serve(self, drain: float) -> None:
        """Serve until a signal.

        Raises `StateError` where the state cannot be used, `RecordingError` where a recording does
        not go on here.
        """
        desk, console = self._desk, self._console
        settle_in()
        desk.start()
        self._folder.tell(self._url)
        self._introduce()
        server = Server(Application(desk, Guard(self._token)), console.say, drain=drain)
        tasks = [asyncio.create_task(console.follow(desk.feed))]
        if self._reload:
            tasks.append(asyncio.create_task(self._watch()))
        try:
            await server.serve(sockets=[self._listening])
        finally:
            left = list(remains(desk.platform)) if desk.is_running else []
            desk.close()
            for task in tasks[1:]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._say_goodbye(left)

    async def _watch(self) -> None:
        try:
            await Reloader(self._desk).run()
        except* Exception as group:
            text = "; ".join(f"{type(error).__name__}: {error}" for error in group.exceptions)
            self._tell(f"files are not watched any more, so nothing is reloaded: {text}", True)

    def _introduce(self) -> None:
        """Say what there is, and what is probably not meant."""
        desk, console = self._desk, self._console
        told: dict[str, Any] = {"url": self._url}
        if desk.is_running:
            told["workers"] = facts(desk.platform)
            if not console.as_json:
                for line in table(desk):
                    console.say(line)
            self._warn()
            self._look_at_clock()
        console.say(f"ready on {self._url}", colour="green", **told)
        self._introduced = True
        dashboard = f"{self._url}/cdn-cgi/emulator/"
        if self._token is None:
            console.say(f"dashboard: {dashboard}")
        else:
            console.say(f"dashboard, and other control pages: {dashboard}?token={self._token}")
        if self._recording is not None:
            console.say(f"recording into {self._recording}")

    def _look_at_clock(self) -> None:
        clock = self._desk.platform.kernel.clock
        if isinstance(clock, RealClock) and clock.ahead:
            self._tell(
                f"the emulator's clock is {describe(clock.ahead)} ahead of the machine's, as the "
                "state has it: time never runs backwards. With another --state it begins anew",
                False,
            )

    def _tell(self, text: str, bad: bool) -> None:
        warns = text.startswith("warning: ")
        self._console.say(text, colour="red" if bad else "yellow" if warns else None)
        if self._introduced:
            self._warn()

    def _sent(self, queue: str) -> None:
        """A message for a queue that nobody consumes waits there, which is told once."""
        desk = self._desk
        if not desk.is_running or queue in desk.platform.queues.consumers:
            return
        if queue not in self._unconsumed:
            self._unconsumed[queue] = None
            waiting = len(desk.platform.queues.broker.pending(queue))
            self._console.say(
                f"warning: the queue {queue} has no consumer; {waiting} waiting", colour="yellow"
            )

    def _warn(self) -> None:
        """Say what is probably not meant, and was not said before."""
        if not self._desk.is_running:
            return
        found = list(warnings(self._desk.platform))
        for warning in found:
            if warning not in self._warned:
                self._console.say(f"warning: {warning}", colour="yellow")
        self._warned = found

    def _say_goodbye(self, left: list[str]) -> None:
        place = f"stopped; what is durable is in {self._folder.path}"
        goes_on = f", and goes on at the next start: {', '.join(left)}" if left else ""
        self._console.say(f"{place}{goes_on}", remains=left)
