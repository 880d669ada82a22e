"""`workers-emulator check`: every problem of configs and handlers, in one run."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.cli.problems import find_problems

if TYPE_CHECKING:
    import pytest
    from conftest import Cli

BASE: dict[str, Any] = {
    "name": "w",
    "main": "src/entry.py",
    "compatibility_date": "2026-09-01",
    "compatibility_flags": ["python_workers"],
}


def config(cli: Cli, file: str = "wrangler.jsonc", /, **keys: Any) -> None:
    cli.write(file, json.dumps({**BASE, **keys}))


def problems(cli: Cli, *arguments: str) -> list[str]:
    """The lines of a check that finds some, without the indented ones."""
    lines = cli("check", *arguments, code=1).stdout.splitlines()
    return [line for line in lines[: lines.index("")] if not line.startswith(" ")]


def test_a_project_without_problems(cli: Cli) -> None:
    result = cli("check", code=0)
    assert result.stdout == "signup: fetch, queue\nno problems\n"
    assert result.stderr == ""


def test_the_nearest_config_is_checked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.path / "deep" / "down").mkdir(parents=True)
    monkeypatch.chdir(cli.path / "deep" / "down")
    assert cli("check", code=0).stdout == "signup: fetch, queue\nno problems\n"


def test_names_that_no_code_can_write_or_no_queue_can_have_are_warned_of(cli: Cli) -> None:
    """workers-sdk#2522: the service refuses the queue, at its making; wrangler checks neither."""
    cli.write(
        "src/entry.py",
        """
        from workers import WorkerEntrypoint

        class Default(WorkerEntrypoint):
            async def queue(self, batch, env, ctx):
                pass
        """,
    )
    cli.write(
        "wrangler.jsonc",
        """
        {
          "name": "w", "main": "src/entry.py", "compatibility_date": "2026-09-01",
          "compatibility_flags": ["python_workers"], // no "q q" here
          "vars": {"my-var": "1", "$good": "2", "größe": "3"},
          "queues": {
            "producers": [
              {"binding": "1 x", "queue": "q q"},
              {"binding": "GOOD", "queue": "a-1"},
            ],
            "consumers": [
              {"queue": "q q", "dead_letter_queue": "dead_letters"},
            ],
          },
        }
        """,
    )
    rule = "Must match ^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
    named = "a name that no queue can be made with (Cloudflare, code 11003: Invalid queue name: "
    unwritten = "has a name that is no identifier: no code can write `env.` and this name"
    lines = cli("check", code=0).stdout.splitlines()
    assert [line for line in lines if line.startswith("warning: ")] == [
        f'warning: wrangler.jsonc:8: the Queue binding "1 x" {unwritten}',
        f'warning: wrangler.jsonc:5: the Environment Variable binding "my-var" {unwritten}',
        f'warning: wrangler.jsonc:8: queues.producers[0].queue is "q q", {named}'
        f"invalid queue name: q q. {rule})",
        'warning: wrangler.jsonc:12: queues.consumers[0].dead_letter_queue is "dead_letters", '
        f"{named}invalid queue name: dead_letters. {rule})",
    ]
    assert "code 11003" not in cli("check", "--profile", "miniflare", code=0).stdout


def test_all_problems_of_config_and_code_are_listed_at_once(cli: Cli) -> None:
    entry = """
    from workers import WorkerEntrypoint, WorkflowEntrypoint

    class NoRun(WorkflowEntrypoint):
        pass

    class BadRun(WorkflowEntrypoint):
        async def run(self, event):
            pass

    class Default(WorkerEntrypoint):
        async def fetch(self, request):
            pass

        async def scheduled(self, controller):
            pass
    """
    cli.write("src/entry.py", entry)
    config(
        cli,
        queues={"consumers": [{"queue": "jobs", "max_batch_size": 1000, "max_retrys": 1}]},
        workflows=[
            {"binding": "A", "name": "a", "class_name": "Missing"},
            {"binding": "B", "name": "b", "class_name": "NoRun"},
            {"binding": "C", "name": "c", "class_name": "BadRun"},
        ],
        vectorize=[{"binding": "CACHE", "index_name": "x"}],
    )
    found = problems(cli)
    assert [line.partition(": ")[0] for line in found] == [
        "wrangler.jsonc",
        "wrangler.jsonc",
        "src/entry.py:15",
        "wrangler.jsonc",
        "wrangler.jsonc",
        "src/entry.py:8",
        "wrangler.jsonc",
        "warning",
    ]
    expected = [
        "queues.consumers[0].max_batch_size is 1000, but must be a whole number from 1 to 100",
        "w: the Worker consumes jobs but has no queue() handler; its handlers: fetch, scheduled",
        "w: production calls `scheduled` with three arguments",
        "w: the Workflow 'a' needs Missing, a WorkflowEntrypoint that the Worker w exports",
        "w: the Workflow's class NoRun has no `run`; write `async def run(self, event, step)",
        "w: production calls `run` of BadRun with two arguments, which raises TypeError: ",
        "w: CACHE is declared in vectorize in wrangler.jsonc; Vectorize Index bindings are",
        'queues.consumers[0].max_retrys is not a known key and has no effect; did you mean "max_re',
    ]
    for line, text in zip(found, expected, strict=True):
        assert text in line
    assert cli("check").stdout.endswith("\nw: fetch, scheduled\n7 problems, 1 warning\n")


def test_use_of_an_env_that_is_none_is_a_warning_with_its_line(cli: Cli) -> None:
    config(cli)
    cli.write(
        "src/entry.py",
        "from workers import WorkerEntrypoint\n\n\nclass Default(WorkerEntrypoint):\n"
        "    async def fetch(self, request):\n        return None\n\n"
        "    async def scheduled(self, controller, env, ctx):\n"
        "        await env.DB.prepare('').run()\n        ctx.waitUntil(None)\n",
    )
    lines = cli("check", code=0).stdout.splitlines()
    passed = "which production passes as None: use"
    assert [line for line in lines if passed in line] == [
        f"warning: src/entry.py:9: w: `scheduled` uses its parameter `env`, {passed} `self.env`",
        f"warning: src/entry.py:10: w: `scheduled` uses its parameter `ctx`, {passed} `self.ctx`",
    ]


def test_what_is_passed_over_in_files_of_secrets_is_a_warning(cli: Cli) -> None:
    config(cli)
    cli.write(".env", "A=1\nsk-secret-without-a-name\n")
    (cli.path / ".dev.vars").mkdir()
    found = [line for line in cli("check", code=0).stdout.splitlines() if line[:10] == "warning: ."]
    assert found == [
        "warning: .dev.vars: is a folder, and is passed over: secrets are in a file",
        "warning: .env:2: the line is no assignment, and is passed over: NAME=value, with a name "
        "of A-Z, a-z, 0-9, _, . and -",
    ]


def test_objects_need_their_class(cli: Cli) -> None:
    config(
        cli,
        durable_objects={"bindings": [{"name": "ROOMS", "class_name": "Room"}]},
        migrations=[{"tag": "v1", "new_sqlite_classes": ["Room"]}],
    )
    (line,) = problems(cli)
    assert line.startswith(
        "wrangler.jsonc: w: the binding ROOMS needs Room, a DurableObject that the Worker w "
        "exports; it exports: none (wrangler: Your Worker depends on the following Durable "
    )


def test_services_need_their_worker_and_its_entrypoint(cli: Cli) -> None:
    own = {"binding": "OWN", "service": "w", "entrypoint": "Missing"}
    config(cli, services=[own, {"binding": "OTHER", "service": "other"}])
    absent, wrong = problems(cli)
    assert absent.startswith(
        "wrangler.jsonc: w: OTHER is declared in services in wrangler.jsonc; it is the Worker "
        "'other', and there are only: w (Cloudflare, code 10143: "
    )
    assert wrong == (
        "wrangler.jsonc: w: the service binding OWN needs Missing, a WorkerEntrypoint that the "
        'Worker w exports; it exports: none (workerd: "w" has no such named entrypoint.)'
    )


def test_crons_need_a_handler_of_their_own(cli: Cli) -> None:
    config(cli, triggers={"crons": ["0 * * * *", "5 * * * *"]})
    (line,) = problems(cli)
    assert line == (
        "wrangler.jsonc: w: the Worker has the cron triggers 0 * * * *, 5 * * * * but no "
        "scheduled() handler; its handlers: fetch, queue"
    )


def test_schedules_of_a_workflow_need_none(cli: Cli) -> None:
    entry = """
    from workers import WorkflowEntrypoint
    class Flow(WorkflowEntrypoint):
        async def run(self, event, step): ...
    """
    cli.write("src/entry.py", entry)
    flow = {"binding": "F", "name": "f", "class_name": "Flow", "schedules": ["0 * * * *"]}
    config(cli, workflows=[flow])
    assert cli("check", code=0).stdout == "w: no handlers\nno problems\n"


def test_code_that_cannot_be_imported_shows_the_users_line_and_output(cli: Cli) -> None:
    cli.write("src/entry.py", "print('so far')\nimport nowhere_at_all\n")
    config(cli, vectorize=[{"binding": "CACHE", "index_name": "x"}])
    result = cli("check", code=1)
    assert result.stderr == "so far\n"
    assert "wrangler.jsonc: the Worker 'w' could not be loaded from " in result.stdout
    assert '      File "src/entry.py", line 2, in <module>\n' in result.stdout
    assert "    ModuleNotFoundError: No module named 'nowhere_at_all'\n" in result.stdout
    assert "CACHE is declared in vectorize" in result.stdout
    assert "emulator/" not in result.stdout


def test_what_a_worker_prints_at_import_is_not_shown_if_it_loads(cli: Cli) -> None:
    cli.write("src/entry.py", f"print('noise')\n{(cli.path / 'src/entry.py').read_text()}")
    assert "noise" not in cli("check", code=0).output


def test_a_missing_main_file_is_a_problem_and_the_rest_is_checked(cli: Cli) -> None:
    config(cli, main="src/none.py", vectorize=[{"binding": "CACHE", "index_name": "x"}])
    first, second = problems(cli)
    assert 'main is "src/none.py", but there is no file ' in first
    assert "CACHE is declared" in second


def test_several_configs_are_checked_together(cli: Cli) -> None:
    entry = """
    from workers import WorkflowEntrypoint
    class Flow(WorkflowEntrypoint):
        async def run(self, event, step): ...
    """
    cli.write("flows/entry.py", entry)
    flow = {"binding": "F", "name": "f", "class_name": "Flow"}
    config(cli, "flows/wrangler.jsonc", name="flows", main="entry.py", workflows=[flow])
    config(cli, workflows=[{**flow, "script_name": "flows"}])
    together = cli("check", "-c", "wrangler.jsonc", "--config", "flows", code=0)
    assert together.stdout == "w: fetch, queue\nflows: no handlers\nno problems\n"
    alone = cli("check", code=0)
    assert "warning: wrangler.jsonc: workflows[0].script_name is" in alone.stdout
    assert alone.stdout.endswith("no problems, 1 warning\n")


def test_a_config_that_cannot_be_read_does_not_hide_the_others(cli: Cli) -> None:
    cli.write("broken.jsonc", "{")
    config(cli, triggers={"crons": ["0 * * * *"]})
    broken, crons = problems(cli, "-c", "broken.jsonc", "-c", "wrangler.jsonc")
    assert broken.startswith("broken.jsonc: line 1, column ")
    assert "cron triggers" in crons


def test_a_stand_in_is_no_problem(cli: Cli) -> None:
    config(
        cli,
        vectorize=[{"binding": "CACHE", "index_name": "x"}],
        services=[{"binding": "S", "service": "x"}],
    )
    assert len(problems(cli)) == 2
    assert len(problems(cli, "--stand-in", "S")) == 1
    result = cli("check", "--stand-in", "S", "--stand-in", "CACHE", code=0)
    assert result.stdout.endswith("no problems\n")
    result = cli("check", "--stand-in", "S", "--stand-in", "CACHE", "--stand-in", "T", code=0)
    assert "warning: --stand-in: no Worker lacks a binding T\n" in result.stdout


def test_a_tail_worker_that_gets_nothing_is_told(cli: Cli) -> None:
    tail = "from workers import WorkerEntrypoint\n\n\nclass Default(WorkerEntrypoint):\n"
    cli.write("alarms/entry.py", f"{tail}    async def tail(self, events, env, ctx): ...\n")
    config(cli, "alarms/wrangler.jsonc", name="alarms", main="entry.py")
    config(cli, tail_consumers=[{"service": "alarms"}])
    result = cli("check", code=0)
    told = "tail_consumers names the Worker alarms, whose config was not given: nobody gets the"
    assert f"warning: wrangler.jsonc: w: {told} events here; give its config" in result.stdout
    assert result.stdout.endswith("no problems, 1 warning\n")
    both = ("-c", "wrangler.jsonc", "-c", "alarms")
    assert cli("check", *both, code=0).stdout.endswith("\nno problems\n")
    cli.write("alarms/entry.py", f"{tail}    async def fetch(self, request): ...\n")
    (line,) = problems(cli, *both)
    told = "the Worker alarms tails w but has no tail() handler; its handlers: fetch"
    assert line == f"wrangler.jsonc: w: {told}"


def test_options_that_production_ignores_are_warnings(cli: Cli) -> None:
    producer = {"binding": "J", "queue": "j", "delivery_delay": 5}
    config(cli, queues={"producers": [producer]})
    result = cli("check", code=0)
    assert 'warning: wrangler.jsonc: w: The "delivery_delay" field' in result.stdout
    assert cli("check", "--profile", "miniflare", code=0).stdout.endswith("\nno problems\n")


def test_an_environment_is_checked(cli: Cli) -> None:
    config(cli, env={"staging": {"triggers": {"crons": ["0 * * * *"]}}})
    cli("check", code=0)
    assert "cron triggers" in problems(cli, "--env", "staging")[0]
    assert "env.prod is not there" in problems(cli, "-e", "prod")[0]


def test_wrong_usage_exits_with_2(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    result = cli("check", "-c", "none.jsonc", code=2)
    assert f"--config: there is no file {cli.path}/none.jsonc; the nearest is " in result.stderr
    assert "no wrangler config in" in cli("check", "-c", "src", code=2).stderr
    assert "No such option" in cli("check", "--nix", code=2).stderr


def test_without_a_config_it_says_where_it_looked(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("alone")
    monkeypatch.chdir(folder)
    assert f"at or above {folder}; give one with --config" in cli("check", code=2).stderr


WHOLE: dict[str, Any] = {
    **BASE,
    "vars": {"A": "x"},
    "queues": {
        "producers": [{"binding": "JOBS", "queue": "jobs"}],
        "consumers": [{"queue": "jobs", "max_retries": 3, "dead_letter_queue": "dead"}],
    },
    "kv_namespaces": [{"binding": "KV", "id": "x"}],
    "vectorize": [{"binding": "CACHE", "index_name": "x"}],
    "workflows": [{"binding": "F", "name": "f", "class_name": "F", "schedules": ["* * * * *"]}],
    "triggers": {"crons": ["0 * * * *"]},
    "services": [{"binding": "S", "service": "other"}],
}
JUNK = st.sampled_from([None, 0, -1, "", "x", [], {}, [1], [{}], {"a": 1}, True, 5.5, "é\x1b"])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_a_config_holds_a_check_ends_with_a_verdict(cli: Cli, data: st.DataObject) -> None:
    value = json.loads(json.dumps(WHOLE))
    for _ in range(data.draw(st.integers(1, 3))):
        place, key = value, data.draw(st.sampled_from(list(WHOLE)))
        while isinstance(place.get(key) if isinstance(place, dict) else place[key], dict | list):
            inner = place[key]
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not keys or data.draw(st.booleans()):
                break
            place, key = inner, data.draw(st.sampled_from(keys))
        place[key] = json.loads(json.dumps(data.draw(JUNK)))
    cli.write("wrangler.jsonc", json.dumps(value))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = find_problems(
            [Path("wrangler.jsonc").absolute()],
            profile=data.draw(st.sampled_from(["production", "miniflare"])),
            environment=None,
            stand_ins=(),
        )
    assert verdict.problems
    assert all(isinstance(text, str) for text in (*verdict.problems, *verdict.warnings))
