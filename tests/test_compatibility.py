"""Compatibility flags by date: python-api.md 2.4, queues.md 1.4, 1.13 and 2.11, workflows.md E6."""

from __future__ import annotations

import ast
import doctest
import functools
from datetime import date, timedelta
from pathlib import Path

import pytest

import emulator.compatibility
from emulator.compatibility import (
    FIXED,
    FLAGS,
    NAMES,
    NEWEST_DATE,
    Flag,
    generation,
    is_date,
    resolve,
)
from emulator.config import load
from emulator.section import ConfigWarning

PYTHON = "python_workers"
_PACKAGE = Path(emulator.__file__).parent

# Flag, its opposite, and the first date on which a Python Worker has it.
BY_DATE = [
    ("python_workers_force_new_vendor_path", None, "2025-08-11"),
    ("python_no_global_handlers", "disable_python_no_global_handlers", "2025-08-14"),
    ("python_workflows", "disable_python_workflows", "2025-09-20"),
    ("python_workers_20250116", "no_python_workers_20250116", "2025-09-29"),
    ("python_dedicated_snapshot", "disable_python_dedicated_snapshot", "2025-10-16"),
    ("python_check_rng_state", "disable_python_check_rng_state", "2025-12-16"),
    (
        "python_request_headers_preserve_commas",
        "disable_python_request_headers_preserve_commas",
        "2026-02-17",
    ),
    (
        "python_workflows_implicit_dependencies",
        "no_python_workflows_implicit_dependencies",
        "2026-02-25",
    ),
    ("enable_python_external_sdk", "disable_python_external_sdk", "2026-04-21"),
    ("python_process_pth_files", "disable_python_process_pth_files", "2026-05-26"),
    ("capture_async_api_throws", "do_not_capture_async_api_throws", "2022-10-31"),
    (
        "assets_navigation_prefers_asset_serving",
        "assets_navigation_has_no_effect",
        "2025-04-01",
    ),
    ("python_workers_314", "no_python_workers_314", "2026-09-08"),
    ("queues_json_messages", "no_queues_json_messages", "2024-03-18"),
    ("queue_expose_error_codes", "no_queue_expose_error_codes", "2026-03-12"),
    (
        "workflows_preserve_non_retryable_error_message",
        "workflows_replace_non_retryable_error_message",
        "2026-05-14",
    ),
]

# Flags that no date turns on.
BY_NAME = [
    ("python_workers_20260610", "no_python_workers_20260610"),
    ("queue_consumer_no_wait_for_wait_until", "queue_consumer_wait_for_wait_until"),
    ("disallow_importable_env", "allow_importable_env"),
    ("python_workers_20260817", "no_python_workers_20260817"),
    ("workflows_step_rollback", None),
]


def day_before(day: str) -> str:
    return (date.fromisoformat(day) - timedelta(days=1)).isoformat()


@pytest.mark.parametrize(("flag", "opposite", "since"), BY_DATE)
def test_a_flag_is_on_from_its_date_and_not_a_day_sooner(
    flag: str, opposite: str | None, since: str
):
    assert flag in resolve(since, [PYTHON]).flags
    assert flag in resolve(NEWEST_DATE, [PYTHON]).flags
    assert flag not in resolve(day_before(since), [PYTHON]).flags


@pytest.mark.parametrize(("flag", "opposite", "since"), BY_DATE)
def test_a_flag_that_is_listed_is_on_before_its_date(flag: str, opposite: str | None, since: str):
    assert flag in resolve("2021-01-01", [PYTHON, flag]).flags


@pytest.mark.parametrize(("flag", "opposite"), [(f, o) for f, o, _ in BY_DATE if o is not None])
def test_the_opposite_turns_a_flag_off_for_good(flag: str, opposite: str):
    resolved = resolve(NEWEST_DATE, [PYTHON, opposite])
    assert flag not in resolved.flags
    assert opposite not in resolved.flags
    assert resolved.refused == resolved.unknown == ()


@pytest.mark.parametrize(("flag", "opposite"), BY_NAME)
def test_a_flag_without_a_date_is_on_only_where_it_is_listed(flag: str, opposite: str | None):
    assert flag not in resolve(NEWEST_DATE, [PYTHON]).flags
    assert flag in resolve(NEWEST_DATE, [PYTHON, flag]).flags


def test_flags_of_the_python_runtime_need_python_workers():
    flags = resolve(NEWEST_DATE, []).flags
    assert "queues_json_messages" in flags
    assert not {PYTHON, "python_workers_314", "python_workflows"} & flags


def test_a_flag_implied_by_another_goes_with_it():
    """`python_dedicated_snapshot` comes with the Pyodide of 2025-01-16 and not with Python."""
    flags = resolve(NEWEST_DATE, [PYTHON, "no_python_workers_20250116"]).flags
    assert "python_dedicated_snapshot" not in flags
    assert "python_dedicated_snapshot" in resolve("2025-10-16", ["python_workers_20250116"]).flags


@pytest.mark.parametrize(
    ("day", "generations"),
    [
        ("2025-09-28", set()),
        ("2025-09-29", {"python_workers_20250116"}),
        ("2026-09-07", {"python_workers_20250116"}),
        ("2026-09-08", {"python_workers_20250116", "python_workers_314"}),
    ],
)
def test_the_date_chooses_the_generation_of_python(day: str, generations: set[str]):
    known = {"python_workers_20250116", "python_workers_20260610", "python_workers_314"}
    assert resolve(day, [PYTHON]).flags & known == generations


def test_a_flag_with_its_opposite_is_refused_in_the_words_of_the_runtime():
    resolved = resolve("2026-01-01", ["no_queues_json_messages", "queues_json_messages"])
    assert resolved.refused == (
        "Compatibility flags are mutually contradictory: "
        "queues_json_messages vs no_queues_json_messages",
    )


def test_a_flag_without_effect_is_also_refused_with_its_opposite():
    resolved = resolve("2026-01-01", ["nodejs_compat", "no_nodejs_compat"])
    assert resolved.refused == (
        "Compatibility flags are mutually contradictory: nodejs_compat vs no_nodejs_compat",
    )


def test_a_flag_listed_twice_is_refused_in_the_words_of_the_runtime():
    assert resolve("2026-01-01", ["rpc", "nodejs_compat", "rpc", "rpc"]).refused == (
        "Compatibility flag specified multiple times: rpc",
    )


def test_flags_that_only_javascript_notices_are_known_and_on_where_listed():
    listed = ["nodejs_compat", "nodejs_als", "experimental", "streams_enable_constructors"]
    resolved = resolve("2024-01-01", [*listed, "no_web_socket_compression"])
    assert resolved.unknown == ()
    assert set(listed) <= resolved.flags
    assert "nodejs_compat" not in resolve(NEWEST_DATE, []).flags


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_known_flag_switches_something_or_says_that_it_does_not(flag: Flag):
    """A flag that the rest of the emulator asks for; else a config that lists it is told."""
    is_asked_for = flag.name in asked_for()
    assert is_asked_for != (flag.name in FIXED)
    ignored = {name for name in (flag.name, flag.opposite) if name and told_of(name)}
    other = flag.opposite if FIXED.get(flag.name) else flag.name
    assert ignored == (set() if is_asked_for or other is None else {other})


def test_a_flag_that_only_javascript_notices_is_asked_for_nowhere():
    of_javascript = {*NAMES} - {name for flag in FLAGS for name in (flag.name, flag.opposite)}
    assert of_javascript & asked_for() == set()


def told_of(name: str) -> bool:
    """Whether a config that lists this flag is told that it changes nothing."""
    return name in [told for told, _ in resolve(NEWEST_DATE, [PYTHON, name]).ignored]


@functools.cache
def asked_for() -> frozenset[str]:
    """The texts in the emulator's code but for the table: a flag is asked for by its name."""
    found = set()
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path.name != "compatibility.py":
            tree = ast.parse(path.read_text("utf-8"))
            found |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    # The names that are not asked for by text: the first stands for Python, those of Pyodide's
    # releases are asked for in the table's own module, and `rpc` is a word.
    releases = {"python_workers_20250116", "python_workers_20260610", "python_workers_314"}
    return frozenset(
        {text for text in found if isinstance(text, str)} - {"rpc"} | releases | {PYTHON}
    )


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        ("disable_python_workflows", "as with python_workflows"),
        ("python_process_pth_files", "as without python_process_pth_files"),
        ("disable_python_process_pth_files", None),
        ("python_workers_20260817", "as without python_workers_20260817"),
        ("no_rpc", "as with rpc"),
    ],
)
def test_what_is_said_of_a_flag_that_is_not_heeded(listed: str, text: str | None):
    said = dict(resolve(NEWEST_DATE, [PYTHON, listed]).ignored).get(listed)
    assert said == text


def test_a_config_that_lists_a_flag_that_is_not_heeded_is_told():
    config = {"main": object, "compatibility_flags": ["no_rpc"]}
    text = 'compatibility_flags has "no_rpc", which workers-emulator does not heed'
    with pytest.warns(ConfigWarning, match=f"{text}: it behaves as with rpc"):
        load(config)


@pytest.mark.parametrize(
    ("day", "listed", "pyodide"),
    [
        ("2024-06-01", (), 26),
        ("2024-06-01", ("python_workers_20250116",), 28),
        ("2024-06-01", ("python_workers_20260610",), 314),
        ("2024-06-01", ("python_workers_314",), 314),
        ("2026-07-01", ("python_workers_20260610",), 314),
        ("2026-09-08", (), 314),
        ("2026-09-08", ("no_python_workers_314",), 28),
        ("2026-09-08", ("no_python_workers_314", "python_workers_20260610"), 314),
        ("2026-09-08", ("no_python_workers_314", "no_python_workers_20250116"), 26),
    ],
)
def test_the_newest_release_that_is_on_counts(day: str, listed: tuple[str, ...], pyodide: int):
    assert generation(resolve(day, [PYTHON, *listed]).flags) == pyodide


def test_unknown_flags_are_returned_in_order_once():
    assert resolve("2026-01-01", ["zzz", "rpc", "queue_json", "zzz"]).unknown == (
        "zzz",
        "queue_json",
    )


def test_no_name_is_in_the_tables_twice():
    assert len(NAMES) == len(set(NAMES))


def test_every_flag_of_the_table_has_a_real_date_and_comes_after_the_one_it_needs():
    names = [flag.name for flag in FLAGS]
    for index, flag in enumerate(FLAGS):
        assert flag.since is None or is_date(flag.since)
        assert flag.needs is None or flag.needs in names[:index]


@pytest.mark.parametrize("text", ["2026-01-01", "2024-02-29", NEWEST_DATE])
def test_days_are_dates(text: str):
    assert is_date(text)


@pytest.mark.parametrize(
    "text", ["", "2026-1-1", "20260101", "2026-W01-1", "2025-02-29", "2026-01-01T00:00:00", "today"]
)
def test_other_spellings_are_no_dates(text: str):
    assert not is_date(text)


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(emulator.compatibility).failed == 0
