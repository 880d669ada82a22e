"""What `workers-emulator dev` prints, and what it refuses before it serves."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest

from emulator import Emulator
from emulator.cli import dev_table
from emulator.cli.dev_console import Console
from emulator.config import lacks_environment
from emulator.server.desk import Desk
from emulator.server.feed import Feed
from emulator.server.options import Options
from emulator.trace.live import LiveTrace

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Cli

CONFIG = """
{
  "name": "shop", "main": "src/entry.py", "compatibility_date": "2026-10-01",
  "compatibility_flags": ["python_workers"],
  "routes": ["example.com/shop/*"],
  "vars": {"COLOUR": "red"},
  "queues": {
    "producers": [{"binding": "EMAILS", "queue": "emails"}, {"binding": "LOST", "queue": "lost"}],
    "consumers": [{"queue": "emails", "dead_letter_queue": "graves", "max_batch_timeout": 0}],
  },
  "kv_namespaces": [{"binding": "CACHE"}],
  "browser": {"binding": "BROWSER"},
  "triggers": {"crons": ["0 9 * * *"]},
}
"""
WORKER = """
from workers import Response, WorkerEntrypoint


class Default(WorkerEntrypoint):
    async def fetch(self, request):
        print("two\\nlines")
        await self.env.EMAILS.sendBatch([{"body": n} for n in range(5)])
        return Response("ok", status=500 if "bad" in request.url else 200)

    async def queue(self, batch, env, ctx):
        pass

    async def scheduled(self, controller, env, ctx):
        pass
"""


@pytest.fixture
def shop(cli: Cli) -> Cli:
    cli.write("wrangler.jsonc", CONFIG)
    cli.write("src/entry.py", WORKER)
    cli.write(".dev.vars", "TOKEN=very-secret\n")
    return cli


def shown(cli: Cli, *, as_json: bool = False) -> list[str]:
    """What the terminal shows of two requests and what follows."""
    lines: list[str] = []
    console = Console(lines.extend, as_json=as_json)
    with Emulator(cli.path / "wrangler.jsonc", history=100) as emulator:
        feed = Feed(100)
        feed.attach(emulator.trace)  # type: ignore[arg-type]
        for path in ("/", "/bad"):
            emulator.run(emulator.fetch(path))
        emulator.run(emulator.settle())
        feed.publish()
        console.show(feed.since(0))
    return lines


def test_a_request_a_batch_and_its_outcome_are_a_line_each(shop: Cli) -> None:
    lines = [click.unstyle(line) for line in shown(shop)]
    assert "00:00:00.000  request GET /  200 in 0 ms" in lines
    assert "00:00:00.000  request GET /bad  500 in 0 ms" in lines
    assert "00:00:00.000  request GET /  log: two" in lines
    (batch, *_) = [line for line in lines if "queue emails" in line]
    assert "batch messages=[" in batch
    acks = [line for line in lines if "ack: " in line]
    assert all(line.endswith(" more, attempt 1") for line in acks)
    assert len([line for line in lines if "send" in line]) == 0


def test_what_fails_is_red(shop: Cli) -> None:
    (bad,) = [line for line in shown(shop) if "500 in" in line]
    assert "\x1b[31m500 in 0 ms\x1b[0m" in bad


def test_json_is_an_event_a_line(shop: Cli) -> None:
    events = [json.loads(line) for line in shown(shop, as_json=True)]
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["kind"] == "request"
    assert {"number", "at", "kind", "subject", "data"} == set(events[0])


def test_the_server_speaks_json_too() -> None:
    lines: list[str] = []
    Console(lines.extend, as_json=True).say("ready", colour="green", url="http://x")
    assert json.loads(lines[0]) == {"server": "ready", "url": "http://x"}


def test_what_a_terminal_would_obey_is_escaped() -> None:
    lines: list[str] = []
    Console(lines.extend).say("a\x1b[2Jb\nc")
    assert lines == ["a\\x1b[2Jb", "c"]


async def _table(cli: Cli) -> tuple[list[str], list[str], Any]:
    desk = Desk(Options(configs=(cli.path / "wrangler.jsonc",), clock="virtual"))
    desk.start()
    try:
        assert desk.problem is None
        return (
            list(dev_table.table(desk)),
            list(dev_table.warnings(desk.platform)),
            dev_table.facts(desk.platform),
        )
    finally:
        desk.close()


@pytest.mark.asyncio
async def test_the_table_names_what_there_is_and_no_secret(shop: Cli) -> None:
    table, warnings, facts = await _table(shop)
    text = "\n".join(table)
    for part in (
        "shop  requests   example.com/shop/*",
        "EMAILS (queue emails)",
        "CACHE (KvNamespace)",
        "variables  COLOUR",
        "secrets    TOKEN",
        "consumes   emails (dead letters to graves)",
        "crons      0 9 * * *",
    ):
        assert part in text, text
    assert "very-secret" not in text + json.dumps(facts)
    assert facts[0]["worker"] == "shop"
    assert "the queue lost has no consumer; 0 waiting" in warnings
    assert "the dead letter queue graves has no consumer; 0 waiting" in warnings
    assert any("BROWSER" in warning for warning in warnings)


def test_help_shows_a_newcomer_how_to_begin(cli: Cli) -> None:
    text = cli("dev", "--help", code=0).output
    assert "workers-emulator dev" in text
    assert "http://localhost:8787" in text
    assert "-c api/wrangler.jsonc" in text


def test_no_config_is_told_with_the_names_it_may_have(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cli.path / "wrangler.jsonc").unlink()
    monkeypatch.chdir(cli.path)
    result = cli("dev", code=2)
    assert "there is no wrangler.jsonc" in result.output


def test_an_environment_that_no_config_has_is_refused_before_anything_is_made(shop: Cli) -> None:
    config, record, state = (shop.path / name for name in ("wrangler.jsonc", "r.jsonl", "state"))
    options = ("-c", str(config), "--record", str(record), "--state", str(state))
    result = shop("dev", "-e", "nope", "--port", "0", *options, code=2)
    assert 'No environment found in configuration with name "nope"' in result.output
    assert "this config has none" in result.output
    assert "ready" not in result.output
    assert not record.exists()
    assert not state.exists()


def test_an_environment_that_one_config_has_can_be_corrected(tmp_path: Path) -> None:
    one, other = tmp_path / "a.jsonc", tmp_path / "b.jsonc"
    one.write_text('{"name": "a", "env": {"there": {}}}', "utf-8")
    other.write_text('{"name": "b"}', "utf-8")
    broken = tmp_path / "c.jsonc"
    broken.write_text("{", "utf-8")
    assert lacks_environment([other], "there")
    assert not lacks_environment([other, one], "there")
    assert not lacks_environment([other, broken], "there")


@pytest.mark.parametrize("option", ["--state", "--record"])
def test_an_empty_path_is_refused(shop: Cli, option: str) -> None:
    result = shop("dev", "-c", str(shop.path / "wrangler.jsonc"), option, "", code=2)
    assert f"Invalid value for '{option}': the path is empty" in result.output


def test_a_new_day_has_a_line_before_what_happened_on_it(shop: Cli) -> None:
    lines: list[str] = []
    console = Console(lines.extend)
    with Emulator(shop.path / "wrangler.jsonc", history=100) as emulator:
        feed = Feed(100)
        feed.attach(emulator.trace)  # type: ignore[arg-type]
        for _ in range(2):
            emulator.run(emulator.fetch("/"))
            emulator.run(emulator.advance("2 days 1 h"))
        emulator.run(emulator.fetch("/"))
        feed.publish()
        console.show(feed.since(0))
    bare = [line for line in lines if not line.startswith(("0", " "))]
    assert bare == ["2026-01-03", "2026-01-05"]
    assert lines[lines.index("2026-01-03") + 1].startswith("01:00:00.000")
    assert lines[0].startswith("00:00:00.000")


def test_a_server_does_not_import_pytest(shop: Cli) -> None:
    """It takes long, time-machine would import it, and the server is to be there at once."""
    code = """
import sys
from emulator.cli.dev_process import settle_in
settle_in()
assert "time_machine" in sys.modules
print([name for name in sys.modules if name.partition(".")[0] in ("pytest", "_pytest")])
import pytest
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=shop.path
    )
    assert done.stdout == "[]\n"


def test_the_terminal_is_done_with_thousands_of_events_at_once(shop: Cli) -> None:
    """A server that ends waits for its terminal: it rests once for what it shows together."""
    shown: list[str] = []

    async def follow(feed: Feed) -> None:
        feed.close()
        async with asyncio.timeout(5):
            await Console(shown.extend, as_json=True).follow(feed)

    feed = Feed(5000)
    trace = LiveTrace(0, limit=5000)
    feed.attach(trace)
    for number in range(3000):
        trace.record(number, "log", "request GET /", level="log", text=str(number))
    feed.publish()
    asyncio.run(follow(feed))
    assert len(shown) == 3000


@pytest.mark.parametrize("given", ["nan", "inf"])
def test_a_time_to_drain_is_a_number(shop: Cli, given: str) -> None:
    result = shop("dev", "-c", str(shop.path / "wrangler.jsonc"), "--drain", given, code=2)
    assert f"Invalid value for '--drain': {given} is no number of seconds" in result.output
