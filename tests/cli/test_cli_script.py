"""The installed script and `python -m emulator`, in processes of their own."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from conftest import SCRIPT

import emulator
from emulator.cli.app import COMMANDS, app
from emulator.cli.progress import progress
from emulator.sweeping.search import Search

if TYPE_CHECKING:
    from conftest import Cli

LOST = "batch.emails#1:lose_ack"


def test_the_version_and_the_commands(cli: Cli) -> None:
    version = cli.script("--version")
    assert version.stdout == f"workers-emulator {emulator.__version__}\n".encode()
    for module in (False, True):
        help_text = cli.script("--help", module=module).stdout.decode()
        commands = help_text[help_text.index("Commands:") :].splitlines()[1:]
        assert [line.split()[0] for line in commands] == list(COMMANDS)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (["run", "scenario.py", "--json"], {"--trace": "t.jsonl", "--html": "t.html"}),
        (["sweep", "scenario.py"], {"--json": "s.json", "--html": "s.html", "--junit": "s.xml"}),
    ],
)
def test_the_same_command_gives_the_same_bytes(
    cli: Cli, command: list[str], files: dict[str, str]
) -> None:
    given = [part for option in files.items() for part in option]
    results = []
    for seed, module in (("1", False), ("2", True)):
        done = cli.script(*command, *given, module=module, environment={"PYTHONHASHSEED": seed})
        written = [(cli.path / name).read_bytes() for name in files.values()]
        results.append((done.returncode, done.stdout, done.stderr, written))
    assert results[0] == results[1]
    assert all(results[0][3])


def test_an_ascii_terminal_gets_escapes(cli: Cli) -> None:
    cli.write(
        "umlaut.py", "async def scenario(emulator):\n    print('größe')\n    assert 'ß' == ''\n"
    )
    done = cli.script("run", "umlaut.py", environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1
    assert b"gr\\xf6\\xdfe\n" in done.stdout
    assert b"assert '\\xdf' == ''" in done.stdout


def test_a_reader_that_stops_reading_is_no_error(cli: Cli) -> None:
    process = subprocess.Popen(
        [SCRIPT, "run", "scenario.py", "--trace", "t.jsonl"],
        cwd=cli.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(60)
    assert (cli.path / "t.jsonl").stat().st_size > 0


def interrupted(cli: Cli, *arguments: str, when: str) -> tuple[int, str, str]:
    """Run a command and press Ctrl-C when its stderr has a line."""
    process = subprocess.Popen(
        [SCRIPT, *arguments],
        cwd=cli.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_ctrl_c,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if when in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


def _hear_ctrl_c() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so does all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


# Tells when it is time, past the command's own handling of what it prints.
SIGN = "import os\nos.write(2, b'now\\n')\n"


def test_ctrl_c_in_a_worker_that_spins_shows_where_it_is(cli: Cli) -> None:
    spin = (
        (cli.path / "src/entry.py")
        .read_text()
        .replace("while True:\n", f"{SIGN.replace(chr(10), '; ')[:-2]}\n            while True:\n")
    )
    cli.write("src/entry.py", spin)
    cli.write("spins.py", "async def scenario(emulator):\n    await emulator.fetch('/spin')\n")
    code, out, _ = interrupted(cli, "run", "spins.py", "--trace", "t.jsonl", when="now")
    assert code == 130
    assert "url=http://localhost/spin" in out
    assert 'File "src/entry.py"' in out
    assert "\ninterrupted: KeyboardInterrupt at src/entry.py:" in out
    assert "reproduce" not in out
    assert "/spin" in (cli.path / "t.jsonl").read_text()


def test_ctrl_c_in_a_scenario_that_waits_says_on_which_line(cli: Cli) -> None:
    text = """
    import asyncio, os, threading
    async def scenario(emulator):
        asyncio.get_running_loop().call_later(0.1, os.write, 2, b"now\\n")
        await asyncio.sleep(3600)
    """
    cli.write("waits.py", text)
    code, out, _ = interrupted(cli, "run", "waits.py", when="now")
    assert code == 130
    assert "the scenario waited at waits.py:5" in out


def test_ctrl_c_in_a_sweep_prints_what_was_found(cli: Cli) -> None:
    text = (cli.path / "scenario.py").read_text()
    # The run after the first failure.
    sign = f"    if emulator.faults.plan and FAILED:\n        {SIGN.replace(chr(10), '; ')}\n"
    sign += "        while True: pass\n"
    text = text.replace("    with respx", f"{sign}    with respx")
    text = text.replace(
        "        assert", "        if mail.call_count > 1: FAILED.append(1)\n        assert"
    )
    cli.write("slow.py", f"FAILED = []\n{text}")
    arguments = ("sweep", "slow.py", "--json", "s.json", "--only", "message.*", "--only", "batch.*")
    code, out, err = interrupted(cli, *arguments, when="now")
    assert code == 130
    assert "3 runs: 1 failure of 1 cause\n" in out
    assert "message.emails#1:duplicate" in out
    assert out.endswith("; the sweep was not finished\nnot tried: 7 request faults\n")
    assert err.endswith("interrupted\n")
    value = json.loads((cli.path / "s.json").read_text())
    assert (value["complete"], value["passed"]) == (False, False)


# The limit is an hour: it strikes because the alarm is raised by hand, at a place that is known.
ENDLESS = """
import asyncio
import signal

def strike():
    asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGALRM)

async def worker(emulator):
    await emulator.fetch("/")

async def itself(emulator):
    signal.raise_signal(signal.SIGALRM)

async def waits(emulator):
    strike()
    await asyncio.sleep(3600)

async def deaf(emulator):
    while True:
        strike()
        try:
            await asyncio.sleep(3600)
        except BaseException:
            pass
"""
ENDLESS_WORKER = """
import signal
from workers import WorkerEntrypoint

class Default(WorkerEntrypoint):
    async def fetch(self, request):
        signal.raise_signal(signal.SIGALRM)
"""
LIMIT = ("--timeout", "3600")
TOLD = "\nmore than 3600 s of real time, the limit of --timeout"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("worker", "out of time at src/entry.py:7"),
        ("itself", "out of time at ends.py:12"),
        ("waits", "the scenario waited at ends.py:16"),
    ],
)
def test_a_run_has_a_time_limit_in_real_time(cli: Cli, name: str, place: str) -> None:
    cli.write("ends.py", ENDLESS)
    cli.write("src/entry.py", ENDLESS_WORKER)
    before = signal.getsignal(signal.SIGALRM)
    out = cli("run", "ends.py", "--scenario", name, *LIMIT, code=1).stdout
    assert TOLD in out
    assert place in out
    assert f"reproduce: workers-emulator run ends.py --scenario {name}\n" in out
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_the_time_limit_holds_for_imports_too(cli: Cli) -> None:
    strikes = "import signal\nsignal.raise_signal(signal.SIGALRM)\n"
    cli.write("loops.py", strikes)
    cli.write("other/entry.py", strikes)
    cli.write("quick.py", 'CONFIG = {"main": "other/entry.py"}\nasync def scenario(e): ...\n')
    for command in ("run", "sweep"):
        for name, place in (("loops.py", "loops.py"), ("quick.py", "other/entry.py")):
            result = cli(command, name, *LIMIT, code=2)
            assert f'  File "{place}", line 2, in <module>' in result.stderr
            assert TOLD in result.stderr


def test_code_that_swallows_the_limit_ends_all_the_same(cli: Cli) -> None:
    cli.write("ends.py", ENDLESS)
    done = cli.script("run", "ends.py", "--scenario", "deaf", *LIMIT)
    assert done.returncode == 1
    assert b"the scenario waited at ends.py:22" in done.stdout
    assert TOLD.encode() in done.stdout


def test_a_run_that_hangs_under_a_fault_is_a_failure_of_the_sweep(cli: Cli) -> None:
    text = """
    import asyncio
    import httpx
    import respx

    async def scenario(emulator):
        sent = asyncio.Event()

        def send(request):
            sent.set()
            return httpx.Response(202)

        with respx.mock() as outside:
            outside.post("https://mail.example/send").mock(side_effect=send)
            await emulator.fetch("/signup", method="POST")
            await emulator.advance("5 seconds")
            await sent.wait()
            await emulator.settle()
    """
    cli.write("scenario.py", text)
    done = cli.script("sweep", "scenario.py")
    out = done.stdout.decode()
    assert done.returncode == 1
    assert "of 1 cause\n\nStuck\n" in out
    assert "the scenario waits at scenario.py:17 for something that can never happen" in out
    assert "batch.emails#1:crash_before" in out

    # While it still may come, it is waited for.
    cli.write("scenario.py", text.replace("await sent.wait()", "await asyncio.to_thread(sent.set)"))
    assert cli.script("sweep", "scenario.py").returncode == 0


def test_a_debugger_is_heard(cli: Cli) -> None:
    cli.write("stops.py", "async def scenario(emulator):\n    breakpoint()\n    print('on')\n")
    done = subprocess.run(
        [SCRIPT, "run", "stops.py"],
        cwd=cli.path,
        input=b"p 6 * 7\nc\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"(Pdb) 42\n" in done.stdout
    assert b"passed: " in done.stdout


def on_a_terminal(cli: Cli, *arguments: str, **environment: str) -> str:
    """Run a command on a terminal of its own; return all that it shows."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [SCRIPT, *arguments],
        cwd=cli.path,
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm", **environment},
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # how Linux tells the end
            break
        if not part:
            break
        shown += part
    os.close(master)
    process.wait(60)
    return shown.decode()


def test_a_terminal_has_a_progress_bar_and_colours(cli: Cli) -> None:
    shown = on_a_terminal(cli, "sweep", "scenario.py", "--only", "batch.*#*:lose_ack")
    assert "sweep  [" in shown
    assert "\x1b[31mfailed: " in on_a_terminal(cli, "run", "scenario.py", "--faults", LOST)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": ""}])
def test_colours_can_be_declined(cli: Cli, environment: dict[str, str]) -> None:
    given = {"TERM": "xterm", "NO_COLOR": None} | environment
    result = CliRunner().invoke(app, ["run", "scenario.py"], color=True, env=given)
    assert ("\x1b[32mpassed: " in result.stdout) == (environment == {"NO_COLOR": ""})
    assert ("\x1b" in result.stdout) == (environment == {"NO_COLOR": ""})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search()
    for term, stream, shown in (
        ("xterm", Terminal(), True),
        ("dumb", Terminal(), False),
        ("xterm", io.StringIO(), False),
    ):
        monkeypatch.setenv("TERM", term)
        with progress(stream) as show:
            show(search)
        assert bool(stream.getvalue()) == shown


def test_the_command_line_costs_nobody_else_anything() -> None:
    """Neither `import emulator` nor the pytest plugin may load it."""
    code = (
        "import sys, emulator, emulator.pytest_plugin\n"
        "print([m for m in ('click', 'emulator.cli') if m in sys.modules])\n"
        "import emulator.emulator, emulator.sweeping.run\n"
        "print([m for m in ('emulator.cli',) if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


def test_help_does_not_load_the_emulator() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom emulator.cli.app import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print([m for m in ('httpx', 'emulator.emulator') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
