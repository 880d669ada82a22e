"""`workers-emulator dev`: Workers behind HTTP, on the machine's clock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.arguments import given_configs, nearest_config
from emulator.cli.options import (
    GivenPath,
    Seconds,
    config_option,
    environment_option,
    profile_option,
)

if TYPE_CHECKING:
    from emulator.kernel import Profile


@click.command("dev")
@config_option
@environment_option
@click.option("--port", type=click.IntRange(0, 65535), default=8787, show_default=True,
              help="The port to listen on; 0 takes a free one.")  # fmt: skip
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. Anything but this machine's own needs a token for control "
    "pages, which is printed.",
)
@click.option(
    "--state",
    type=GivenPath(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where queues, Workflows, objects and databases are kept. By default .workers-emulator "
    "beside the (first) config.",
)
@click.option(
    "--clock",
    type=click.Choice(["real", "virtual"]),
    default="real",
    show_default=True,
    help="The machine's clock, or one that stands still until it is moved.",
)
@click.option(
    "--outbound",
    type=click.Choice(["allow", "deny"]),
    default="allow",
    show_default=True,
    help="Whether Workers' own requests really leave.",
)
@click.option("--seed", type=int, metavar="N", help="The seed of all random values.")
@click.option(
    "--no-reload", is_flag=True, help="Do not load code and config again when they change."
)
@click.option(
    "--drain",
    type=Seconds(min=0),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long Ctrl-C waits for what is in flight.",
)
@click.option(
    "--record",
    type=GivenPath(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Record what comes in there, for `workers-emulator run --replay FILE`. A recording that "
    "is there is gone on with.",
)
@click.option("as_json", "--json", is_flag=True, help="Print a JSON object a line, for programs.")
@profile_option
def command(
    configs: tuple[str, ...],
    environment: str | None,
    profile: Profile | None,
    state: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run Workers on this machine, and load them again when their files change.

    In a folder with a wrangler config:

        workers-emulator dev

    and open http://localhost:8787. Several Workers: -c api/wrangler.jsonc -c jobs/wrangler.jsonc;
    the first takes the requests that no route of another does. Ctrl-C ends it; what queues,
    Workflows and objects hold is kept, and goes on at the next start.

    Exit code: 0 ended by Ctrl-C; 2 it could not start.
    """
    from emulator.cli.dev_run import run

    paths = given_configs(configs) or [nearest_config(Path.cwd())]
    run(paths, environment, profile or "production", state, as_json=as_json, **options)
