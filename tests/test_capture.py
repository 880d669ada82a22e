"""`emulator.logs`: what Workers print and log, with levels, line by line."""

from __future__ import annotations

import asyncio
import io
import logging
import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import pytest
from worker_files import handler, worker

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def _streams_and_loggers_are_given_back() -> Iterator[None]:
    before = (
        sys.stdout,
        sys.stderr,
        logging.root.level,
        list(logging.root.handlers),
        logging.Logger.callHandlers,
    )
    yield
    assert (
        sys.stdout,
        sys.stderr,
        logging.root.level,
        list(logging.root.handlers),
        logging.Logger.callHandlers,
    ) == before


async def lines(config: dict[str, Any], *paths: str) -> list[tuple[str, str]]:
    """Level and text of what is logged while these paths are fetched."""
    async with Emulator(config) as emulator:
        for path in paths or ("/",):
            response = await emulator.fetch(path)
            assert response.status_code == 200, response.text
        return [(log.level, log.text) for log in emulator.logs]


async def test_print_and_streams_are_kept_line_by_line_and_passed_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = """
        import sys
        print("one", 2)
        print("to stderr", file=sys.stderr)
        print("two\\nlines")
        sys.stdout.write("direct\\n")
        sys.stdout.writelines(["a\\n", "b\\n"])
        return Response("")
    """
    assert await lines(handler(tmp_path, body)) == [
        ("log", "one 2"),
        ("error", "to stderr"),
        ("log", "two"),
        ("log", "lines"),
        ("log", "direct"),
        ("log", "a"),
        ("log", "b"),
    ]
    shown = capsys.readouterr()
    assert shown.out == "one 2\ntwo\nlines\ndirect\na\nb\n"
    assert shown.err == "to stderr\n"


async def test_a_line_without_its_end_is_kept_when_the_event_ends(tmp_path: Path) -> None:
    body = """
        print("first ", end="")
        await asyncio.sleep(1 if path == "/slow" else 0)
        print("second", end="")
        return Response("")
    """
    assert await lines(handler(tmp_path, body), "/", "/slow") == [("log", "first second")] * 2


async def test_partial_lines_of_two_events_do_not_mix(tmp_path: Path) -> None:
    body = """
        print(f"{path} begins", end=" ")
        await asyncio.sleep(1)
        print("and ends")
        return Response("")
    """
    async with Emulator(handler(tmp_path, body)) as emulator:
        await asyncio.gather(emulator.fetch("/a"), emulator.fetch("/b"))
        assert [log.text for log in emulator.logs] == ["/a begins and ends", "/b begins and ends"]


async def test_a_logs_time_and_worker_are_those_of_the_event(tmp_path: Path) -> None:
    body = "await asyncio.sleep(7)\nprint('x')\nreturn Response('')"
    async with Emulator(handler(tmp_path, body, name="shop")) as emulator:
        await emulator.fetch("/")
        (log,) = emulator.logs
    assert (log.worker, log.at.second) == ("shop", 7)
    assert str(log) == "2026-01-01T00:00:07.000000Z shop log: x"


async def test_console_has_its_levels(tmp_path: Path) -> None:
    body = """
        from js import console
        for level in ("log", "info", "warn", "error", "debug"):
            getattr(console, level)(level, 1)
        return Response("")
    """
    levels = ("log", "info", "warn", "error", "debug")
    assert await lines(handler(tmp_path, body)) == [(level, f"{level} 1") for level in levels]


LOGGING = """
    import logging
    logger = logging.getLogger("shop")
    for level in ("debug", "info", "warning", "error", "critical"):
        getattr(logger, level)("%s %d", level, 1)
    return Response("")
"""


async def test_logging_shows_warnings_unless_it_is_configured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await lines(handler(tmp_path, LOGGING)) == [
        ("warn", "warning 1"),
        ("error", "error 1"),
        ("error", "critical 1"),
    ]
    # As in production, Python's handler of last resort writes them to stderr.
    assert capsys.readouterr().err == "warning 1\nerror 1\ncritical 1\n"


async def test_basic_config_works_and_stays_the_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The root logger has no handlers in production; under pytest it has several."""
    setup = (
        "import logging\n    logging.basicConfig(level='INFO', format='%(levelname)s:%(message)s')"
    )
    body = LOGGING.replace("import logging", setup)
    assert logging.root.handlers
    assert (
        await lines(handler(tmp_path, body), "/", "/")
        == [
            ("info", "info 1"),
            ("warn", "warning 1"),
            ("error", "error 1"),
            ("error", "critical 1"),
        ]
        * 2
    )
    assert capsys.readouterr().err.startswith("INFO:info 1\nWARNING:warning 1\n")
    assert not logging.getLogger("shop").isEnabledFor(logging.INFO)


async def test_a_handler_of_the_workers_is_gone_after_close(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = """
        import logging, sys
        from workers import Response, WorkerEntrypoint
        logger = logging.getLogger("shop.own")
        logger.propagate = False
        logger.setLevel(logging.INFO)
        logger.addHandler(logging.StreamHandler(sys.stdout))
        class Default(WorkerEntrypoint):
            async def fetch(self, request):
                logger.info("hello")
                return Response("")
    """
    for _ in range(2):
        assert await lines(worker(tmp_path, source)) == [("info", "hello")]
        assert capsys.readouterr().out == "hello\n"
    logger = logging.getLogger("shop.own")
    assert logger.handlers == []
    logger.setLevel(logging.NOTSET)
    logger.propagate = True


async def test_a_stream_that_a_worker_kept_is_the_real_one_outside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept: list[Any] = []
    body = "import sys\nself.env.KEPT.append(sys.stdout)\nreturn Response('')"
    async with Emulator(handler(tmp_path, body), bindings={"KEPT": kept}) as emulator:
        await emulator.fetch("/")
        kept[0].write("outside\n")
        assert list(emulator.logs) == []
    kept[0].write("after close\n")
    assert capsys.readouterr().out == "outside\nafter close\n"


async def test_caplog_sees_what_workers_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with Emulator(handler(tmp_path, LOGGING)) as emulator:
        await emulator.fetch("/")
        assert [log.level for log in emulator.logs] == ["info", "warn", "error", "error"]
    assert caplog.messages == ["info 1", "warning 1", "error 1", "critical 1"]


async def test_exceptions_are_logged_with_the_lines_they_came_from(tmp_path: Path) -> None:
    body = """
        import logging
        logging.exception("nothing failed")
        try:
            int("x")
        except ValueError as error:
            logging.exception("it failed")
            kept = error
        logging.warning("again", exc_info=kept)
        return Response("")
    """
    nothing, failed, again = await lines(handler(tmp_path, body))
    assert nothing == ("error", "nothing failed")
    for level, (told, text) in {"error": failed, "warn": again}.items():
        _, *shown = text.splitlines()
        assert told == level
        assert shown[0] == "Traceback (most recent call last):"
        assert shown[1].startswith('  File "entry.py", line ')
        assert shown[2:] == [
            '    int("x")',
            "ValueError: invalid literal for int() with base 10: 'x'",
        ]
    assert failed[1].startswith("it failed\n")
    assert again[1].startswith("again\n")


async def test_a_record_without_words_does_not_fail_the_code(tmp_path: Path) -> None:
    """As in `logging` itself, whose handlers tell of it on stderr."""
    body = """
        import logging
        class Wordless:
            def __str__(self):
                raise RuntimeError("no words")
        logging.warning("%s and %s", 1)
        logging.info("never: below the level of the root logger %s %s", 1)
        logging.error("a %s", Wordless())
        logging.warning("goes on")
        return Response("")
    """
    assert await lines(handler(tmp_path, body)) == [
        (
            "error",
            "--- Logging error ---\nTypeError: not enough arguments for format string\n"
            "Message: '%s and %s'",
        ),
        ("error", "--- Logging error ---\nRuntimeError: no words\nMessage: 'a %s'"),
        ("warn", "goes on"),
    ]


async def test_what_the_test_prints_and_logs_is_no_workers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Emulator(handler(tmp_path, "return Response('')")) as emulator:
        print("the test")
        logging.getLogger("test").warning("the test")
        await emulator.fetch("/")
        assert list(emulator.logs) == []
    assert caplog.messages == ["the test"]


async def test_two_emulators_keep_their_output_apart(tmp_path: Path) -> None:
    body = "print(path)\nawait asyncio.sleep(1)\nprint(path)\nreturn Response('')"
    first = Emulator(handler(tmp_path / "a", body))
    second = Emulator(handler(tmp_path / "b", body))
    async with first, second:
        await asyncio.gather(*(e.fetch(p) for e, p in ((first, "/a"), (second, "/b")) * 2))
        assert {log.text for log in first.logs} == {"/a"}
        assert {log.text for log in second.logs} == {"/b"}
        assert len(first.logs) == len(second.logs) == 4


async def test_output_is_passed_on_to_wherever_it_goes_now(tmp_path: Path) -> None:
    """pytest gives each phase of a test streams of its own."""
    body = "print(path)\nreturn Response('')"
    async with Emulator(handler(tmp_path, body)) as emulator:
        for path in ("/a", "/b"):
            with redirect_stdout(io.StringIO()) as stream:
                await emulator.fetch(path)
            assert stream.getvalue() == f"{path}\n"


async def test_secrets_are_masked(tmp_path: Path) -> None:
    handler(tmp_path, "print(self.env.KEY)\nreturn Response('')")
    (tmp_path / ".dev.vars").write_text("KEY=hunter2-hunter2\n")
    (tmp_path / "wrangler.toml").write_text(
        'name = "w"\nmain = "src/entry.py"\ncompatibility_date = "2026-09-01"\n'
        'compatibility_flags = ["python_workers"]\n'
    )
    async with Emulator(tmp_path / "wrangler.toml") as emulator:
        await emulator.fetch("/")
        assert [log.text for log in emulator.logs] == ["[secret KEY]"]
