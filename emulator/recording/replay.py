"""Repeats a recording in virtual time.

The clock begins where that of the server stood, with the state that it had and its seed. Everything
that came in comes in again, at its instant, by way of the same application: requests to Workers,
WebSockets, and what was done on control pages. What had not been answered when the next thing came
is still on its way when it comes; what came in together, at one instant and before any Worker did
anything, comes in together. At the end what is left to do is done (`settle`).

The code is the present one, so a reload drops the Workers' memory and nothing else. After a restart
the emulator is rebuilt from its store, as the server was, at the instant at which that went on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from emulator.clock import moment
from emulator.errors import RecordingError
from emulator.outer import has_ready
from emulator.queues.run import ConsumerRun
from emulator.recording import feeding
from emulator.recording.comparing import Outcome, compare
from emulator.recording.entries import Action, Reload, Request, Restart, Socket
from emulator.recording.masking import Filler
from emulator.recording.tape import Player
from emulator.server.application import Application
from emulator.server.desk import Desk
from emulator.server.guard import Guard
from emulator.server.options import Options
from emulator.server.routing import Routing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import timedelta

    from emulator.emulator import Emulator
    from emulator.recording.entries import Entry, Message, Recording
    from emulator.recording.feeding import Client

# Turns of the caller's loop that a client is given to hand over what it has.
_MOST_TURNS: Final = 100_000


class _Open(Guard):
    """Lets everything in: it was let in before."""

    def check(self, method: str, headers: Mapping[str, str], query: str, *, acts: bool) -> None:
        """Refuse nothing."""


class _ReplayDesk(Desk):
    """The desk of an emulator that somebody else made, and closes."""

    def take(self, emulator: Emulator) -> None:
        """Work with this emulator."""
        self._emulator = emulator
        self.settings = emulator._platform.settings
        self.routing = Routing(emulator._platform.settings.workers)


@dataclass(slots=True)
class Replay:
    """One repetition of a recording; `planned` says that the emulator has a fault plan."""

    recording: Recording
    planned: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    # What is worth telling, and held against nobody.
    notes: list[str] = field(default_factory=list)
    _clients: dict[int, Client] = field(default_factory=dict)

    @property
    def differs(self) -> int:
        """How many things are not as they were."""
        return sum(outcome.verdict == "differs" for outcome in self.outcomes)

    async def __call__(self, emulator: Emulator) -> None:
        """Repeat it; raises what the emulator raises, `NotSettled` for instance."""
        recording, platform = self.recording, emulator._platform
        kernel, fill = platform.kernel, Filler.of(platform.settings)
        masker = kernel.trace.masker
        player = Player(recording.outgoing, masker, fill, repeats=self.planned)
        if recording.head.facts.get("outbound") != "deny":
            kernel.outbound.tape = player
        desk = _ReplayDesk(Options(configs=()))
        desk.take(emulator)
        feeder = _Feeder(self, emulator, Application(desk, _Open()), fill)
        kernel.pump.drive(asyncio.get_running_loop())
        try:
            await feeder.run()
            player.ended = True
            await emulator.settle()
            await feeder.quiet()
        finally:
            self._judge(kernel.trace.masker, player)
            for client in self._clients.values():
                client.task.cancel()
            done = [client.task for client in self._clients.values()]
            await asyncio.gather(*done, return_exceptions=True)
            kernel.pump.let_go()
        for client in self._clients.values():
            if not client.task.cancelled() and (error := client.task.exception()) is not None:
                raise error

    def _judge(self, masker: Callable[[str], str], player: Player) -> None:
        for entry in self.recording.entries:
            if isinstance(entry, Request | Socket | Action):
                if isinstance(entry, Action) and entry.moves_clock:
                    continue
                client = self._clients.get(entry.number)
                if client is None and not getattr(entry, "missing", ""):
                    continue  # the replay did not come so far
                self.outcomes += compare(entry, client, masker)  # type: ignore[arg-type]
        for number, what in player.unused:
            text = "was sent to the outside, and is not now"
            self.outcomes.append(Outcome(number, masker(what), "differs", text))
        late = list(dict.fromkeys(player.late))
        self.notes += [
            f"after the end of the recording: {what} was asked for, which it does not hold"
            for what in late
        ]
        self.notes += [
            f"{what} was asked once more than in the recording, and answered as it was"
            for what in dict.fromkeys(player.repeated)
        ]


@dataclass(frozen=True, slots=True)
class _Step:
    """Something to do at an instant; the `line` orders what is to be done at one.

    Only what `joins` comes in together with what came before it.
    """

    at: int
    line: int
    do: Callable[[], Any]
    passes: bool = True
    joins: bool = False


class _Feeder:
    """Does step by step what was done then."""

    def __init__(
        self, replay: Replay, emulator: Emulator, application: Application, fill: Filler
    ) -> None:
        self._replay = replay
        self._emulator = emulator
        self._platform = emulator._platform
        self._application = application
        self._fill = fill

    async def run(self) -> None:
        """Do everything, and come to the recording's end."""
        recording = self._replay.recording
        steps = [step for entry in recording.entries for step in self._steps(entry)]
        before: _Step | None = None
        for step in sorted(steps, key=lambda step: step.line):
            if before is None or not self._joined(before, step):
                await self.quiet()
                if step.passes:
                    await self._pass_until(step.at)
            done = step.do()
            if done is not None:
                await done
            before = step
        await self.quiet()
        await self._pass_until(recording.last)

    def _joined(self, before: _Step, step: _Step) -> bool:
        """Whether both came in before the simulation had its turn."""
        if not (before.joins and step.joins and before.at == step.at):
            return False
        return self._replay.recording.together(before.line, step.line)

    async def quiet(self) -> None:
        """Give way until nobody on this loop has anything to do at this instant."""
        loop = asyncio.get_running_loop()
        await self._emulator.advance(0)
        for _ in range(_MOST_TURNS):
            await asyncio.sleep(0)
            if not has_ready(loop, ()):
                return

    async def _pass_until(self, at: int) -> None:
        passed: timedelta = moment(at) - self._emulator.now
        if passed.total_seconds() > 0:
            await self._emulator.advance(passed)

    def _steps(self, entry: Entry) -> Iterator[_Step]:
        if isinstance(entry, Restart):
            yield _Step(entry.at, entry.line, lambda: self._come_back(entry), passes=False)
            return
        if isinstance(entry, Reload):
            yield _Step(entry.at, entry.line, self._reload)
            return
        if isinstance(entry, Action) and entry.moves_clock:
            return  # time passes to what comes next, which may have come while the clock moved
        if isinstance(entry, Socket) or not entry.missing:
            yield _Step(entry.at, entry.line, lambda: self._begin(entry), joins=True)
        if isinstance(entry, Request) and entry.left is not None and not entry.missing:
            yield _Step(entry.left.at, entry.left.line, lambda: self._leave(entry))
        if isinstance(entry, Socket):
            for message in entry.sent:
                do = self._passing(entry, message)
                yield _Step(message.at, message.line, do, joins=True)

    def _begin(self, entry: Request | Socket | Action) -> None:
        start: Any = {Request: feeding.ask, Socket: feeding.connect, Action: feeding.act}
        client = start[type(entry)](self._application, entry, self._fill)
        self._replay._clients[entry.number] = client

    def _passing(self, socket: Socket, message: Message) -> Callable[[], None]:
        clients = self._replay._clients
        return lambda: feeding.pass_on(clients[socket.number], message, self._fill)

    def _leave(self, request: Request) -> None:
        self._replay._clients[request.number].tell({"type": "http.disconnect"})

    async def _reload(self) -> None:
        await self._emulator.reload()
        await self._emulator._do("reload", lambda: self._platform.end_replaced(ConsumerRun))

    async def _come_back(self, restart: Restart) -> None:
        kernel = self._platform.kernel
        if not self._replay.planned:
            kernel.faults.reset()
        process, seed = restart.process, restart.seed
        await self._emulator._do(
            "restart", lambda: self._platform.come_back(restart.at, process, seed)
        )


def check_workers(recording: Recording, names: list[str]) -> None:
    """Raise `RecordingError` where the recording is about Workers that are gone."""
    asked = [one for one in recording.entries if isinstance(one, Request | Socket)]
    gone = [name for name in dict.fromkeys(one.worker for one in asked) if name not in names]
    if gone:
        (first, *_) = [one for one in asked if one.worker in gone]
        raise RecordingError(
            f"line {first.line} is a request to the Worker {gone[0]!r}, and this config has "
            f"{', '.join(names)}: give the config of the recording with --config"
        )
