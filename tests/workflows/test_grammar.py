"""What Worker code may write (B2, B6, B8, B9, B11, I23, S1, S2, S4 to S6, K1, D1, D2, D5)."""

from __future__ import annotations

import math

import pytest

from emulator.workflows import grammar
from emulator.workflows.execution import Execution
from emulator.workflows.instance import Instance
from emulator.workflows.model import KEEP, SECOND, StepConfig, WorkflowRules
from emulator.workflows.texts import EngineError


def refusal(call, *arguments, **named):
    with pytest.raises(EngineError) as caught:
        call(*arguments, **named)
    return caught.value.name, caught.value.message


INVALID_ID = ("WorkflowError", "Workflow instance has invalid id")
RESERVED = ("WorkflowError", "(instance.invalid_id) Instance ID is invalid")


@pytest.mark.parametrize("id", ["_a", "9-x", "A_b-1", "a" * 100, "batch", "cf_" + "0" * 64])
def test_ids_that_are_fine(id):
    """B2, scenarios 3 and 4; B8: nothing is reserved here."""
    assert grammar.check_id(id) == id


@pytest.mark.parametrize(
    "id", ["-a", "a.b", "a b", "", "ä", "a" * 101, "a\n", "a/b", None, 7, b"a"]
)
def test_ids_that_are_not(id):
    """B2, B3, scenarios 3 and 4."""
    assert refusal(grammar.check_id, id) == INVALID_ID


@pytest.mark.parametrize(
    "id", ["batch", "terminate", "terminateAll", "cf_" + "0" * 64, "a b", None, "a" * 101]
)
def test_ids_that_the_object_form_refuses(id):
    """B8."""
    assert refusal(grammar.check_listed_id, id) == RESERVED


@pytest.mark.parametrize("id", ["Batch", "terminateall", "cf_0", "cf_" + "0" * 63, "x"])
def test_ids_that_only_look_reserved(id):
    """B8."""
    assert grammar.check_listed_id(id) == id


def test_addresses_are_ids_that_cron_made_too():
    """B11."""
    cron = "*/30 * * * *-1786001400000"
    assert grammar.check_address(cron) == cron
    assert grammar.check_address("a" * 271) == "a" * 271
    for id in ("a" * 272, "", "a:b", None):
        assert refusal(grammar.check_address, id) == RESERVED


@pytest.mark.parametrize("count", [0, -1, 1.5, None, "3", True, math.nan, math.inf])
def test_a_count_is_a_positive_integer(count):
    """B9."""
    assert refusal(grammar.check_batch_count, count) == (
        "WorkflowError",
        "(body) count must be a positive integer",
    )


def test_a_count_is_at_most_a_hundred():
    """B9."""
    assert grammar.check_batch_count(100.0) == 100
    assert refusal(grammar.check_batch_count, 101) == (
        "WorkflowError",
        "(body) batchCreate only supports 100 instances at a time",
    )


def test_lists_have_one_to_a_hundred_items():
    """B6, B9, B11."""
    size = "(body) Batch size exceeds maximum allowed"
    for length in (1, 100):
        grammar.check_batch(length)
        grammar.check_listed_batch(length)
        grammar.check_deleted_batch(length)
    assert refusal(grammar.check_batch, 0)[1] == "batchCreate should have at least 1 instance"
    assert (
        refusal(grammar.check_batch, 101)[1] == "batchCreate only supports 100 instances at a time"
    )
    assert refusal(grammar.check_listed_batch, 0)[1] == size
    assert refusal(grammar.check_listed_batch, 101)[1] == size
    assert (
        refusal(grammar.check_deleted_batch, 0)[1]
        == "(body) batchDeleteInstances should have at least 1 instance"
    )
    assert (
        refusal(grammar.check_deleted_batch, 101)[1]
        == "(body) batchDeleteInstances only supports 100 instances at a time"
    )


@pytest.mark.parametrize("type", ["", "a.b", "a b", "-a", "a" * 101, None])
def test_event_types_that_production_refuses(type):
    """I23."""
    name, message = refusal(grammar.check_event_type, type)
    assert name == "WorkflowError"
    assert "workflow.invalid_event_type" in message


def test_event_types_that_are_fine():
    """I23."""
    for type in ("go", "payment_done-1", "A" * 100):
        assert grammar.check_event_type(type) == type


@pytest.mark.parametrize("name", ["", "x" * 256, "☃ name", " lead ", "\x7f", "\U0001f600" * 128])
def test_step_names_that_are_fine(name):
    """S2, scenario 20."""
    grammar.check_step_name(name)


@pytest.mark.parametrize("name", ["x" * 257, "a\nb", "\x00", "\x1f", "\U0001f600" * 128 + "x"])
def test_step_names_that_are_not(name):
    """S2, scenario 20; JavaScript counts an emoji twice."""
    text = f'Step name "{name}" exceeds max length (256 chars) or invalid characters found'
    assert refusal(grammar.check_step_name, name) == ("WorkflowFatalError", text)


def test_a_step_needs_a_function():
    """S1."""
    grammar.check_callback("s", print)
    text = 'Step "s" requires a callback function'
    assert refusal(grammar.check_callback, "s", None) == ("WorkflowFatalError", text)


def test_rollback_options_are_an_object_with_a_function():
    """K1."""
    assert grammar.check_rollback("s", None) == (None, None)
    assert grammar.check_rollback("s", {}) == (None, None)
    found = grammar.check_rollback("s", {"rollback": print, "rollbackConfig": {"timeout": 1}})
    assert found == (print, {"timeout": 1})
    assert refusal(grammar.check_rollback, "s", 5)[1] == (
        'Rollback options for "s" must be an object'
    )
    assert refusal(grammar.check_rollback, "s", {"rollback": 5})[1] == (
        'Rollback for "s" must be a function'
    )


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (1500, 1500),
        ("10", 10),
        ("", 0),
        ("1 second", 1000),
        ("0.1 seconds", 100),
        ("1.5 hours", 5_400_000),
        ("2 weeks", 1_209_600_000),
        ("1 month", 2_592_000_000),
        ("1 year", 31_557_600_000),
        ("2 days", 172_800_000),
        ("-5 minutes", -300_000),
        ("500 ms", 500),
        ("100 milliseconds", 100),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_durations(value, milliseconds, strict):
    """D1, D2, scenario 33."""
    assert grammar.worker_duration(value, strict=strict) == milliseconds


@pytest.mark.parametrize(
    "value",
    [
        "1 hour 30 minutes",
        "1s",
        "5minutes",
        "abc",
        " 5 minutes ",
        "1,000 seconds",
        "1sec",
        "5 s\n",
        None,
        True,
        [],
        b"1",
    ],
)
def test_what_is_no_duration(value):
    """D2, wf_duration_strings."""
    assert math.isnan(grammar.worker_duration(value))


@pytest.mark.parametrize(
    ("value", "milliseconds"), [("5 Minutes", 5), ("1 h", 1), ("5 fortnights", 5), ("1 Second", 1)]
)
def test_unknown_units_are_milliseconds_locally_and_nothing_in_production(value, milliseconds):
    """D2; that production refuses them is a choice of ours."""
    assert grammar.worker_duration(value) == milliseconds
    assert math.isnan(grammar.worker_duration(value, strict=True))


DOCS = "https://developers.cloudflare.com/workflows/build/sleeping-and-retrying/"
BAD_CONFIG = ("WorkflowFatalError", f'Step config for "s" is in a invalid format. See {DOCS}')


@pytest.mark.parametrize("profile", ["production", "miniflare"])
@pytest.mark.parametrize(
    "config",
    [
        {"retries": {"limit": 3}},
        {"retries": {"delay": 1000}},
        {"retries": {}},
        {"retries": None},
        {"retries": {"limit": -1, "delay": 1}},
        {"retries": {"limit": math.inf, "delay": 1}},
        {"retries": {"limit": math.nan, "delay": 1}},
        {"retries": {"limit": "3", "delay": 1}},
        {"retries": {"limit": True, "delay": 1}},
        {"retries": {"limit": 1, "delay": -5}},
        {"retries": {"limit": 1, "delay": math.inf}},
        {"retries": {"limit": 1, "delay": "soon"}},
        {"retries": {"limit": 1, "delay": "5s"}},
        {"retries": {"limit": 1, "delay": None}},
        {"retries": {"limit": 1, "delay": 1, "backoff": "quadratic"}},
        {"retries": {"limit": 1, "delay": 1, "x": 1}},
        {"timeout": 0},
        {"timeout": "0"},
        {"timeout": ""},
        {"timeout": -1},
        {"timeout": "abc"},
        {"timeout": math.inf},
        {"timeout": None},
        {"sensitive": "input"},
        {"sensitive": True},
        {"foo": 1},
        "x",
        5,
    ],
)
def test_settings_that_are_refused(profile, config):
    """S4, scenario 19, wf_retry_partial_config."""
    assert refusal(grammar.step_config, profile, "s", config) == BAD_CONFIG


@pytest.mark.parametrize(
    ("config", "merged"),
    [
        (None, StepConfig(5, 10_000, "exponential", "10 minutes")),
        ({}, StepConfig(5, 10_000, "exponential", "10 minutes")),
        (
            {"retries": {"limit": 1.5, "delay": ""}},
            StepConfig(1.5, "", "exponential", "10 minutes"),
        ),
        (
            {"retries": {"limit": 0, "delay": 7, "backoff": "linear"}, "timeout": "5 seconds"},
            StepConfig(0, 7, "linear", "5 seconds"),
        ),
        (
            {"retries": {"limit": 2, "delay": print}},
            StepConfig(2, None, "exponential", "10 minutes"),
        ),
        (
            {"sensitive": "output"},
            StepConfig(5, 10_000, "exponential", "10 minutes", sensitive=True),
        ),
    ],
)
def test_settings_go_over_the_defaults(config, merged):
    """S4 to S6: without a backoff it is exponential."""
    assert grammar.step_config("production", "s", config) == merged


def test_the_default_delay_is_shorter_locally():
    """S5."""
    assert grammar.step_config("miniflare", "s", None).delay == 1000


def test_production_has_a_limit_of_retries():
    """S4: the number is documented, that it is refused so is a choice of ours."""
    most = {"retries": {"limit": 10_000, "delay": 1}}
    more = {"retries": {"limit": 10_001, "delay": 1}}
    assert grammar.step_config("production", "s", most).limit == 10_000
    assert refusal(grammar.step_config, "production", "s", more) == BAD_CONFIG
    assert grammar.step_config("miniflare", "s", more).limit == 10_001


def test_capitals_in_a_time_out_are_taken_locally():
    """S4: executed with `5 Minutes`."""
    config = {"timeout": "5 Minutes"}
    assert grammar.step_config("miniflare", "s", config).timeout == "5 Minutes"
    assert refusal(grammar.step_config, "production", "s", config) == BAD_CONFIG


def test_rollback_settings_have_a_text_of_their_own():
    """K1."""
    text = f'Rollback config for "s" is in a invalid format. See {DOCS}'
    refused = refusal(grammar.rollback_config, "production", "s", {"sensitive": "output"})
    assert refused == ("WorkflowFatalError", text)
    config = {"retries": {"limit": 1, "delay": 2}, "timeout": 3}
    merged = grammar.rollback_config("production", "s", config)
    assert merged == StepConfig(1, 2, "exponential", 3)


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        (
            StepConfig(1, "2 seconds", "linear", 500, sensitive=True),
            {
                "retries": {"limit": 1, "backoff": "linear", "delay": "2 seconds"},
                "timeout": 500,
                "sensitive": "output",
            },
        ),
        (
            StepConfig(1, None, "constant", "10 minutes"),
            {"retries": {"limit": 1, "backoff": "constant"}, "timeout": "10 minutes"},
        ),
    ],
)
def test_settings_as_the_callback_sees_them(config, shown):
    """R3, R5, wf_ctx_contents and wf_dynamic_delay."""
    assert grammar.shown_config(config) == shown


# What `step` refuses beyond that.


def execution(profile="production", **rules):
    instance = Instance("w", "i", 1, 0, b"", "binding", None, KEEP)
    return Execution(profile, instance, WorkflowRules("w", **rules), rebuilding=False)


LOCALLY = (
    "Error",
    "NOT NULL constraint failed: priority_queue.target_timestamp:"
    " SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)",
)


def test_a_sleep_of_no_duration_is_refused():
    """D2, wf_sleep_until."""
    local, real = execution("miniflare"), execution()
    assert refusal(local.sleep, "n", "abc") == LOCALLY
    assert refusal(local.wait, "n", "go", "abc") == LOCALLY
    assert refusal(local.sleep_until, "n", math.nan, 0) == LOCALLY
    text = (
        "Duration must be a number or a string in format '{{number}} {{unit}}'"
        " where unit is second(s), minute(s), etc."
    )
    assert refusal(real.sleep, "n", "abc") == ("Error", text)
    assert refusal(real.wait, "n", "go", "abc") == ("Error", text)
    assert refusal(real.sleep_until, "n", math.inf, 0) == ("Error", text)


def test_production_sleeps_a_year_at_most():
    """D5, D9; locally nobody checks."""
    year = 365 * 86_400_000
    real, local = execution(), execution("miniflare")
    for ask in (
        lambda e, ms: e.sleep("n", ms),
        lambda e, ms: e.wait("n", "go", ms),
        lambda e, ms: e.sleep_until("n", ms, 0),
    ):
        ask(real, year)
        assert refusal(ask, real, year + 1)[0] == "Error"
        ask(local, year + 1)


def test_sleep_names_are_not_checked():
    """S2, wf_sleep_name_reuse."""
    assert execution().sleep("x" * 300 + "\n", 10)


def test_the_step_limit_comes_before_the_name_and_the_name_before_the_settings():
    """S3; calls that are refused count too."""
    asked = execution(step_limit=2)
    assert "exceeds max length" in refusal(asked.do, "a\n", {"foo": 1})[1]
    assert "invalid format" in refusal(asked.do, "s", {"foo": 1})[1]
    assert refusal(asked.do, "a\n", {"foo": 1}) == (
        "WorkflowFatalError",
        "The limit of 2 steps has been reached."
        " This limit can be changed in your worker configuration.",
    )


def test_rollback_settings_come_first():
    """S3."""
    asked = execution(step_limit=0)
    call = asked.do
    refused = refusal(call, "s", has_rollback=True, rollback_config={"x": 1})
    assert "Rollback config" in refused[1]


def test_steps_of_one_name_are_told_apart_by_the_order_of_calls():
    """C1 to C3: kinds count apart."""
    asked = execution()
    keys = [asked.do("s"), asked.sleep("s", 1), asked.wait("s", "go"), asked.do("s")]
    keys.append(asked.sleep("s", 2))
    assert len(set(keys)) == 5
    assert [asked.asks[key].count for key in keys] == [1, 1, 1, 2, 2]


def test_locally_the_duration_is_part_of_a_sleep():
    """C2: two durations under one name are both the first."""
    asked = execution("miniflare")
    keys = [asked.sleep("s", 1), asked.sleep("s", 2), asked.sleep("s", "1")]
    assert len(set(keys)) == 3
    assert [asked.asks[key].count for key in keys] == [1, 1, 2]


@pytest.mark.parametrize("timeout", [None, 0, ""])
def test_no_time_out_is_a_day(timeout):
    """D9."""
    asked = execution()
    assert asked.asks[asked.wait("w", "go", timeout)].milliseconds == 86_400_000


def test_a_wait_for_a_type_that_nobody_can_send_is_refused():
    """I23; that the wait refuses it is a choice of ours."""
    assert "invalid_event_type" in refusal(execution().wait, "w", "a.b")[1]
    assert execution("miniflare").wait("w", "a.b")


def test_now_is_not_in_the_past():
    """D7: JavaScript's clock has whole milliseconds."""
    now = 5 * SECOND + 999
    assert execution().sleep_until("n", 5000, now)
    assert "time-traveler" in refusal(execution().sleep_until, "n", 4999, now)[1]
