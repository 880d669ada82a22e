"""`workers-emulator dev` from its options to its end."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Final, Literal

import click

from emulator.cli.arguments import masker_of
from emulator.cli.dev_console import Console
from emulator.cli.refusal import Refusal
from emulator.cli.streams import Gate
from emulator.errors import StateError
from emulator.server.application import Application
from emulator.server.desk import Desk
from emulator.server.guard import Guard
from emulator.server.options import Options
from emulator.server.serving import PortTaken, Server, listen

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from pathlib import Path

    from emulator.kernel import Profile
    from emulator.platform import ClockKind

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_FOLDER: Final = ".workers-emulator"


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
    as_json: bool,
) -> None:
    """Serve until Ctrl-C; raises `Refusal` for what keeps the server from starting."""
    folder = configs[0].parent / _FOLDER if state is None else state.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    options = Options(
        configs=tuple(configs),
        environment=environment,
        profile=profile,
        outbound=outbound,
        clock=clock,
        state=folder / "state.db",
        seed=seed,
    )
    try:
        listening = listen(host, port)
    except PortTaken as error:
        raise Refusal(str(error)) from None
    token = None if host in _LOOPBACK else secrets.token_urlsafe(24)
    try:
        with Gate(aside=as_json) as gate:
            gate.masker = masker_of(configs, environment)
            asyncio.run(_serve(options, listening, token, gate, as_json=as_json, drain=drain))
    finally:
        listening.close()


async def _serve(
    options: Options,
    listening: socket.socket,
    token: str | None,
    gate: Gate,
    *,
    as_json: bool,
    drain: float,
) -> None:
    console = Console(lambda line: _print(gate, line), as_json=as_json)
    desk = Desk(options)
    try:
        desk.start()
    except StateError as error:
        raise Refusal(str(error)) from None
    gate.open(gate.masker)
    server = Server(Application(desk, Guard(token)), console.say, drain=drain)
    host, port = listening.getsockname()[:2]
    console.say(f"ready on http://{host}:{port}", url=f"http://{host}:{port}")
    if desk.problem is not None:
        console.say(f"{desk.problem.title}: {desk.problem.text}", colour="red")
    following = asyncio.create_task(console.follow(desk.feed))
    try:
        await server.serve(sockets=[listening])
    finally:
        desk.close()
        await following


def _print(gate: Gate, line: str) -> None:
    click.echo(line, file=gate.output)
